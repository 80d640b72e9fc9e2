"""Progress bars on a terminal, silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lookalike.checks import optional_module


@contextmanager
def progress_bars(quiet: bool = False) -> Iterator[Callable[[str, float], None] | None]:
    """Yield something to call with the name of a step and the share of it that is done.

    Bars go to standard error, with the time that is left, and only if that is a terminal.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    console = optional_module("rich.console", "a progress bar", extra="")
    bars = optional_module("rich.progress", "a progress bar", extra="")
    columns = (
        bars.TextColumn("{task.description:<10}"),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console.Console(stderr=True)) as shown:
        tasks: dict[str, int] = {}

        def tell(step: str, share: float) -> None:
            if step not in tasks:
                tasks[step] = shown.add_task(step, total=1.0)
            shown.update(tasks[step], completed=share)

        yield tell
