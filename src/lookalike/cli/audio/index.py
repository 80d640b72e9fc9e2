"""`lookalike audio index`: a folder of recordings in, an index of their words out."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from lookalike.cli.options import add_threads, check_folder, check_not_read
from lookalike.cli.parser import Subparsers, add_json, command
from lookalike.cli.terminal import progress_bars, say, say_json, warn_left_out
from lookalike.corpora.opening import expand_paths
from lookalike.errors import FileError
from lookalike.media import Problem, find_files
from lookalike.recordings import AudioHash, RecordingIndex
from lookalike.recordings.audio_hash import KINDS
from lookalike.recordings.medium import RecordingMedium
from lookalike.shown import counted, escape_terminal
from lookalike.storage import check_replaceable

DEFAULT_INDEX = Path("music.parts")
_NAMED = 10
"""Files that could not be read and are named, unless with --json, where all are."""

_PURPOSE = "index recordings by their sound"
_DETAILS = """\
Silence has no words, nor what is shorter than 0.8 s. Files that cannot be read are left out,
counted and named. An index is written whole: to take in new recordings, make it again. Where they
come and go, `lookalike collection create music.db --method recordings` keeps them.

examples:
  lookalike audio index music/
  lookalike audio index music/ podcasts/ -o sounds.parts --kind chromaprint
"""


def declare(actions: Subparsers) -> None:
    """Declare the action."""
    description = f"{_PURPOSE.capitalize()}: a word of 32 bits for each 50 ms."
    parser = command(actions, "index", _run, _PURPOSE, description, _DETAILS)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="folders, or files")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=DEFAULT_INDEX,
        metavar="FILE",
        help=f"the index to write (default {DEFAULT_INDEX})",
    )
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default=KINDS[0],
        help="of words: bands are our own, chromaprint those of the program fpcalc, which has to "
        f"be installed (default {KINDS[0]})",
    )
    add_threads(parser)
    add_json(parser)


def _run(options: argparse.Namespace) -> None:
    started = time.perf_counter()
    hash = AudioHash(options.kind)
    hash.check_installed()
    check_folder(options.output)
    check_replaceable(options.output)
    paths = expand_paths(options.paths)
    found = find_files(paths, RecordingMedium)
    check_not_read("--output", options.output, found.files)
    index = RecordingIndex(hash)
    with progress_bars(options.json) as progress:
        added = index.add_files(
            found.files,
            folder=paths[0] if len(paths) == 1 and paths[0].is_dir() else None,
            threads=options.threads,
            progress=progress,
        )
    bad = [Problem(one.file, one.reason) for one in added if one.reason is not None]
    problems = sorted([*found.problems, *bad], key=lambda problem: problem.path)
    silent = sum(one.reason is None and one.words == 0 for one in added)
    if not len(index):
        _name(problems)
        raise FileError(f"there are no recordings in {', '.join(map(str, options.paths))}")
    index.save(options.output)
    if options.json:
        say_json(
            {
                "output": str(options.output),
                "recordings": len(index),
                "words": index.parts.part_count,
                "silent": silent,
                "left_out": [{"path": str(one.path), "reason": one.reason} for one in problems],
                "other_files": len(found.others),
                "seconds": round(time.perf_counter() - started, 3),
            }
        )
        return
    _name(problems)
    say(
        f"{counted(len(index), 'recording')} with {counted(index.parts.part_count, 'word')} "
        f"{'is' if len(index) == 1 else 'are'} in {escape_terminal(options.output)}, in "
        f"{time.perf_counter() - started:.1f} s"
    )
    others = "other file" if len(found.others) == 1 else "other files"
    for count, what in (
        (silent, "silent, or too short to be found"),
        (len(problems), "left out: could not be read"),
        (len(found.others), f"{others}, not looked at"),
    ):
        if count:
            say(f"  {count:,} {what}")


def _name(problems: Sequence[Problem]) -> None:
    examples = [f"{problem.path}: {problem.reason}" for problem in problems[:_NAMED]]
    warn_left_out(len(problems), examples)
