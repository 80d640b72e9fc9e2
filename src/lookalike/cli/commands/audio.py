"""`lookalike audio ...`: recordings are indexed, and found by a snippet."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from lookalike.checks import share, thread_count, whole_number
from lookalike.cli.common import check_folder, check_not_read
from lookalike.cli.parser import Parser, command
from lookalike.cli.terminal import say, say_json, warn, warn_left_out
from lookalike.corpora.opening import expand_paths
from lookalike.errors import DocumentError, FileError
from lookalike.media import Problem, find_files
from lookalike.operation import report
from lookalike.progress import progress_bars, watched
from lookalike.recordings.audio_hash import KINDS, LEAST_SCORE, AudioHash
from lookalike.recordings.index import RecordingIndex, RecordingMatch
from lookalike.recordings.medium import RecordingMedium
from lookalike.recordings.workers import read_recordings
from lookalike.shown import counted, escape_terminal
from lookalike.storage.files import check_replaceable, is_there
from lookalike.suggestions import did_you_mean_file

TASK = "search"
PURPOSE = "find the recording that a snippet is from, and the time in it"
EXAMPLES = """\
  lookalike audio index music/ -o music.parts
  lookalike audio search snippet.wav --index music.parts
"""
DETAILS = """\
WAV, FLAC, Ogg, MP3, AIFF and other formats of libsndfile, detected by content. Needs the extra
audio: pip install 'lookalike[audio]'. `lookalike dedup music/` finds duplicate recordings.
"""


def add(parser: Parser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    purpose = "index recordings by their sound"
    shown = {"details": _INDEX_DETAILS, "examples": _INDEX_EXAMPLES}
    command(actions, "index", _index, purpose, _INDEX_ARGUMENTS, **shown)
    purpose = "find the recordings that snippets are from"
    shown = {"details": _SEARCH_DETAILS, "examples": _SEARCH_EXAMPLES}
    command(actions, "search", _search, purpose, _SEARCH_ARGUMENTS, **shown)


DEFAULT_INDEX = Path("music.parts")
_NAMED = 10
"""Files that could not be read and are named, unless with --json, where all are."""

_INDEX_ARGUMENTS = f"""
  paths:PATH...        folders or files
  -o --output FILE={DEFAULT_INDEX}  index to write
  kind:--hash {"|".join(KINDS)}={KINDS[0]}  audio hash; chromaprint needs the program fpcalc
  --threads
  --json
"""
_INDEX_EXAMPLES = """\
  lookalike audio index music/
  lookalike audio index music/ podcasts/ -o sounds.parts --hash chromaprint
"""
_INDEX_DETAILS = """\
A recording becomes a word of 32 bits per 50 ms. Silence, and recordings shorter than 0.8 s, have no
words. Files that cannot be read are skipped, counted and named. To add recordings, build the index
again, or use a collection: `lookalike collection create music.db --kind recordings`.
"""


def _index(options: argparse.Namespace) -> None:
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


_LEAST = ", ".join(f"{kind} {score}" for kind, score in LEAST_SCORE.items())
_SEARCH_ARGUMENTS = f"""
  files:FILE...        snippets
  --index INDEX={DEFAULT_INDEX}  file of `lookalike audio index`
  -k K=5               number of recordings per snippet
  --min-score SHARE    minimum share of the snippet that matches, above 0 to 1 (default: {_LEAST})
  --threads
  --json
"""
_SEARCH_EXAMPLES = """\
  lookalike audio search snippet.wav
  lookalike audio search a.mp3 b.ogg --index sounds.parts --json
"""
_SEARCH_DETAILS = """\
A snippet of ten seconds is enough. The score is the share of the snippet's words that the recording
has at that time.
"""


def _search(options: argparse.Namespace) -> None:
    k = whole_number("k", options.k, at_least=1)
    least = None if options.min_score is None else share("min_score", options.min_score)
    threads = thread_count(options.threads)
    if not is_there(options.index):
        raise FileError(
            f"there is no index {options.index}; build one with `lookalike audio index FOLDER`, or "
            f"name another with --index{did_you_mean_file(options.index)}"
        )
    index = RecordingIndex.load(options.index)
    unread = 0
    with watched("read", options.json, len(options.files), "files"):
        found = []
        for one in read_recordings(options.files, index.hash, threads=threads):
            found.append(one)
            report(len(found), len(options.files))
    for file, one in zip(options.files, found, strict=True):
        if isinstance(one, DocumentError) and len(options.files) == 1:
            raise FileError(f"{file} {one}")
        if isinstance(one, DocumentError):
            warn(f"{file} {one}", kind="")
            unread += 1
            continue
        if len(one.words) == 0:
            warn(f"{file} is silent or shorter than 0.8 s; there is nothing to search for")
        matches = index.search(one, k=k, min_score=least, threads=threads)
        if options.json:
            say_json({"snippet": str(file), "found": [_plain(match) for match in matches]})
        else:
            _show(file, matches, titled=len(options.files) > 1)
    if unread:
        raise FileError(f"{unread} of {len(options.files)} snippets could not be read")


def _plain(match: RecordingMatch) -> dict[str, object]:
    return {
        "recording": match.recording,
        "offset": round(match.offset, 3),
        "score": round(match.score, 4),
        "votes": match.votes,
    }


def _show(file: Path, matches: list[RecordingMatch], *, titled: bool) -> None:
    if titled:
        say(escape_terminal(file))
    if not matches:
        say("  no recording has it")
    for match in matches:
        say(f"  {clock(match.offset):>8}  {match.score:5.2f}  {escape_terminal(match.recording)}")


def clock(seconds: float) -> str:
    """Return minutes and seconds, hours where there are some."""
    sign, whole = "-" if seconds < 0 else "", round(abs(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02}:{rest:02}" if hours else f"{sign}{minutes:02}:{rest:02}"
