"""From signatures that were found to the documents that have them.

Conditions and exclusions apply to documents before the nearest are chosen, so as many signatures
are looked at as it takes to have k documents that meet them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from json import loads

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Row
from lookalike.collection.filters import Predicate
from lookalike.collection.found import Found
from lookalike.collection.store import State, View

__all__ = ["Gatherer"]

_FILTERED_CHUNK = 512


@dataclass
class Gatherer:
    """The documents of signatures, in one view; each signature's are fetched once."""

    view: View
    state: State
    k: int
    """How many documents are wanted for a query at most."""
    predicate: Predicate | None
    exclude: frozenset[str]
    text: bool
    _rows: dict[int, list[Row]] = field(default_factory=dict)

    def nearest(self, levels: Iterable[Found]) -> tuple[list[tuple[int, Row]], Found]:
        """Return the k nearest documents by (distance, id), and the last level that was needed.

        Each level holds all signatures up to its bound, so documents from it are final.
        """
        result: list[tuple[int, Row]] = []
        reached = -1
        found = None
        for found in levels:
            for chunk in self._chunks(found.beyond(reached), result):
                self.fetch(chunk.numbers)
                result += self._documents(chunk)
            if len(result) >= self.k:
                break
            reached = found.bound
        if found is None:
            raise ValueError("a search yields at least one level")
        result.sort(key=lambda pair: (pair[0], pair[1].id))
        return result[: self.k], found

    def prefetch(self, founds: Iterable[Found]) -> None:
        """Fetch the documents that several queries will surely want, with one question."""
        first = [chunk.numbers for found in founds for chunk in islice(self._chunks(found, []), 1)]
        if first:
            self.fetch(np.unique(np.concatenate(first)))

    def fetch(self, numbers: NDArray[np.int64]) -> None:
        """Fetch the documents of signatures that have not been fetched yet."""
        missing = [number for number in numbers.tolist() if number not in self._rows]
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

    def _documents(self, chunk: Found) -> Iterator[tuple[int, Row]]:
        pairs = zip(chunk.numbers.tolist(), chunk.distances.tolist(), strict=True)
        return ((distance, row) for number, distance in pairs for row in self._rows[number])

    def _chunks(self, found: Found, result: list[tuple[int, Row]]) -> Iterator[Found]:
        """Yield parts, nearest first, as long as documents are missing from the result.

        A part holds all signatures of a distance or none, so that ties are decided by id.
        """
        begin = 0
        while begin < len(found) and len(result) < self.k:
            least = self.k - len(result)
            if self.predicate:
                least = max(least, _FILTERED_CHUNK)
            last = found.distances[min(begin + least, len(found)) - 1]
            end = int(np.searchsorted(found.distances, last, side="right"))
            yield Found(
                found.numbers[begin:end], found.distances[begin:end], found.bound, found.work
            )
            begin = end
