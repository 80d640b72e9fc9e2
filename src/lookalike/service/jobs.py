"""Background jobs: pairs, deduplication and imports, each in a separate process.

A job can be canceled at any moment and leaves nothing behind. It has a folder, which every worker
of a service can read:

    order.json      parameters of the job
    state.json      progress; replaced atomically
    result.jsonl    results, one object per line, when the job is done
    cancel          exists when the job is canceled; its process checks for it

The workers of `lookalike.processes` end at once with their parent process. The process of a job
first writes to its folder that it was canceled, for the other workers of the service.
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
ENDED = ("done", "failed", "canceled")
_ID = re.compile("[0-9a-f]{24}")
_MOST_KEPT = 100
_MOST_BYTES = 4 << 30
"""Maximum size of all results, so that jobs cannot fill the disk."""
_PATIENCE = 5.0
"""Seconds that a canceled process gets to end by itself."""


class Jobs:
    """The jobs of a run of the service; safe for many threads and processes."""

    def __init__(self, folder: Path, most: int, log: Log) -> None:
        self._folder = folder
        self._most = most
        self._log = log
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def start(self, collection: str, order: dict[str, Any]) -> dict[str, Any]:
        """Start a job, and return its state."""
        with self._lock:
            running = [job for job in self.all() if job["state"] not in ENDED]
            if len(running) >= self._most:
                message = f"{len(running)} jobs are running; wait for one to finish, or cancel one"
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
            self._processes[id] = subprocess.Popen(  # its errors are lines of this service's log
                [sys.executable, "-m", _MODULE, str(folder)], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self._log.say("info", "job started", job=id, kind=order["kind"], collection=collection)
        return state

    def all(self) -> list[dict[str, Any]]:
        """Return all jobs, the newest first."""
        names = (entry for entry in self._folder.iterdir() if _ID.fullmatch(entry.name))
        found = [state for state in map(self._state, names) if state is not None]
        return sorted(found, key=lambda state: state["started"], reverse=True)

    def get(self, id: str) -> dict[str, Any]:
        """Return the state of a job."""
        state = self._state(self._folder / id) if _ID.fullmatch(id) else None
        if state is None:
            message = f"there is no job {brief(id)}; GET /v1/jobs lists all"
            raise Problem(404, "not_found", message)
        return state

    def cancel(self, id: str) -> dict[str, Any]:
        """Cancel a job, or remove one that has ended; return its last state."""
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
        process.kill()  # it does not check for the file yet
        process.wait()
        return self._ended(folder, state="canceled") or state

    def results(
        self, id: str, after: int, limit: int, most_bytes: int
    ) -> tuple[list[Any], int | None]:
        """Return a page of results, and the `after` of the next page."""
        state = self.get(id)
        if state["state"] != "done":
            message = f"the job is {state['state']}; only a job that is done has results"
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
        """Cancel all jobs that this process has started."""
        with self._lock:
            processes, self._processes = self._processes, {}
        for id, process in processes.items():
            if process.poll() is None:
                with suppress(OSError):  # the folder of a job that has ended may be removed
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
        why = f"the process of the job died with status {process.returncode}"
        self._log.say("error", "job failed", job=folder.name, error=why)
        return self._ended(folder, state="failed", error=f"{why}; see the log of the service")

    @staticmethod
    def _ended(folder: Path, **values: Any) -> dict[str, Any] | None:
        """Return the state of a job whose process has ended, and complete it if necessary."""
        drop_upload(folder)
        state = read_state(folder)
        if state is not None and state["state"] not in ENDED:
            state.update(ended=now(), **values)
            with suppress(OSError):  # the disk may be full
                write_state(folder, state)
        return state

    def _forget_old(self) -> None:
        """Remove the oldest jobs that have ended, by number and size of results."""
        size = 0
        for place, job in enumerate(job for job in self.all() if job["state"] in ENDED):
            folder = self._folder / job["id"]
            with suppress(OSError):
                size += (folder / "result.jsonl").stat().st_size
            if place >= _MOST_KEPT or size > _MOST_BYTES:
                shutil.rmtree(folder, ignore_errors=True)
        for id, process in list(self._processes.items()):
            if process.poll() is not None:
                self._state(self._folder / id)  # completes the state of a job that died
                del self._processes[id]


def read_state(folder: Path) -> dict[str, Any] | None:
    """Return the state of a job, or None."""
    try:
        state: dict[str, Any] = json.loads((folder / "state.json").read_text())
    except (OSError, ValueError):
        return None
    return state


def drop_upload(folder: Path) -> None:
    """Remove the uploaded file of an import, if it still exists."""
    try:
        path = json.loads((folder / "order.json").read_text()).get("path")
    except (OSError, ValueError):
        return
    if path is not None:
        Path(path).unlink(missing_ok=True)


def write_state(folder: Path, state: dict[str, Any]) -> None:
    """Replace the state of a job atomically."""
    temporary = folder / f"state.{os.getpid()}.{threading.get_ident()}"
    temporary.write_text(json.dumps(state))
    temporary.replace(folder / "state.json")


def now() -> str:
    """Return the current time in the format of states."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def lines_of(values: Iterator[Any], path: Path) -> int:
    """Write one value per line, and return their number."""
    count = 0
    with open(path, "w", encoding="utf-8") as file:
        for value in values:
            file.write(json.dumps(value) + "\n")
            count += 1
    return count
