"""`lookalike audio ...`: recordings are indexed, and found by a snippet or another performance."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookalike.checks import share, thread_count, whole_number
from lookalike.cli.common import check_folder, check_not_read
from lookalike.cli.parser import Parser, command
from lookalike.cli.terminal import say, say_json, warn, warn_left_out
from lookalike.corpora.opening import expand_paths
from lookalike.errors import ArgumentError, DocumentError, FileError
from lookalike.indexes.kinds import load_index
from lookalike.media import Problem, find_files
from lookalike.operation import report
from lookalike.progress import progress_bars, watched
from lookalike.recordings.audio_hash import KINDS, LEAST_SCORE, AudioHash
from lookalike.recordings.cover_index import LEAST_SCORE as LEAST_COVER
from lookalike.recordings.cover_index import CoverIndex, CoverMatch
from lookalike.recordings.index import RecordingIndex, RecordingMatch
from lookalike.recordings.medium import RecordingMedium
from lookalike.recordings.workers import read_recordings
from lookalike.shown import counted, escape_terminal
from lookalike.storage.files import check_replaceable, is_there
from lookalike.suggestions import did_you_mean_file

TASK = "search"
PURPOSE = "find the recording that a snippet is from, or another performance of a piece"
EXAMPLES = """\
  lookalike audio index music/ -o music.parts
  lookalike audio search snippet.wav --index music.parts
  lookalike audio index music/ --cover
  lookalike audio search song.mp3 --cover
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
    purpose = "find the recordings that snippets are from, or that play the same piece"
    shown = {"details": _SEARCH_DETAILS, "examples": _SEARCH_EXAMPLES}
    command(actions, "search", _search, purpose, _SEARCH_ARGUMENTS, **shown)


DEFAULT_INDEX, DEFAULT_COVERS = Path("music.parts"), Path("covers.parts")
_NAMED = 10
"""Files that could not be read and are named, unless with --json, where all are."""

_INDEX_ARGUMENTS = f"""
  paths:PATH...        folders or files
  -o --output FILE     index to write (default: {DEFAULT_INDEX}, or {DEFAULT_COVERS} with --cover)
  kind:--hash {"|".join(KINDS)}  audio hash (default: {KINDS[0]}); chromaprint needs the
                       program fpcalc
  --cover              index notes in place of sound, to find other performances of a piece
  --threads
  --json
"""
_INDEX_EXAMPLES = """\
  lookalike audio index music/
  lookalike audio index music/ podcasts/ -o sounds.parts --hash chromaprint
  lookalike audio index music/ --cover
"""
_INDEX_DETAILS = """\
A recording becomes a word of 32 bits per 50 ms. Silence, and recordings shorter than 0.8 s, have no
words. With --cover, it becomes a word of 192 bits per half second, of the notes that are heard; it
needs 4.4 s. Files that cannot be read are skipped, counted and named. To add recordings, build the
index again, or (without --cover) use a collection: `lookalike collection create music.db --kind
recordings`.
"""


def _index(options: argparse.Namespace) -> None:
    started = time.perf_counter()
    if options.cover and options.kind is not None:
        raise ArgumentError(
            f"--hash is {options.kind}, but --cover has its own hash; leave one out"
        )
    output = options.output or (DEFAULT_COVERS if options.cover else DEFAULT_INDEX)
    index = CoverIndex() if options.cover else RecordingIndex(AudioHash(options.kind or KINDS[0]))
    index.signer.check_installed()
    check_folder(output)
    check_replaceable(output)
    paths = expand_paths(options.paths)
    found = find_files(paths, RecordingMedium)
    check_not_read("--output", output, found.files)
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
    index.save(output)
    if options.json:
        say_json(
            {
                "output": str(output),
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
        f"{'is' if len(index) == 1 else 'are'} in {escape_terminal(output)}, in "
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
  files:FILE...        snippets, or with --cover performances
  --index INDEX        index to search (default: {DEFAULT_INDEX}, or {DEFAULT_COVERS}
                       with --cover)
  --cover              find other performances of a piece, in any key and at other tempos
  -k K=5               number of recordings per snippet
  --min-score SHARE    minimum score, above 0 to 1 (default: {_LEAST}, --cover {LEAST_COVER})
  --threads
  --json
"""
_SEARCH_EXAMPLES = """\
  lookalike audio search snippet.wav
  lookalike audio search a.mp3 b.ogg --index sounds.parts --json
  lookalike audio search song.mp3 --cover
"""
_SEARCH_DETAILS = """\
A snippet of ten seconds is enough. The score is the share of the snippet's words that the recording
has at that time.

With --cover, half a minute or more is needed. A line says where the common stretch begins in the
recording, and the score. Then it says how many semitones the query is higher, and how many times as
fast it is. At a score of 0.5, the stretch is about as long as chance makes it in another piece.
"""


def _search(options: argparse.Namespace) -> None:
    k = whole_number("k", options.k, at_least=1)
    least = None if options.min_score is None else share("min_score", options.min_score)
    threads = thread_count(options.threads)
    index = _opened(options.index, cover=options.cover)
    unread = 0
    with watched("read", options.json, len(options.files), "files"):
        found = []
        for one in read_recordings(options.files, index.signer, threads=threads):
            found.append(one)
            report(len(found), len(options.files))
    for file, one in zip(options.files, found, strict=True):
        if isinstance(one, DocumentError) and len(options.files) == 1:
            raise FileError(f"{file} {one}")
        if isinstance(one, DocumentError):
            warn(f"{file} {one}", kind="")
            unread += 1
            continue
        if len(index.signer.sign_query(one).offsets) == 0:
            least_time = 4.4 if isinstance(index, CoverIndex) else 0.8
            warn(f"{file} is silent or shorter than {least_time} s; there is nothing to search for")
        matches = index.search(one, k=k, min_score=least, threads=threads)
        if options.json:
            say_json({"snippet": str(file), "found": [_plain(match) for match in matches]})
        else:
            _show(file, index, matches, titled=len(options.files) > 1)
    if unread:
        raise FileError(f"{unread} of {len(options.files)} snippets could not be read")


def _opened(path: Path | None, *, cover: bool) -> Any:
    """Return the index of a search; the file says which kind it is."""
    index = path or (DEFAULT_COVERS if cover else DEFAULT_INDEX)
    build = f"`lookalike audio index FOLDER{' --cover' if cover else ''}`"
    if not is_there(index):
        raise FileError(
            f"there is no index {index}; build one with {build}, or name another with "
            f"--index{did_you_mean_file(index)}"
        )
    found = load_index(index)
    if cover and not isinstance(found, CoverIndex):
        raise FileError(f"{index} was not built with --cover; build an index with {build}")
    if not isinstance(found, CoverIndex | RecordingIndex):
        raise FileError(f"{index} is not an index of recordings; build one with {build}")
    return found


def _plain(match: RecordingMatch | CoverMatch) -> dict[str, object]:
    plain: dict[str, object] = {
        "recording": match.recording,
        "offset": round(match.offset, 3),
        "score": round(match.score, 4),
    }
    if isinstance(match, RecordingMatch):
        return {**plain, "votes": match.votes}
    return {
        **plain,
        "query_offset": round(match.query_offset, 3),
        "seconds": round(match.seconds, 3),
        "semitones": match.semitones,
        "tempo": round(match.tempo, 3),
    }


def _show(file: Path, index: Any, matches: list[Any], *, titled: bool) -> None:
    if titled:
        say(escape_terminal(file))
    if not matches:
        say(f"  no recording {'plays' if isinstance(index, CoverIndex) else 'has'} it")
    for match in matches:
        how = ""
        if isinstance(match, CoverMatch):
            unit = "semitone" if abs(match.semitones) == 1 else "semitones"
            how = f"{match.semitones:+3d} {unit:9}  {match.tempo:.2f}x  "
        place = f"{clock(match.offset):>8}  {match.score:5.2f}"
        say(f"  {place}  {how}{escape_terminal(match.recording)}")


def clock(seconds: float) -> str:
    """Return minutes and seconds, hours where there are some."""
    sign, whole = "-" if seconds < 0 else "", round(abs(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02}:{rest:02}" if hours else f"{sign}{minutes:02}:{rest:02}"
