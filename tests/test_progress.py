"""Progress is reported as the share of all work, however it is nested, and shown for people."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike import progress
from lookalike.operation import Operation, in_batches, in_part, in_parts, report
from support.cases.index_kinds import KINDS, made

_RNG = np.random.default_rng(7)
_ROWS = _RNG.integers(0, 256, (3000, 8), dtype=np.uint8)

Plan = list["Plan"]
PLANS: st.SearchStrategy[Plan] = st.recursive(
    st.just([]), lambda inner: st.lists(inner, min_size=1, max_size=4), max_leaves=12
)


def _expected(plan: Plan, begin: float, width: float) -> Iterator[float]:
    """Yield the shares at which the leaves of a plan begin: the slow, obvious way."""
    for place, inner in enumerate(plan):
        yield from _expected(inner, begin + width * place / len(plan), width / len(plan))
    if not plan:
        yield begin


@given(plan=PLANS)
def test_nested_parts_are_shares_of_the_whole(plan: Plan) -> None:
    operation = Operation()
    seen: list[float | None] = []

    def work(plan: Plan) -> None:
        for inner in in_parts(plan):
            work(inner)
        if not plan:
            report(0)
            seen.append(operation.done())

    assert operation.done() is None
    operation.run(work, plan)
    assert seen == pytest.approx(list(_expected(plan, 0, 1)))
    assert seen == sorted(seen)  # type: ignore[type-var]


@given(ends=st.lists(st.floats(0.01, 1), min_size=1, max_size=9))
def test_parts_may_be_as_long_as_their_source_says(ends: list[float]) -> None:
    shares = np.cumsum(ends) / sum(ends)
    following = iter(shares.tolist())
    operation = Operation()

    def work() -> list[float | None]:
        seen = []
        for _ in in_batches(ends, lambda: next(following)):
            report(1, 2)
            seen.append(operation.done())
        return seen

    before = np.concatenate([[0], shares[:-1]])
    assert operation.run(work) == pytest.approx(((before + shares) / 2).tolist())


def test_a_part_that_fails_leaves_the_whole_as_it_was() -> None:
    operation = Operation()

    def work() -> None:
        with pytest.raises(ZeroDivisionError), in_part(0.25, 0.5):
            raise ZeroDivisionError
        report(0.75)

    operation.run(work)
    assert operation.done() == 0.75


def test_nothing_is_reported_without_an_operation() -> None:
    operation = Operation()
    operation.run(lambda: report(0.5))
    report(0.7)
    with in_part(0.8, 0.9):
        la.ScanIndex(_ROWS).search(_ROWS[:50], 3)
    assert operation.done() == 0.5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 3])
def test_the_core_reports_shares_of_its_part(kind: str, threads: int) -> None:
    operation, shares = Operation(), list[float]()
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            shares.append(operation.done() or 0.0)

    def work() -> None:
        index: Any = made(kind, _ROWS, None)
        with in_part(0.5, 0.75):
            for _ in range(3):
                index.within(_ROWS[:500], 3, threads=threads)
            share = operation.done()
            assert share is not None
            assert 0.5 <= share <= 0.75
        report(1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        operation.run(work)
    finally:
        ended.set()
        watcher.join()
    assert all(0 <= share <= 1 for share in shares)
    assert operation.done() == 1


def test_loops_inside_a_piece_of_work_report_nothing() -> None:
    """A task that shares out work again would otherwise report its own share as that of all."""
    operation = Operation()
    vectors = _RNG.standard_normal((2000, 32)).astype(np.float32)

    def work() -> None:
        with in_part(0, 0.5):
            la.VectorIndex(vectors).search(vectors[:100], 5)
        share = operation.done()
        assert share is not None
        assert share <= 0.5

    operation.run(work)


# What people see


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [100.0]
    monkeypatch.setattr("lookalike.progress.time.monotonic", lambda: now[0])

    def passes(seconds: float) -> None:
        now[0] += seconds

    return passes


def test_a_log_has_a_line_now_and_then(
    clock: Callable[[float], None], capfd: pytest.CaptureFixture[str]
) -> None:
    with progress.progress_bars(total=200, unit="MB") as tell:
        assert tell is not None
        for _ in range(30):
            clock(1)
            tell("sign", None)
        for second in range(1, 41):
            clock(1)
            tell("read", second / 80)
    assert capfd.readouterr().err.splitlines() == [
        "sign: 0:00:10 so far",
        "sign: 0:00:20 so far",
        "sign: 0:00:30 so far",
        "read: 12%, 2 MB/s, 0:01:10 left",
        "read: 25%, 2 MB/s, 0:01:00 left",
        "read: 38%, 2 MB/s, 0:00:50 left",
        "read: 50%, 2 MB/s, 0:00:40 left",
    ]


def test_short_work_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.watched("index", total=10):
        report(0.5)
    la.dedup(["a b", "a b"], progress=True)
    la.dedup(["a b", "a b"], progress=False)
    assert capfd.readouterr() == ("", "")


def test_work_that_starts_again_is_timed_again(
    clock: Callable[[float], None], capfd: pytest.CaptureFixture[str]
) -> None:
    with progress.progress_bars() as tell:
        assert tell is not None
        for share in (0.4, 0.8, 0.7, 0.1, 0.2):
            clock(10)
            tell("index", share)
    assert [line.split(", ")[0] for line in capfd.readouterr().err.splitlines()] == [
        "index: 40%", "index: 80%", "index: 80%", "index: 10%", "index: 20%",
    ]  # fmt: skip


def test_a_notebook_has_one_line(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()  # like the stream of a notebook, not a file
    monkeypatch.setitem(sys.modules, "ipykernel", io)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.progress_bars() as tell:
        assert tell is not None
        for share in (0.1, 0.5, 1):
            clock(600)
            tell("read", share)
    lines = stream.getvalue().split("\r")
    assert [line.rstrip() for line in lines] == [
        "", "read: 10%, 1:30:00 left", "read: 50%, 0:20:00 left", "read: 100%, 0:00:00 left",
    ]  # fmt: skip
    assert len({len(line) for line in lines[1:3]}) == 1  # the shorter covers the longer
    assert stream.getvalue().endswith("\n")


def _closed_pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.close(reader)
    return os.open(os.devnull, os.O_RDONLY), writer


def _full_pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while os.write(writer, b"x" * 4096):
            pass
    os.set_blocking(writer, True)
    return reader, writer


@pytest.mark.parametrize("pipe", [_closed_pipe, _full_pipe])
def test_work_goes_on_if_standard_error_is_closed_or_full(
    clock: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
    pipe: Callable[[], tuple[int, int]],
) -> None:
    reader, writer = pipe()
    done = False
    with suppress(OSError), open(writer, "w", closefd=False) as stream:  # closing writes, too
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.progress_bars() as tell:
            assert tell is not None
            for share in (0.2, 0.4):
                clock(60)
                tell("read", share)
        monkeypatch.undo()
        done = True
    assert done
    os.close(reader)
    os.close(writer)


def test_progress_is_a_function_or_a_flag() -> None:
    bad: Any
    for bad in ("yes", 3, []):
        with pytest.raises(la.errors.ArgumentError, match="expected a function, True or None"):
            la.dedup(["a"], progress=bad)


COMMAND = """
import sys, time
from lookalike import operation, progress
progress._POLL = 0.01
with progress.watched("index", total=1000):
    for _ in operation.in_parts(range(5)):
        time.sleep(0.15)
"""


def test_a_terminal_shows_the_rate_and_the_time_left(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND], stderr=slave, env={**os.environ, "COLUMNS": "120"}
    ) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                shown += os.read(master, 1 << 16)
            except OSError:  # the other end is closed
                break
        assert process.wait(60) == 0
    os.close(master)
    text = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", shown).decode()
    assert re.search(r"index +\S+ +\d+% [\d,]+ signatures/s \d:\d\d:\d\d left \d:\d\d:\d\d", text)
