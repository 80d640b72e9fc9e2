"""Text made fit for a page, and the templates that it goes into.

Text of documents is hostile. Templates escape every value by `escape_html`. Only `Markup`, which
templates and the functions of this package return, goes into a page as it is.
"""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lookalike.shown import counted

__all__ = ["Markup", "clipped", "compact", "escape_html", "one_line", "pieces", "rendered"]


def _stand_ins() -> dict[int, str | None]:
    """Return what is shown for characters that are invisible or would rearrange others."""
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
    """Return text as `Markup` that is nothing but that text; `Markup` stays as it is.

    Controls become pictures of themselves, orders that turn the direction of writing and other
    invisible ones their numbers, halves of surrogate pairs the replacement character.
    """
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(str(text).translate(_STAND_INS)))


def clipped(text: str, most: int) -> str:
    """Return the text, or its beginning and an ellipsis; not yet escaped."""
    return text if len(text) <= most else text[:most].rstrip() + "…"


def one_line(text: str) -> str:
    """Return the text with every run of white space a single space."""
    return _SPACES.sub(" ", text).strip()


def compact(count: int) -> str:
    """Return a count for a place with little room: 950, 12.3k, 4M."""
    if count < 10_000:
        return f"{count:,}"
    unit, size = "k", 1_000
    if count >= 1_000_000:
        unit, size = "M", 1_000_000
    value = count / size
    return f"{value:.1f}{unit}" if value < 100 and count % size else f"{value:,.0f}{unit}"


# Templates


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


def pieces(template: str) -> Any:
    """Return the macros of a template; each returns `Markup`."""
    return _environment().get_template(template).module
