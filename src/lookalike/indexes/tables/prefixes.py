"""PrefixIndex: near signatures by random permutations of their bits (Charikar, 2002).

Signatures are sorted several times, each time under another permutation of the bits. A query is
compared with its neighbors in each order. A near signature differs in few bits, so in some order
none of them is among the first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import LARGEST, flag, neighbor_count, seed_number, thread_count, whole_number
from lookalike.errors import CorruptIndexError
from lookalike.indexes.base import DEFAULT_LIMIT, RowsIndex, described
from lookalike.indexes.filters import Among, no_masks
from lookalike.indexes.results import (
    NO_LIMIT,
    Explanation,
    Matches,
    Neighbors,
    as_int64,
    padded,
    too_many_matches,
)
from lookalike.indexes.rows import Rows, Signatures
from lookalike.indexes.segments import Segment, only_among, scan_nearest, scan_within
from lookalike.indexes.slices.search import usual_compared
from lookalike.indexes.tables.flip_sets import upper_bits
from lookalike.indexes.tables.sorted_table import SortedTable, header_width
from lookalike.operation import in_parts
from lookalike.signatures import as_queries
from lookalike.signatures.random import random_words
from lookalike.storage.container import Container

KEY_BITS = 64  # number of bits of a permutation that an order is sorted by
MOST_ORDERS = 256


class PrefixIndex(RowsIndex):
    """Find approximate nearest neighbors, best for near-duplicates; exact on request.

    Takes 16 bytes per signature and order. Signatures are used in place. The cost of a query does
    not grow with the collection.

    Args:
        signatures: Array `uint8[n, bits // 8]`.
        orders: Number of permutations (default: 16).
        ids: Ids of the signatures, distinct and at least 0 (default: their positions).
        seed: Random seed for the permutations (default: 0).
        threads: Number of threads (default: all cores).

    Examples:
        >>> signatures = np.array([0, 1, 255], np.uint64)
        >>> la.PrefixIndex(signatures).search(signatures[:1], k=2).ids.tolist()
        [[0, 1]]
    """

    kind = "prefix"
    _pointers = "an order points"

    def __init__(
        self,
        signatures: ArrayLike,
        orders: SupportsIndex = 16,
        ids: ArrayLike | None = None,
        *,
        seed: SupportsIndex = 0,
        threads: SupportsIndex | None = None,
    ) -> None:
        self._rows = Rows.of(signatures, ids)
        self.seed = seed_number(seed)  # random seed of the permutations
        number = whole_number("orders", orders, at_least=1, at_most=MOST_ORDERS)
        workers = thread_count(threads)
        self._places = permutations(self.seed, number, self._rows.bits)
        runs = upper_bits(KEY_BITS, self._header_bits)
        self._orders = tuple(
            SortedTable.build(
                keys_of(self._rows.signatures, places, workers).view(np.uint8).reshape(-1, 8),
                runs,
                workers,
            )
            for places in in_parts(list(self._places))
        )

    @property
    def orders(self) -> int:
        """Number of permutations."""
        return len(self._orders)

    def stats(self) -> dict[str, Any]:
        """Return facts about the index, fit for JSON."""
        return {**super().stats(), "orders": self.orders, "seed": self.seed}

    def search(
        self,
        queries: ArrayLike,
        k: SupportsIndex,
        *,
        examine: SupportsIndex | None = None,
        exact: bool = False,
        explain: bool = False,
        among: Among = None,
        masks: None = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return k near signatures of each query, nearest first, ties by id.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or a single signature.
            k: Number of neighbors.
            examine: Number of signatures to compare, those with the longest common prefix in any
                order (default: the larger of 1000 and 10·k).
            exact: Compare all signatures.
            explain: Return what was read as `explanation`: orders are `lists`, entries `postings`.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: Not supported; raises if given.
            threads: Number of threads (default: all cores).

        Returns:
            The neighbors. `exact` is True if all signatures were compared.
        """
        no_masks(self, masks)
        rows = as_queries(queries, self.bits, signer=self.signer)
        wanted = neighbor_count(k, len(rows), len(self))
        most = self._examined(examine, wanted)
        prove, tell = flag("exact", exact), flag("explain", explain)
        workers, (part,) = thread_count(threads), only_among((self._segment,), among, self)
        if prove or part.rows is not self._rows:
            found = scan_nearest(part, rows, wanted, workers)
            told = Explanation.of_scan(len(rows), part.alive) if tell else None
            return replace(found, explanation=told)
        width = min(wanted, max(1, part.alive))
        ids = np.full((len(rows), width), -1, np.int64)
        distances = np.full((len(rows), width), -1, np.int32)
        work = np.zeros((2, len(rows)), np.int64)
        asked = self._asked(part, rows, min(most, part.alive), workers)
        try:
            _native.prefix_nearest(**asked, near=ids, distances=distances, work=work)
        except _native.CorruptTable:
            raise self._damaged() from None
        told = self._explained(work, part.alive)
        ids, distances = padded(ids, wanted), padded(distances, wanted)
        return Neighbors(ids, distances, bool(told.exact.all()), told if tell else None)

    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        examine: SupportsIndex | None = None,
        exact: bool = False,
        explain: bool = False,
        limit: SupportsIndex = DEFAULT_LIMIT,
        among: Among = None,
        masks: None = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return the examined signatures within Hamming distance `radius` of each query.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or a single signature.
            radius: Largest Hamming distance.
            examine: Number of signatures to compare, those with the longest common prefix in any
                order (default: 1000).
            exact: Compare all signatures.
            explain: Return what was read as `explanation`.
            limit: Maximum number of matches of all queries together.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: Not supported; raises if given.
            threads: Number of threads (default: all cores).

        Raises:
            ResultTooLargeError: If there are more matches than `limit`.
        """
        no_masks(self, masks)
        rows = as_queries(queries, self.bits, signer=self.signer)
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        most = whole_number("limit", limit, at_least=0)
        number = self._examined(examine, 1)
        prove, tell = flag("exact", exact), flag("explain", explain)
        workers, (part,) = thread_count(threads), only_among((self._segment,), among, self)
        try:
            if prove or part.rows is not self._rows:
                found = scan_within(part, rows, near, most, workers)
                told = Explanation.of_scan(len(rows), part.alive) if tell else None
                return replace(found, explanation=told)
            work = np.zeros((2, len(rows)), np.int64)
            asked = self._asked(part, rows, min(number, part.alive), workers)
            offsets, ids, distances = _native.prefix_within(
                **asked, radius=near, limit=min(most, NO_LIMIT), work=work
            )
        except _native.TooManyResults:
            raise too_many_matches(most, radius, len(rows)) from None
        except _native.CorruptTable:
            raise self._damaged() from None
        told = self._explained(work, part.alive)
        proven = bool(told.exact.all())
        return Matches(as_int64(offsets), as_int64(ids), distances, proven, told if tell else None)

    @property
    def _header_bits(self) -> int:
        """Number of bits of a prefix that buckets are looked up by."""
        return min(header_width(len(self._rows)), KEY_BITS)

    def _examined(self, examine: SupportsIndex | None, k: int) -> int:
        if examine is None:
            return usual_compared(k)
        return min(whole_number("examine", examine, at_least=1), LARGEST)

    def _asked(self, part: Segment, rows: Signatures, examine: int, threads: int) -> dict[str, Any]:
        """Return the common arguments of both searches in the core."""
        keys = [keys_of(rows, places, threads) for places in self._places]
        return {
            "orders": [order.native() for order in self._orders],
            "rows": part.rows.signatures,
            "ids": part.rows.ids,
            "removed": part.removed,
            "queries": rows,
            "keys": np.stack(keys),
            "examine": examine,
            "threads": threads,
        }

    def _explained(self, work: NDArray[np.int64], alive: int) -> Explanation:
        looked_up = np.full(work.shape[1], self.orders, np.int64)
        return Explanation(work[1] == alive, looked_up, work[0], work[1], work[1])

    def _meta(self) -> dict[str, Any]:
        return {**super()._meta(), "orders": self.orders, "seed": self.seed}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = super()._arrays()
        for number, order in enumerate(self._orders):
            arrays |= order.arrays(f"{number}.")
        return arrays

    def _restore(self, container: Container) -> None:
        super()._restore(container)
        with described(container, "orders"):
            number, self.seed = int(container.meta["orders"]), int(container.meta["seed"])
            if not 1 <= number <= MOST_ORDERS or not 0 <= self.seed < 2**64:
                raise ValueError(f"{number} orders of the seed {self.seed}")
        self._places = permutations(self.seed, number, self.bits)
        runs = upper_bits(KEY_BITS, self._header_bits)
        self._orders = tuple(
            SortedTable.restored(container, f"{order}.", runs) for order in range(number)
        )
        shapes = {order.signatures.shape for order in self._orders}
        if shapes != {(len(self), KEY_BITS // 8)}:
            raise CorruptIndexError(
                f"{container.path} holds {len(self)} signatures and orders of the shapes "
                f"{sorted(shapes)}; it is damaged"
            )


def permutations(seed: int, orders: int, bits: int) -> NDArray[np.uint32]:
    """Return the first bits of each permutation. Fewer orders are a prefix of more orders."""
    words = random_words(seed, orders * KEY_BITS).reshape(orders, KEY_BITS).tolist()
    first = np.empty((orders, min(bits, KEY_BITS)), np.uint32)
    for order, own in enumerate(words):
        moved: dict[int, int] = {}  # Fisher and Yates, of which only the beginning is needed
        for place in range(first.shape[1]):
            other = place + own[place] % (bits - place)
            first[order, place] = moved.get(other, other)
            moved[other] = moved.get(place, place)
    return first


def keys_of(signatures: Signatures, places: NDArray[np.uint32], threads: int) -> NDArray[np.uint64]:
    """Return these bits of each signature as a number, the first bit uppermost."""
    keys = np.empty(len(signatures), np.uint64)
    _native.prefix_keys(signatures, places, threads, keys)
    return keys
