"""Jobs: pairs, deduplication and imports, each in a process of its own.

A job can be ended at any moment and leaves nothing behind. Everything about it is in a folder,
which every worker of a service can read:

    order.json      what is to be done
    state.json      how far it is; replaced as a whole
    result.jsonl    what was found, one object a line, when it is done
    cancel          exists when the job has to end: its process looks for it

The workers of `lookalike.processes` end at once with the process that started them. The process of
a job does not: it first says in its folder that it was cancelled, for the other workers of the
service.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from lookalike.service.problems import Problem
from lookalike.service.telemetry import Log
from lookalike.shown import brief

_MODULE = "lookalike.service.job_process"
ENDED = ("done", "failed", "cancelled")
_ID = re.compile("[0-9a-f]{24}")
_MOST_KEPT = 100
_MOST_BYTES = 4 << 30
"""Of results that are kept, so that jobs cannot fill the disk."""
_PATIENCE = 5.0
"""Seconds that a process gets to end by itself when it is told to."""


class Jobs:
    """The jobs of a run of the service. Safe to use from many threads and processes."""

    def __init__(self, folder: Path, most: int, log: Log) -> None:
        self._folder = folder
        self._most = most
        self._log = log
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def start(self, collection: str, order: dict[str, Any]) -> dict[str, Any]:
        """Begin a job, and return its state."""
        with self._lock:
            running = [job for job in self.all() if job["state"] not in ENDED]
            if len(running) >= self._most:
                message = f"{len(running)} jobs are running; wait for one, or cancel it"
                raise Problem(429, "too_many_jobs", message, retry_after=5)
            self._forget_old()
            id = secrets.token_hex(12)
            folder = self._folder / id
            folder.mkdir(mode=0o700)
            (folder / "order.json").write_text(json.dumps(order))
            state = {
                "id": id, "collection": collection, "kind": order["kind"],
                "writes": order["kind"] == "import" or bool(order.get("delete")),
                "state": "running", "step": "starting", "progress": 0.0, "started": now(),
                "ended": None, "summary": None, "error": None, "error_kind": None,
            }  # fmt: skip
            write_state(folder, state)
            with open(folder / "errors.txt", "wb") as errors:
                self._processes[id] = subprocess.Popen(
                    [sys.executable, "-m", _MODULE, str(folder)],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                    start_new_session=True,
                )  # fmt: skip
        self._log.say("info", "job started", job=id, kind=order["kind"], collection=collection)
        return state

    def all(self) -> list[dict[str, Any]]:
        """Return all jobs, the latest first."""
        names = (entry for entry in self._folder.iterdir() if _ID.fullmatch(entry.name))
        found = [state for state in map(self._state, names) if state is not None]
        return sorted(found, key=lambda state: state["started"], reverse=True)

    def get(self, id: str) -> dict[str, Any]:
        """Return how far a job is."""
        state = self._state(self._folder / id) if _ID.fullmatch(id) else None
        if state is None:
            message = f"there is no job {brief(id)}; GET /v1/jobs lists all"
            raise Problem(404, "not_found", message)
        return state

    def cancel(self, id: str) -> dict[str, Any]:
        """End a job, and return how far it came; one that has ended is removed."""
        state = self.get(id)
        folder = self._folder / id
        if state["state"] in ENDED:
            shutil.rmtree(folder, ignore_errors=True)
            return state
        (folder / "cancel").touch()
        deadline = time.monotonic() + _PATIENCE
        while state["state"] not in ENDED and time.monotonic() < deadline:
            time.sleep(0.02)
            state = self.get(id)
        process = self._processes.get(id)
        if state["state"] in ENDED or process is None:
            return state
        process.kill()  # it does not look for the file yet
        process.wait()
        return self._ended(folder, state="cancelled") or state

    def results(
        self, id: str, after: int, limit: int, most_bytes: int
    ) -> tuple[list[Any], int | None]:
        """Return results after the first `after`, up to `limit` or `most_bytes`, and the next
        `after`.
        """
        state = self.get(id)
        if state["state"] != "done":
            message = f"the job is {state['state']}; results are there when it is done"
            raise Problem(409, "not_done", message)
        lines: list[bytes] = []
        more, size = False, 0
        with suppress(FileNotFoundError), open(self._folder / id / "result.jsonl", "rb") as file:
            for line in islice(file, after, after + limit):
                lines.append(line)
                size += len(line)
                if size >= most_bytes:
                    break
            more = file.readline() != b""
        return [json.loads(line) for line in lines], after + len(lines) if more else None

    def close(self) -> None:
        """End all jobs that this process has started."""
        with self._lock:
            processes, self._processes = self._processes, {}
        for id, process in processes.items():
            if process.poll() is None:
                with suppress(OSError):  # a job that has ended may be forgotten already
                    (self._folder / id / "cancel").touch()
        for process in processes.values():
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _state(self, folder: Path) -> dict[str, Any] | None:
        state = read_state(folder)
        process = self._processes.get(folder.name)
        if state is None or process is None or state["state"] in ENDED:
            return state
        if process.poll() is None:
            return state
        why = f"the process of the job ended with status {process.returncode}"
        return self._ended(folder, state="failed", error=why)

    @staticmethod
    def _ended(folder: Path, **values: Any) -> dict[str, Any] | None:
        """Return the state of a job whose process has ended; say how, if it could not."""
        drop_upload(folder)
        state = read_state(folder)
        if state is not None and state["state"] not in ENDED:
            state.update(ended=now(), **values)
            with suppress(OSError):  # the disk may be full
                write_state(folder, state)
        return state

    def _forget_old(self) -> None:
        """Forget the oldest jobs that have ended, by their number and the size of their results."""
        size = 0
        for place, job in enumerate(job for job in self.all() if job["state"] in ENDED):
            folder = self._folder / job["id"]
            with suppress(OSError):
                size += (folder / "result.jsonl").stat().st_size
            if place >= _MOST_KEPT or size > _MOST_BYTES:
                shutil.rmtree(folder, ignore_errors=True)
        for id, process in list(self._processes.items()):
            if process.poll() is not None:
                self._state(self._folder / id)  # writes the end of a job that has died
                del self._processes[id]


def read_state(folder: Path) -> dict[str, Any] | None:
    """Return the state of a job, if there is one."""
    try:
        state: dict[str, Any] = json.loads((folder / "state.json").read_text())
    except (OSError, ValueError):
        return None
    return state


def drop_upload(folder: Path) -> None:
    """Remove the file that a job was to import, if it still exists."""
    try:
        path = json.loads((folder / "order.json").read_text()).get("path")
    except (OSError, ValueError):
        return
    if path is not None:
        Path(path).unlink(missing_ok=True)


def write_state(folder: Path, state: dict[str, Any]) -> None:
    """Replace the state of a job as a whole."""
    temporary = folder / f"state.{os.getpid()}.{threading.get_ident()}"
    temporary.write_text(json.dumps(state))
    temporary.replace(folder / "state.json")


def now() -> str:
    """Return the time as states have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def lines_of(values: Iterator[Any], path: Path) -> int:
    """Write values, one a line; return their number."""
    count = 0
    with open(path, "w", encoding="utf-8") as file:
        for value in values:
            file.write(json.dumps(value) + "\n")
            count += 1
    return count
