"""Progress of long work: bars on a terminal, one line in a notebook, some lines in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import wraps
from io import UnsupportedOperation
from select import select
from typing import Any, ParamSpec, TypeAlias, TypeVar

from lookalike.checks import optional_module
from lookalike.errors import ArgumentError, Said
from lookalike.operation import Operation
from lookalike.shown import brief

P = ParamSpec("P")
T = TypeVar("T")

Progress: TypeAlias = Callable[[str, float], object]
"""Called with the name of a step and the share of it that is done, from 0 to 1."""
Bars: TypeAlias = Callable[[str, float | None], None]
"""A `Progress` that also takes None, for a share that is not known."""

_POLL = 0.1  # seconds
_LOG = 10.0  # seconds between two lines of a log
_NOTEBOOK = 0.5  # seconds between two versions of the line in a notebook


@contextmanager
def progress_bars(
    quiet: bool = False, total: float = 0, unit: str = "MB", *, transient: bool = False
) -> Iterator[Bars | None]:
    """Yield a function that shows the progress of steps on standard error, or None if quiet.

    Each step shows the share that is done and the time left, and its rate if the work has a `total`
    of some `unit`. A share that falls by half or more starts the step again: its data is read once
    more. A smaller fall is not shown.
    """
    if quiet or sys.stderr is None:
        yield None
    elif sys.stderr.isatty():
        yield from _bars(total, unit, transient)
    else:
        yield from _lines(total, unit)


def shows_progress(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function take `progress=True`, which shows its progress as the command line does."""

    @wraps(function)
    def shown(*args: P.args, **kwargs: P.kwargs) -> T:
        if kwargs.get("progress") is not True:
            return function(*args, **kwargs)
        with progress_bars() as kwargs["progress"]:
            return function(*args, **kwargs)

    return shown


def listener(progress: Progress | bool | None) -> Progress:
    """Return the function to call with steps and shares, which may do nothing.

    True is for functions that `shows_progress` decorates.
    """
    if progress is None or progress is False:
        return lambda step, share: None
    if not callable(progress):
        raise ArgumentError(
            Said("progress"), f" is {brief(progress)}; expected a function, True or None"
        )
    return progress


@contextmanager
def watched(
    step: str, quiet: bool = False, total: float = 0, unit: str = "signatures"
) -> Iterator[None]:
    """Show the progress of the code inside, which reports it as `lookalike.operation` describes."""
    with progress_bars(quiet, total, unit, transient=True) as tell:
        if tell is None:
            yield
            return
        operation, ended = Operation(), threading.Event()

        def watch() -> None:
            while not ended.wait(_POLL):
                tell(step, operation.done())

        watcher = threading.Thread(target=watch, name="progress", daemon=True)
        watcher.start()
        try:
            with operation.working():
                yield
        finally:
            ended.set()
            watcher.join()


def _rate(share: float, seconds: float, total: float, unit: str) -> str:
    return f"{share * total / seconds:,.0f} {unit}/s" if total and seconds > 0 else ""


def _starts_again(before: float, now: float) -> bool:
    return now <= before / 2 and before > 0


def _bars(total: float, unit: str, transient: bool) -> Iterator[Bars]:
    console = optional_module("rich.console", "a progress bar", extra="")
    bars = optional_module("rich.progress", "a progress bar", extra="")
    columns = (
        bars.TextColumn("{task.description:<10}"),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TextColumn("{task.fields[rate]}"),
        bars.TimeElapsedColumn(),
        bars.TextColumn("{task.fields[left]}"),
        bars.TimeRemainingColumn(),
    )
    errors = console.Console(stderr=True)
    with bars.Progress(*columns, console=errors, transient=transient) as shown:
        tasks: dict[str, Any] = {}
        latest = shown.get_time()

        def tell(step: str, share: float | None) -> None:
            nonlocal latest
            if step not in tasks:
                number = shown.add_task(step, total=None, rate="", left="")
                tasks[step] = shown.tasks[number]
                tasks[step].start_time = latest  # a step is announced when some of it is done
            task, latest = tasks[step], shown.get_time()
            if share is None:
                return
            if _starts_again(task.completed, share):
                shown.reset(task.id)
            share = max(share, task.completed)
            rate = _rate(share, task.elapsed or 0, total, unit)
            shown.update(task.id, total=1.0, completed=share, rate=rate, left="left")

        yield tell


def _lines(total: float, unit: str) -> Iterator[Bars]:
    """Write a line now and then; in a notebook, the next one replaces it."""
    notebook = "ipykernel" in sys.modules
    started: dict[str, float] = {}
    shown: dict[str, float] = {}
    latest = written = time.monotonic()
    width = 0

    def tell(step: str, share: float | None) -> None:
        nonlocal latest, written, width
        started.setdefault(step, latest)  # a step is announced when some of it is done
        now = latest = time.monotonic()
        if share is not None:
            if _starts_again(shown.get(step, 0), share):
                started[step], shown[step] = now, 0
            shown[step] = share = max(share, shown.get(step, 0))
        if now - written < (_NOTEBOOK if notebook else _LOG):
            return
        written, seconds = now, now - started[step]
        facts = [f"{timedelta(seconds=round(seconds))} so far"]
        if share:
            left = timedelta(seconds=round(seconds * (1 - share) / share))
            facts = [f"{share:.0%}", _rate(share, seconds, total, unit), f"{left} left"]
        text = f"{step}: {', '.join(filter(None, facts))}"
        width = max(width, len(text))
        _write(f"\r{text:<{width}}" if notebook else f"{text}\n")

    yield tell
    if notebook and width:
        _write("\n")


def _write(text: str) -> None:
    """Write to standard error, unless it is closed, or full so that the work would wait."""
    with suppress(OSError, ValueError):
        with suppress(UnsupportedOperation):  # a stream of a notebook is not a file
            if not select([], [sys.stderr.fileno()], [], 0)[1]:
                return
        sys.stderr.write(text)
        sys.stderr.flush()
