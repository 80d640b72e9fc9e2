"""A page from its first line to its last: what may run in it, its sections, and pieces of them."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from lookalike._native import __version__
from lookalike.report.markup import Markup, clipped, pieces, rendered
from lookalike.storage import whole_file

__all__ = [
    "figure",
    "listed_card",
    "made_line",
    "page",
    "remade_card",
    "settings_card",
    "typed_command",
    "write_page",
]

Section = tuple[str, str, str]
"""A name for links, a title, and `Markup`; left out where that is empty."""

_LONGEST = 4000


def page(
    title: str,
    brand: str,
    about: Sequence[str],
    sections: Sequence[Section],
    *,
    scripts: Sequence[str] = (),
    style: str = "",
    policy: str = "",
) -> str:
    """Return a page; `about` stands above the first section. What is not `Markup` is escaped.

    Nothing is loaded, and nothing runs but these `scripts`, which are known by their hashes and
    have to stand in the sections as they are. `style` comes after that of all pages. `policy` is
    what else the Content-Security-Policy has to allow, such as "img-src data:".
    """
    hashes = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts)
    return rendered(
        "report/page.html",
        title=title,
        brand=brand,
        about=about,
        sections=[section for section in sections if section[2]],
        allowed=Markup(" ".join(f"'sha256-{one}'" for one in hashes) or "'none'"),
        style=style,
        policy=policy,
    )


def write_page(text: str, path: Path) -> None:
    """Write a page; an interrupted run leaves what was there before."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def made_line(made: datetime) -> str:
    """Return the date and the version."""
    when = f"{made.day} {made:%B %Y, %H:%M} UTC"
    return _piece("made", when, __version__)


def typed_command(command: Sequence[str]) -> str:
    """Return a command as it is typed in a shell."""
    return shlex.join(command)


def remade_card(typed: str) -> str:
    """Return what to type for the same page."""
    return _piece("remade", clipped(typed, _LONGEST))


def figure(title: str, content: str, caption: str) -> str:
    """Return a card with a picture."""
    return _piece("figure", title, content, caption)


def listed_card(items: Sequence[tuple[str, str]], rest: str = "") -> str:
    """Return a list of names, each with a reason or none; nothing if there are no names."""
    return _piece("listed", items, rest)


def settings_card(pairs: Iterable[tuple[str, str, bool]]) -> str:
    """Return settings by name; True where the value comes from a corpus and is kept apart."""
    return _piece("settings", pairs)


def _piece(name: str, *values: object) -> str:
    made: str = getattr(pieces("report/pieces.html"), name)(*values)
    return made
