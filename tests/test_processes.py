"""One pool of isolated workers: limits for each item, and crashes that affect one item only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lookalike import processes
from lookalike.operation import Canceled, Operation
from lookalike.processes import Failure, Stop, Task, run, run_in_order
from support.running.waiting import wait_until
from support.services.endless_overviews import gone

SETUP = "test_processes:toy"


def toy() -> Callable[[list[Any]], Any]:
    """Return what the workers of these tests do with an item."""
    return _work


def _work(item: list[Any]) -> Any:
    kind, value = item
    if kind == "crash":
        os._exit(value)
    if kind == "spin":
        while True:
            pass
    if kind == "sleep":
        Path(value).write_text(str(os.getpid()))
        time.sleep(3600)
    if kind == "allocate":
        return len(bytes(value))
    if kind == "print":
        os.write(1, b"not an answer")
    return os.getpid() if kind == "who" else value


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a test have workers of its own."""
    monkeypatch.setattr(processes, "_IDLE", [])
    yield
    processes.end_idle_workers()


def test_each_item_has_its_answer_or_its_failure() -> None:
    task = Task(SETUP, seconds=0.2, memory=64 << 20)
    items = [
        ["echo", 1], ["crash", 7], ["print", 2], ["spin", 0], ["allocate", 1 << 30], ["echo", 3],
        ["allocate", 1000],
    ]  # fmt: skip
    found = list(run(task, items))
    assert found == [1, Failure(7), 2, Failure(-signal.SIGPROF), Failure(None), 3, 1000]
    assert [task.reason(one) for one in found if isinstance(one, Failure)] == [
        "crashes the process that decodes it (status 7)",
        "takes more than 0.2 s to be decoded",
        "takes more than 64 MiB of memory to be decoded",
    ]
    killed = Task(SETUP, verb="parse").reason(Failure(-signal.SIGKILL))
    assert killed == "crashes the process that parses it (killed, perhaps out of memory)"


def test_workers_are_used_again() -> None:
    first = list(run(Task(SETUP), [["who", 0]] * 3))
    assert len(set(first)) == 1
    assert list(run(Task(SETUP), [["who", 0]])) == first[:1]


@pytest.mark.parametrize("tries", [1, 2, 3])
def test_an_item_is_tried_as_often_as_its_task_says(tries: int, tmp_path: Path) -> None:
    task = Task("test_processes:counted", (str(tmp_path / "log"),), tries=tries)
    assert list(run(task, ["crash", "go on"])) == [Failure(1), "go on"]
    assert (tmp_path / "log").read_text() == "crash " * tries + "go on "


def counted() -> Callable[[str, str], str]:
    """Return a function that writes down what it is called with."""

    def work(item: str, log: str) -> str:
        with open(log, "a") as file:
            file.write(f"{item} ")
        if item == "crash":
            os._exit(1)
        return item

    return work


def test_work_that_is_stopped_is_killed(tmp_path: Path) -> None:
    stop = Stop()
    stop()
    assert list(run(Task(SETUP), [["echo", 1]], stop)) == []

    def work(item: list[Any], stop: Stop) -> Iterator[Any]:
        yield from run(Task(SETUP), [item], stop)

    note = tmp_path / "process"
    items: list[list[Any]] = [["echo", 1], ["sleep", str(note)], ["echo", 2]]
    results = run_in_order(work, items, threads=2)
    assert next(results) == 1
    wait_until(lambda: note.exists() and note.read_text())
    results.close()  # type: ignore[attr-defined]
    assert gone(int(note.read_text()))
    assert list(run_in_order(work, [["echo", at] for at in range(9)], threads=2)) == list(range(9))


def test_a_program_that_is_killed_leaves_no_worker(tmp_path: Path) -> None:
    note = tmp_path / "process"
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from lookalike.processes import Task, run\n"
        f"list(run(Task({SETUP!r}), [['sleep', {str(note)!r}]]))\n"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as started:
        wait_until(lambda: note.exists() and note.read_text())
        started.kill()
    wait_until(lambda: gone(int(note.read_text())))


@pytest.mark.parametrize("in_order", [False, True])
def test_work_whose_operation_is_canceled_is_killed(in_order: bool, tmp_path: Path) -> None:
    file = tmp_path / "worker"
    item = ["sleep", str(file)]
    task, operation = Task(SETUP), Operation()

    def work() -> list[Any]:
        if not in_order:
            return list(run(task, [item]))
        return list(run_in_order(lambda one, stop: run(task, [one], stop), [item], threads=2))

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(operation.run, work)
        wait_until(lambda: file.exists() and file.read_text() != "")
        operation.cancel()
        with pytest.raises(Canceled):
            future.result()
    wait_until(lambda: gone(int(file.read_text())))
    assert list(run(task, [["echo", 5]])) == [5]  # others go on
