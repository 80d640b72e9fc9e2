"""Pages and crawls for tests, made by hand."""

from __future__ import annotations

import gzip
from pathlib import Path


def response(
    url: str,
    body: bytes,
    *,
    kind: str = "text/html; charset=utf-8",
    headers: str = "",
    length: object = None,
    status: int = 200,
) -> bytes:
    """Return a record of WARC with a response; `length` is what it says of its own."""
    message = (
        f"HTTP/1.1 {status} OK\r\nContent-Type: {kind}\r\n{headers}\r\n".encode("latin-1") + body
    )
    said = len(message) if length is None else length
    return (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: "
        + url.encode("utf-8", "surrogateescape")
        + b"\r\nWARC-Date: 2020-01-02T03:04:05Z\r\n"
        + b"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000000>\r\n"
        + b"Content-Type: application/http; msgtype=response\r\n"
        + f"Content-Length: {said}\r\n\r\n".encode()
        + message
        + b"\r\n\r\n"
    )


def page(words: str, *, title: str = "Title", links: str = "") -> str:
    """Return a page with words in its main text, among what is not."""
    return (
        f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{title}</title>'
        "<style>.styled{color:red}</style><script>var scripted = 1;</script></head><body>"
        '<nav><ul><li><a href="/home">Homepage</a></li></ul></nav>'
        f"<main><article><h1>{title}</h1><p>{words}</p>{links}</article></main>"
        "<footer><p>Footnotes</p></footer><script>scripted()</script></body></html>"
    )


def crawl(path: Path, records: list[bytes]) -> Path:
    """Write a crawl, packed record by record if its name says so."""
    packed = path.suffix == ".gz"
    path.write_bytes(b"".join(gzip.compress(one) if packed else one for one in records))
    return path
