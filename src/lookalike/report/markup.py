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

from lookalike.shown import counted, visible

__all__ = ["Markup", "clipped", "compact", "escape_html", "one_line", "pieces", "rendered"]


_SPACES = re.compile(r"\s+")


def escape_html(text: object) -> str:
    """Return text as escaped `Markup`, invisible characters as `visible` has them.

    `Markup` is returned unchanged.
    """
    return text if isinstance(text, Markup) else Markup(html.escape(visible(text)))


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
