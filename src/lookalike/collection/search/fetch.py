"""From signatures that were found to the documents that have them.

Conditions and exclusions apply to documents before the nearest are chosen, so as many signatures
are looked at as it takes to have k documents that meet them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lookalike.cancellation import stop_if_cancelled
from lookalike.collection.answers import Match, match_of
from lookalike.collection.documents import Row, check_row, damaged, decoded_metadata
from lookalike.collection.query import Query
from lookalike.collection.search.bounds import hold, release, spend
from lookalike.collection.search.level import Level, MaskedDistances
from lookalike.collection.stores.base import State, View

_FILTERED_CHUNK = 512
_NOTHING = Level([], [], -1)


_PIECE = 1 << 14
"""Documents that are fetched with one question at most, if each signature has as many as wanted."""
_KEPT = 16 << 20
"""Bytes of documents that are kept for the next query."""
_ROW = 600
"""Bytes that a document takes beside its metadata and text."""


@dataclass
class DocumentFetcher:
    """The documents of signatures, in one view; each signature's are fetched once, or again if that
    would take much memory.

    Documents are compared with their checksums, those too that do not meet a condition.
    """

    view: View
    state: State
    query: Query
    signatures: dict[str, bytes] = field(default_factory=dict)
    """The signatures of what was found, by the id of the document."""
    held: int = 0
    """Bytes of memory that documents take."""
    _rows: dict[int, list[Row]] = field(default_factory=dict)
    _here: dict[str, int] = field(default_factory=dict)
    """The documents in `_rows`, and what each takes."""

    def nearest(
        self, levels: Iterable[Level], masked: MaskedDistances | None = None
    ) -> tuple[list[Match], Level]:
        """Return the k nearest documents by (distance, id), and the last level that was needed.

        With `masked` distances by (masked distance, unmasked distance, id).
        """
        rows, found = self.first(levels)
        if masked is None:
            return [match_of(row, distance) for distance, row in rows], found
        return [match_of(row, *masked.apart(distance)) for distance, row in rows], found

    def first(self, levels: Iterable[Level]) -> tuple[list[tuple[int, Row]], Level]:
        """Return the first k documents by (distance, id), and the last level that was needed.

        Each level holds all signatures up to its bound, so documents from it are final. What an
        earlier level held is passed over in later ones, which may reach less far.
        """
        k = self.query.k
        result: list[tuple[int, Row]] = []
        found, done = _NOTHING, -1
        for level in levels:
            found, begin = level, bisect_right(level.distances, done)
            done = max(done, level.bound)
            while begin < len(level.numbers) and len(result) < k:
                end = self._chunk_end(level.distances, begin, k - len(result))
                for piece in range(begin, end, self._piece):
                    stop_if_cancelled()
                    last = min(end, piece + self._piece)
                    self.fetch(level.numbers[piece:last])
                    for place in range(piece, last):
                        distance = level.distances[place]
                        result += [(distance, row) for row in self._rows[level.numbers[place]]]
                    if self._much:  # of many that are equally far, the first by id count
                        result = _first(result, k)
                        self.forget({row.id for _, row in result})
                begin = end
            if len(result) >= k:
                break
        return _first(result, k), found

    @property
    def _piece(self) -> int:
        """The number of signatures whose documents are fetched with one question."""
        if self.state.documents - self.state.signatures <= _PIECE:
            return _PIECE
        return max(16, _PIECE // (self.query.k + len(self.query.exclude)))

    def forget(self, found: Container[str] = ()) -> None:
        """Keep only the signatures of what was found."""
        release(self.held)
        spend(-sum(size - _ROW for id, size in self._here.items() if id not in found))
        self.signatures = {id: one for id, one in self.signatures.items() if id in found}
        self._rows, self._here = {}, {}
        self.held = 0

    def trim(self) -> None:
        """Forget what was fetched for queries that are answered, if it is much."""
        if self._much:
            self.forget(self._here)
            self.signatures = {}

    @property
    def _much(self) -> bool:
        return self.held > _KEPT or len(self._rows) > 4 * _PIECE

    def prefetch(self, founds: Iterable[Level]) -> None:
        """Fetch the documents that several queries will surely want, with one question."""
        wanted: set[int] = set()
        for found in founds:
            if found.numbers:
                end = self._chunk_end(found.distances, 0, self.query.k)
                wanted.update(found.numbers[:end])
        self.fetch(sorted(wanted))

    def fetch(self, numbers: Sequence[int]) -> None:
        """Fetch the documents of signatures that have not been fetched yet."""
        missing = [number for number in numbers if number not in self._rows]
        for begin in range(0, len(missing), self._piece):
            self._fetch(missing[begin : begin + self._piece])

    def _fetch(self, missing: Sequence[int]) -> None:
        found: dict[int, list[Row]] = {number: [] for number in missing}
        without = set(missing)
        # Excluded ones may come first, so as many more have to be asked for.
        query = self.query
        each = None if query.predicate else query.k + len(query.exclude)
        wanted = np.array(missing, np.int64)
        for row, signature in self.view.documents_of(self.state, wanted, each, query.text):
            known = check_row(row, signature, query.text)
            if row.signature not in found:
                raise damaged(f"the document {row.id[:80]!r} was found by another signature")
            without.discard(row.signature)
            if not self._allowed(row):  # of those, which may be many, nothing is held
                continue
            if row.id in self._here:
                raise damaged(f"the document {row.id[:80]!r} is there twice")
            if row.text is not None and not query.text:
                row = row._replace(text=None)  # it came for its checksum alone
            size = len(row.metadata) + len(row.text or b"")
            spend(size)
            hold(size + _ROW)
            self.held += size + _ROW
            self._here[row.id] = size + _ROW
            self.signatures[row.id] = known
            found[row.signature].append(row)
            if len(found[row.signature]) > 2 * query.k + _PIECE:
                self._drop_last(found[row.signature])
        for number in without:
            raise damaged(f"the signature {number} has no document")
        self._rows.update(found)

    def _drop_last(self, rows: list[Row]) -> None:
        """Keep of the documents of one signature those that can be among the first k by id."""
        rows.sort(key=lambda row: row.id)
        for row in rows[self.query.k :]:
            del self.signatures[row.id]
            size = self._here.pop(row.id)
            self.held -= size
            release(size)
            spend(_ROW - size)
        del rows[self.query.k :]

    def _allowed(self, row: Row) -> bool:
        if row.id in self.query.exclude:
            return False
        predicate = self.query.predicate
        return predicate is None or bool(predicate(decoded_metadata(row)))

    def _chunk_end(self, distances: list[int], begin: int, missing: int) -> int:
        """Return where to stop fetching: with as many signatures as documents are missing.

        All signatures of a distance or none, so that ties are decided by id.
        """
        if self.query.predicate:
            missing = max(missing, _FILTERED_CHUNK)
        if begin + missing >= len(distances):
            return len(distances)
        return bisect_right(distances, distances[begin + missing - 1])


def _first(rows: list[tuple[int, Row]], k: int) -> list[tuple[int, Row]]:
    """Return the first k by (distance, id)."""
    if len(rows) > 1:
        rows.sort(key=lambda one: (one[0], one[1].id))
    return rows[:k]
