"""From signatures that were found to the documents that have them.

Conditions and exclusions apply to documents before the nearest are chosen, so as many signatures
are looked at as it takes to have k documents that meet them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lookalike.collection.answers import Match, match_of
from lookalike.collection.documents import Row, check_row, damaged, decoded_metadata
from lookalike.collection.query import Query
from lookalike.collection.search.bounds import spend
from lookalike.collection.search.level import Level, MaskedDistances
from lookalike.collection.stores.base import State, View

_FILTERED_CHUNK = 512
_NOTHING = Level([], [], -1)


@dataclass
class DocumentFetcher:
    """The documents of signatures, in one view; each signature's are fetched once.

    Documents are compared with their checksums, those too that do not meet a condition.
    """

    view: View
    state: State
    query: Query
    signatures: dict[str, bytes] = field(default_factory=dict)
    """The signatures of what was fetched, by the id of the document."""
    _rows: dict[int, list[Row]] = field(default_factory=dict)

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
                self.fetch(level.numbers[begin:end])
                for place in range(begin, end):
                    distance = level.distances[place]
                    result += [(distance, row) for row in self._rows[level.numbers[place]]]
                begin = end
            if len(result) >= k:
                break
        if len(result) > 1:
            result.sort(key=lambda one: (one[0], one[1].id))
        return result[:k], found

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
        if not missing:
            return
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
            if row.id in self.signatures:
                raise damaged(f"the document {row.id[:80]!r} is there twice")
            self.signatures[row.id] = known
            without.discard(row.signature)
            if self._allowed(row):  # of the others, which may be many, nothing is held
                if row.text is not None and not query.text:
                    row = row._replace(text=None)  # it came for its checksum alone
                spend(len(row.metadata) + len(row.text or b""))
                found[row.signature].append(row)
        for number in without:
            raise damaged(f"the signature {number} has no document")
        self._rows.update(found)

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
