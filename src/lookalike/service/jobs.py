"""Jobs: pairs, de-duplication and imports, each in a process of its own.

A job can be ended at any moment, takes no time from searches but that of a core, and leaves nothing
behind. Everything about it lies in a folder, so that every worker of a service can tell of it:

    order.json      what is to be done
    state.json      how far it is; replaced as a whole
    result.jsonl    what was found, one object a line, when it is done
    cancel          is there when it has to end: the process looks for it
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

__all__ = ["ENDED", "Jobs", "drop_upload", "read_state", "write_state"]

_MODULE = "lookalike.service.job_process"
ENDED = ("done", "failed", "cancelled")
_ID = re.compile("[0-9a-f]{24}")
_MOST_KEPT = 100
_MOST_BYTES = 4 << 30
"""Of results that are kept: whoever may only read cannot fill the disk with them."""
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
                raise Problem(
                    429, "too_many_jobs",
                    f"{len(running)} jobs are running; wait for one, or cancel it", retry_after=5,
                )  # fmt: skip
            self._forget_old()
            id = secrets.token_hex(12)
            folder = self._folder / id
            folder.mkdir(mode=0o700)
            (folder / "order.json").write_text(json.dumps(order))
            state = {
                "id": id, "collection": collection, "kind": order["kind"],
                "writes": order["kind"] == "import" or bool(order.get("delete")),
                "state": "running", "step": "starting", "progress": 0.0, "started": _now(),
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
        found = [
            self._state(entry) for entry in self._folder.iterdir() if _ID.fullmatch(entry.name)
        ]
        return sorted(
            (one for one in found if one is not None), key=lambda one: one["started"], reverse=True
        )

    def get(self, id: str) -> dict[str, Any]:
        """Return how far a job is."""
        state = self._state(self._folder / id) if _ID.fullmatch(id) else None
        if state is None:
            raise Problem(
                404, "not_found", f"there is no job {brief(id)}; GET /v1/jobs lists all",
                kind="NotFoundError",
            )  # fmt: skip
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
        process.kill()  # which has not even begun to listen
        process.wait()
        drop_upload(folder)
        state = read_state(folder) or state
        if state["state"] not in ENDED:
            state.update(state="cancelled", ended=_now())
            write_state(folder, state)
        return state

    def results(
        self, id: str, after: int, limit: int, most_bytes: int
    ) -> tuple[list[Any], int | None]:
        """Return so many results behind a number of them, and the number to go on with.

        Where they are long there are fewer: the page ends with the one with which it has
        `most_bytes`.
        """
        state = self.get(id)
        if state["state"] != "done":
            raise Problem(
                409, "not_done", f"the job is {state['state']}; results are there when it is done"
            )
        try:
            with open(self._folder / id / "result.jsonl", "rb") as file:
                lines, size = [], 0
                for line in islice(file, after, after + limit):
                    lines.append(line)
                    size += len(line)
                    if size >= most_bytes:
                        break
                more = file.readline() != b""
        except FileNotFoundError:
            lines, more = [], False
        return [json.loads(line) for line in lines], after + len(lines) if more else None

    def close(self) -> None:
        """End all jobs that this process has begun."""
        with self._lock:
            processes, self._processes = self._processes, {}
        for id, process in processes.items():
            if process.poll() is None:
                with suppress(OSError):  # one that has ended may be forgotten already
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
        if process.poll() is not None:  # it has died, or has just written its last word
            drop_upload(folder)
            state = read_state(folder)
            if state is not None and state["state"] not in ENDED:
                state.update(
                    state="failed", ended=_now(),
                    error=f"the process of the job ended with status {process.returncode}",
                )  # fmt: skip
                with suppress(OSError):  # the disk may be full
                    write_state(folder, state)
        return state

    def _forget_old(self) -> None:
        """Forget those jobs that ended, beyond some number of them or size of their results."""
        size = 0
        for place, job in enumerate(job for job in self.all() if job["state"] in ENDED):
            folder = self._folder / job["id"]
            size += _size(folder / "result.jsonl")
            if place >= _MOST_KEPT or size > _MOST_BYTES:
                shutil.rmtree(folder, ignore_errors=True)
        for id, process in list(self._processes.items()):
            if process.poll() is not None:
                self._state(self._folder / id)  # which says so if it has died
                del self._processes[id]


def read_state(folder: Path) -> dict[str, Any] | None:
    """Return the state of a job, if there is one."""
    try:
        state: dict[str, Any] = json.loads((folder / "state.json").read_text())
    except (OSError, ValueError):
        return None
    return state


def drop_upload(folder: Path) -> None:
    """Remove the file that a job was to bring in, if it is still there."""
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


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def lines_of(values: Iterator[Any], path: Path) -> int:
    """Write values, one a line; return how many."""
    count = 0
    with open(path, "w", encoding="utf-8") as file:
        for value in values:
            file.write(json.dumps(value) + "\n")
            count += 1
    return count
