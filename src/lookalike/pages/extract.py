"""Parse one page with Resiliparse."""

from __future__ import annotations

import codecs
import contextlib
import zlib
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

from lookalike.checks import optional_module
from lookalike.lazy import LazyModule
from lookalike.pages import MOST_AROUND, Link, OutgoingLink, Page, RawPage
from lookalike.pages.addresses import LONGEST_ADDRESS
from lookalike.pages.marks import clean, marked_text, split_marks

_PURPOSE = "reading web pages"
_encoding = LazyModule("resiliparse.parse.encoding", _PURPOSE, extra="html")
_trees = LazyModule("resiliparse.parse.html", _PURPOSE, extra="html")
_texts = LazyModule("resiliparse.extract.html2text", _PURPOSE, extra="html")
_archives = LazyModule("fastwarc.warc", "reading WARC", extra="html")
_languages = LazyModule("resiliparse.parse.lang", "detecting languages", extra="html")

# Byte order marks, or the first tag of a page in UTF-16 without one.
_BEGINNINGS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_GZIP = b"\x1f\x8b"
_BEFORE_TAGS = codecs.BOM_UTF8 + codecs.BOM_UTF16_LE + b"\0 \t\r\n"
_LANGUAGE_CHARACTERS = 1000  # first characters of a text, for detecting its language
_LEAST_FOR_LANGUAGE = 20
_NOWHERE = ("javascript:", "mailto:", "tel:", "data:", "about:")
_MOST_LINKS, _LONGEST_WORDS = 10_000, 1_000
"""Links of a page that are followed, and characters of their words, and of those beside them."""
# Navigation cells of layout tables, which Resiliparse does not skip by itself.
_SKIPPED = [f"td{mark}{name}" for mark in ".#" for name in ("sidebar", "menu", "nav", "navigation")]


def check_installed() -> None:
    """Raise `MissingDependencyError` if pages cannot be read."""
    optional_module("resiliparse.parse.html", _PURPOSE, extra="html")


def read_page(raw: RawPage, wanted: Collection[str]) -> Page:
    """Return the wanted fields (`FIELDS`) of a page."""
    tree = _trees.HTMLTree.parse(_decoded(raw))
    text = _main_text(tree, "text") if "text" in wanted or "language" in wanted else ""
    return Page(
        text=text if "text" in wanted else None,
        title=_clean(" ".join((tree.title or "").split())) if "title" in wanted else None,
        language=detect_language(text) if "language" in wanted else None,
        links=_links(tree, raw.url) if "links" in wanted else None,
        marked=_marked(tree, raw.url) if "marked" in wanted else None,
        outgoing=_outgoing(tree, raw.url) if "outgoing" in wanted else None,
        size=len(raw.html) if "size" in wanted else None,
    )


def unpack(message: bytes, most: int) -> bytes:
    """Return the decoded body of an HTTP message.

    Some crawlers decode bodies but keep the headers: a body that is HTML without some of the steps
    is accepted. Raises `OSError` if it cannot be decoded, `ValueError` beyond `most` bytes.
    """
    try:
        return _body(message, "all", most)
    except OSError:
        plain = [(steps, False) for steps in ("content", "transfer", "none")]
        for steps, deflated in (*plain, ("transfer", True), ("none", True)):
            with contextlib.suppress(OSError, zlib.error):
                body = _body(message, steps, most)
                if deflated:  # x-gzip, an old name of gzip, or deflate without its header
                    kind = zlib.MAX_WBITS | 16 if body.startswith(_GZIP) else -zlib.MAX_WBITS
                    body = _bounded(zlib.decompressobj(kind).decompress(body, most + 1), most)
                if body.lstrip(_BEFORE_TAGS).startswith(b"<"):
                    return body
        raise


def _body(message: bytes, steps: str, most: int) -> bytes:
    record = _archives.WarcRecord()
    record.set_bytes_content(message)
    record.is_http = True
    record.parse_http(auto_decode=steps)
    return _bounded(record.reader.read(most + 1), most)


def _bounded(body: bytes, most: int) -> bytes:
    if len(body) > most:
        raise ValueError(f"it expands to more than {most:,} bytes")
    return body


def detect_language(text: str) -> str | None:
    """Return the language of a text, such as "en"; None if it is too short."""
    beginning = text[:_LANGUAGE_CHARACTERS]
    if len(beginning) < _LEAST_FOR_LANGUAGE:
        return None
    found, _ = _languages.detect_fast(beginning)
    return None if found == "unknown" else str(found)


def _decoded(raw: RawPage) -> str:
    """Decode a page: by its first bytes, its header, its meta tag, or else by detection."""
    encoding = next((name for mark, name in _BEGINNINGS if raw.html.startswith(mark)), None)
    if encoding is None and raw.charset:
        encoding = _encoding.map_encoding_to_html5(raw.charset, fallback_utf8=False)
        if encoding and encoding.startswith("utf-16") and raw.html.startswith(b"<"):
            encoding = None  # the header is wrong: the second byte would be 0
    if encoding is None:
        encoding = _encoding.detect_encoding(raw.html, from_html_meta=True)
    decoded: str = _encoding.bytes_to_str(raw.html, encoding or "utf-8", errors="replace")
    return decoded


def _main_text(tree: Any, kind: str, *, whole: bool = False) -> str:
    """Return the main text, or all text; "minimal_html" has the tags of links and some others."""
    found: str = _texts.extract_plain_text(
        tree, preserve_formatting=True if kind == "text" else kind, main_content=not whole,
        list_bullets=False, alt_texts=whole, links=kind != "text", form_fields=False,
        noscript=False, comments=whole, skip_elements=[] if whole else _SKIPPED,
    )  # fmt: skip
    return _clean(found) if kind == "text" else found


def _clean(text: str) -> str:
    """Return a text that is UTF-8 and has no NUL."""
    text = text.replace("\0", "")  # in case the parser leaves it in
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _anchors(tree: Any) -> Iterator[Any]:
    """Yield the links of a page in order.

    `query_selector_all` is not used, because its time grows with the square of their number.
    """
    return (node for node in tree.document if node.tag == "a" and node.hasattr("href"))


def _links(tree: Any, url: str | None) -> list[Link]:
    """Return all links of a page with an address, in order."""
    resolve = _Resolver(tree, url)
    found: list[Link] = []
    for anchor in _anchors(tree):
        address = resolve(anchor.getattr("href"))
        if address is not None:
            words = " ".join(anchor.text.split())
            found.append((address, words if words.isascii() else _clean(words)))
    return found


def _marked(tree: Any, url: str | None) -> str:
    resolve = _Resolver(tree, url)
    addresses = {anchor.getattr("href") for anchor in _anchors(tree)}
    resolved = {address: resolve(address) for address in addresses}
    return _clean(marked_text(_main_text(tree, "minimal_html"), resolved))


def _outgoing(tree: Any, url: str | None) -> list[OutgoingLink]:
    """Return the links of the whole page, with the words around them, in order.

    A link is `nofollow` if its page is, or all links of the page to the same address are.
    """
    resolve = _Resolver(tree, url)
    followed: dict[str, bool] = {}
    for anchor in _anchors(tree):
        address, rel = anchor.getattr("href"), (anchor.getattr("rel") or "").lower().split()
        followed[address] = followed.get(address, False) or "nofollow" not in rel
    resolved = {address: resolve(address) for address in followed}
    goes = {found for address, found in resolved.items() if found and followed[address]}
    none = _is_nofollow(tree)
    parts = split_marks(marked_text(_main_text(tree, "minimal_html", whole=True), resolved))
    words: list[str] = []
    links: list[tuple[str, str, int, int]] = []
    for place in range(0, len(parts), 3):
        words += parts[place].split()
        if place + 2 < len(parts) and len(links) < _MOST_LINKS:
            own = parts[place + 2].split()
            links.append((parts[place + 1], " ".join(own), len(words), len(words) + len(own)))
            words += own
    return [
        (
            _clean(address),
            _clean(text)[:_LONGEST_WORDS],
            _clean(" ".join(words[max(0, begin - MOST_AROUND) : begin]))[-_LONGEST_WORDS:],
            _clean(" ".join(words[end : end + MOST_AROUND]))[:_LONGEST_WORDS],
            none or address not in goes,
        )
        for address, text, begin, end in links
    ]


def _is_nofollow(tree: Any) -> bool:
    """Return whether a page says of all its links that they are not to be followed."""
    for meta in tree.document:
        if meta.tag == "meta" and (meta.getattr("name") or "").strip().lower() == "robots":
            says = (meta.getattr("content") or "").lower().replace(",", " ").split()
            if "nofollow" in says or "none" in says:
                return True
    return False


class _Resolver:
    """Resolves addresses relative to that of the page."""

    def __init__(self, tree: Any, url: str | None) -> None:
        base = tree.document.query_selector("base[href]")
        self._base = _joined(url or "", (base.getattr("href") or "") if base else "") or ""
        try:
            parts = urlsplit(self._base)
            self._origin = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
        except ValueError:
            self._origin = ""

    def __call__(self, address: str | None) -> str | None:
        """Return an absolute address; None for anchors, scripts and email addresses."""
        address = (address or "").strip()
        if not address or len(address) > LONGEST_ADDRESS or address[0] == "#":
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
