"""Untrusted web pages: their fields, and the limits for one page.

Isolated processes parse pages (`workers`). A page that exceeds a limit or crashes the parser is
refused with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from lookalike.checks import whole_number

__all__ = [
    "FIELDS",
    "MOST_AROUND",
    "Link",
    "OutgoingLink",
    "Page",
    "PageLimits",
    "RawPage",
    "Refused",
    "nesting",
    "refusal",
]

FIELDS = ("text", "title", "language", "links", "marked", "outgoing", "size")
"""The fields of a page. `marked` is its text with marked links; see `marks`."""

Link = tuple[str, str]
"""The address of a link, and its words."""

OutgoingLink = tuple[str, str, str, str, bool]
"""The address of a link, its words, the words before and after it, and whether it is `nofollow`."""

MOST_AROUND = 50
"""Words before and after a link that are read, at most."""


@dataclass(frozen=True)
class RawPage:
    """A page before it is read."""

    html: bytes
    charset: str | None = None  # the encoding in its HTTP header
    url: str | None = None  # its address, which relative links are resolved with
    unpacked: int = 0
    """If not 0, `html` is an HTTP message, and this limits the bytes of its decoded body."""


@dataclass(frozen=True)
class Page:
    """The fields of a page; those that were not requested are None."""

    text: str | None = None
    title: str | None = None
    language: str | None = None  # two letters, such as "en"; None if there is too little text
    links: list[Link] | None = None
    marked: str | None = None
    outgoing: list[OutgoingLink] | None = None
    size: int | None = None  # of its HTML, in bytes


@dataclass(frozen=True)
class Refused:
    """A page that is not read, and why."""

    reason: str


# a tag, or an element whose content is not parsed as HTML
_TAG = re.compile(
    rb"<(?:script|style|textarea|title|xmp)\b.*?(?:</(?:script|style|textarea|title|xmp)|\Z)"
    rb"|<!--.*?(?:-->|\Z)|<(/?)([a-z][a-z0-9:-]*)[^<>]*?(/?)>",
    re.DOTALL | re.IGNORECASE,
)
# Elements that are empty or end where the next one begins nest only within others.
_FLAT = frozenset(
    b"area base br col embed hr img input link meta param source track wbr "
    b"p li dt dd td th tr thead tbody tfoot option optgroup colgroup rp rt html head body".split()
)
_CLOSED_ITSELF = frozenset((b"svg", b"math", b"path", b"g", b"rect", b"circle", b"use", b"line"))


@dataclass(frozen=True, kw_only=True)
class PageLimits:
    """Limits for one page. `max_document` limits its bytes (default: 16 MiB)."""

    depth: int = 1000
    """Maximum nesting of elements; browsers stop at 512. Time grows with its square."""
    tags: int = 100_000
    seconds: int = 10
    """Processor time. Pages within the other limits rarely take a second, so that all machines
    refuse the same pages."""
    memory: int = 1 << 30
    """Bytes of memory of the process that parses pages."""

    def __post_init__(self) -> None:
        bounds = {"depth": (16, 1 << 20), "tags": (16, 1 << 30), "seconds": (1, 3600),
                  "memory": (1 << 28, 1 << 40)}  # fmt: skip
        for name, (least, most) in bounds.items():
            value = whole_number(name, getattr(self, name), at_least=least, at_most=most)
            object.__setattr__(self, name, value)


def refusal(html: bytes, limits: PageLimits) -> str | None:
    """Return why a page is not parsed, or None."""
    tags = html.count(b"<")
    if tags > limits.tags:
        return f"has {tags:,} tags; the limit is {limits.tags:,}"
    if tags > limits.depth and nesting(html, limits.depth) > limits.depth:
        return f"has elements nested more than {limits.depth:,} levels deep"
    return None


def nesting(html: bytes, enough: int) -> int:
    """Return about how deep elements are nested; stop counting above `enough`.

    As in a parser, an end tag without a start tag is ignored, and an element without an end tag
    contains all that follows.
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
            deepest = max(deepest, depth)
            if deepest > enough:
                break
        elif opened[name]:
            opened[name] -= 1
            depth -= 1
    return deepest
