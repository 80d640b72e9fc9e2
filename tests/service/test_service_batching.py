"""What arrives together is answered together, and nobody waits for what blocks another."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import lookalike as la
from lookalike.service.batching import Lanes
from lookalike.service.limits import Limit, Watch
from lookalike.service.problems import Problem
from support.services.running import running


def test_questions_that_wait_become_one_batch() -> None:
    batches: list[list[int]] = []
    begun, go_on = threading.Event(), threading.Event()

    def answer(questions: Sequence[int]) -> list[int]:
        batches.append(list(questions))
        if len(batches) == 1:
            begun.set()
            go_on.wait(120)
        return [10 * one for one in questions]

    async def ask() -> list[int]:
        with ThreadPoolExecutor(2) as threads:
            lanes: Lanes[int, int] = Lanes(threads.submit, lambda size: None)
            first = asyncio.ensure_future(lanes.ask("a", answer, 1))
            await asyncio.to_thread(begun.wait, 120)  # it has not waited for company
            others = [asyncio.ensure_future(lanes.ask("a", answer, n)) for n in range(2, 9)]
            elsewhere = await lanes.ask("b", lambda questions: [0 for _ in questions], 5)
            others[0].cancel()  # whoever has gone is not asked for
            await asyncio.sleep(0)
            go_on.set()
            found = [await first, *[await one for one in others[1:]], elsewhere]
            assert not lanes.known, "nothing stays"
            return found

    assert asyncio.run(ask()) == [10, 30, 40, 50, 60, 70, 80, 0]
    assert batches == [[1], [3, 4, 5, 6, 7, 8]]


def test_one_bad_question_does_not_spoil_the_others() -> None:
    def answer(questions: Sequence[int]) -> list[int]:
        if 3 in questions:
            raise la.errors.ArgumentError("three is bad")
        return list(questions)

    async def ask() -> list[object]:
        with ThreadPoolExecutor(2) as threads:
            lanes: Lanes[int, int] = Lanes(threads.submit, lambda size: None)
            asked = [lanes.ask("a", answer, number) for number in range(6)]
            return await asyncio.gather(*asked, return_exceptions=True)

    found = asyncio.run(ask())
    assert [one for one in found if isinstance(one, int)] == [0, 1, 2, 4, 5]
    assert isinstance(found[3], la.errors.ArgumentError)


def test_limits_end_what_takes_too_long_and_nothing_else() -> None:
    async def wait(seconds: float, limit: float) -> str:
        watch = Watch()
        try:
            with Limit(watch, limit, lambda _: Problem(408, "late", "too late")):
                await asyncio.sleep(seconds)
        except Problem as problem:
            assert not watch.limits
            await asyncio.sleep(0)  # and the task goes on
            return problem.code
        return "done"

    async def both() -> list[str]:
        return list(await asyncio.gather(wait(1e6, 0.1), wait(0.01, 1e6)))

    assert asyncio.run(both()) == ["late", "done"]


def test_a_locked_database_blocks_nobody_else(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("one", "two"):
        la.open_collection(tmp_path / "data" / f"{name}.db", name, signer=la.SimHash(64)).close()
    with running(tmp_path / "data", tmp_path, time_limit=120.0) as service:
        for name in ("one", "two"):
            body = {"documents": [{"id": "a", "text": "some text"}]}
            service.good("PUT", f"/v1/collections/{name}/documents", body)
        lock = sqlite3.connect(tmp_path / "data" / "one.db", isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
        try:
            with ThreadPoolExecutor(1) as thread:
                waiting = thread.submit(
                    service.good, "POST", "/v1/collections/one/query", {"text": "x"}
                )
                for _ in range(10):
                    assert service.good("GET", "/healthz")
                    path = "/v1/collections/two/query"
                    assert service.good("POST", path, {"text": "x"})["matches"]
                assert not waiting.done()
                lock.execute("ROLLBACK")
                assert waiting.result()["matches"]
        finally:
            lock.close()


def test_locked_files_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("one", "two", "three"):
        la.open_collection(tmp_path / "data" / f"{name}.db", name, signer=la.SimHash(64)).close()
    with running(tmp_path / "data", tmp_path, time_limit=120.0) as service, ExitStack() as locks:
        service.good("GET", "/v1/collections/one")  # which is open by now
        for name in ("one", "three"):
            lock = sqlite3.connect(tmp_path / "data" / f"{name}.db", isolation_level=None)
            locks.enter_context(closing(lock)).execute("BEGIN EXCLUSIVE")
        begin = time.monotonic()
        ready = service.good("GET", "/readyz")
        assert (ready["status"], ready["collections"]) == ("ready", 3)
        assert ready["busy"] == ["one", "three"]
        found = service.good("GET", "/v1/collections")
        assert time.monotonic() - begin < 10
        assert [one["name"] for one in found["collections"]] == ["two"]
        busy = [(one["name"], one["error"]["code"]) for one in found["unavailable"]]
        assert busy == [("one", "busy"), ("three", "busy")]
        locks.close()
        assert "busy" not in service.good("GET", "/readyz")
        assert len(service.good("GET", "/v1/collections")["collections"]) == 3


def test_a_locked_database_says_so_at_once(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    la.open_collection(path, signer=la.SimHash(64)).close()
    with running(path, tmp_path, time_limit=120.0) as service:
        with closing(sqlite3.connect(path, isolation_level=None)) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            begin = time.monotonic()
            for route in ("/readyz", "/v1/collections"):
                service.refused(503, "busy", "GET", route)
            assert time.monotonic() - begin < 10
        assert service.good("GET", "/readyz")["collections"] == 1


def test_a_locked_database_is_waited_for_no_longer_than_told(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    la.open_collection(path, signer=la.SimHash(64)).close()
    with running(path, tmp_path, time_limit=0.5) as service:
        lock = sqlite3.connect(path, isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
        try:
            asked = "/v1/collections/documents/query"
            told = service.refused(408, "time_limit", "POST", asked, {"text": "x"})
            assert "more than 0.5 s" in told
        finally:
            lock.execute("ROLLBACK")
            lock.close()


@pytest.mark.parametrize("bits", [32, 96])
def test_a_collection_that_is_made_anew_elsewhere_is_found(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "docs.db"
    la.open_collection(path, signer=la.SimHash(64)).close()
    with running(path, tmp_path) as service:
        ask = "/v1/collections/documents"
        service.good("POST", f"{ask}/query", {"text": "x"})
        la.drop_collection(path, "documents")
        service.refused(404, "not_found", "POST", f"{ask}/query", {"text": "x"})
        la.open_collection(path, signer=la.SimHash(64)).close()
        service.good("POST", f"{ask}/query", {"text": "x"})
        la.drop_collection(path, "documents")
        with la.open_collection(path, signer=la.SimHash(bits)) as docs:
            docs.add(["a"], ["x"])
        assert len(service.good("POST", f"{ask}/query", {"text": "x"})["matches"]) == 1
        body = {"documents": [{"id": "b", "text": "y"}]}
        assert service.good("PUT", f"{ask}/documents", body)["added"] == 1
