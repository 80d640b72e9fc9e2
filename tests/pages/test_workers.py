"""Pages that would bring a program down: they are refused, and everything else is read."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike import processes
from lookalike.pages import Page, PageLimits, RawPage, Refused, nesting
from lookalike.pages.workers import read_pages
from support.cases.web_pages import page

MANY = 1_000_000


def test_hostile_pages_are_refused_and_the_others_read() -> None:
    hostile = [
        b"<div>" * MANY,
        b"<div>" * 20_000 + b"x" + b"</div>" * 20_000,
        b"<div></b>" * 20_000,
        b"<ul><li>" * 20_000,
        b"<b><div>" * 20_000 + b"</b>" * 20_000,
        b"<p>x" * MANY,
        b"<!--" + b"<div>" * MANY,
    ]
    good = [page(f"Words number {at}.").encode() for at in range(len(hostile))]
    both = [one for pair in zip(hostile, good, strict=True) for one in pair]
    found = list(read_pages(map(RawPage, both), ["text"], threads=2))
    assert all(isinstance(one, Refused) for one in found[::2])
    for at, one in enumerate(found[1::2]):
        assert isinstance(one, Page)
        assert f"Words number {at}." in (one.text or "")


def test_a_page_that_takes_too_long_ends_its_process_alone() -> None:
    slow = b"<p " + b" ".join(b"a%d=1" % at for at in range(60_000)) + b">x</p>"
    pages = [page("first").encode(), slow, page("last").encode()]
    found = list(read_pages(map(RawPage, pages), ["text"], PageLimits(seconds=1)))
    assert found[1] == Refused("takes more than 1 s to be parsed")
    assert [type(one) for one in found] == [Page, Refused, Page]


def test_a_page_that_takes_too_much_memory_is_refused() -> None:
    large = b"x" * (90 << 20)
    limits = PageLimits(memory=1 << 28)
    found = list(read_pages([RawPage(large), RawPage(page("good").encode())], ["text"], limits))
    assert isinstance(found[0], Refused)
    assert isinstance(found[1], Page)


def test_a_worker_that_somebody_kills_is_replaced() -> None:
    list(read_pages([RawPage(b"<p>x")], ["text"]))
    for worker in processes._IDLE:
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
    found = list(read_pages([RawPage(b"<p>x")] * 3, ["text"]))
    assert [one.text for one in found if isinstance(one, Page)] == ["x"] * 3


def test_whoever_stops_reading_leaves_nothing_behind() -> None:
    pages = (RawPage(page(f"words {at}").encode()) for at in range(500))
    reading = read_pages(pages, ["text"], threads=2)
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert len(list(read_pages([RawPage(b"<p>x")], ["text"]))) == 1


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=150), st.integers(1, 3))
def test_answers_are_in_order_for_any_number_of_threads(kinds: list[int], threads: int) -> None:
    pages = [
        page(f"{at} words").encode() if kind else b"<div>" * 2000 for at, kind in enumerate(kinds)
    ]
    found = list(read_pages(map(RawPage, pages), ["text", "title"], threads=threads))
    assert found == list(read_pages(map(RawPage, pages), ["text", "title"]))
    for at, (kind, one) in enumerate(zip(kinds, found, strict=True)):
        assert isinstance(one, Page) == bool(kind)
        assert isinstance(one, Refused) or f"{at} words" in (one.text or "")


def test_nesting_is_counted_as_a_parser_sees_it() -> None:
    assert nesting(b"<div><p><div></div><br><div></div></div>", 99) == 2
    assert nesting(b"<script>'<div><div>'</script><div>", 99) == 1
    assert nesting(b"<!-- <div> --><DIV></div>", 99) == 1
    assert nesting(b"<div></span>" * 5, 99) == 5
    assert nesting(b"<div>" * 500, 99) == 100


@pytest.mark.parametrize("name", ["depth", "tags", "seconds", "memory"])
def test_limits_are_checked(name: str) -> None:
    for value in (0, -1, "many", 1 << 60, None):
        with pytest.raises(la.errors.ArgumentError, match=name):
            la.pages.PageLimits(**{name: value})  # type: ignore[arg-type]


def test_addresses_that_are_taken_before_are_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are many cores, libraries reserve more of them than a page may take memory."""
    reserved = "import mmap; before = mmap.mmap(-1, 3 << 30, flags=mmap.MAP_PRIVATE); "
    monkeypatch.setattr(processes, "_COMMAND", reserved + processes._COMMAND)
    monkeypatch.setattr(processes, "_IDLE", [])
    long = page("word " * 500_000).encode()
    (found,) = read_pages([RawPage(long)], ["text"])
    assert isinstance(found, Page), found
    for worker in processes._IDLE:
        worker.end()


def test_what_a_library_says_is_cut_short() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
    (found,) = read_pages([RawPage(head + b"z" * (1 << 20), unpacked=1 << 24)], ["text"])
    assert isinstance(found, Refused)
    assert "chunk" in found.reason
    assert len(found.reason) < 200
