"""Groups, maps and distances end when nobody waits for them, or when they take too long."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import lookalike as la
from lookalike.service import overviews
from support.running.waiting import wait_until
from support.services.endless_overviews import TASK, begun, gone
from support.services.running import Running, running

BASE = "/v1/collections/pages"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "docs.db"
    with la.open_collection(path, "pages", signer=la.SimHash(64)) as docs:
        docs.add(["a", "b", "c"], ["some text", "some text", "quite another one"])
    return path


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overviews, "_TASK", TASK)


@contextmanager
def hanging(service: Running, path: str) -> Iterator[socket.socket]:
    """Ask, and hang up at the end without having read anything."""
    with service.connection() as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        yield connection


def test_whoever_hangs_up_ends_it(
    database: Path, tmp_path: Path, endless: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overviews, "_PATIENCE", 1000.0)
    monkeypatch.setattr(overviews, "_ABANDONED", 1000.0)
    log = io.StringIO()
    with running(database, tmp_path, log, time_limit=1000.0) as service:
        with hanging(service, f"{BASE}/groups?radius=1"):
            with hanging(service, f"{BASE}/groups?radius=1"):
                wait_until(lambda: begun(database))
            # Somebody still waits.
            wait_until(lambda: _statuses(log).count(499) == 1)
            ((process, _),) = begun(database)
            assert not gone(process)
        wait_until(lambda: gone(process))
        wait_until(lambda: _statuses(log).count(499) == 2)
        assert 500 not in _statuses(log)
        # Neither do those behind it wait, nor what is asked next.
        assert service.good("GET", f"{BASE}/distances")["version"] == 1


def test_what_nobody_asks_for_again_is_ended(
    database: Path, tmp_path: Path, endless: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overviews, "_PATIENCE", 0.05)
    monkeypatch.setattr(overviews, "_ABANDONED", 1000.0)
    with running(database, tmp_path) as service:
        for _ in range(3):
            assert service.ask("GET", f"{BASE}/groups?radius=1")[0] == 202
        wait_until(lambda: begun(database))
        ((process, _),) = begun(database)
        monkeypatch.setattr(overviews, "_ABANDONED", 0.05)
        assert service.ask("GET", f"{BASE}/groups?radius=1")[0] == 202
        wait_until(lambda: gone(process))
        assert len(begun(database)) == 1
        assert service.ask("GET", f"{BASE}/groups?radius=1")[0] == 202, "begun anew"


def test_what_takes_too_long_is_ended_and_told(
    database: Path, tmp_path: Path, endless: None
) -> None:
    with running(database, tmp_path, overview_limit=2.0) as service:
        told = service.refused(408, "overview_limit", "GET", f"{BASE}/groups?radius=1")
        assert "more than 2 s" in told and "smaller radius" in told and "/pairs" in told
        wait_until(lambda: all(gone(process) for process, _ in begun(database)))


def test_a_process_that_dies_is_told(database: Path, tmp_path: Path, endless: None) -> None:
    with running(database, tmp_path) as service, ThreadPoolExecutor(1) as thread:
        path = f"{BASE}/groups?radius=1"
        asked = thread.submit(service.refused, 503, "overview_failed", "GET", path)
        wait_until(lambda: begun(database))
        os.kill(begun(database)[0][0], signal.SIGKILL)
        assert "has died" in asked.result(60)
        assert service.good("GET", f"{BASE}/distances")["version"] == 1


def test_the_end_of_the_service_is_the_end_of_it(
    database: Path, tmp_path: Path, endless: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overviews, "_PATIENCE", 0.05)
    with running(database, tmp_path) as service:
        for radius in (1, 2):
            assert service.ask("GET", f"{BASE}/groups?radius={radius}")[0] == 202
        wait_until(lambda: begun(database))
    ((process, _),) = begun(database)
    assert gone(process)


def test_a_service_that_is_killed_leaves_no_process(database: Path) -> None:
    order = {"kind": "groups", "source": str(database), "name": "pages", "radius": 1}
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from lookalike.processes import run\n"
        "from support.services.endless_overviews import TASK\n"
        f"list(run(TASK, [{order!r}]))\n"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as service:
        wait_until(lambda: begun(database))
        service.kill()
    wait_until(lambda: gone(begun(database)[0][0]))


def test_overviews_without_number_keep_nobody_else_waiting(
    database: Path, tmp_path: Path, endless: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overviews, "_PATIENCE", 0.05)
    monkeypatch.setattr(overviews, "_ABANDONED", 1000.0)
    with running(database, tmp_path) as service:
        for radius in range(8):
            assert service.ask("GET", f"{BASE}/groups?radius={radius}")[0] == 202
        service.refused(429, "too_many_overviews", "GET", f"{BASE}/groups?radius=8")
        assert service.ask("GET", f"{BASE}/groups?radius=7")[0] == 202
        side = {"text": "some words"}
        service.good("POST", f"{BASE}/compare", {"left": side, "right": side})
        service.good("POST", f"{BASE}/query", side)
        wait_until(lambda: begun(database))
        assert [radius for _, radius in begun(database)] == [0]
        monkeypatch.setattr(overviews, "_ABANDONED", 0.0)
        for radius in range(8):  # nobody waits for these any more
            service.ask("GET", f"{BASE}/groups?radius={radius}")
        monkeypatch.setattr(overviews, "_PATIENCE", 60.0)
        assert service.ask("GET", f"{BASE}/distances")[0] == 200
    wait_until(lambda: all(gone(process) for process, _ in begun(database)))


def test_what_is_the_same_is_computed_once(database: Path, tmp_path: Path) -> None:
    with running(database, tmp_path) as service:
        answers = [service.good("GET", f"{BASE}/groups?radius={r}") for r in (64, 65, 16384)]
        assert answers[0]["groups"][0]["size"] == 3
        assert answers == answers[:1] * 3
        text = service.raw("GET", f"{BASE}/groups?radius=64")[2]
        assert json.loads(text) == answers[0]
        assert service.good("GET", f"{BASE}/groups")["groups"][0]["size"] == 2
        message = service.refused(404, "not_found", "GET", "/v1/collections/none/map")
        assert "there is no collection 'none'" in message


def _statuses(log: io.StringIO) -> list[int]:
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    return [line["status"] for line in lines if line["event"] == "request"]
