"""SliceIndex: inverted signature slice lists (Chappell, Geva and Zuccon).

A signature is cut into slices of `slice_bits` bits; for each position and value there is a list of
the signatures that have it. A search reads the lists of the query's slices, and of the values near
them; what turns up often and close gets a high score, and the best get their true distance.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import file_path, flag, neighbor_count, thread_count, whole_number
from lookalike.errors import ArgumentError
from lookalike.indexes.base import DEFAULT_LIMIT, GrowingIndex, Index, described
from lookalike.indexes.filters import Among, as_masks, without_settings
from lookalike.indexes.results import Matches, Neighbors, padded, too_many_matches
from lookalike.indexes.rows import Rows
from lookalike.indexes.segments import (
    Segment,
    Segments,
    merged_segments,
    only_among,
    refuse_known,
    renumbered,
    with_rows,
    without_ids,
    without_room,
)
from lookalike.indexes.slices.lists import MOST_SLICE_BITS, Lists, checked_width, wants_lists
from lookalike.indexes.slices.search import (
    nearest_in,
    nearest_masked_in,
    search_settings,
    within_in,
)
from lookalike.signatures import as_queries
from lookalike.storage.container import Container, new_container, open_container

_BUILD_MEMORY = 1 << 30


def write_with_lists(
    path: str | os.PathLike[str],
    meta: dict[str, Any],
    rows: Rows,
    slice_bits: int,
    memory: int,
    threads: int,
) -> None:
    """Write rows and their slice lists to a file, with `memory` bytes of lists at a time.

    Signatures are read once to count, and once for every `memory` bytes of lists.
    """
    postings = len(rows) * len(_native.slice_widths(rows.bits, slice_bits))
    empty = Lists.empty(0, rows.bits, slice_bits, wide=len(rows) >= 2**32)
    offsets = empty.offsets
    _native.count_lists(rows.signatures, slice_bits, threads, offsets)
    lists = {"offsets": offsets, "postings": empty.postings, "sketches": empty.sketches}
    arrays = Segment(rows, slice_bits).arrays("0.")
    layout = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    layout |= {
        f"0.{name}": (array.dtype, (len(offsets) if name == "offsets" else postings,))
        for name, array in lists.items()
        if array is not None
    }
    posting_bytes = empty.postings.itemsize + (0 if empty.sketches is None else 2)
    described_rows = Segment(rows, 1, lists=empty).meta()
    with new_container(path, {**meta, "segments": [described_rows]}, layout) as file:
        for name, array in arrays.items():
            file.write(name, 0, array)
        file.write("0.offsets", 0, offsets)
        at_once = max(1, memory // posting_bytes)
        for first, end, start, size in _pieces(offsets, len(rows), rows.bits, slice_bits, at_once):
            filled = np.empty(size, empty.postings.dtype)
            sketches = None if empty.sketches is None else np.empty(size, np.uint16)
            _native.fill_lists(
                rows.signatures, slice_bits, threads, offsets, first, end, filled, sketches
            )
            file.write("0.postings", start, filled)
            if sketches is not None:
                file.write("0.sketches", start, sketches)
            del filled, sketches  # before there are the next


def _pieces(
    offsets: NDArray[Any], rows: int, bits: int, slice_bits: int, at_once: int
) -> Iterator[tuple[int, int, int, int]]:
    """Cut the lists into runs of at most so many postings, or one list if that is longer.

    Yields the first list, the one behind the last, the place of the first posting, and how many.
    """
    widths = _native.slice_widths(bits, slice_bits)
    before = np.concatenate([[0], np.cumsum([1 << width for width in widths])]).tolist()

    def place(number: int) -> int:
        if number == before[-1]:
            return rows * len(widths)
        position = int(np.searchsorted(before, number, side="right")) - 1
        return position * rows + int(offsets[number])

    first = 0
    while first < before[-1]:
        start = place(first)
        target = start + at_once
        if target >= rows * len(widths):
            end = before[-1]
        else:
            # The last list that begins no later than the target; it is left for the next piece.
            position = target // rows
            begins = offsets[before[position] : before[position + 1]]
            last = np.searchsorted(begins, np.asarray(target % rows, begins.dtype), side="right")
            end = max(before[position] + int(last) - 1, first + 1)
        yield first, end, start, place(end) - start
        first = end


class SliceIndex(GrowingIndex, Index):
    """Approximate nearest neighbors, exact neighbors within a radius, exact pairs.

    Signatures are used in place, also memory-mapped ones. Lists take some 4·n·slices bytes beside
    them (6 for signatures of 64 to 127 bits). Searches that run while `add`, `remove` or `compact`
    change the index see it as it was when they began.

    Args:
        slice_bits: Slice width, 1 to 28 (default: by the number of signatures).
        memory: Most bytes for the lists. `SliceIndex.build` needs no memory for them.
    """

    kind = "slices"
    takes_masks = True
    _pointers = "slice lists point"

    def __init__(
        self,
        signatures: ArrayLike,
        slice_bits: SupportsIndex | None = None,
        ids: ArrayLike | None = None,
        *,
        memory: SupportsIndex | None = None,
        threads: SupportsIndex | None = None,
    ) -> None:
        rows = Rows.of(signatures, ids)
        budget = None if memory is None else whole_number("memory", memory, at_least=0)
        self.slice_bits = checked_width(len(rows), rows.bits, slice_bits, budget)
        self._bits = rows.bits
        self._segments: Segments = (Segment.build(rows, self.slice_bits, thread_count(threads)),)
        self._next_id = rows.next_id
        self._own_ids = ids is not None
        self._writing = threading.Lock()

    @classmethod
    def build(
        cls,
        path: str | os.PathLike[str],
        signatures: ArrayLike,
        slice_bits: SupportsIndex | None = None,
        ids: ArrayLike | None = None,
        *,
        memory: SupportsIndex = _BUILD_MEMORY,
        threads: SupportsIndex | None = None,
    ) -> SliceIndex:
        """Build an index straight into a file, and return it opened, as `la.load_index` does.

        For memory-mapped signatures that do not fit into memory, or whose lists do not. Signatures
        are read once for every `memory` bytes of lists (default: a gigabyte). Beside that, a list
        takes 4 bytes (16 MB for a million signatures of 1024 bits), and 8 while it is made. The
        file is written whole or not at all.
        """
        target = file_path("path", path)
        rows = Rows.of(signatures, ids)
        width = checked_width(len(rows), rows.bits, slice_bits)
        most = whole_number("memory", memory, at_least=1)
        if wants_lists(len(rows), rows.bits, width):
            meta = _description(width, rows.bits, rows.next_id, ids is not None)
            write_with_lists(target, meta, rows, width, most, thread_count(threads))
        else:
            cls(rows.signatures, width, rows.ids, threads=threads).save(target)
        # Checksums are of what the file was read to hold, a moment ago.
        return cls.from_container(open_container(target, verify=False))

    @classmethod
    def merge(
        cls, indexes: Iterable[SliceIndex], *, threads: SupportsIndex | None = None
    ) -> SliceIndex:
        """Return one index over all signatures of indexes with equal slices.

        Their lists are laid end to end, which is quicker than building anew. Indexes whose ids are
        positions are numbered on; otherwise ids must be distinct.
        """
        merged, parts, starts = cls._merging(indexes)
        shapes = [(part.bits, part.slice_bits) for part in parts]
        if len(set(shapes)) > 1:
            raise ArgumentError(f"(bits, slice_bits) are {shapes}; expected the same for all")
        merged._bits, merged.slice_bits = shapes[0]
        segments: list[Segment] = []
        for part, start in zip(parts, starts, strict=True):
            part._verify_rest()
            segments += [renumbered(segment, start) for segment in part._segments]
        whole = merged_segments(segments, thread_count(threads))
        if merged.own_ids:
            Rows.of(whole.rows.signatures, whole.rows.ids)  # raises if an id is there twice
        merged._segments = (whole,)
        return merged

    def _without_room(self) -> None:
        self._segments = without_room(self._segments)

    @property
    def bits(self) -> int:
        """How many bits each signature has."""
        return self._bits

    @property
    def slices(self) -> int:
        """How many slices a signature is cut into."""
        return len(_native.slice_widths(self._bits, self.slice_bits))

    def __len__(self) -> int:
        return sum(segment.alive for segment in self._segments)

    def summary(self) -> str:
        """Return what the index holds, and what was chosen for it, in a few words."""
        return f"{super().summary()}, slices of {self.slice_bits} bits"

    def stats(self) -> dict[str, Any]:
        """Return what there is to know about the index, in plain values."""
        return {
            **super().stats(),
            "slice_bits": self.slice_bits,
            "slices": self.slices,
            "segments": [segment.alive for segment in self._segments],
            "removed": sum(segment.removals for segment in self._segments),
        }

    def _living(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        rows = [segment.living() for segment in self._segments]
        if len(rows) == 1:
            return rows[0].signatures, rows[0].all_ids()
        return (
            np.concatenate([part.signatures for part in rows]),
            np.concatenate([part.all_ids() for part in rows]),
        )

    def search(
        self,
        queries: ArrayLike,
        k: SupportsIndex,
        *,
        expand: SupportsIndex | None = None,
        admit: SupportsIndex | None = None,
        rerank: SupportsIndex | None = None,
        exact: bool = False,
        explain: bool = False,
        among: Among = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return k near signatures of each query, nearest first, ties by id.

        Queries of a batch share what they read, so that large batches are quicker; they take up to
        some 200 MB for each thread. `exact` of the result is True if these are proven to be the k
        nearest, ties included.

        Args:
            expand: Most bits in which the value of a list may differ from the query's slice, i in
                the paper (default: 3; a query for which a scan is faster is scanned).
            admit: Most bits in which a list may differ to bring in new candidates, j in the paper;
                lists beyond that only raise scores (default: `expand`).
            rerank: Number of candidates, best first by (score, id), that get their true distance
                (default: the larger of 1000 and 10·k); 0 returns the k best by score.
            exact: Expand until the answer is proven, or scan where that is cheaper.
            explain: Say what was read, in `explanation`.
            among: Search only these ids, or those whose place in a mask is True.
            masks: One for each query: only bits that are 1 there are compared; ties are broken by
                the distance over all bits, then by id. Always exact; excludes `expand`, `admit` and
                `rerank`.
        """
        rows = as_queries(queries, self.bits)
        wanted = neighbor_count(k, len(rows), len(self))
        prove, tell = flag("exact", exact), flag("explain", explain)
        width, workers = self.slice_bits, thread_count(threads)
        segments = only_among(self._segments, among, self)
        try:
            if masks is not None:
                without_settings(expand=expand, admit=admit, rerank=rerank)
                own = as_masks(masks, self.bits, len(rows))
                return nearest_masked_in(segments, rows, own, wanted, tell, workers)
            limits = expand, admit, rerank, prove, tell
            settings = search_settings(self.bits, width, wanted, *limits)
            top = nearest_in(segments, rows, wanted, settings, workers)
        except _native.CorruptLists:
            raise self._damaged() from None
        explanation = top.explanation(self.bits, width, wanted) if tell else None
        ids, far, scores = (padded(array, wanted) for array in (top.ids, top.distances, top.scores))
        return Neighbors(ids, far, bool(top.proven.all()), explanation, scores)

    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        explain: bool = False,
        among: Among = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature at distance `radius` or less from each query; always exact.

        By the general pigeonhole principle, with thresholds chosen per query by the lengths of
        lists; scans where that is cheaper. `among` and `masks` as for `search`. More than `limit`
        matches raise `ResultTooLargeError`.
        """
        rows = as_queries(queries, self.bits)
        most = whole_number("limit", limit, at_least=0)
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        tell = flag("explain", explain)
        workers = thread_count(threads)
        counting = None if masks is None else as_masks(masks, self.bits, len(rows))
        segments = only_among(self._segments, among, self)
        try:
            return within_in(segments, rows, near, most, tell, workers, counting)
        except _native.TooManyResults:
            raise too_many_matches(most, radius, len(rows)) from None
        except _native.CorruptLists:
            raise self._damaged() from None

    def add(
        self,
        signatures: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> NDArray[np.int64]:
        """Add signatures and return their ids: the given ones, or the next free numbers.

        Takes microseconds a signature: new ones are copied to a small segment, and segments of
        similar size are merged from time to time.
        """
        new = Rows.of(as_queries(signatures, self.bits, "the new signatures"), ids)
        with self._writing:
            names = self._ids_for(new.ids, len(new))
            rows = Rows(new.signatures, names, new.ascending)
            self._segments = with_rows(self._segments, rows, self.slice_bits, thread_count(threads))
        return names

    def _refuse_known(self, ids: NDArray[np.int64]) -> None:
        refuse_known(self._segments, ids)

    def _remove(self, ids: NDArray[np.int64]) -> None:
        self._segments = without_ids(self._segments, ids)

    def compact(self, *, threads: SupportsIndex | None = None) -> None:
        """Merge all segments into one and free the places of removed signatures."""
        with self._writing:
            self._segments = (merged_segments(list(self._segments), thread_count(threads)),)

    def _meta(self) -> dict[str, Any]:
        own = _description(self.slice_bits, self.bits, self._next_id, self._own_ids)
        return {**own, "segments": [segment.meta() for segment in self._segments]}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        for number, segment in enumerate(self._segments):
            arrays |= segment.arrays(f"{number}.")
        return arrays

    def _restore(self, container: Container) -> None:
        meta, self._writing = container.meta, threading.Lock()
        with described(container, "slices"):
            self._bits, self.slice_bits = int(meta["bits"]), int(meta["slice_bits"])
            self._next_id, self._own_ids = int(meta["next_id"]), bool(meta["own_ids"])
            if not 1 <= self.slice_bits <= MOST_SLICE_BITS or not 8 <= self._bits < 2**16:
                raise ValueError(f"slices of {self.slice_bits} of {self._bits} bits")
            if not 0 <= self._next_id <= 2**63:
                raise ValueError(f"the next id is {self._next_id}")
            self._segments = tuple(
                Segment.restored(container, f"{number}.", self.slice_bits, dict(segment))
                for number, segment in enumerate(meta["segments"])
            )
            if not self._segments or any(part.rows.bits != self._bits for part in self._segments):
                raise ValueError("segments of another width, or none")


def _description(slice_bits: int, bits: int, next_id: int, own_ids: bool) -> dict[str, Any]:
    """Return what a file says of an index beside its segments."""
    return {
        "index": SliceIndex.kind,
        "slice_bits": slice_bits,
        "bits": bits,
        "next_id": next_id,
        "own_ids": own_ids,
    }
