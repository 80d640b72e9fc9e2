"""The frame of every page: what may run in it, its sections, and cards that several pages have."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path

from lookalike._native import __version__
from lookalike.report.markup import Markup, clipped, pieces, rendered
from lookalike.storage.files import whole_file

Section = tuple[str, str, str]
"""A name for links, a title, and `Markup`; left out where that is empty."""

_LONGEST = 4000
_PIECES = "report/pieces.html"


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

    Nothing is loaded, and only `scripts` run: their hashes are in the Content-Security-Policy, and
    the sections contain them unchanged. `style` is added to the style of all pages. `policy` is
    added to the Content-Security-Policy, such as "img-src data:".
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
    return pieces(_PIECES).made(f"{made.day} {made:%B %Y, %H:%M} UTC", __version__)


def settings_cards(
    settings: Iterable[tuple[str, object, bool]],
    command: Sequence[str] | None,
    call: Callable[[], str],
) -> str:
    """Return the settings, and what makes the page again: `command`, or the `call` in Python.

    A setting is a name, a value, and whether the value comes from a corpus and is isolated.
    """
    typed = call() if command is None else shlex.join(command)
    parts = pieces(_PIECES)
    return Markup("\n").join([parts.settings(settings), parts.remade(clipped(typed, _LONGEST))])


def figure(title: str, content: str, caption: str) -> str:
    """Return a card with a picture."""
    return pieces(_PIECES).figure(title, content, caption)


def listed_card(items: Sequence[tuple[str, str]], rest: str = "") -> str:
    """Return a list of names, each with a reason or none; nothing if there are no names."""
    return pieces(_PIECES).listed(items, rest)
