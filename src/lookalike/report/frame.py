"""A page from its first line to its last: what may run in it, its sections, and pieces of them."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from lookalike._native import __version__
from lookalike.report.markup import Markup, clipped, pieces, rendered
from lookalike.storage import whole_file

__all__ = ["figure", "made_line", "page", "remade_card", "tile", "typed_command", "write_page"]

Section = tuple[str, str, str]
"""A name for links, a title, and ready HTML; left out where that is empty."""

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
    """Return a page. All is ready HTML; `about` is what stands above the first section.

    Nothing is loaded, and nothing runs but these `scripts`, which are known by their hashes and
    have to stand in the sections as they are. `style` comes after that of all pages. `policy` is
    what else the Content-Security-Policy has to allow, such as "img-src data:".
    """
    hashes = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts)
    return rendered(
        "report/page.html",
        title=Markup(title),
        brand=brand,
        about=[Markup(line) for line in about],
        sections=[(key, name, Markup(content)) for key, name, content in sections if content],
        allowed=Markup(" ".join(f"'sha256-{one}'" for one in hashes) or "'none'"),
        style=Markup(style),
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


def tile(name: str, value: str, note: str, kind: str = "") -> str:
    """Return a figure with its name, which is ready HTML, and a note, which is plain text."""
    return _piece("tile", Markup(name), value, note, kind)


def figure(title: str, content: str, caption: str) -> str:
    """Return a card with a picture; all is ready HTML."""
    return _piece("figure", Markup(title), Markup(content), Markup(caption))


def _piece(name: str, *values: object) -> str:
    made: str = getattr(pieces("report/pieces.html"), name)(*values)
    return made
