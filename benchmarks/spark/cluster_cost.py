"""What a cluster on this machine has spent: processor time of all its processes, bytes shuffled."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Cost", "cost_of"]

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """Since the processes began."""

    core_seconds: float
    shuffled: int

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.core_seconds - other.core_seconds, self.shuffled - other.shuffled)


def cost_of(session: Any) -> Cost:
    """Return what this process, all that it has started, and all these have started, have spent."""
    store = session.sparkContext._jsc.sc().statusStore()
    executors = store.executorList(False)
    shuffled = sum(executors.apply(at).totalShuffleWrite() for at in range(executors.size()))
    return Cost(_tree_seconds(os.getpid()), shuffled)


def _tree_seconds(root: int) -> float:
    """Return the processor time of a process and all below it, with those that have ended."""
    children, spent = defaultdict(list), {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        children[int(fields[1])].append(int(folder.name))
        spent[int(folder.name)] = sum(map(int, fields[11:15]))
    total, open_ones = 0, [root]
    while open_ones:
        one = open_ones.pop()
        total += spent.get(one, 0)
        open_ones += children[one]
    return total / _TICKS
