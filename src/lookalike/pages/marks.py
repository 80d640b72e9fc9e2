"""Text with marked links, so that one string has both the words and the links of a page.

A link is a begin mark, its address, a middle mark, its words, and an end mark. Marks, and the bytes
of the address, are characters of Unicode's last private use plane, which are not letters.
"""

from __future__ import annotations

import html as entities
import re

_FIRST = 0x10F100  # and the 255 after it: the bytes of an address
_BEGIN, _MIDDLE, _END = "\U0010f200", "\U0010f201", "\U0010f202"
# begins a text without links that has a <, so that it is not taken for HTML
_UNLINKED = "\U0010f203"
BREAK = "\U0010f204"
"""Between two parts of a text whose words are not beside each other."""
_RESERVED = re.compile("[\U0010f100-\U0010f204]")
_MARKED = re.compile(
    f"{_BEGIN}([\U0010f100-\U0010f1ff]*){_MIDDLE}([^{_BEGIN}-{_END}]*){_END}"
)  # fmt: skip
_TAG = re.compile(r"</?([a-z0-9]+)((?:\s[^<>]*)?)>")
_ADDRESS = re.compile(r'href="([^"]*)"')
_TO_MARK = {byte: chr(_FIRST + byte) for byte in range(256)}


def has_marks(text: str) -> bool:
    """Return whether a text has marks, so that it is text and not HTML."""
    return _BEGIN in text or text.startswith(_UNLINKED)


def marked_link(address: str, words: str) -> str:
    """Return a link with marks."""
    marks = "".join(map(_TO_MARK.__getitem__, address.encode("utf-8", "replace")))
    return f"{_BEGIN}{marks}{_MIDDLE}{clean(words)}{_END}"


def without_marks(text: str) -> str:
    """Return a text without addresses and marks, even if it was cut inside one."""
    return _RESERVED.sub("", _MARKED.sub(r"\2", text)) if has_marks(text) else text


def clean(text: str) -> str:
    """Replace characters that are used as marks."""
    return text if text.isascii() else _RESERVED.sub(" ", text)


def marked_text(minimal: str, resolved: dict[str, str | None]) -> str:
    """Return minimal HTML of Resiliparse as text with marks; `resolved` has the addresses."""
    parts: list[str] = []
    address: str | None = None
    begin = opened = 0
    for tag in _TAG.finditer(minimal):
        parts.append(clean(entities.unescape(minimal[begin : tag.start()])))
        begin = tag.end()
        if tag[1] != "a":
            continue
        if tag[0][1] != "/":
            found = _ADDRESS.search(tag[2])
            address = resolved.get(entities.unescape(found[1])) if found else None
            opened = len(parts)
        elif address is not None:
            parts[opened:] = [marked_link(address, "".join(parts[opened:]))]
            address = None
    parts.append(clean(entities.unescape(minimal[begin:])))
    return _told_apart("".join(parts))


def unlinked_text(text: str) -> str:
    """Return plain text as a text with marks that has no links."""
    return _told_apart(clean(text))


def _told_apart(text: str) -> str:
    return _UNLINKED + text if "<" in text and _BEGIN not in text else text


def split_marks(text: str) -> list[str]:
    """Return text, then for each link its address, its words, and the text after it."""
    parts = _MARKED.split(text.removeprefix(_UNLINKED))
    for place in range(1, len(parts), 3):
        data = bytes(ord(mark) - _FIRST for mark in parts[place])
        parts[place] = data.decode("utf-8", "replace")
    return parts
