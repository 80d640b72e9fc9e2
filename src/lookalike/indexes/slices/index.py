"""SliceIndex: inverted lists of signature slices (Chappell, Geva and Zuccon).

A signature is cut into slices of `slice_bits` bits. Each position and value has a list of the
signatures that have this value. A search reads the lists of the query's slices and of similar
values, scores the signatures found, and computes the distance of the best.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
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
from lookalike.indexes.slices.lists import (
    MOST_SLICE_BITS,
    Cut,
    Lists,
    checked_cut,
    directory_bits,
    shown_cut,
)
from lookalike.indexes.slices.search import (
    nearest_in,
    nearest_masked_in,
    search_settings,
    within_in,
)
from lookalike.operation import in_part
from lookalike.signatures import as_queries
from lookalike.storage.container import Container, new_container, open_container

_BUILD_MEMORY = 1 << 30


def write_with_lists(
    path: str | os.PathLike[str],
    meta: dict[str, Any],
    rows: Rows,
    slice_bits: Cut,
    directory: int,
    memory: int,
    threads: int,
) -> None:
    """Write rows and their slice lists to a file, with `memory` bytes of lists at a time."""
    widths = _native.slice_widths(rows.bits, slice_bits)
    postings = len(rows) * len(widths)
    empty = Lists.empty(0, rows.bits, slice_bits, directory, wide=len(rows) >= 2**32)
    offsets = empty.offsets
    _native.count_lists(rows.signatures, slice_bits, threads, offsets, directory)
    lists = empty.arrays()
    arrays = Segment(rows, slice_bits).arrays("0.")
    layout = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    layout |= {
        f"0.{name}": (array.dtype, (len(offsets) if name == "offsets" else postings,))
        for name, array in lists.items()
    }
    posting_bytes = sum(array.itemsize for name, array in lists.items() if name != "offsets")
    described_rows = Segment(rows, 1, lists=empty).meta()
    with new_container(path, {**meta, "segments": [described_rows]}, layout) as file:
        for name, array in arrays.items():
            file.write(name, 0, array)
        file.write("0.offsets", 0, offsets)
        at_once = max(1, memory // posting_bytes)
        told = [min(width, directory) for width in widths]
        for first, end, start, size in _pieces(offsets, len(rows), told, at_once):
            filled = {
                name: np.empty(size, array.dtype)
                for name, array in lists.items()
                if name != "offsets"
            }
            beside = filled.get("sketches"), filled.get("values"), directory
            with in_part(start, start + size, postings):
                _native.fill_lists(
                    rows.signatures,
                    slice_bits,
                    threads,
                    offsets,
                    first,
                    end,
                    filled["postings"],
                    *beside,
                )
            for name, array in filled.items():
                file.write(f"0.{name}", start, array)
            del filled, beside, array  # before there are the next


def _pieces(
    offsets: NDArray[Any], rows: int, told: list[int], at_once: int
) -> Iterator[tuple[int, int, int, int]]:
    """Cut the lists into pieces of at most `at_once` postings, or of one list.

    Yields the first list, the end of the lists, the position of the first posting, and their
    number. `told` has the bits of each slice that tell where a list is.
    """
    before = np.concatenate([[0], np.cumsum([1 << bits for bits in told])]).tolist()

    def place(number: int) -> int:
        if number == before[-1]:
            return rows * len(told)
        position = int(np.searchsorted(before, number, side="right")) - 1
        return position * rows + int(offsets[number])

    first = 0
    while first < before[-1]:
        start = place(first)
        target = start + at_once
        if target >= rows * len(told):
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
    """Find approximate nearest neighbors, or exact neighbors within a radius.

    Signatures are used in place and may be memory-mapped. The lists take about 4·n·slices bytes (6
    for signatures of 64 to 127 bits). Searches that run while `add`, `remove` or `compact` change
    the index see it as it was when they began.

    Args:
        signatures: Array `uint8[n, bits // 8]`.
        slice_bits: Slice width, 1 to 32 (default: derived from the number of signatures), or a
            list with the width of each slice. Slices need not reach the end of a signature: bits
            behind them, such as padding, are compared but have no lists.
        ids: Ids of the signatures, distinct and at least 0 (default: their positions).
        memory: Maximum size of the lists in bytes (default: no limit).
        threads: Number of threads (default: all cores).

    Examples:
        >>> signer = la.SimHash(bits=64)
        >>> index = la.SliceIndex(signer.sign(["the quick brown fox", "a slow green turtle"]))
        >>> index.add(signer.sign(["the quick brown dog"])).tolist()
        [2]
        >>> index.search(signer.sign(["the quick brown fox"]), k=1).ids.tolist()
        [[0]]
    """

    kind = "slices"
    takes_masks = True
    _pointers = "slice lists point"

    def __init__(
        self,
        signatures: ArrayLike,
        slice_bits: SupportsIndex | Sequence[SupportsIndex] | None = None,
        ids: ArrayLike | None = None,
        *,
        memory: SupportsIndex | None = None,
        threads: SupportsIndex | None = None,
    ) -> None:
        rows = Rows.of(signatures, ids)
        budget = None if memory is None else whole_number("memory", memory, at_least=0)
        self.slice_bits = checked_cut(len(rows), rows.bits, slice_bits, budget)
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
        slice_bits: SupportsIndex | Sequence[SupportsIndex] | None = None,
        ids: ArrayLike | None = None,
        *,
        memory: SupportsIndex = _BUILD_MEMORY,
        threads: SupportsIndex | None = None,
    ) -> SliceIndex:
        """Build an index in a file, and return it opened as `la.load_index` does.

        For signatures or lists that do not fit into memory. Signatures are read once for every
        `memory` bytes of lists. The file is written atomically.

        Args:
            path: File to write.
            signatures: Array `uint8[n, bits // 8]`.
            slice_bits: Slice width, 1 to 32, or the width of each slice (default: derived from
                the number of signatures).
            ids: Ids of the signatures, distinct and at least 0 (default: their positions).
            memory: Bytes of lists that are built at a time (default: 1 GiB).
            threads: Number of threads (default: all cores).
        """
        target = file_path("path", path)
        rows = Rows.of(signatures, ids)
        cut = checked_cut(len(rows), rows.bits, slice_bits)
        most = whole_number("memory", memory, at_least=1)
        directory = directory_bits(len(rows), rows.bits, cut)
        if directory is not None:
            meta = _description(cut, rows.bits, rows.next_id, ids is not None)
            write_with_lists(target, meta, rows, cut, directory, most, thread_count(threads))
        else:
            cls(rows.signatures, cut, rows.ids, threads=threads).save(target)
        # Checksums are of what the file was read to hold, a moment ago.
        return cls.from_container(open_container(target, verify=False))

    @classmethod
    def merge(
        cls, indexes: Iterable[SliceIndex], *, threads: SupportsIndex | None = None
    ) -> SliceIndex:
        """Merge indexes with equal slices into one, which is faster than building it again.

        Ids that are positions are renumbered: those of an index follow the ids of the one before.
        Other ids must be distinct.
        """
        merged, parts, starts = cls._merging(indexes)
        shapes: list[tuple[int, Cut]] = [(part.bits, part.slice_bits) for part in parts]
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
        """Number of bits of a signature."""
        return self._bits

    @property
    def slices(self) -> int:
        """Number of slices of a signature."""
        return len(_native.slice_widths(self._bits, self.slice_bits))

    def __len__(self) -> int:
        return sum(segment.alive for segment in self._segments)

    def summary(self) -> str:
        """Return a one-line description of the index."""
        return f"{super().summary()}, slices of {shown_cut(self.slice_bits)} bits"

    def stats(self) -> dict[str, Any]:
        """Return facts about the index, fit for JSON."""
        return {
            **super().stats(),
            "slice_bits": _plain(self.slice_bits),
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
        cull: str | None = None,
        exact: bool = False,
        explain: bool = False,
        among: Among = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return k near signatures of each query, nearest first, ties by id.

        Large batches are faster per query; they take up to 200 MB per thread.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or texts if the index has a `signer`. One of
                them is a batch of one.
            k: Number of neighbors.
            expand: Read lists whose value differs from the query's slice in at most this many bits
                (default: 3; a query is scanned if that is faster).
            admit: Add candidates only from lists that differ in at most this many bits; other lists
                only raise scores (default: `expand`).
            rerank: Number of candidates, best score first, whose distance is computed (default: the
                larger of 1000 and 10·k). With 0, the k best by score are returned.
            cull: Which candidates that is, by the distances that a score allows: "pessimistic",
                the nearest at worst (default); "optimistic", the nearest at best; or "both", all
                that may be nearer than the k-th is at worst, whose number `rerank` may limit.
            exact: Read more lists until the result is proven, or scan if that is faster.
            explain: Return what was read as `explanation`.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: One mask per query: only bits that are 1 in it are compared. Ties are broken by
                the distance over all bits, then by id. Always exact; excludes `expand`, `admit`,
                `rerank`, `cull`.
            threads: Number of threads (default: all cores).

        Returns:
            The neighbors. `exact` is True if they are proven to be the nearest, including ties.
        """
        rows = as_queries(queries, self.bits, signer=self.signer)
        wanted = neighbor_count(k, len(rows), len(self))
        prove, tell = flag("exact", exact), flag("explain", explain)
        cut, workers = self.slice_bits, thread_count(threads)
        segments = only_among(self._segments, among, self)
        try:
            if masks is not None:
                without_settings(expand=expand, admit=admit, rerank=rerank, cull=cull)
                own = as_masks(masks, self.bits, len(rows))
                return nearest_masked_in(segments, rows, own, wanted, tell, workers)
            limits = expand, admit, rerank, prove, tell, cull
            settings = search_settings(self.bits, cut, wanted, *limits)
            top = nearest_in(segments, rows, wanted, settings, workers)
        except _native.CorruptLists:
            raise self._damaged() from None
        explanation = top.explanation(self.bits, cut, wanted) if tell else None
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
        """Return every signature within Hamming distance `radius` of each query; always exact.

        Uses the general pigeonhole principle, or a scan if that is cheaper.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or a single signature.
            radius: Largest Hamming distance.
            limit: Maximum number of matches of all queries together.
            explain: Return what was read as `explanation`.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: One mask per query: only bits that are 1 in it are compared.
            threads: Number of threads (default: all cores).

        Raises:
            ResultTooLargeError: If there are more matches than `limit`.
        """
        rows = as_queries(queries, self.bits, signer=self.signer)
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
        """Add signatures and return their ids: the given ids, or the next free numbers.

        Takes microseconds per signature. Small segments are merged from time to time.
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
        """Merge all segments into one and free the space of removed signatures."""
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
            self._bits, self.slice_bits = int(meta["bits"]), _restored_cut(meta["slice_bits"])
            self._next_id, self._own_ids = int(meta["next_id"]), bool(meta["own_ids"])
            widths = self.slice_bits if isinstance(self.slice_bits, tuple) else (self.slice_bits,)
            if not 8 <= self._bits < 2**16 or not all(
                1 <= width <= MOST_SLICE_BITS for width in widths
            ):
                raise ValueError(f"slices of {self.slice_bits} of {self._bits} bits")
            if isinstance(self.slice_bits, tuple) and not 0 < sum(widths) <= self._bits:
                raise ValueError(f"slices of {self.slice_bits} of {self._bits} bits")
            if not 0 <= self._next_id <= 2**63:
                raise ValueError(f"the next id is {self._next_id}")
            self._segments = tuple(
                Segment.restored(container, f"{number}.", self.slice_bits, dict(segment))
                for number, segment in enumerate(meta["segments"])
            )
            if not self._segments or any(part.rows.bits != self._bits for part in self._segments):
                raise ValueError("segments of another width, or none")


def _plain(cut: Cut) -> int | list[int]:
    """Return the width of slices, or a list of widths, fit for JSON."""
    return list(cut) if isinstance(cut, tuple) else cut


def _restored_cut(value: Any) -> Cut:
    return tuple(int(width) for width in value) if isinstance(value, list) else int(value)


def _description(slice_bits: Cut, bits: int, next_id: int, own_ids: bool) -> dict[str, Any]:
    """Return the metadata of an index without its segments."""
    return {
        "index": SliceIndex.kind,
        "slice_bits": _plain(slice_bits),
        "bits": bits,
        "next_id": next_id,
        "own_ids": own_ids,
    }
