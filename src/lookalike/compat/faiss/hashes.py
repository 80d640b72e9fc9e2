"""`IndexBinaryHash` and `IndexBinaryMultiHash`: signatures that agree in some bits, or nearly."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.compat.faiss.base import FaissError, IndexBinary, State
from lookalike.compat.faiss.flat import Growing, IndexBinaryFlat
from lookalike.compat.faiss.hash_lists import HashLists, flip_masks, hashes_of
from lookalike.compat.faiss.selectors import IDSelector
from lookalike.errors import CorruptIndexError
from lookalike.indexes.merging import merged_matches
from lookalike.indexes.results import Matches, Neighbors
from lookalike.signatures.arrays import hamming

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["IndexBinaryHash", "IndexBinaryHashStats", "IndexBinaryMultiHash", "cvar"]

_MOST_PROBES = 1 << 20
_MOST_CANDIDATES = 1 << 22
_MOST_FLIPS = 1 << 22


class IndexBinaryHashStats:
    """What searches of hash indexes did since the last `reset`, all of them together."""

    nq = n0 = nlist = ndis = 0
    """Queries, lists that are not there (of multi-hashes), lists read, and distances computed."""

    def reset(self) -> None:
        """Begin to count again."""
        self.nq = self.n0 = self.nlist = self.ndis = 0


cvar = SimpleNamespace(indexBinaryHash_stats=IndexBinaryHashStats())
"""faiss' global variables, of which this is one."""


class _Hashed(IndexBinary):
    """What both have: lists by the first bits, and those up to `nflip` bits away are read."""

    counts_missing_lists = False

    def __init__(self, d: SupportsIndex, nhash: SupportsIndex, b: SupportsIndex) -> None:
        super().__init__(d)
        self.b = self._count("b", b)
        self.nhash = self._count("nhash", nhash)
        self.nflip = 0
        if self.b > 64 or self.nhash * self.b > self.d:
            raise FaissError(
                f"{self.nhash} hashes of b={self.b} bits; expected at most 64 bits each, and "
                f"{self.d} in all"
            )
        self.storage = IndexBinaryFlat(self.d)
        self._lists = [HashLists() for _ in range(self.nhash)]

    @property
    def ntotal(self) -> int:
        """How many signatures there are."""
        return self.storage.ntotal

    def reset(self) -> None:
        """Take out everything."""
        self.storage.reset()
        self._lists = [HashLists() for _ in range(self.nhash)]

    def hashtable_size(self) -> int:
        """Return how many lists there are."""
        return sum(len(lists.values()) for lists in self._lists)

    def _add(self, rows: NDArray[np.uint8], labels: NDArray[np.int64] | None) -> None:
        self.storage._add(rows, None)
        for number, lists in enumerate(self._lists):
            lists.add(hashes_of(rows, number * self.b, self.b))

    def _search(self, rows: NDArray[np.uint8], k: int, chosen: IDSelector | None) -> Neighbors:
        ids = np.full((len(rows), k), -1, np.int64)
        distances = np.full((len(rows), k), -1, np.int32)
        for first, found in self._candidates(rows, chosen):
            query = np.repeat(np.arange(len(found)), np.diff(found.offsets))
            rank = np.arange(len(query)) - found.offsets[query]
            near = rank < k
            place = first + query[near], rank[near]
            ids[place], distances[place] = found.ids[near], found.distances[near]
        return Neighbors(ids, distances, exact=False)

    def _within(self, rows: NDArray[np.uint8], radius: int, chosen: IDSelector | None) -> Matches:
        parts = []
        for first, found in self._candidates(rows, chosen):
            columns = found.columns()
            near = found.distances <= radius
            query, ids, distances = (columns[name][near] for name in ("query", "id", "distance"))
            parts.append((query + first, ids, distances))
        return merged_matches(len(rows), parts, exact=False)

    def _candidates(
        self, rows: NDArray[np.uint8], chosen: IDSelector | None
    ) -> Iterator[tuple[int, Matches]]:
        """Yield, for some queries at a time, everything in their lists, and the first of them."""
        if chosen is not None:
            self._cannot("search with params")
        flips = self._count("nflip", self.nflip, at_least=0)
        sets = sum(math.comb(self.b, bits) for bits in range(min(flips, self.b) + 1))
        masks = flip_masks(self.b, min(flips, self.b)) if sets <= _MOST_FLIPS else None
        cvar.indexBinaryHash_stats.nq += len(rows)
        step = max(1, _MOST_PROBES // min(sets, _MOST_PROBES))
        waiting = [(first, min(first + step, len(rows))) for first in range(0, len(rows), step)]
        while waiting:
            first, last = waiting.pop(0)
            part = rows[first:last]
            probes = [
                lists.probes(hashes_of(part, number * self.b, self.b), masks, flips)
                for number, lists in enumerate(self._lists)
            ]
            if last - first > 1 and sum(each.size for each in probes) > _MOST_CANDIDATES:
                middle = (first + last) // 2
                waiting[:0] = [(first, middle), (middle, last)]
                continue
            query = np.concatenate([each.queries() for each in probes])
            place = np.concatenate([each.places() for each in probes])
            if len(probes) > 1:
                both = np.unique(query * max(1, self.ntotal) + place)
                query, place = both // max(1, self.ntotal), both % max(1, self.ntotal)
            stats = cvar.indexBinaryHash_stats
            lists_read = sum(each.lists for each in probes)
            stats.nlist += lists_read
            stats.n0 += (len(part) * sets * self.nhash - lists_read) * self.counts_missing_lists
            stats.ndis += len(place)
            distances = hamming(part[query], self.storage._signatures[place])
            yield first, merged_matches(len(part), [(query, place, distances)], exact=False)

    def _state(self) -> State:
        meta = {"d": self.d, "nhash": self.nhash, "b": self.b, "nflip": self.nflip}
        return meta, {"signatures": self.storage._signatures}

    @classmethod
    def _restored(cls, container: Container) -> Self:
        meta = container.meta
        index = cls._made(meta["d"], meta["nhash"], meta["b"])
        index.nflip = index._count("nflip", meta["nflip"], at_least=0)
        rows = container.array("signatures", np.uint8, 2)
        if rows.shape[1] != index.code_size:
            raise CorruptIndexError(f"{container.path}: signatures of {rows.shape[1]} bytes")
        _Hashed._add(index, rows, None)
        return index

    @classmethod
    @abstractmethod
    def _made(cls, d: int, nhash: int, b: int) -> Self: ...


class IndexBinaryHash(_Hashed):
    """Signatures by their first `b` bits; a search reads lists up to `nflip` bits away."""

    def __init__(self, d: SupportsIndex, b: SupportsIndex) -> None:
        super().__init__(d, 1, b)
        self._ids = Growing(np.empty(0, np.int64))

    def reset(self) -> None:
        """Take out everything."""
        super().reset()
        self._ids = Growing(np.empty(0, np.int64))

    def _add(self, rows: NDArray[np.uint8], labels: NDArray[np.int64] | None) -> None:
        start = self.ntotal
        super()._add(rows, None)
        self._ids.add(np.arange(start, self.ntotal) if labels is None else labels)

    def _labels(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        known: NDArray[np.int64] = self._ids.rows  # type: ignore[assignment]
        labels = np.full(positions.shape, -1, np.int64)
        labels[positions >= 0] = known[positions[positions >= 0]]
        return labels

    def _state(self) -> State:
        meta, arrays = super()._state()
        return meta, {**arrays, "ids": self._ids.rows}

    @classmethod
    def _made(cls, d: int, nhash: int, b: int) -> Self:
        return cls(d, b)

    @classmethod
    def _restored(cls, container: Container) -> Self:
        index = super()._restored(container)
        index._ids = Growing(container.array("ids", np.int64, 1))
        if len(index._ids.rows) != index.ntotal:
            raise CorruptIndexError(f"{container.path}: labels do not fit the signatures")
        return index


class IndexBinaryMultiHash(_Hashed):
    """Signatures by `nhash` runs of `b` bits; what one of them finds is compared."""

    counts_missing_lists = True

    def __init__(self, d: SupportsIndex, nhash: SupportsIndex, b: SupportsIndex) -> None:
        super().__init__(d, nhash, b)
        self.own_fields = True

    def _add(self, rows: NDArray[np.uint8], labels: NDArray[np.int64] | None) -> None:
        if labels is not None:
            self._cannot("add_with_ids")
        super()._add(rows, None)

    @classmethod
    def _made(cls, d: int, nhash: int, b: int) -> Self:
        return cls(d, nhash, b)
