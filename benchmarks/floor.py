"""The least time that a search could take on the machine at hand, measured beside it.

Whatever is looked for, places in memory that no cache holds have to be fetched, and bytes that lie
in a row have to be read. Both are done here and nothing else, by turns with the search: its share
of that is comparable between processors, where a rival's time is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from benchmarks.harness import Measurement, Verdict
from benchmarks.quality import Entry, at_least
from lookalike import _native

__all__ = ["LINE", "Floor", "share_of_floor"]

LINE = 64
"""Bytes that memory gives at once."""
_AHEAD = 16
"""Places asked for before the first is needed: beyond that no processor tried got quicker."""


@dataclass(frozen=True)
class Floor:
    """What a query cannot do without."""

    places: float
    """Places of their own that are read, each a line missed."""
    bytes_in_order: float
    """Bytes read after the first line of a place, which the processor fetches by itself."""
    memory: int
    """Bytes in which the places lie."""

    def entry(self, name: str, queries: int) -> Entry:
        """Return a contender that reads for so many queries, and answers nothing."""
        words = np.ones(max(self.memory, LINE) // 8, np.uint64)
        reads, length = round(self.places * queries), round(self.bytes_in_order * queries)
        length = min(length, words.nbytes)
        passes = max(1, round(self.bytes_in_order * queries / max(length, 1)))
        starts = count(step=reads)  # other places each time, or they would be in the cache

        def run() -> None:
            _native.read_at_random(words, next(starts), reads, _AHEAD)
            for _ in range(passes):
                _native.read_all(words.view(np.uint8)[:length], 1)

        return Entry(name, run, queries, lambda _: {})


def share_of_floor(title: str, floor: Measurement, ours: Measurement, target: float) -> Verdict:
    """Judge how near a search comes to the least time: 1 is as quick as memory."""
    return at_least(title, floor.times_as_long_as(ours), target, " of the floor", 2)
