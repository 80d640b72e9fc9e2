"""Web pages: what is read of a page, before and after, and what a page may cost.

Pages come from anybody, so isolated processes parse them (`workers`). A page that takes too long or
too much memory, or crashes the parser, is refused with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from lookalike.checks import whole_number

__all__ = ["FIELDS", "Link", "Page", "PageLimits", "RawPage", "Refused", "nesting", "refusal"]

FIELDS = ("text", "title", "language", "links", "marked")
"""What can be found in a page. `marked` is its text with marks where links are; see `marks`."""

Link = tuple[str, str]
"""Where it leads, as far as that can be told, and its words."""


@dataclass(frozen=True)
class RawPage:
    """A page as it came."""

    html: bytes
    charset: str | None = None
    """What somebody else says of its encoding: an HTTP header."""
    url: str | None = None
    """Where it is from, by which links are made whole."""
    unpacked: int = 0
    """Not 0: `html` is a message of HTTP whose body is packed, and has at most so many bytes when
    it is unpacked.
    """


@dataclass(frozen=True)
class Page:
    """What was found; what was not asked for is None."""

    text: str | None = None
    title: str | None = None
    language: str | None = None
    """Two letters, such as "en"; None where there is too little text to tell."""
    links: list[Link] | None = None
    marked: str | None = None


@dataclass(frozen=True)
class Refused:
    """A page that is not read, and why."""

    reason: str


_TAG = re.compile(
    rb"<(?:script|style|textarea|title|xmp)\b.*?(?:</(?:script|style|textarea|title|xmp)|\Z)"
    rb"|<!--.*?(?:-->|\Z)|<(/?)([a-z][a-z0-9:-]*)[^<>]*?(/?)>",
    re.DOTALL | re.IGNORECASE,
)
"""What has no elements in it, whatever it looks like; or a tag."""
_FLAT = frozenset(
    b"area base br col embed hr img input link meta param source track wbr "
    b"p li dt dd td th tr thead tbody tfoot option optgroup colgroup rp rt html head body".split()
)
"""Elements that have nothing in them, or end where the next one begins: they lie in themselves only
within others, which are counted.
"""
_CLOSED_ITSELF = frozenset((b"svg", b"math", b"path", b"g", b"rect", b"circle", b"use", b"line"))


@dataclass(frozen=True, kw_only=True)
class PageLimits:
    """Bounds on one page. How many bytes it may have is `max_document`, 16 MiB for pages."""

    depth: int = 1000
    """Elements that lie in each other; browsers stop at 512. Time grows with its square."""
    tags: int = 100_000
    seconds: int = 10
    """Of processor time. So that the same pages are left out wherever they are read, the other
    bounds are such that pages within them hardly ever take a second.
    """
    memory: int = 1 << 30
    """Bytes of memory that the process which parses pages may take."""

    def __post_init__(self) -> None:
        bounds = {
            "depth": (16, 1 << 20),
            "tags": (16, 1 << 30),
            "seconds": (1, 3600),
            "memory": (1 << 28, 1 << 40),
        }
        for name, (least, most) in bounds.items():
            value = whole_number(name, getattr(self, name), at_least=least, at_most=most)
            object.__setattr__(self, name, value)


def refusal(html: bytes, limits: PageLimits) -> str | None:
    """Return why a page is not parsed, or None. Ordinary pages cost a look at their bytes."""
    tags = html.count(b"<")
    if tags > limits.tags:
        return f"has {tags:,} tags, and may have {limits.tags:,}"
    if tags > limits.depth and nesting(html, limits.depth) > limits.depth:
        return f"has more than {limits.depth:,} elements in each other"
    return None


def nesting(html: bytes, enough: int) -> int:
    """Return about how many elements lie in each other; no more is counted than `enough` and one.

    As a parser sees it, an end without a beginning ends nothing, and what is never ended has all in
    it that follows.
    """
    opened: Counter[bytes] = Counter()
    depth = deepest = 0
    for tag in _TAG.finditer(html):
        end, name, itself = tag.groups()
        if name is None:
            continue
        name = name.lower()
        if name in _FLAT or (itself and name in _CLOSED_ITSELF):
            continue
        if not end:
            opened[name] += 1
            depth += 1
            if depth > deepest:
                deepest = depth
                if deepest > enough:
                    break
        elif opened[name]:
            opened[name] -= 1
            depth -= 1
    return deepest
