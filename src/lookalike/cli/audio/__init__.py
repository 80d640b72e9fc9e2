"""`lookalike audio ...`: recordings, found by a snippet. A file for each action."""

from __future__ import annotations

from lookalike.cli.audio import index, search
from lookalike.cli.parser import Parser

PURPOSE = "find the recording that a snippet is from, and where in it"
DESCRIPTION = f"{PURPOSE.capitalize()}."
DETAILS = """\
WAV, FLAC, Ogg, MP3, AIFF and what else libsndfile reads, known by their contents. Needs the extra
audio: pip install 'lookalike[audio]'. `lookalike dedup music/` finds recordings that are the same.

examples:
  lookalike audio index music/ -o music.parts
  lookalike audio search snippet.wav --index music.parts
"""


def add(parser: Parser) -> None:
    """Declare what can be done."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    index.declare(actions)
    search.declare(actions)
