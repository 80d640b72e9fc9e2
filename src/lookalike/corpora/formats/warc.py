"""Crawls as WARC, compressed or not: the web pages among their records, read by FastWARC.

Many crawls are truncated or have invalid records. These are skipped, counted and named, and reading
continues at the next record that is found.
"""

from __future__ import annotations

import io
import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lookalike import _native
from lookalike.checks import optional_module
from lookalike.corpora.base import BATCH_BYTES, MAX_PAGE, Problems, Rows, pa
from lookalike.corpora.encodings import Encodings, packed_by
from lookalike.corpora.formats import FileCorpus, Format
from lookalike.corpora.formats.html import Chunk, PageReading
from lookalike.lazy import LazyModule
from lookalike.pages import RawPage, Refused
from lookalike.pages.extract import check_installed
from lookalike.processes import in_groups
from lookalike.storage.files import file_errors

archives = LazyModule("fastwarc.warc", "reading WARC", extra="html")

BROKEN = "broken records"
_COLUMNS = ("id", "url", "date", "status", "title", "language", "text", "links")
_PAGE_TYPES = ("text/html", "application/xhtml+xml")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_CHUNK_PAGES = 256
_HEADERS = 1 << 16  # additional bytes for the HTTP headers of a page
# how a record begins: plain, or compressed by gzip or zstd
_STARTS = re.compile(rb"WARC/1\.[01]\r?\n|\x1f\x8b\x08|\x28\xb5\x2f\xfd")
_UNPACKED = 1 << 20
# A wrong length costs another reading of the rest: at most this many times the file.
_MOST_AGAIN = 8
_ALWAYS_AGAIN = 64 << 20


@dataclass(frozen=True)
class Record:
    """A response that is a web page."""

    url: str
    date: str | None
    status: int | None
    page: RawPage | Refused
    where: str
    done: int  # the position in its file at which it begins


class WarcCorpus(FileCorpus):
    """The pages of crawls: records of type `response` whose content is HTML.

    The columns are `id`, `url`, `date`, `status`, `title`, `language`, `text` and `links`. The id
    is the URL, with a number if it repeats an earlier one, as in "http://example.org/ (2)".
    """

    page_text = "text"
    marked_text = "marked_text"
    max_document = MAX_PAGE

    fixed_columns = True

    def __init__(self, paths: Sequence[Path], encodings: Encodings | None = None) -> None:
        check_installed()
        optional_module("fastwarc.warc", "reading WARC", extra="html")
        super().__init__(paths, "warc", encodings)
        self.reading = PageReading()
        self.described = self.reading.described()

    def columns(self) -> list[str]:
        return list(_COLUMNS)

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        return self.reading.rows(self, self._chunks(problems), columns, problems)

    def _chunks(self, problems: Problems) -> Iterator[Chunk]:
        times: dict[int, int] = {}  # of each URL and id, by its hash
        for some in in_groups(self._records(problems), _size, BATCH_BYTES, _CHUNK_PAGES):
            found = [record for record, _ in some]
            columns = {
                "id": [distinct_id(one.url, times) for one in found],
                "url": [one.url for one in found],
                "date": [one.date for one in found],
            }
            others = {name: pa.array(them, pa.large_string()) for name, them in columns.items()}
            others["status"] = pa.array([one.status for one in found], pa.int64())
            where, done = [one.where for one in found], min(1.0, some[-1][1])
            yield Chunk(pa.record_batch(others), [one.page for one in found], where, done)

    def _records(self, problems: Problems) -> Iterator[tuple[Record, float]]:
        """Yield all records, each with the share of the corpus that has been seen."""
        before = 0
        for path, length in zip(self.paths, self.sizes, strict=True):
            for record in records(path, self.max_document, problems):
                yield record, (before + record.done) / self.total_bytes
            before += length


def _size(one: tuple[Record, float]) -> int:
    page = one[0].page
    return len(page.html) if isinstance(page, RawPage) else 0


def distinct_id(url: str, times: dict[int, int]) -> str:
    """Return an id that differs from all earlier ones, whose hashes are in `times`."""
    key, number, id = _hash(url), 1, url
    if key in times:
        number = times[key]
        while _hash(id) in times:
            number += 1
            id = f"{url} ({number})"
        times[_hash(id)] = 1
    times[key] = number
    return id


def _hash(text: str) -> int:
    return _native.xxh64(np.frombuffer(text.encode("utf-8", "replace"), np.uint8))


def records(path: Path, most: int, problems: Problems) -> Iterator[Record]:
    """Yield the web pages of a file in order, of at most `most` bytes each; skip broken records."""
    with file_errors(f"{path}:"), open(path, "rb") as file:
        size = path.stat().st_size
        begin: int | None = 0
        read = 0
        reported = False  # whether an error at `begin` was reported
        while begin is not None:
            try:
                yield from _from(file, path, begin, most)
                return
            except _Broken as broken:
                if not (reported and broken.place == begin):
                    problems.leave_out(BROKEN, f"{path}, byte {broken.place:,}", broken.reason)
                reported = broken.behind
                read += file.tell() - begin
                begin = _next_start(file, broken.place + 1)
            if begin is not None and read > _MOST_AGAIN * size + _ALWAYS_AGAIN:
                reason = "too many broken records; the rest of the file is skipped"
                problems.leave_out(BROKEN, f"{path}, byte {begin:,}", reason)
                return


class _Broken(Exception):
    """Raised where a file cannot be read further."""

    def __init__(self, place: int, reason: str, *, behind: bool = False) -> None:
        super().__init__(reason)
        self.place, self.reason = place, reason
        self.behind = behind
        """Whether the record at the place is complete, and the data after it is broken."""


def _from(file: BinaryIO, path: Path, begin: int, most: int) -> Iterator[Record]:
    file.seek(begin)
    place = begin
    whole = False
    try:
        for record in archives.ArchiveIterator(file, parse_http=False):
            place, whole = record.stream_pos, False
            is_response = _kind(record, place) == "response"
            length = record.content_length
            head = record.reader.read(min(length, most + _HEADERS + 1) if is_response else 0)
            rest = record.reader.consume(length - len(head)) if length > len(head) else 0
            if len(head) + rest < length:
                raise _Broken(place, f"declares {length:,} bytes, but has {len(head) + rest:,}")
            page = _page(record, head, path, place, most) if is_response else None
            if page is not None:
                yield page
            whole = True
        _check_end(path, place)
    except OSError as error:
        reason = f"{'is followed by data that ' * whole}cannot be read ({error})"
        raise _Broken(place, reason, behind=whole) from error


def _check_end(path: Path, place: int) -> None:
    """Raise `OSError` if the last record is compressed and truncated; FastWARC ignores that."""
    with open(path, "rb") as file:
        file.seek(place)
        kind = packed_by(file.read(4))
        if kind:
            file.seek(place)
            with pa.CompressedInputStream(pa.PythonFile(file, "r"), kind) as unpacked:
                while unpacked.read(_UNPACKED):
                    pass


def _kind(record: Any, place: int) -> str:
    """Return the type of a record; raise `_Broken` for headers that FastWARC could not read."""
    kind = record.headers.get("WARC-Type")
    if kind is None:
        raise _Broken(place, "has headers without a WARC-Type")
    if "\n" in kind:
        raise _Broken(place, "has headers whose lines end in LF; expected CR LF")
    length = record.headers.get("Content-Length")
    if length is None:
        raise _Broken(place, "has headers without a Content-Length")
    if length.strip() != str(
        record.content_length
    ):  # FastWARC reads only this spelling of the name
        raise _Broken(place, f"has a Content-Length, {length!r}, that cannot be read")
    return str(kind).strip().lower()


def _page(record: Any, data: bytes, path: Path, place: int, most: int) -> Record | None:
    headers = archives.HeaderMap("latin1")
    begin = headers.parse(io.BytesIO(data[:_HEADERS]))
    kind = (headers.get("Content-Type") or "").strip().lower()
    if not kind.startswith(_PAGE_TYPES):
        return None
    url = (record.headers.get("WARC-Target-URI") or "").strip("<> ") or f"{path.name}:{place}"
    date = record.record_date
    charset = _CHARSET.search(kind)
    named = charset[1] if charset else None
    steps = [headers.get(name) or "" for name in ("Transfer-Encoding", "Content-Encoding")]
    packed = any(step.strip().lower() not in ("", "identity") for step in steps)
    page: RawPage | Refused
    if len(data) - begin > most:
        page = Refused(f"has more than {most:,} bytes (max_document)")
    elif packed:
        page = RawPage(data, named, url, most)
    else:
        page = RawPage(data[begin:], named, url)
    where = f"{path}, byte {place:,}, {url}"
    return Record(url, date and date.isoformat(), headers.status_code, page, where, place)


def _next_start(file: BinaryIO, begin: int) -> int | None:
    file.seek(0, io.SEEK_END)
    if begin >= file.tell():
        return None
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = _STARTS.search(data, begin)
        return found.start() if found else None


FORMAT = Format(
    name="warc",
    suffixes=(".warc",),
    open=WarcCorpus,
    magic=b"WARC/1.",
    shards=True,
    has_encoding=False,
)
