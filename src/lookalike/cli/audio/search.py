"""`lookalike audio search`: snippets in, the recordings they are from out."""

from __future__ import annotations

import argparse
from pathlib import Path

from lookalike.checks import share, thread_count, whole_number
from lookalike.cli.audio.index import DEFAULT_INDEX
from lookalike.cli.options import add_threads
from lookalike.cli.parser import Subparsers, add_number, add_switch, command
from lookalike.cli.terminal import say, say_json, warn
from lookalike.errors import FileError
from lookalike.recordings import RecordingIndex, RecordingMatch
from lookalike.recordings.audio_hash import LEAST_SCORE
from lookalike.recordings.workers import Unreadable, read_recordings
from lookalike.shown import escape_terminal
from lookalike.storage import is_there
from lookalike.suggestions import did_you_mean_file

_PURPOSE = "find the recordings that snippets are from, and where in them"
_DETAILS = """\
A snippet of ten seconds is enough; of a whole recording, the same is found. The score is the share
of the snippet's words that the recording has at that place.

examples:
  lookalike audio search snippet.wav
  lookalike audio search a.mp3 b.ogg --index sounds.parts --json
"""


def declare(actions: Subparsers) -> None:
    """Declare the action."""
    description = f"{_PURPOSE.capitalize()}."
    least = ", ".join(f"{kind} {score}" for kind, score in LEAST_SCORE.items())
    parser = command(actions, "search", _run, _PURPOSE, description, _DETAILS)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="snippets")
    parser.add_argument(
        "--index",
        type=Path,
        default=DEFAULT_INDEX,
        metavar="INDEX",
        help=f"what `lookalike audio index` wrote (default {DEFAULT_INDEX})",
    )
    add_number(parser, "-k", "so many recordings", default=5, metavar="K")
    parser.add_argument(
        "--min-score",
        type=float,
        metavar="S",
        help=f"least share of the snippet's words, above 0 to 1 (default: {least})",
    )
    add_threads(parser)
    add_switch(parser, "--json", "print an object for each snippet, as JSON Lines")


def _run(options: argparse.Namespace) -> None:
    k = whole_number("k", options.k, at_least=1)
    least = None if options.min_score is None else share("min_score", options.min_score)
    threads = thread_count(options.threads)
    if not is_there(options.index):
        raise FileError(
            f"there is no index {options.index}: `lookalike audio index FOLDER` makes music.parts, "
            f"and --index names another{did_you_mean_file(options.index)}"
        )
    index = RecordingIndex.load(options.index)
    unread = 0
    found = read_recordings(options.files, index.hash, threads=threads)
    for file, one in zip(options.files, found, strict=True):
        if isinstance(one, Unreadable) and len(options.files) == 1:
            raise FileError(f"{file} {one.reason}")
        if isinstance(one, Unreadable):
            warn(f"{file} {one.reason}", kind="")
            unread += 1
            continue
        if len(one.words) == 0:
            warn(f"{file} is silent or shorter than 0.8 s; there is nothing to look for")
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
