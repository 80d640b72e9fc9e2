"""What is heard, or seen, of an upload."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lookalike.checks import callback, optional_module

Progress = Callable[[int, int], object]
"""Called with how many have arrived, and of how many."""


@contextmanager
def upload_progress(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """Yield what was given to be called; for True, what draws a bar on standard error.

    Where that is no terminal, nothing is drawn.
    """
    if progress is not True:
        yield callback("progress", None if progress is False else progress)
        return
    if not sys.stderr.isatty():
        yield None
        return
    console = optional_module("rich.console", "a progress bar", extra="")
    bars = optional_module("rich.progress", "a progress bar", extra="")
    with bars.Progress(console=console.Console(stderr=True)) as shown:
        task = shown.add_task("to the card", total=None)
        yield lambda done, count: shown.update(task, completed=done, total=count)
