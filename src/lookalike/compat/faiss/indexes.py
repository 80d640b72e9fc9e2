"""The binary indexes: `IndexBinaryFlat` compares everything, hash indexes compare signatures that
agree in some bits, and `IndexBinaryIDMap` gives labels to indexes that have none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from types import SimpleNamespace
from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.compat.faiss.base import (
    FaissError,
    IDSelector,
    IDSelectorTranslated,
    IndexBinary,
    State,
    index_in,
    omp_get_max_threads,
    serialize_index_binary,
)
from lookalike.errors import CorruptIndexError
from lookalike.indexes.results import NO_LIMIT, Matches, Neighbors, merged_matches
from lookalike.indexes.scan import ScanIndex
from lookalike.shown import brief
from lookalike.signatures.arrays import hamming
from lookalike.storage.container import Container

__all__ = [
    "IndexBinaryFlat",
    "IndexBinaryHash",
    "IndexBinaryHashStats",
    "IndexBinaryIDMap",
    "IndexBinaryIDMap2",
    "IndexBinaryMultiHash",
    "cvar",
    "index_binary_factory",
    "knn_hamming",
]


class Growing:
    """Rows of an array with room for more, so that adding one at a time costs no copy each."""

    def __init__(self, empty: NDArray[Any]) -> None:
        self._store = empty
        self._count = len(empty)

    @property
    def rows(self) -> NDArray[Any]:
        """What was added so far."""
        return self._store[: self._count]

    def add(self, rows: NDArray[Any]) -> None:
        """Copy more rows to the end."""
        if not len(rows):
            return
        total = self._count + len(rows)
        if total > len(self._store):
            store = np.empty((max(total, 2 * self._count), *rows.shape[1:]), rows.dtype)
            store[: self._count] = self.rows
            self._store = store
        self._store[self._count : total] = rows
        self._count = total

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Remove the other rows."""
        self._store = self.rows[mask]
        self._count = len(self._store)


class IndexBinaryFlat(IndexBinary):
    """Exhaustive search, exact."""

    def __init__(self, d: SupportsIndex) -> None:
        super().__init__(d)
        self.use_heap = True  # taken and not needed, as the next two
        self.query_batch_size = 32
        self.approx_topk_mode = 0
        self.reset()

    @property
    def ntotal(self) -> int:
        """The number of signatures."""
        return len(self._growing.rows)

    @property
    def xb(self) -> NDArray[np.uint8]:
        """All signatures, one after the other."""
        return self._growing.rows.reshape(-1)

    def reset(self) -> None:
        """Remove everything."""
        self._growing = Growing(np.empty((0, self.code_size), np.uint8))

    def _add(self, rows: NDArray[np.uint8], labels: NDArray[np.int64] | None) -> None:
        if labels is not None:
            self._cannot("add_with_ids")
        self._growing.add(rows)

    def _search(self, rows: NDArray[np.uint8], k: int, chosen: IDSelector | None) -> Neighbors:
        return ScanIndex(self._growing.rows).search(rows, k, **self._how(chosen))

    def _within(self, rows: NDArray[np.uint8], radius: int, chosen: IDSelector | None) -> Matches:
        index = ScanIndex(self._growing.rows)
        return index.within(rows, radius, limit=NO_LIMIT, **self._how(chosen))

    def _how(self, chosen: IDSelector | None) -> dict[str, Any]:
        among = None if chosen is None else chosen._members(np.arange(self.ntotal))
        return {"among": among, "threads": omp_get_max_threads()}

    def _remove(self, selector: IDSelector) -> int:
        gone = selector._members(np.arange(self.ntotal))
        self._growing.keep(~gone)
        return int(gone.sum())

    def _signature(self, label: int) -> NDArray[np.uint8]:
        if not 0 <= label < self.ntotal:
            raise FaissError(f"key {label} not found: there are {self.ntotal} signatures")
        return np.array(self._growing.rows[label])

    def _state(self) -> State:
        return {"d": self.d}, {"signatures": self._growing.rows}

    @classmethod
    def _restored(cls, container: Container) -> Self:
        index = cls(container.meta["d"])
        index._growing = Growing(_signatures_in(container, index.code_size))
        return index


def _signatures_in(container: Container, size: int) -> NDArray[np.uint8]:
    rows: NDArray[np.uint8] = container.array("signatures", np.uint8, 2)
    if rows.shape[1] != size:
        raise CorruptIndexError(f"{container.path}: signatures of {rows.shape[1]} bytes")
    return rows


def knn_hamming(
    xq: ArrayLike, xb: ArrayLike, k: SupportsIndex, variant: str = "hc"
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return distances and positions of the k nearest of `xb`, without an index to keep."""
    if variant not in ("hc", "mc"):
        raise FaissError(f"variant is {variant!r}; expected 'hc' or 'mc', which give the same")
    rows = np.asarray(xb)
    index = IndexBinaryFlat(8 * rows.shape[1] if rows.ndim == 2 else 0)
    index._growing = Growing(index._rows("xb", rows))
    return index.search(xq, k)


class IndexBinaryIDMap(IndexBinary):
    """Another index, which has to be empty, under labels: any int64, repeated or not."""

    def __init__(self, index: IndexBinary) -> None:
        if not isinstance(index, IndexBinary):
            raise FaissError(f"index is {brief(index)}; expected a binary index")
        if index.ntotal:
            raise FaissError("index must be empty on input")
        super().__init__(index.d)
        self.index = index
        self.own_fields = True
        self._map = Growing(np.empty(0, np.int64))

    @property
    def id_map(self) -> NDArray[np.int64]:
        """The label of each position."""
        return self._map.rows

    @property
    def ntotal(self) -> int:
        """The number of signatures."""
        return len(self.id_map)

    def reset(self) -> None:
        """Remove everything, also from the other index."""
        self.index.reset()
        self._map = Growing(np.empty(0, np.int64))

    def _add(self, rows: NDArray[np.uint8], labels: NDArray[np.int64] | None) -> None:
        if labels is None:
            raise FaissError(f"add needs labels: use add_with_ids of {type(self).__name__}")
        self.index._add(rows, None)
        self._map.add(labels)

    def _search(self, rows: NDArray[np.uint8], k: int, chosen: IDSelector | None) -> Neighbors:
        return self.index._search(rows, k, self._translated(chosen))

    def _within(self, rows: NDArray[np.uint8], radius: int, chosen: IDSelector | None) -> Matches:
        return self.index._within(rows, radius, self._translated(chosen))

    def _translated(self, chosen: IDSelector | None) -> IDSelector | None:
        return None if chosen is None else IDSelectorTranslated(self.id_map, chosen)

    def _labels(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return _labels_at(self.id_map, self.index._labels(positions))

    def _remove(self, selector: IDSelector) -> int:
        removed = self.index._remove(IDSelectorTranslated(self.id_map, selector))
        self._map.keep(~selector._members(self.id_map))
        return removed

    def _state(self) -> State:
        return {}, {"index": serialize_index_binary(self.index), "id_map": self.id_map}

    @classmethod
    def _restored(cls, container: Container) -> Self:
        index = cls.__new__(cls)
        index.index = index_in(container.inner("index"))
        IndexBinary.__init__(index, index.index.d)
        index.own_fields = True
        index._map = Growing(container.array("id_map", np.int64, 1))
        if index.ntotal != index.index.ntotal:
            raise CorruptIndexError(
                f"{container.path} holds {index.index.ntotal} signatures and {index.ntotal} labels"
            )
        return index


class IndexBinaryIDMap2(IndexBinaryIDMap):
    """The same, and `reconstruct` by label: of repeated ones, the last that was added."""

    @property
    def rev_map(self) -> dict[int, int]:
        """The position of each label, put together at every look."""
        return dict(zip(self.id_map.tolist(), range(self.ntotal), strict=True))

    def construct_rev_map(self) -> None:
        """Do nothing: labels are looked up in `id_map`."""

    def check_consistency(self) -> None:
        """Raise if a label is there more than once."""
        if len(np.unique(self.id_map)) != self.ntotal:
            raise FaissError("a label exists more than once")

    def _signature(self, label: int) -> NDArray[np.uint8]:
        places = np.flatnonzero(self.id_map == label)
        if not len(places):
            raise FaissError(f"key {label} not found")
        return self.index._signature(int(places[-1]))


def _labels_at(labels: NDArray[Any], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    found = np.full(positions.shape, -1, np.int64)
    found[positions >= 0] = labels[positions[positions >= 0]]
    return found


Words = NDArray[np.uint64]
Places = NDArray[np.int64]


def hashes_of(rows: NDArray[np.uint8], start: int, width: int) -> Words:
    """Return bits `start` to `start + width` of each signature as a number; at most 64 bits."""
    first, shift = divmod(start, 8)
    wide = np.zeros((len(rows), 16), np.uint8)
    part = rows[:, first : first + 9]  # 64 bits that begin inside a byte touch nine
    wide[:, : part.shape[1]] = part
    low, high = wide.view("<u8").T.astype(np.uint64)
    words = low >> np.uint64(shift)
    if shift:
        words |= high << np.uint64(64 - shift)
    return words & np.uint64((1 << width) - 1)


def flip_masks(width: int, most: int) -> Words:
    """Return every number of `width` bits with at most `most` of them set."""
    masks = [
        sum(1 << bit for bit in chosen)
        for count in range(most + 1)
        for chosen in combinations(range(width), count)
    ]
    return np.array(masks, np.uint64)


@dataclass(frozen=True)
class Probes:
    """Parts of sorted runs that queries look at."""

    lists: int  # how many lists they are
    parts: list[tuple[Places, Places, Places, Places]]
    """Of each run: whose each part is, where it begins, how long it is, and the run's positions."""

    @property
    def size(self) -> int:
        """How many positions they have."""
        return sum(int(lengths.sum()) for _, _, lengths, _ in self.parts)

    def queries(self) -> Places:
        """Return the query of each position."""
        whose = [np.repeat(query, lengths) for query, _, lengths, _ in self.parts]
        return np.concatenate([np.empty(0, np.int64), *whose])

    def places(self) -> Places:
        """Return the positions."""
        found = [np.empty(0, np.int64)]
        for _, begins, lengths, places in self.parts:
            ends = np.cumsum(lengths)
            inside = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
            found.append(places[np.repeat(begins, lengths) + inside])
        return np.concatenate(found)


class HashLists:
    """Positions by hash, in sorted runs; runs of similar length are merged."""

    def __init__(self) -> None:
        self._count = 0
        self._runs: list[tuple[Words, Places]] = []
        self._new: list[Words] = []

    def add(self, hashes: Words) -> None:
        """Add the hashes of the next positions."""
        self._new.append(hashes)

    def values(self) -> Words:
        """Return all hashes that there are, each once."""
        self._sort()
        return np.unique(
            np.concatenate([np.empty(0, np.uint64), *(keys for keys, _ in self._runs)])
        )

    def probes(self, hashes: Words, masks: Words | None, most: int) -> Probes:
        """Return what the lists within `most` bits of the hashes hold.

        `masks` are all flips of that many bits. Where they are more than there are hashes, or None,
        all of these are compared instead.
        """
        self._sort()
        if masks is None or len(masks) > self._count:
            values = self.values()
            differ = np.bitwise_count(hashes[:, None] ^ values[None])
            query, which = np.nonzero(differ <= most)
            wanted = values[which]
        else:
            query = np.repeat(np.arange(len(hashes)), len(masks))
            wanted = (hashes[:, None] ^ masks[None]).reshape(-1)
        parts, read = [], np.zeros(len(wanted), bool)
        for keys, places in self._runs:
            begins = np.searchsorted(keys, wanted, "left")
            lengths = np.searchsorted(keys, wanted, "right") - begins
            some = lengths > 0
            read |= some
            parts.append((query[some], begins[some], lengths[some], places))
        return Probes(int(read.sum()), parts)

    def _sort(self) -> None:
        if self._new:
            hashes = np.concatenate(self._new)
            order = np.argsort(hashes, kind="stable")
            self._runs.append((hashes[order], order + self._count))
            self._count += len(hashes)
            self._new = []
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            (left, first), (right, second) = self._runs[-2:]
            keys, places = np.concatenate([left, right]), np.concatenate([first, second])
            order = np.argsort(keys, kind="stable")
            self._runs[-2:] = [(keys[order], places[order])]


_MOST_PROBES = 1 << 20
_MOST_CANDIDATES = 1 << 22
_MOST_FLIPS = 1 << 22


class IndexBinaryHashStats:
    """What searches of hash indexes did since the last `reset`, all of them together."""

    nq = n0 = nlist = ndis = 0
    """Queries, lists that are not there (of multi-hashes), lists read, and distances computed."""

    def reset(self) -> None:
        """Set all counts to 0."""
        self.nq = self.n0 = self.nlist = self.ndis = 0


cvar = SimpleNamespace(indexBinaryHash_stats=IndexBinaryHashStats())
"""faiss' global variables, of which this is one."""


class _Hashed(IndexBinary):
    """What both have: lists by the first bits, and those up to `nflip` bits away are read."""

    counts_missing_lists = False
    _parameters: ClassVar[tuple[str, ...]] = ("d", "nhash", "b")

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
        """The number of signatures."""
        return self.storage.ntotal

    def reset(self) -> None:
        """Remove everything."""
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
            near = found.distances <= radius
            parts.append((found.query[near] + first, found.ids[near], found.distances[near]))
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
            distances = hamming(part[query], self.storage._growing.rows[place])
            yield first, merged_matches(len(part), [(query, place, distances)], exact=False)

    def _state(self) -> State:
        meta = {"d": self.d, "nhash": self.nhash, "b": self.b, "nflip": self.nflip}
        return meta, {"signatures": self.storage._growing.rows}

    @classmethod
    def _restored(cls, container: Container) -> Self:
        meta = container.meta
        index = cls(*(meta[name] for name in cls._parameters))
        index.nflip = index._count("nflip", meta["nflip"], at_least=0)
        _Hashed._add(index, _signatures_in(container, index.code_size), None)
        return index


class IndexBinaryHash(_Hashed):
    """Signatures by their first `b` bits; a search reads lists up to `nflip` bits away."""

    _parameters = ("d", "b")

    def __init__(self, d: SupportsIndex, b: SupportsIndex) -> None:
        super().__init__(d, 1, b)
        self._ids = Growing(np.empty(0, np.int64))

    def reset(self) -> None:
        """Remove everything."""
        super().reset()
        self._ids = Growing(np.empty(0, np.int64))

    def _add(self, rows: NDArray[np.uint8], labels: NDArray[np.int64] | None) -> None:
        start = self.ntotal
        super()._add(rows, None)
        self._ids.add(np.arange(start, self.ntotal) if labels is None else labels)

    def _labels(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return _labels_at(self._ids.rows, positions)

    def _state(self) -> State:
        meta, arrays = super()._state()
        return meta, {**arrays, "ids": self._ids.rows}

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


_MAPS: dict[str, type[IndexBinaryIDMap]] = {"IDMap": IndexBinaryIDMap, "IDMap2": IndexBinaryIDMap2}


def index_binary_factory(d: SupportsIndex, description: str) -> IndexBinary:
    """Return an index by words: BFlat, BHash12, BHash5x6; with IDMap or IDMap2 before or after."""
    words = str(description).split(",")
    maps = [word for word in words if word in _MAPS]
    kinds = [word for word in words if word not in _MAPS]
    hashed = re.fullmatch(r"BHash(?:(\d+)x)?(\d+)", kinds[0]) if len(kinds) == 1 else None
    index: IndexBinary
    if kinds == ["BFlat"]:
        index = IndexBinaryFlat(d)
    elif hashed and hashed[1]:
        index = IndexBinaryMultiHash(d, int(hashed[1]), int(hashed[2]))
    elif hashed:
        index = IndexBinaryHash(d, int(hashed[2]))
    else:
        raise FaissError(
            f"description is {brief(description)}; expected BFlat, BHash12 or BHash5x6, with "
            "IDMap or IDMap2 before or after a comma"
        )
    if len(maps) > 1:
        raise FaissError(f"description is {brief(description)}; expected one IDMap at most")
    return _MAPS[maps[0]](index) if maps else index
