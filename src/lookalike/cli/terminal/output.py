"""What a command prints: nothing reaches the terminal but through here."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import IO, Any

from lookalike.shown import shown, shown_json, shown_lines


def say(text: object = "", *, end: str = "\n", file: IO[str] | None = None) -> None:
    """Print lines, without control characters.

    Whatever is somebody else's and has to stay on one line (an id, the name of a file) has gone
    through `shown` before.
    """
    print(shown_lines(text), end=end, file=file)


def say_json(value: Any, *, file: IO[str] | None = None) -> None:
    """Print a value as JSON on one line: for machines as it is, and harmless to a terminal."""
    print(shown_json(value), file=file)


def tell(as_json: bool, value: Any, text: object) -> None:
    """Print what was done: a value as JSON, or a text."""
    if as_json:
        say_json(value)
    else:
        say(text)


def warn(text: object, kind: str = "warning: ") -> None:
    """Print a line of ours to standard error."""
    say(f"lookalike: {kind}{shown(text)}", file=sys.stderr)


def warn_left_out(count: int, examples: Sequence[str]) -> None:
    """Print how many rows or files were left out, and some of them with the reason."""
    if count:
        what = "row or file was" if count == 1 else "rows or files were"
        warn(f"{count:,} {what} left out")
    for example in examples:
        warn(example, kind="left out: ")
    if count > len(examples):
        warn(f"{count - len(examples):,} more", kind="left out: ")


def take_every_character() -> None:
    """Let output take characters that its encoding does not have, as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
