"""From signatures that were found to the documents that have them.

Conditions and exclusions apply to documents before the nearest are chosen, so as many signatures
are looked at as it takes to have k documents that meet them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from json import loads

import numpy as np

from lookalike.collection.documents import Row
from lookalike.collection.search.filters import Predicate
from lookalike.collection.search.level import Level
from lookalike.collection.stores.base import State, View

__all__ = ["DocumentFetcher"]

_FILTERED_CHUNK = 512
_NOTHING = Level([], [], -1)


@dataclass
class DocumentFetcher:
    """The documents of signatures, in one view; each signature's are fetched once."""

    view: View
    state: State
    k: int
    """How many documents are wanted for a query at most."""
    predicate: Predicate | None
    exclude: frozenset[str]
    text: bool
    _rows: dict[int, list[Row]] = field(default_factory=dict)

    def nearest(self, levels: Iterable[Level]) -> tuple[list[tuple[int, Row]], Level]:
        """Return the k nearest documents by (distance, id), and the last level that was needed.

        Each level holds all signatures up to its bound, so documents from it are final.
        """
        result: list[tuple[int, Row]] = []
        found = _NOTHING
        for level in levels:
            begin = bisect_right(level.distances, found.bound) if found.bound >= 0 else 0
            found = level
            while begin < len(level.numbers) and len(result) < self.k:
                end = self._chunk_end(level.distances, begin, self.k - len(result))
                self.fetch(level.numbers[begin:end])
                for place in range(begin, end):
                    distance = level.distances[place]
                    result += [(distance, row) for row in self._rows[level.numbers[place]]]
                begin = end
            if len(result) >= self.k:
                break
        if len(result) > 1:
            result.sort(key=lambda pair: (pair[0], pair[1].id))
        return result[: self.k], found

    def prefetch(self, founds: Iterable[Level]) -> None:
        """Fetch the documents that several queries will surely want, with one question."""
        wanted: set[int] = set()
        for found in founds:
            if found.numbers:
                end = self._chunk_end(found.distances, 0, self.k)
                wanted.update(found.numbers[:end])
        self.fetch(sorted(wanted))

    def fetch(self, numbers: Sequence[int]) -> None:
        """Fetch the documents of signatures that have not been fetched yet."""
        missing = [number for number in numbers if number not in self._rows]
        if not missing:
            return
        for number in missing:
            self._rows[number] = []
        # Excluded ones may come first, so as many more have to be asked for.
        each = None if self.predicate else self.k + len(self.exclude)
        wanted = np.array(missing, np.int64)
        for row in self.view.documents_of(self.state, wanted, each, self.text):
            if self._allowed(row):
                self._rows[row.signature].append(row)

    def _allowed(self, row: Row) -> bool:
        if row.id in self.exclude:
            return False
        return self.predicate is None or bool(self.predicate(loads(row.metadata)))

    def _chunk_end(self, distances: list[int], begin: int, missing: int) -> int:
        """Return where to stop fetching: with as many signatures as documents are missing.

        All signatures of a distance or none, so that ties are decided by id.
        """
        if self.predicate:
            missing = max(missing, _FILTERED_CHUNK)
        if begin + missing >= len(distances):
            return len(distances)
        return bisect_right(distances, distances[begin + missing - 1])
