"""Work whose request has ended stops, expensive requests leave room for others, and a service ends.

With LOOKALIKE_HOSTILE=all, each runs at full size against a service with default settings too.
"""

from __future__ import annotations

import asyncio
import errno
import io
import itertools
import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.collection.care import transfer
from lookalike.operation import stop_if_canceled
from lookalike.service.batching import Lanes
from lookalike.service.library import open_library
from lookalike.service.problems import Problem, problem_for_clients
from lookalike.service.routes import queries
from lookalike.service.service import Service
from lookalike.service.settings import ServeSettings
from lookalike.service.shapes import QueryBody, answer_value
from lookalike.service.telemetry import Log
from support.running.waiting import wait_until
from support.services.running import Running, process, running

ALL = os.environ.get("LOOKALIKE_HOSTILE") == "all"
BASE = "/v1/collections/c"
MANY = 1_000
HEX = "00" * 8
ENDLESS: dict[str, dict[str, Any]] = {  # a minute, if nothing ends them
    "by SQL": {"k": 1_000, "explain": True, "plan": "sql"},
    "native": {"k": 1_000, "explain": True},
    "by radius": {"k": 1_000, "radius": 64, "explain": True},
    "with a condition": {"k": 100, "where": {"n": -1}, "plan": "sql"},
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("abandoned") / "docs.db"
    rows = np.random.default_rng(0).integers(0, 256, (4_000, 8), dtype=np.uint8)
    with la.open_collection(path, "c", bits=64, keep_text=False, durable=False) as docs:
        names = [str(number) for number in range(len(rows))]
        docs.add(names, signatures=rows, metadata=[{"n": number} for number in range(len(rows))])
    return path


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each query that was answered."""
    found: list[int] = []
    value = answer_value

    def noted(*given: Any) -> Any:
        found.append(1)
        return value(*given)

    monkeypatch.setattr(queries, "answer_value", noted)
    return found


def _idle(service: Running) -> bool:
    return service.inside is not None and not service.inside._working


@pytest.mark.parametrize("kind", ENDLESS)
def test_work_ends_with_the_time_limit(
    database: Path, tmp_path: Path, answered: list[int], kind: str
) -> None:
    body = {"signatures": [HEX] * MANY, **ENDLESS[kind]}
    with running(database, tmp_path, time_limit=0.3) as service:
        service.refused(408, "time_limit", "POST", f"{BASE}/query/batch", body)
        wait_until(lambda: _idle(service))
        assert len(answered) < MANY
        wait_until(lambda: service.inside is not None and not service.inside.memory.taken)
        assert service.good("POST", f"{BASE}/query", {"signature": HEX, "k": 1})["matches"]


def _request(path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"POST {BASE}/{path} HTTP/1.1\r\nhost: localhost\r\n"
        f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


@pytest.mark.parametrize("kind", ["by SQL", "by radius"])
def test_work_ends_with_the_connection(
    database: Path, tmp_path: Path, answered: list[int], kind: str
) -> None:
    request = _request("query/batch", {"signatures": [HEX] * MANY, **ENDLESS[kind]})
    log = io.StringIO()
    with running(database, tmp_path, log, time_limit=600.0, log_level="info") as service:
        with service.connection() as connection:
            connection.sendall(request)
            wait_until(lambda: not _idle(service))
        wait_until(lambda: _idle(service))
        wait_until(lambda: '"status": 499' in log.getvalue())
        assert len(answered) < MANY


def test_cheap_requests_beside_expensive_ones(database: Path, tmp_path: Path) -> None:
    filtered = _request("query", {"signature": HEX, "where": {"n": -1}, "k": 10_000})
    requests = [
        _request("query/batch", {"signatures": [HEX] * MANY, **how}) for how in ENDLESS.values()
    ]
    with running(database, tmp_path, time_limit=600.0) as service, ExitStack() as connections:
        service.good("POST", f"{BASE}/query", {"signature": HEX})  # makes the index
        waiting = [connections.enter_context(service.connection()) for _ in range(16)]
        for number, one in enumerate(waiting):
            one.sendall(filtered if number > 11 else requests[number % len(requests)])
        wait_until(lambda: not _idle(service))
        assert service.good("POST", f"{BASE}/query", {"signature": HEX, "k": 3})["matches"]
        assert service.good("POST", f"{BASE}/query", {"signature": HEX, "radius": 5, "k": 3})
        assert service.good("GET", "/readyz")["status"] == "ready"
        assert service.good("GET", f"{BASE}/documents/7")["id"] == "7"
        answered, _, _ = select.select(waiting[:12], [], [], 0)
        assert len(answered) < 12, "they were answered while others were waiting"
        connections.close()
        wait_until(lambda: _idle(service))


def test_requests_are_cheap_or_not(database: Path, tmp_path: Path) -> None:
    made = Service(ServeSettings(), open_library(database), tmp_path, Log("error", io.StringIO()))

    def threads(queries_: int, **given: Any) -> Any:
        body = QueryBody.model_validate({"signature": HEX, **given})
        return queries._threads(body, made, made.library.collection("c"), queries_)

    assert threads(1) == made.read_much, "the first waits for the index"
    made.library.collection("c").search(np.zeros(8, np.uint8))
    assert threads(1) == threads(1, radius=9, k=10) == threads(100) == made.read
    assert threads(1, radius=64, k=10) == threads(1, radius=64, limit=10) == made.read
    assert threads(1, radius=40) == made.read_much
    assert threads(1, radius=9) == made.read and threads(1, k=1_000) == made.read
    assert threads(1, where={"n": 3}) == made.read_filtered
    for expensive in ({"k": 1_001}, {"explain": True}, {"plan": "sql"}, {"include_text": True}):
        assert threads(1, **expensive) == made.read_much
    assert threads(101) == threads(11, radius=9) == made.read_much
    assert threads(200, where={"n": 3}) == made.read_much
    made.close()


def test_a_batch_of_lanes_ends_when_all_have_gone() -> None:
    begun, ended = threading.Event(), threading.Event()

    def answer(questions: Any) -> Any:
        try:
            while True:
                begun.set()
                stop_if_canceled()
                time.sleep(0.005)
        finally:
            ended.set()

    async def ask() -> None:
        with ThreadPoolExecutor(2) as threads:
            lanes: Lanes[int, int] = Lanes(threads.submit, lambda size: None)
            both = [asyncio.ensure_future(lanes.ask("a", answer, number)) for number in range(2)]
            await asyncio.to_thread(begun.wait)
            both[0].cancel()
            await asyncio.sleep(0.05)
            assert not ended.is_set(), "the other one still waits"
            both[1].cancel()
            assert await asyncio.to_thread(ended.wait, 60)
            assert await lanes.ask("a", lambda asked: [7 for _ in asked], 1) == 7

    asyncio.run(ask())


def test_a_service_that_ends_ends_its_work(database: Path, tmp_path: Path) -> None:
    made = Service(ServeSettings(), open_library(database), tmp_path, Log("error", io.StringIO()))
    begun = [threading.Event() for _ in range(7)]

    def work(event: threading.Event) -> None:
        while True:
            event.set()
            stop_if_canceled()
            time.sleep(0.005)

    async def serve() -> list[Any]:
        waiting = [
            *(threads(work, event) for threads, event in zip(
                (made.read, made.read_filtered, made.read_much, made.slowly, made.probe), begun,
                strict=False,
            )),
            made.write("c", lambda docs: work(begun[5])),
            made.lanes.ask("a", lambda asked: work(begun[6]) or [], 1),  # type: ignore[func-returns-value]
        ]  # fmt: skip
        tasks = [asyncio.ensure_future(one) for one in waiting]
        for event in begun:
            await asyncio.to_thread(event.wait)
        await asyncio.to_thread(made.close)
        with pytest.raises(Problem):
            await made.read(work, begun[0])
        return await asyncio.gather(*tasks, return_exceptions=True)

    for problem in asyncio.run(serve()):
        assert isinstance(problem, Problem) and problem.code == "ending", problem


@pytest.mark.parametrize(
    "how", [{"radius": 64}, {"radius": 64, "limit": 100}, {"radius": 64, "k": 100}]
)
@pytest.mark.parametrize("plan", ["native", "sql"])
@pytest.mark.parametrize("by", ["signatures", "ids"])
def test_batches_have_no_more_matches_than_allowed(
    database: Path, tmp_path: Path, how: dict[str, Any], plan: str, by: str
) -> None:
    given = ["0" * 16] * 4 if by == "signatures" else ["1", "2", "3", "4"]
    with running(database, tmp_path, max_results=400, max_k=400) as service:
        body = {by: given, **how, "plan": plan}
        if "limit" in how or "k" in how:
            found = service.good("POST", f"{BASE}/query/batch", body)["answers"]
            assert [len(one["matches"]) for one in found] == [100] * 4
            body[by] = [*given, given[0]]
        told = service.refused(422, "result_too_large", "POST", f"{BASE}/query/batch", body)
        assert "400" in told


def test_large_batches_share_one_limit_of_memory(database: Path, tmp_path: Path) -> None:
    with running(database, tmp_path, max_memory=4 << 20) as service:
        body = {"signatures": [HEX] * 40, "k": 2_000, "explain": True}
        service.refused(429, "too_much_at_once", "POST", f"{BASE}/query/batch", body)
        wait_until(lambda: service.inside is not None and not service.inside.memory.taken)
        assert service.good("POST", f"{BASE}/query", {"signature": HEX, "k": 3})["matches"]


def _uploaded(service: Running, name: str, format: str, data: bytes) -> Any:
    path = f"/v1/collections/{name}/upload?format={format}"
    status, _, state = service.ask("POST", path, data, content_type="application/octet-stream")
    assert status == 202, state
    return state


def test_an_upload_of_empty_lines_has_no_documents(tmp_path: Path) -> None:
    with running(tmp_path / "new.db", tmp_path) as service:
        service.good("POST", "/v1/collections", {"name": "lines"})
        data = b"\n" * 200_000 + b"one line of words\r\n\r\n" + b"\n" * 1000 + b"another"
        state = _uploaded(service, "lines", "text", data)
        done = service.ended(state["id"])
        assert done["state"] == "done", done
        assert done["summary"]["added"] == 2 and done["summary"]["bad"] == 0
        assert done["summary"]["left_out"] == 201_001
        found = service.good("GET", "/v1/collections/lines/documents")["documents"]
        assert {one["id"]: one["text"] for one in found} == {
            "row-200000": "one line of words", "row-201002": "another",
        }  # fmt: skip


def test_transactions_of_an_import_are_bounded_in_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = transfer.TransferSizes(bytes=10_000)
    monkeypatch.setattr(la.Collection, "transfer", small)
    monkeypatch.setattr(transfer, "_ROW_BYTES_AT_ONCE", 1_000)
    sizes: list[int] = []
    rows = [
        {"id": str(number), "text": "x" * (number % 13 * 300), "note": "y" * (number % 5 * 100)}
        for number in range(200)
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with la.open_collection(tmp_path / "docs.db", signer=la.SimHash(64), durable=False) as docs:
        upsert = docs.upsert

        def noted(ids: Any, texts: Any, **given: Any) -> Any:
            sizes.append(sum(map(len, texts)))
            return upsert(ids, texts, **given)

        monkeypatch.setattr(docs, "upsert", noted)
        done = docs.import_file(tmp_path / "in.jsonl", replace=True)
        assert done.added == 200 and len(sizes) > 10 and max(sizes) <= 10_000 + 13 * 300
        for row in rows:
            document = docs.get(row["id"])
            assert document is not None and document.text == row["text"]
            assert document.metadata == {"note": row["note"]}


@pytest.mark.parametrize(
    ("format", "data"),
    [("json", b"{"), ("jsonl", b'{"id": "a", "text": "words"}\n{"id": "b", \n')],
)  # fmt: skip
def test_jobs_do_not_name_files_of_the_service(tmp_path: Path, format: str, data: bytes) -> None:
    with running(tmp_path / "new.db", tmp_path) as service:
        service.good("POST", "/v1/collections", {"name": "plain"})
        state = _uploaded(service, "plain", format, data)
        told = json.dumps(service.ended(state["id"]))
        assert str(tmp_path) not in told and "uploads" not in told


def test_a_full_disk_is_said_to_be_full(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(database, tmp_path) as service:
        assert service.good("GET", "/readyz")["writable"] is True
        usage = shutil.disk_usage
        full = type(usage(tmp_path))(10**9, 10**9, 0)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
        ready = service.good("GET", "/readyz")
        assert ready == {"status": "ready", "collections": 1, "writable": False}
        assert service.good("POST", f"{BASE}/query", {"signature": HEX})["matches"]
        fails = OSError(errno.ENOSPC, "No space left on device", str(tmp_path))
        monkeypatch.setattr(Path, "mkdir", lambda *given, **named: _raise(fails))
        told = service.refused(507, "disk_full", "POST", f"{BASE}/pairs", {"radius": 0})
        assert str(tmp_path) not in told


def _raise(error: Exception) -> None:
    raise error


def test_every_disk_can_be_full(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "small.db")
    connection.execute("PRAGMA max_page_count = 4")
    connection.execute("CREATE TABLE a (b)")
    cause: Exception
    try:
        connection.execute("INSERT INTO a VALUES (zeroblob(1000000))")
        raise AssertionError("that was too much")
    except sqlite3.Error as error:
        cause = error
    connection.close()
    for number in (errno.ENOSPC, errno.EDQUOT):
        assert problem_for_clients(OSError(number, "full"), "x").code == "disk_full"
    told = la.errors.CollectionError("the disk is full")
    told.__cause__ = cause
    assert problem_for_clients(told, "x").status == 507
    assert problem_for_clients(OSError(errno.EIO, "broken"), "x").code == "internal"


def test_what_a_killed_service_left_goes_with_the_next(database: Path, tmp_path: Path) -> None:
    places = {"TMPDIR": str(tmp_path)}

    def folders() -> set[Path]:
        return set(tmp_path.glob("*lookalike-serve-*"))

    with process(str(database), environment=places) as first:
        (left,) = folders()
        first.kill()
        first.wait()
        assert folders() == {left}
        with process(str(database), environment=places) as second:
            (used,) = folders()
            assert used != left
            second.terminate()
            assert second.wait(120) == 0
    assert used not in folders()


# At full size


def _grown(pid: int, base: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024 - base


@pytest.mark.skipif(not ALL, reason="LOOKALIKE_HOSTILE=all runs it")
@pytest.mark.parametrize("kind", ["radius", "explain", "ids", "sort"])
def test_peak_memory_of_batches(database: Path, tmp_path: Path, kind: str) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "radius": {"signatures": [HEX] * 10_000, "radius": 64},
        "explain": {"signatures": [HEX] * 250, "k": 4_000, "explain": True},
        "ids": {"ids": [str(number) for number in range(4_000)], "radius": 64, "k": 250},
        "sort": {"signatures": [HEX] * 10_000, "k": 100, "plan": "sql"},
    }
    with process(str(database), environment={"TMPDIR": str(tmp_path)}) as started:
        service: Running = started.service
        service.good("POST", f"{BASE}/query", {"signature": HEX})
        base = _grown(started.pid, 0)
        with ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(service.ask, "POST", f"{BASE}/query/batch", bodies[kind])
                     for _ in range(8)]  # fmt: skip
            for one in asked:
                assert one.result()[0] in (200, 408, 422, 429)
        grown = _grown(started.pid, base)
        print(f"{kind}: base {base} MB, grown by {grown} MB")
        assert grown <= 512


@pytest.mark.skipif(not ALL, reason="LOOKALIKE_HOSTILE=all runs it")
def test_sigterm_is_obeyed_within_ten_seconds(database: Path, tmp_path: Path) -> None:
    body = {"signatures": [HEX] * MANY, **ENDLESS["by SQL"]}
    with process(str(database), "--time-limit", "600",
                 environment={"TMPDIR": str(tmp_path)}) as started:  # fmt: skip
        with ThreadPoolExecutor(8) as threads:
            for _ in range(8):
                threads.submit(_asked, started.service, f"{BASE}/query/batch", body)
            time.sleep(2)
            begin = time.monotonic()
            started.send_signal(signal.SIGTERM)
            assert started.wait(120) == 0
            seconds = time.monotonic() - begin
        print(f"ended after {seconds:.1f} s")
        assert seconds < 12  # ten, and something for a machine that has other things to do


def _asked(service: Running, path: str, body: Any) -> None:
    with suppress(OSError):  # the service is gone
        service.ask("POST", path, body)


@pytest.mark.skipif(not ALL, reason="LOOKALIKE_HOSTILE=all runs it")
@pytest.mark.parametrize("line", [b"\n", b"a\n", b"x" * 1_000_000 + b"\n"])
def test_peak_memory_of_an_upload(database: Path, tmp_path: Path, line: bytes) -> None:
    data = line * (min(8 << 20, 400_000 * len(line)) // len(line))
    if len(line) > 2:
        data = line * 200
    with process(str(database), environment={"TMPDIR": str(tmp_path)}) as started:
        service: Running = started.service
        name = f"up{len(line)}"
        service.good("POST", "/v1/collections", {"name": name})
        peak = 0
        state = _uploaded(service, name, "text", data)
        for _ in itertools.count():
            found = subprocess.run(["pgrep", "-P", str(started.pid)], capture_output=True,
                                   text=True, check=False)  # fmt: skip
            for pid in found.stdout.split():
                try:
                    peak = max(peak, _grown(int(pid), 0))
                except (OSError, StopIteration):
                    continue
            if service.good("GET", f"/v1/jobs/{state['id']}")["state"] != "running":
                break
            time.sleep(0.1)
        print(f"{line[:4]!r}: peak of the job {peak} MB")
        assert peak <= 512
        service.good("DELETE", f"/v1/collections/{name}")
