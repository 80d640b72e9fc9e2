"""The process of overviews in which groups are never found: it says who it is, and goes on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from lookalike.processes import Task
from lookalike.service import overviews


def _endless(docs: Any, order: dict[str, Any]) -> dict[str, Any]:
    with open(Path(order["source"]).with_suffix(".pids"), "a") as file:
        file.write(f"{os.getpid()} {order['radius']}\n")
    while True:
        time.sleep(3600)


def begun(database: Path) -> list[tuple[int, int]]:
    """Return the process and the radius of each that was begun with a database."""
    file = database.with_suffix(".pids")
    lines = file.read_text().splitlines() if file.exists() else []
    return [(int(line.split()[0]), int(line.split()[1])) for line in lines]


def gone(process: int) -> bool:
    """Return whether a process has ended; nobody waits for one whose parent was killed."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


TASK = Task("support.services.endless_overviews:computer", tries=1)


def computer() -> Any:
    overviews._KINDS["groups"] = _endless
    return overviews.computer()
