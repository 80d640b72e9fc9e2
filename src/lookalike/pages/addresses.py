"""Addresses of web pages in one form, so that links to the same page have the same target."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit, urlunsplit

LONGEST_ADDRESS = 8192
"""Characters of an address; longer ones are ignored."""

_SCHEMES = {"http": 80, "https": 443, "ftp": 21, "file": None, "": None}
"""Schemes of addresses of pages, and their usual ports."""
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_KEPT = "!$&'()*+,;=:@/%-._~"
"""Characters of a path that are not escaped; a query may have a question mark, too."""
_IGNORED = re.compile("[\t\r\n]")


def normalized_address(address: str) -> str | None:
    """Return an address in its usual form; None if it is not that of a page.

    Scheme and host are in lower case, without the usual port, a password or a final dot. Escapes
    that are not needed are undone, others are in upper case. Dots in paths are resolved. What
    follows a # is left out. An address without a host is a path.

    Examples:
        >>> from lookalike.pages.addresses import normalized_address
        >>> normalized_address("HTTP://Example.ORG:80/a/../%7euser?#top")
        'http://example.org/~user'
    """
    if not address or len(address) > LONGEST_ADDRESS:
        return None
    try:
        parts = urlsplit(_IGNORED.sub("", address.strip()))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme not in _SCHEMES or (scheme and scheme != "file" and not host):
        return None
    place = _host(host)
    if place is None or (host and not place):
        return None
    if port is not None and port != _SCHEMES[scheme]:
        place = f"{place}:{port}"
    path = _without_dots(_escaped(parts.path, _KEPT))
    if place and not path.startswith("/"):
        path = f"/{path}"
    if not place:
        path = re.sub("^//+", "/", path)  # which would read as a host
        if not scheme and ":" in path.partition("/")[0]:
            path = f"./{path}" if not path.startswith("./") else path
    found = urlunsplit((scheme, place, path, _escaped(parts.query, _KEPT + "?"), ""))
    return found if found and len(found) <= 3 * LONGEST_ADDRESS else None


def host_of(address: str) -> str:
    """Return host and port of a normalized address; empty if it has none."""
    return urlsplit(address).netloc


def within_host(address: str) -> str:
    """Return a normalized address without scheme and host: what is the same on a mirror."""
    parts = urlsplit(address)
    return urlunsplit(("", "", parts.path, parts.query, ""))


def _host(host: str) -> str | None:
    """Return a host in lower case, in ASCII; None if it is not one."""
    host = host.rstrip(".").lower()
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            return None
    if any(character in host for character in " /?#@\\<>") or not host.isprintable():
        return None
    return f"[{host}]" if ":" in host else host


def _escaped(text: str, kept: str) -> str:
    """Return a text with all escapes that it needs, and no others."""

    def unescaped(found: re.Match[str]) -> str:
        character = chr(int(found[1], 16))
        return character if character in _UNRESERVED else found[0].upper()

    text = re.sub("%(?![0-9A-Fa-f]{2})", "%25", text)
    return quote(_ESCAPE.sub(unescaped, text), safe=kept, errors="replace")


def _without_dots(path: str) -> str:
    """Return a path without the segments . and .. (RFC 3986, 5.2.4)."""
    if "." not in path:
        return path
    kept: list[str] = []
    *segments, last = path.split("/")
    absolute = path.startswith("/")
    for at, segment in enumerate([*segments, last]):
        final = at == len(segments)
        if segment == ".":
            if final:
                kept.append("")
        elif segment == "..":
            if len(kept) > absolute:
                kept.pop()
            if final:
                kept.append("")
        else:
            kept.append(segment)
    return "/".join(kept)
