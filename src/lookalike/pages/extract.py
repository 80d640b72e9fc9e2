"""One page, read by Resiliparse."""

from __future__ import annotations

import codecs
import contextlib
import zlib
from collections.abc import Collection
from typing import Any
from urllib.parse import urljoin, urlsplit

from lookalike.checks import optional_module
from lookalike.lazy import LazyModule
from lookalike.pages import Link, Page, RawPage
from lookalike.pages.marks import clean, marked_text

__all__ = ["check_installed", "detect_language", "read_page", "unpack"]

_PURPOSE = "reading web pages"
_encoding = LazyModule("resiliparse.parse.encoding", _PURPOSE, extra="html")
_trees = LazyModule("resiliparse.parse.html", _PURPOSE, extra="html")
_texts = LazyModule("resiliparse.extract.html2text", _PURPOSE, extra="html")
_archives = LazyModule("fastwarc.warc", "reading WARC", extra="html")
_languages = LazyModule("resiliparse.parse.lang", "telling languages", extra="html")

_BEGINNINGS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
"""Byte order marks; and the first tag of a page without one, whose encoding it tells as well."""
_GZIP = b"\x1f\x8b"
_BEFORE_TAGS = codecs.BOM_UTF8 + codecs.BOM_UTF16_LE + b"\0 \t\r\n"
_LANGUAGE_CHARACTERS = 1000
"""Of the beginning of a text, from which its language is told: more tells hardly any more."""
_LEAST_FOR_LANGUAGE = 20
_NOWHERE = ("javascript:", "mailto:", "tel:", "data:", "about:")
_LONGEST_ADDRESS = 8192
_SKIPPED = [f"td{mark}{name}" for mark in ".#" for name in ("sidebar", "menu", "nav", "navigation")]
"""Cells of pages that are a table, which Resiliparse judges by their elements only."""


def check_installed() -> None:
    """Raise `MissingDependencyError` where pages cannot be read, before there is work."""
    optional_module("resiliparse.parse.html", _PURPOSE, extra="html")


def read_page(raw: RawPage, wanted: Collection[str]) -> Page:
    """Return what is wanted (`FIELDS`) of a page; it may be any bytes."""
    tree = _trees.HTMLTree.parse(_decoded(raw))
    text = title = language = links = marked = None
    if "text" in wanted or "language" in wanted:
        text = _main_text(tree, "text")
    if "title" in wanted:
        title = _clean(" ".join((tree.title or "").split()))
    if "language" in wanted:
        language = detect_language(text or "")
    if "links" in wanted:
        links = _links(tree, raw.url)
    if "marked" in wanted:
        marked = _marked(tree, raw.url)
    return Page(text if "text" in wanted else None, title, language, links, marked)


def unpack(message: bytes, most: int) -> bytes:
    """Return the body of a message of HTTP as it was before it was sent: not in chunks, nor packed.

    Programs that write crawls have unpacked some bodies already, and left the headers that say
    otherwise: what is HTML without some of the steps is taken as that. Of more than `most` bytes
    none is unpacked. Raises `OSError` where the packing is broken, `ValueError` where there is too
    much.
    """
    try:
        return _body(message, "all", most)
    except OSError:
        for steps in ("content", "transfer", "none"):
            with contextlib.suppress(OSError):
                body = _body(message, steps, most)
                if _is_html(body):
                    return body
        for steps in ("transfer", "none"):
            with contextlib.suppress(OSError, zlib.error):
                body = _inflated(_body(message, steps, most), most)
                if _is_html(body):
                    return body
        raise


def _is_html(body: bytes) -> bool:
    return body.lstrip(_BEFORE_TAGS).startswith(b"<")


def _inflated(body: bytes, most: int) -> bytes:
    """Return what x-gzip, as gzip was called once, has packed, or deflate without its header."""
    kind = zlib.MAX_WBITS | 16 if body.startswith(_GZIP) else -zlib.MAX_WBITS
    return _bounded(zlib.decompressobj(kind).decompress(body, most + 1), most)


def _body(message: bytes, steps: str, most: int) -> bytes:
    record = _archives.WarcRecord()
    record.set_bytes_content(message)
    record.is_http = True
    record.parse_http(auto_decode=steps)
    return _bounded(record.reader.read(most + 1), most)


def _bounded(body: bytes, most: int) -> bytes:
    if len(body) > most:
        raise ValueError(f"it has more than {most:,} bytes when it is unpacked")
    return body


def detect_language(text: str) -> str | None:
    """Return the language of a text, in two letters, None where it has too little to tell."""
    beginning = text[:_LANGUAGE_CHARACTERS]
    if len(beginning) < _LEAST_FOR_LANGUAGE:
        return None
    found, _ = _languages.detect_fast(beginning)
    return None if found == "unknown" else str(found)


def _decoded(raw: RawPage) -> str:
    """Return a page as text: by its first bytes, its header, its meta tag, or else a guess."""
    encoding = next((name for mark, name in _BEGINNINGS if raw.html.startswith(mark)), None)
    if encoding is None and raw.charset:
        # A name that nobody knows says nothing.
        encoding = _encoding.map_encoding_to_html5(raw.charset, fallback_utf8=False)
        if encoding and encoding.startswith("utf-16") and raw.html.startswith(b"<"):
            encoding = None  # of which the second byte would be 0
    if encoding is None:
        encoding = _encoding.detect_encoding(raw.html, from_html_meta=True)
    decoded: str = _encoding.bytes_to_str(raw.html, encoding or "utf-8", errors="replace")
    return decoded


def _main_text(tree: Any, kind: str) -> str:
    """Return the main text; kind "minimal_html": with some tags, among them those of links."""
    found: str = _texts.extract_plain_text(
        tree,
        preserve_formatting=True if kind == "text" else kind,
        main_content=True,
        list_bullets=False,
        alt_texts=False,
        links=kind != "text",
        form_fields=False,
        noscript=False,
        comments=False,
        skip_elements=_SKIPPED,
    )
    return _clean(found) if kind == "text" else found


def _clean(text: str) -> str:
    """Return a text that is UTF-8 and has no NUL."""
    text = text.replace("\0", "")  # which the parser leaves out, but does not have to
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _links(tree: Any, url: str | None) -> list[Link]:
    """Return the links of all of a page that lead anywhere, in order."""
    resolve = _Resolver(tree, url)
    found: list[Link] = []
    for anchor in tree.document.query_selector_all("a[href]"):
        address = resolve(anchor.getattr("href"))
        if address is not None:
            words = " ".join(anchor.text.split())
            found.append((address, words if words.isascii() else _clean(words)))
    return found


def _marked(tree: Any, url: str | None) -> str:
    resolve = _Resolver(tree, url)
    addresses = {
        anchor.getattr("href"): None for anchor in tree.document.query_selector_all("a[href]")
    }
    resolved = {address: resolve(address) for address in addresses}
    return _clean(marked_text(_main_text(tree, "minimal_html"), resolved))


class _Resolver:
    """Where addresses lead: absolute ones stay, others are told by the page's own."""

    def __init__(self, tree: Any, url: str | None) -> None:
        base = tree.document.query_selector("base[href]")
        self._base = _joined(url or "", (base.getattr("href") or "") if base else "") or ""
        try:
            parts = urlsplit(self._base)
            self._origin = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
        except ValueError:
            self._origin = ""

    def __call__(self, address: str | None) -> str | None:
        """Return an address made whole, None for one that leads nowhere."""
        address = (address or "").strip()
        if not address or len(address) > _LONGEST_ADDRESS or address[0] == "#":
            return None
        if not address.isascii() or "\0" in address:
            address = clean(_clean(address))
        if address.startswith(("https://", "http://")):
            return address
        if self._origin and address[0] == "/" and address[1:2] != "/" and "/." not in address:
            return self._origin + address
        if address.lower().startswith(_NOWHERE):
            return None
        return _joined(self._base, address)


def _joined(base: str, address: str) -> str | None:
    try:
        return urljoin(base, address) or None
    except ValueError:
        return None
