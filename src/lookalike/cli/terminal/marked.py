"""Texts with marks: words that differ, or that are meant, in colours or between signs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from lookalike.checks import optional_module
from lookalike.cli.command import Group
from lookalike.cli.terminal.output import say
from lookalike.errors import MissingDependencyError
from lookalike.shown import shown_lines

__all__ = ["add_color", "say_marked"]

_SIGNS = {"delete": ("[-", "-]"), "insert": ("{+", "+}"), "begin": (">>", ""), "end": ("", "<<")}
_STYLES = {"delete": "red strike", "insert": "bold green", "found": "bold"}


def add_color(group: Group, of: str) -> None:
    """Declare whether there are colours."""
    group.add_argument("--color", choices=("auto", "always", "never"), default="auto", help=of)


def say_marked(parts: Sequence[tuple[str, str]], color: str) -> None:
    """Print parts of a text, each of a kind, one after the other, and end the line.

    Kinds are "equal", "delete", "insert" and "found", which is equal and stands out; "begin" and
    "end" are signs for where there are no colours, and have no text.
    """
    if not _wants_color(color) or not _say_coloured(parts):
        for kind, text in parts:
            before, after = _SIGNS.get(kind, ("", ""))
            space = text[len(text.rstrip()) :] if before or after else ""
            say(f"{before}{text[: len(text) - len(space)]}{after}{space}", end="")
    say()


def _wants_color(color: str) -> bool:
    if color == "auto":
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return color == "always"


def _say_coloured(parts: Sequence[tuple[str, str]]) -> bool:
    """Print with colours; return False where rich is not installed."""
    try:
        rich: Any = optional_module("rich.text", "a coloured text", extra="")
        console: Any = optional_module("rich.console", "a coloured text", extra="")
    except MissingDependencyError:
        return False
    styled = [rich.Text(shown_lines(text), _STYLES.get(kind, "")) for kind, text in parts]
    console.Console(force_terminal=True, soft_wrap=True).print(rich.Text().join(styled), end="")
    return True
