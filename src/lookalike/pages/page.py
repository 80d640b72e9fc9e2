"""A page before and after it was read."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FIELDS", "Link", "Page", "RawPage", "Refused"]

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
