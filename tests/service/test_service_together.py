"""Limits that meet: memory, cancellation, refusals and writes at the same time."""

from __future__ import annotations

import gc
import io
import json
import socket
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

import lookalike as la
from lookalike.client.channel import Channel
from lookalike.errors import ArgumentError, CollectionError
from lookalike.service.limits import Held
from lookalike.service.shapes import WriteBody
from support.running.waiting import wait_until
from support.services.running import Running, running

BASE = "/v1/collections/c"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "docs.db"
    with la.open_collection(path, "c", signer=la.SimHash(64), durable=False) as docs:
        docs.add(["first"], ["the first text"])
    return path


@pytest.fixture
def service(database: Path, tmp_path: Path) -> Iterator[Running]:
    with running(database, tmp_path) as service:
        yield service


def _sent(method: str, path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"{method} {BASE}/{path} HTTP/1.1\r\nhost: localhost\r\n"
        f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def test_a_body_that_waits_for_a_thread_is_freed_when_its_client_has_gone(
    service: Running,
) -> None:
    inside = service.inside
    assert inside is not None
    body = {"documents": [{"id": str(n), "text": "words " * 1_000} for n in range(300)]}
    service.good("PUT", f"{BASE}/documents", {"documents": body["documents"][:1]})
    blocked = threading.Event()
    try:
        inside._writers["c"].pool.submit(blocked.wait)
        with service.connection() as connection:
            connection.sendall(_sent("PUT", "documents", body))
            wait_until(lambda: bool(inside._working))
        wait_until(lambda: not inside.memory.taken)
        gc.collect()
        assert not [one for one in gc.get_objects() if isinstance(one, WriteBody)]
    finally:
        blocked.set()
    assert service.good("POST", f"{BASE}/documents/count")["count"] == 2


def test_a_query_that_waits_in_a_lane_is_freed_when_its_client_has_gone(
    service: Running,
) -> None:
    inside = service.inside
    assert inside is not None
    blocked = threading.Event()
    service.good("POST", f"{BASE}/query", {"text": "a", "k": 1})
    try:
        for _ in range(inside.read.pool._max_workers):
            inside.read.pool.submit(blocked.wait)
        first, second = service.connection(), service.connection()
        with first:
            first.sendall(_sent("POST", "query", {"text": "a" * 1_000, "k": 1}))
            wait_until(lambda: any(lane.batch for lane in inside.lanes.known.values()))
            with second:
                second.sendall(_sent("POST", "query", {"text": "b" * 100_000, "k": 1}))
                wait_until(lambda: any(lane.waiting for lane in inside.lanes.known.values()))
            wait_until(lambda: not any(lane.waiting for lane in inside.lanes.known.values()), 20)
    finally:
        blocked.set()


def test_a_write_that_was_done_is_not_refused_for_its_answer(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, release = service.inside, Held.release
    assert inside is not None
    other = Held(inside.memory, "other")

    def released(held: Held, *given: object) -> None:
        release(held, *given)
        other.change(inside.memory.most - inside.memory.taken)  # another request takes all the room

    some = [{"id": str(n), "text": "a"} for n in range(2_000)]
    with monkeypatch.context() as patched:
        patched.setattr(Held, "release", released)
        assert service.good("PUT", f"{BASE}/documents", {"documents": some})["added"] == 2_000
    other.release()
    wait_until(lambda: not inside.memory.taken)


def test_a_write_that_was_done_is_answered_however_long_the_answer(
    database: Path, tmp_path: Path
) -> None:
    some = [{"id": str(n), "text": "a"} for n in range(50)]
    strange = [{"id": "\x01" * 5_000, "text": "a"}, {"id": None, "text": "a"}]
    with running(database, tmp_path, max_answer=1_000) as service:
        for media in ("application/json", "application/msgpack"):
            for rows in (some, [*some, *strange]):
                body = {"documents": rows}
                status, _, raw = service.raw("PUT", f"{BASE}/documents", body, accept=media)
                assert status == 200, raw
                assert len(raw) < 20_000


def test_pipelined_requests_end_with_their_connection(
    database: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = io.StringIO()
    settings: dict[str, Any] = {"time_limit": 600.0, "log_level": "info"}
    with running(database, tmp_path, log, **settings) as service:
        inside, blocked = service.inside, threading.Event()
        assert inside is not None
        try:
            for _ in range(inside.read.pool._max_workers):
                inside.read.pool.submit(blocked.wait)
            with service.connection() as connection:
                connection.sendall(_sent("POST", "documents/count", {}) * 2)
                wait_until(lambda: bool(inside._working))
            wait_until(lambda: '"status": 499' in log.getvalue(), 20)
            assert not inside._working and not inside.memory.taken
        finally:
            blocked.set()
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


@pytest.mark.parametrize("read", [True, False])
def test_the_client_says_why_a_service_closed_the_connection_before_all_was_sent(
    read: bool,
) -> None:
    said = b'{"error":{"code":"c","kind":"ArgumentError","message":"it is too large"}}'
    answer = b"HTTP/1.1 413 Large\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s"

    def refuse() -> None:
        with listener.accept()[0] as connection:
            connection.recv(100)
            connection.sendall(answer % (len(said), said))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=refuse)
        thread.start()
        channel = Channel(f"http://127.0.0.1:{listener.getsockname()[1]}", None, 60.0, 0)
        with pytest.raises(ArgumentError, match="it is too large"):
            (channel.read if read else channel.write)("POST", "/v1", "x" * (32 << 20))
        thread.join()
        channel.close()


def test_the_client_does_not_know_whether_a_write_was_done_without_an_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        channel = Channel(f"http://127.0.0.1:{listener.getsockname()[1]}", None, 60.0, 0)
        with pytest.raises(CollectionError, match="may have been applied"):
            channel.write("POST", "/v1", "x" * (32 << 20))
        thread.join()
        channel.close()


def test_a_locked_file_does_not_keep_threads_from_others(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("locked", "free", "unopened"):
        with la.open_collection(folder / f"{name}.db", signer=la.SimHash(64)) as docs:
            docs.add(["first"], ["the first text"])
    with ExitStack() as stack:
        service = stack.enter_context(running(folder, tmp_path, time_limit=0.5))
        inside = service.inside
        assert inside is not None
        for name in ("locked", "free"):
            service.good("GET", f"/v1/collections/{name}/documents/first")
        for name in ("locked", "unopened"):
            other = sqlite3.connect(folder / f"{name}.db", isolation_level=None)
            stack.enter_context(closing(other)).execute("BEGIN EXCLUSIVE")
        with ThreadPoolExecutor(24) as asking:
            for name in ("locked", "unopened"):
                paths = [f"/v1/collections/{name}/documents/first"] * 12
                for status in asking.map(lambda path: service.ask("GET", path)[0], paths):
                    assert status == 408
        wait_until(lambda: not inside._working, 15)  # less than the 30 s that SQLite would wait
        assert service.good("GET", "/v1/collections/free/documents/first")
