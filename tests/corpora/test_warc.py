"""Crawls as WARC: what the library's own writer makes, and what nobody should have made."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookalike.corpora import Problems, open_corpus
from lookalike.corpora.formats.warc import archives, distinct_id, records
from support.cases.web_pages import crawl, page, response

URLS = [f"http://example.org/{at}" for at in range(4)]
PAGES = [page(f"Words of page {at}.", title=f"Page {at}").encode() for at in range(4)]
GOOD = [response(url, body) for url, body in zip(URLS, PAGES, strict=True)]


def rows(path: Path, problems: Problems | None = None) -> list[dict[str, Any]]:
    corpus = open_corpus(path)
    batches = corpus.rows(problems or Problems())
    return [row for batch in batches for row in batch.to_pylist()]


def found(path: Path) -> tuple[list[str], dict[str, int]]:
    problems = Problems()
    return [row["url"] for row in rows(path, problems)], problems.left_out


@pytest.mark.parametrize("name", ["crawl.warc", "crawl.warc.gz"])
def test_pages_of_a_crawl_are_rows(name: str, tmp_path: Path) -> None:
    others = [
        response("http://example.org/image", b"\x89PNG", kind="image/png"),
        GOOD[0].replace(b"WARC-Type: response", b"WARC-Type: metadata"),
    ]
    path = crawl(tmp_path / name, [GOOD[0], *others, *GOOD[1:], response(URLS[0], PAGES[1])])
    made = rows(path)
    assert [row["url"] for row in made] == [*URLS, URLS[0]]
    assert [row["id"] for row in made] == [*URLS, f"{URLS[0]} (2)"]
    for at, row in enumerate(made[:4]):
        assert row["title"] == f"Page {at}"
        assert f"Words of page {at}." in row["text"]
        assert "Homepage" not in row["text"]
        assert row["links"] == [{"url": "http://example.org/home", "text": "Homepage"}]
        assert (row["status"], row["date"]) == (200, "2020-01-02T03:04:05+00:00")


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_what_the_library_writes_is_read(packed: str, tmp_path: Path) -> None:
    written = []
    for url, body in zip(URLS, PAGES, strict=True):
        record = archives.WarcRecord()
        record.init_headers(archives.WarcRecordType.response)
        record.headers.append("WARC-Target-URI", url)
        record.is_http = True
        record.set_bytes_content(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body)
        stream = io.BytesIO()
        record.write(stream)
        data = stream.getvalue()
        if packed == ".zst":
            data = pa.compress(data, "zstd", asbytes=True)
        written.append(gzip.compress(data) if packed == ".gz" else data)
    path = tmp_path / f"crawl.warc{packed}"
    path.write_bytes(b"".join(written))
    assert found(path) == (URLS, {})


def test_bodies_are_unpacked(tmp_path: Path) -> None:
    body = page("Unpacked words.").encode()
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    kinds = [
        ("Content-Encoding: gzip\r\n", gzip.compress(body)),
        ("Transfer-Encoding: chunked\r\n", chunked),
        ("Content-Encoding: identity\r\n", body),
        ("Content-Encoding: x-gzip\r\n", gzip.compress(body)),
        ("Content-Encoding: deflate\r\n", zlib.compress(body)),
        ("Content-Encoding: deflate\r\n", zlib.compress(body, wbits=-15)),
        ("Content-Encoding: X-Gzip\r\nTransfer-Encoding: chunked\r\n", gzip.compress(body)),
    ]
    made = rows(
        crawl(
            tmp_path / "a.warc", [response("http://a/", data, headers=head) for head, data in kinds]
        )
    )
    assert ["Unpacked words." in row["text"] for row in made] == [True] * len(kinds)
    unpacked_before = [
        ("Content-Encoding: gzip\r\n", body),
        ("Content-Encoding: br\r\n", b"\r\n" + body),
        ("Content-Encoding: UTF-8\r\n", body),
        ("Transfer-Encoding: chunked\r\n", body),
        ("Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n", body),
        ("Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n", gzip.compress(body)),
        ("Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n", chunked),
        ("Transfer-Encoding: identity\r\nContent-Encoding: gzip\r\n", gzip.compress(body)),
    ]
    some = [response("http://a/", data, headers=head) for head, data in unpacked_before]
    made = rows(crawl(tmp_path / "u.warc.gz", some))
    assert ["Unpacked words." in row["text"] for row in made] == [True] * len(some)
    broken = [
        response("http://b/1", b"no gzip", headers="Content-Encoding: gzip\r\n"),
        response("http://b/2", b"zz\r\nx", headers="Transfer-Encoding: chunked\r\n"),
        response(
            "http://b/3", gzip.compress(b"x" * (20 << 20)), headers="Content-Encoding: gzip\r\n"
        ),
        response(
            "http://b/4", gzip.compress(b"<" * (20 << 20)), headers="Content-Encoding: x-gzip\r\n"
        ),
    ]
    path = crawl(tmp_path / "b.warc.gz", [GOOD[0], *broken, GOOD[1]])
    assert found(path) == (URLS[:2], {"unreadable pages": 4})


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("length", "lost"), [(10**18, 1), (10**5, 1), (3, 1), (-5, 1), ("abc", 1), ("9" * 99, 1)]
)
def test_a_record_that_lies_about_its_length_is_alone_lost(
    length: object, lost: int, packed: bool, tmp_path: Path
) -> None:
    liar = response("http://liar.example/", PAGES[0], length=length)
    path = crawl(tmp_path / f"c.warc{'.gz' * packed}", [*GOOD[:2], liar, *GOOD[2:]])
    urls, left_out = found(path)
    assert [url for url in urls if "liar" not in url] == URLS
    assert left_out.get("broken records", 0) == lost


@pytest.mark.parametrize(
    "between",
    [
        b"garbage\r\n" * 20,
        b"WARC/1.0\r\nno colon here\r\n\r\n",
        b"WARC/1.0\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"\x1f\x8b\x08\x00\xff\xff",
        b"\x00" * 1000,
    ],
)
def test_what_is_no_record_is_passed_over(between: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.warc"
    path.write_bytes(b"".join(GOOD[:2]) + between + b"".join(GOOD[2:]))
    urls, left_out = found(path)
    assert urls == URLS
    assert left_out["broken records"] >= 1


def test_pages_are_named_that_are_left_out(tmp_path: Path) -> None:
    deep = response("http://deep.example/", b"<div>" * 5000)
    path = crawl(tmp_path / "c.warc", [GOOD[0], deep])
    problems = Problems()
    assert len(rows(path, problems)) == 1
    assert problems.left_out == {"unreadable pages": 1}
    assert "http://deep.example/" in problems.examples[0]
    corpus = open_corpus(path)
    corpus.max_document = 100
    problems = Problems()
    assert sum(map(len, corpus.rows(problems))) == 0
    assert problems.left_out == {"unreadable pages": 2}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    packed=st.booleans(),
    cut=st.floats(0, 1),
    changes=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=4),
)
def test_damage_costs_only_what_is_damaged(
    packed: bool, cut: float, changes: list[tuple[float, int]], tmp_path: Path
) -> None:
    """Whatever is cut off or changed: nothing raises, and nothing is found twice."""
    path = crawl(tmp_path / f"c.warc{'.gz' * packed}", GOOD)
    data = bytearray(path.read_bytes())
    for place, value in changes:
        data[int(place * len(data))] = value
    whole = len(data)
    path.write_bytes(data[: int(cut * whole)])
    problems = Problems()
    made = list(records(path, 1 << 20, problems))
    places = [one.done for one in made]
    assert places == sorted(places)
    assert len(made) <= len(GOOD)
    if not changes:
        sizes = [len(gzip.compress(one)) if packed else len(one) for one in GOOD]
        complete = sum(sum(sizes[: at + 1]) <= int(cut * whole) for at in range(len(sizes)))
        assert [one.url for one in made][:complete] == URLS[:complete]


def test_odd_headers_are_no_reason_to_leave_a_page_out(tmp_path: Path) -> None:
    body = PAGES[0]
    odd = [
        response("http://a/\udcff", body),
        response("http://a/\x1b[31m", body),
        response("", body),
        response("x" * 20_000, body),
        response("http://a/", body, kind='TEXT/HTML; charset="utf-16"'),
        response("http://b/", body, status=99999999999),
        response("http://c/", body).replace(b"2020-01-02T03:04:05Z", b"yesterday, I think.."),
        response("http://d/", b"", headers="X: \xff\r\n"),
    ]
    path = crawl(tmp_path / "odd.warc", odd)
    made = rows(path)
    assert len({row["id"] for row in made}) == len(made) == len(odd)
    assert ["Words of page 0." in row["text"] for row in made] == [True] * 7 + [False]
    assert made[2]["url"].startswith("odd.warc:")


@pytest.mark.parametrize("packed", [False, True])
def test_a_record_that_is_cut_anywhere_is_counted(packed: bool, tmp_path: Path) -> None:
    """In its headers too, where what is left of them may look like a record without content."""
    path = tmp_path / f"c.warc{'.gz' * packed}"
    content_end = len(GOOD[1]) - len(b"\r\n\r\n")
    for cut in range(1, content_end + 1):
        records_made = [GOOD[0], GOOD[1][:cut]]
        problems = Problems()
        urls = [one.url for one in records(crawl(path, records_made), 1 << 20, problems)]
        assert urls == (URLS[:1] if cut < content_end else URLS[:2]), cut
        assert problems.left_out == ({"broken records": 1} if cut < content_end else {}), cut


@pytest.mark.parametrize("packed", ["gz", "zst"])
def test_a_file_that_is_cut_where_a_record_is_packed_is_told(packed: str, tmp_path: Path) -> None:
    """Also where nothing of that record can be unpacked, so that nobody sees that it was there."""
    path = tmp_path / f"c.warc.{packed}"
    first, second = (
        gzip.compress(one) if packed == "gz" else pa.compress(one, "zstd", asbytes=True)
        for one in GOOD[:2]
    )
    for cut in range(4, len(second)):
        path.write_bytes(first + second[:cut])
        problems = Problems()
        urls = [one.url for one in records(path, 1 << 20, problems)]
        assert urls in (URLS[:1], URLS[:2]), cut  # a checksum may be all that is missing
        assert problems.left_out == {"broken records": 1}, cut
    path.write_bytes(first + second)
    assert found(path) == (URLS[:2], {})


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("all_of_it", [False, True])
def test_line_ends_without_cr_are_named(packed: bool, all_of_it: bool, tmp_path: Path) -> None:
    lines = []
    for record in GOOD[1:3]:
        head, message = record.split(b"\r\n\r\n", 1)
        message = message if not all_of_it else message.replace(b"\r\n", b"\n")
        # The message's own length must not be taken for that of the record.
        message = message.replace(b"Content-Type:", b"Content-Length: 7\r\nContent-Type:", 1)
        lines.append(head.replace(b"\r\n", b"\n") + b"\n\n" + message)
    path = crawl(tmp_path / f"c.warc{'.gz' * packed}", [GOOD[0], *lines, GOOD[3]])
    problems = Problems()
    assert [row["url"] for row in rows(path, problems)] == [URLS[0], URLS[3]]
    assert problems.left_out == {"broken records": 2}
    assert all("lines end in LF" in example for example in problems.examples)


def test_names_of_headers_in_other_letters(tmp_path: Path) -> None:
    lower = GOOD[0].replace(b"WARC-Type: response", b"warc-type: Response")
    lower = lower.replace(b"WARC-Target-URI", b"warc-target-uri")
    unknown = GOOD[1].replace(b"Content-Length", b"content-length")  # which FastWARC does not find
    path = crawl(tmp_path / "c.warc", [lower, unknown, GOOD[2]])
    problems = Problems()
    assert [row["url"] for row in rows(path, problems)] == [URLS[0], URLS[2]]
    assert problems.left_out == {"broken records": 1}
    assert "Content-Length" in problems.examples[0]


@given(st.lists(st.sampled_from(["u", "u (2)", "u (3)", "u (2) (2)", "v"])))
def test_ids_differ_whatever_urls_say(urls: list[str]) -> None:
    """URLs that read like the ids of repeated ones are among them."""
    times: dict[int, int] = {}
    ids = [distinct_id(url, times) for url in urls]
    assert len(set(ids)) == len(ids)
    assert all(id.startswith(url) for id, url in zip(ids, urls, strict=True))
    firsts = [id for id, url in zip(ids, urls, strict=True) if id == url]
    assert not urls or firsts[0] == urls[0]
