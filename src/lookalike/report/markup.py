"""Escaping, and the templates of pages.

Text of documents is untrusted. Templates escape every value by `escape_html`, except `Markup`,
which templates and the functions of this package return.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Protocol, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lookalike.shown import counted

__all__ = ["Markup", "clipped", "compact", "escape_html", "one_line", "pieces", "rendered"]


def _stand_ins() -> dict[int, str | None]:
    """Return replacements for characters that are invisible or rearrange others."""
    found: dict[int, str | None] = {code: chr(0x2400 + code) for code in range(32)}
    found[0x7F] = "\u2421"
    found |= dict.fromkeys([*range(0x80, 0xA0), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)], "\ufffd")
    orders = [*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xE0000, 0xE0080)]
    found |= {code: f"\u2039U+{code:04X}\u203a" for code in orders}
    found[ord("\r")] = None
    del found[ord("\t")], found[ord("\n")]
    return found


_STAND_INS = _stand_ins()
_SPACES = re.compile(r"\s+")


def escape_html(text: object) -> str:
    """Return text as escaped `Markup`; `Markup` is returned unchanged.

    Control characters become their symbols, marks of the writing direction and other invisible
    characters their code points, and lone surrogates the replacement character.
    """
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(str(text).translate(_STAND_INS)))


def clipped(text: str, most: int) -> str:
    """Return at most `most` characters, then an ellipsis; not escaped."""
    return text if len(text) <= most else text[:most].rstrip() + "…"


def one_line(text: str) -> str:
    """Return the text with each run of white space as one space."""
    return _SPACES.sub(" ", text).strip()


def compact(count: int) -> str:
    """Return a count in a few characters: 950, 12.3k, 4M."""
    if count < 10_000:
        return f"{count:,}"
    unit, size = "k", 1_000
    if count >= 1_000_000:
        unit, size = "M", 1_000_000
    value = count / size
    return f"{value:.1f}{unit}" if value < 100 and count % size else f"{value:,.0f}{unit}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1]),
        autoescape=True,
        finalize=escape_html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.globals["counted"] = counted
    return environment


def rendered(template: str, **values: object) -> Markup:
    """Return a template of the package, such as "report/page.html", filled with these values."""
    return Markup(_environment().get_template(template).render(values))


class Pieces(Protocol):
    """The macros of a template."""

    def __getattr__(self, name: str) -> Callable[..., Markup]: ...


def pieces(template: str) -> Pieces:
    """Return the macros of a template."""
    return cast(Pieces, _environment().get_template(template).module)
