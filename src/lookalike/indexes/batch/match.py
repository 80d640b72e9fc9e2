"""match_batch: match a batch of signatures with a collection on disk, then append it.

The batch mode of Sood and Loguinov (section 6.3): the file is read once, in chunks. Memory is
bounded by the chunk and the batch.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import file_path, flag, one_of, share, thread_count, whole_number
from lookalike.errors import ArgumentError, CorruptIndexError, ResultTooLargeError, Said
from lookalike.indexes.all_pairs import pairs_of_rows
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.indexes.batch.signature_file import RunReader, SignatureFile, read_ahead, sorted_run
from lookalike.indexes.results import MatchColumns, Matches, merged_matches, too_many_matches
from lookalike.indexes.rows import Rows, Signatures
from lookalike.indexes.tables import sorted_table
from lookalike.indexes.tables.blocks import BlockIndex
from lookalike.indexes.tables.flip_sets import (
    ENOUGH,
    MOST_CHOSEN,
    MOST_FLIPS,
    all_sets,
    as_weights,
    flips_expected,
    likely_sets,
)
from lookalike.indexes.tables.flips import FlipIndex
from lookalike.indexes.tables.sorted_table import TableSteps, header_width
from lookalike.progress import Progress, listener, shows_progress
from lookalike.signatures import as_signatures
from lookalike.storage.files import is_there

Ids = NDArray[np.int64]
Numbers = NDArray[np.int64]


@dataclass
class Chunk:
    """Signatures of the file with their ids; memory-mapped if they are from one run."""

    signatures: Signatures
    ids: Ids
    is_sorted: bool
    last: RunReader  # last run of the chunk; earlier runs were read to their ends


@dataclass(frozen=True)
class Chunks:
    """How a file is read: in chunks of at most `size`; runs up to `short` are joined."""

    store: SignatureFile
    size: int
    short: int

    def sizes(self) -> list[int]:
        """Return the number of signatures of each chunk."""
        return [sum(end - begin for _, begin, end in parts) for parts in self._parts()]

    def __iter__(self) -> Iterator[Chunk]:
        run, reader = -1, None
        for parts in self._parts():
            pieces: list[tuple[Signatures, Ids]] = []
            for number, _, end in parts:
                if reader is None or number != run:
                    run, reader = number, self.store.reader(number)
                pieces.append(reader.take(end))
            if reader is not None:
                signatures, ids = pieces[0]
                if len(pieces) > 1:
                    signatures, ids = map(np.concatenate, zip(*pieces, strict=True))
                yield Chunk(signatures, ids, len(pieces) == 1, reader)

    def _parts(self) -> Iterator[list[tuple[int, int, int]]]:
        """Yield the (run, begin, end) that each chunk consists of."""
        waiting: list[tuple[int, int, int]] = []
        held = 0
        for run, count in enumerate(self.store.runs):
            for begin in range(0, count, self.size):
                end = min(begin + self.size, count)
                if waiting and (held + end - begin > self.size or end - begin > self.short):
                    yield waiting
                    waiting, held = [], 0
                waiting.append((run, begin, end))
                held += end - begin
                if end - begin > self.short:
                    yield waiting
                    waiting, held = [], 0
        if waiting:
            yield waiting


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class BatchMatches(Matches):
    """Matches of each query of a batch."""

    query_ids: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    """int64[queries]: ids of the appended queries, or the ids that they would get."""


@dataclass
class MatchesSoFar:
    """Matches so far, and which queries are still open."""

    queries: int
    first: bool
    limit: int
    radius: int
    parts: list[MatchColumns] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.is_open = np.ones(self.queries, bool)

    @property
    def left(self) -> int:
        """Number of open queries."""
        return self.queries - self.count if self.first else self.queries

    def add(self, query: Numbers, ids: Ids, distances: NDArray[np.int32]) -> None:
        """Add matches; with `first`, at most one per query."""
        if self.first:
            query, places = np.unique(query, return_index=True)
            new = self.is_open[query]
            query, places = query[new], places[new]
            ids, distances = ids[places], distances[places]
            self.is_open[query] = False
        if len(ids) and int(ids.min()) < 0:
            raise CorruptIndexError("the signature file has negative ids; it is damaged")
        self.count += len(ids)
        if self.count > self.limit:
            raise too_many_matches(self.limit, self.radius, self.queries)
        self.parts.append((query, ids, distances))


class Matcher(ABC):
    """Finds the matches of queries in a chunk."""

    exact: bool
    joins_runs: bool = True  # whether one long chunk is better than several short ones

    def prepare(self, sizes: Sequence[int]) -> None:  # noqa: B027 (not everybody needs it)
        """Take the number of signatures of each chunk."""

    @abstractmethod
    def match(self, chunk: Chunk, found: MatchesSoFar) -> None:
        """Add the matches of the open queries."""


_LOOKED_UP = 1 << 20
_WORTH_DROPPING = 0.75  # queries with a match are dropped when no more than this share is left


class ByBlocks(Matcher):
    """Tables over the queries, in which every signature of the file is looked up."""

    exact = True
    joins_runs = False

    def __init__(
        self, queries: Signatures, radius: int, tables: SupportsIndex | None, threads: int
    ) -> None:
        self._threads = threads
        self._index = BlockIndex(queries, radius, tables, threads=threads)

    def match(self, chunk: Chunk, found: MatchesSoFar) -> None:
        """Look up all signatures of the chunk, some at a time."""
        for begin in range(0, len(chunk.ids), _LOOKED_UP):
            self._look_up(chunk, begin, min(begin + _LOOKED_UP, len(chunk.ids)), found)

    def _look_up(self, chunk: Chunk, begin: int, end: int, found: MatchesSoFar) -> None:
        """Look up some; with `first`, fewer at a time if there are too many matches."""
        most = max(found.limit, found.queries) if found.first else found.limit
        try:
            matches = self._index.within(
                chunk.signatures[begin:end], limit=most, threads=self._threads
            )
        except ResultTooLargeError:
            if not found.first:
                raise too_many_matches(found.limit, found.radius, found.queries) from None
            middle = (begin + end) // 2  # one alone matches each query once at most
            self._look_up(chunk, begin, middle, found)
            self._look_up(chunk, middle, end, found)
            return
        found.add(matches.ids, chunk.ids[begin:end][_query_of_each(matches)], matches.distances)


@dataclass(eq=False)
class ByFlips(Matcher):
    """A header table over each chunk, in which the queries are looked up.

    Queries are sorted by their upper bits, so that neighbors share cache lines.
    """

    queries: Signatures
    radius: int
    threads: int
    weights: NDArray[Any] | None
    flips: int | None
    recall: float
    first: bool

    def __post_init__(self) -> None:
        self.exact = True
        self._header_bits = 0
        self._asked: NDArray[np.uint32] | None = None
        """Open queries in this order; None before the first chunk."""
        self._rows, self._behind = self.queries, self.weights
        """Their signatures, and what tells their flips: sets, weights or nothing."""

    def prepare(self, sizes: Sequence[int]) -> None:
        """Choose header bits for all chunks."""
        everything = self.weights is None or self.recall == 1
        bits, recall = 8 * self.queries.shape[1], None if everything else self.recall
        count = len(self.queries)
        self._header_bits = batch_header_bits(sizes, count, bits, self.radius, recall)

    def match(self, chunk: Chunk, found: MatchesSoFar) -> None:
        """Look up the open queries."""
        if chunk.is_sorted:
            index = FlipIndex.of_sorted(chunk.signatures, self._header_bits, self.threads)
        else:
            index = FlipIndex(chunk.signatures, self._header_bits, threads=self.threads)
        asked = self._begin(index) if self._asked is None else self._drop_found(found, self._asked)
        flips = MOST_FLIPS if self.flips is None else self.flips
        matches = index.within_checked(
            self._rows, self._behind, self.radius, flips, self.first, found.limit, self.threads
        )
        self.exact &= matches.exact
        query = asked[_query_of_each(matches)].astype(np.int64)
        found.add(query, chunk.ids[matches.ids], matches.distances)

    def _begin(self, index: FlipIndex) -> NDArray[np.uint32]:
        """Choose the number of flips, and sort the queries."""
        weights, every = self.weights, all_sets(self._header_bits, self.radius)
        if weights is None or (self.flips is None and self.recall == 1):
            self.flips = every if self.flips is None else self.flips
        elif self.flips is None:
            self.flips = self._flips_needed(index, weights)
        asked = np.arange(len(self.queries), dtype=np.uint32)
        if weights is None or self.flips <= MOST_CHOSEN:
            self._rows, places = np.empty_like(self.queries), np.empty_like(asked)
            _native.order_by_prefix(self.queries, self._rows, asked, places)
            if weights is not None:
                self.flips, header = min(self.flips, every), self._header_bits
                self._behind = likely_sets(
                    weights, places, header, index.volatility, self.radius, self.flips, self.threads
                )
        self._asked = asked
        return asked

    def _flips_needed(self, index: FlipIndex, weights: NDArray[Any]) -> int:
        """Return the number of flips for the recall: measured on this chunk, or an estimate."""
        if len(self.queries) >= ENOUGH:
            tuning = index.measured(
                self.queries, weights, self.radius, self.recall, self.first, self.threads
            )
            if (tuning.matches or 0) >= ENOUGH:
                return int(tuning.search_settings["flips"])
        bits = 8 * self.queries.shape[1]
        return flips_expected(bits, self.radius, self._header_bits, self.recall)

    def _drop_found(self, found: MatchesSoFar, asked: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Drop queries that have their match, if there are enough to make it worthwhile."""
        if found.left <= _WORTH_DROPPING * len(asked):
            left = found.is_open[asked]
            self._asked = asked = asked[left]
            self._rows = self._rows[left]
            self._behind = None if self._behind is None else self._behind[left]
        return asked


def batch_header_bits(
    sizes: Sequence[int], queries: int, bits: int, radius: int, recall: float | None
) -> int:
    """Return the fastest number of header bits; without a recall, for all flips."""
    count, chunks = sum(sizes), len(sizes)

    def cost(header: int) -> float:
        flips = (
            all_sets(header, radius)
            if recall is None
            else flips_expected(bits, radius, header, recall)
        )
        asked = queries * (1 + flips)
        steps = TableSteps(asked * chunks, asked * count / 2.0**header)
        written = _native.USUAL_COSTS.touch * 2.0**header * chunks
        return written + steps.usual_cost(bits // 8)

    widest = min(header_width(max(sizes, default=0)), bits)
    return min(range(widest + 1), key=cost)


def _query_of_each(matches: Matches) -> Numbers:
    """Return the query of each match."""
    counts = np.diff(matches.offsets)
    some = np.flatnonzero(counts)
    return np.repeat(some, counts[some])


@dataclass(eq=False)
class OwnMatches:
    """Matches of each query with the queries before it; exact."""

    queries: Signatures
    radius: int
    threads: int
    _part: int | None = None  # position of these matches among all parts

    def match(self, found: MatchesSoFar) -> None:
        """Add the matches, with positions in the batch in place of ids."""
        positions = np.arange(len(self.queries))
        # The nearest one is the first of its equals, so that others are not needed; of the pairs
        # that are left, one is kept for each query, so that the limit is not of these.
        most = max(found.limit, DEFAULT_LIMIT) if found.first else found.limit
        try:
            pairs = pairs_of_rows(
                self.queries, positions, self.radius, most, found.first, self.threads
            )
        except ResultTooLargeError:
            raise too_many_matches(most, self.radius, found.queries) from None
        earlier = np.minimum(pairs.left, pairs.right)
        later = np.maximum(pairs.left, pairs.right)
        order = np.lexsort((earlier, pairs.distances, later))
        self._part = len(found.parts)
        found.add(later[order], earlier[order], pairs.distances[order])

    def name(self, found: MatchesSoFar, ids: Ids) -> None:
        """Replace positions by the ids of the queries."""
        if self._part is not None:
            query, positions, distances = found.parts[self._part]
            found.parts[self._part] = query, ids[positions], distances


_CHUNK_BYTES = 1 << 27
_SMALL = 1 << 16
_SHORT = 4  # times the batch: longer runs are not put together to one chunk


@shows_progress
def match_batch(
    file: str | os.PathLike[str],
    queries: ArrayLike,
    radius: SupportsIndex = 3,
    *,
    method: str = "flips",
    weights: ArrayLike | None = None,
    flips: SupportsIndex | None = None,
    recall: SupportsFloat = 0.95,
    first: bool = False,
    tables: SupportsIndex | None = None,
    ids: ArrayLike | None = None,
    append: bool = True,
    chunk: SupportsIndex | None = None,
    limit: SupportsIndex = DEFAULT_LIMIT,
    threads: SupportsIndex | None = None,
    progress: Progress | bool | None = None,
    duplicates: bool = False,
) -> BatchMatches:
    """Find the matches of a batch of queries in a signature file, then append the queries.

    The file is created if it does not exist. Queries are appended as one run, atomically.

    Args:
        file: Signature file (`la.SignatureFile`).
        queries: Signatures, `uint8[n, bits // 8]`. One signature is a batch of one.
        radius: Largest Hamming distance (default: 3).
        method: "flips" looks up the queries in each chunk, most likely headers first. "blocks"
            looks up each signature of the file in tables of the queries, and is exact.
        weights: Weights of the queries' bits, `(queries, bits)`, float32 or quantized (default: all
            flips are tried, which is exact and slow).
        flips: Number of flips (default: measured for the `recall` on the first chunk if that has at
            least 50 matches, or an estimate).
        recall: Share of matches that "flips" finds (default: 0.95); 1 tries all flips.
        first: Return the first match of each query, and stop when all queries have one.
        tables: Number of tables of "blocks".
        ids: Ids of the queries (default: the numbers after the largest id of the file).
        append: Append the queries (default: yes).
        chunk: Maximum number of signatures of a chunk (default: the size of the batch, at least 128
            MB).
        limit: Maximum number of matches of all queries together.
        threads: Number of threads (default: all cores).
        progress: Called with "match" and the share of signatures read; True shows a bar.
        duplicates: Also match each query with the queries before it; exact.

    Returns:
        The matches, with the ids of the queries as `query_ids`.

    Raises:
        ResultTooLargeError: If there are more matches than `limit`.

    Examples:
        >>> la.match_batch("seen.runs", np.zeros((2, 8), np.uint8)).query_ids.tolist()
        [0, 1]
        >>> la.match_batch("seen.runs", np.zeros((1, 8), np.uint8)).ids.tolist()
        [0, 1]
    """
    rows = as_signatures(queries, "queries", single=True)
    bits = 8 * rows.shape[1]
    if len(rows) > sorted_table.MOST_ROWS:
        raise ArgumentError(
            f"there are {len(rows)} queries; a batch has at most {sorted_table.MOST_ROWS}, which "
            "become one run of the file: match them in several batches"
        )
    near = min(whole_number("radius", radius, at_least=0), bits)
    most = whole_number("limit", limit, at_least=0)
    workers = thread_count(threads)
    size = None if chunk is None else whole_number("chunk", chunk, at_least=1)
    names = None if ids is None else Rows.of(rows, ids).all_ids()
    one, keep = flag("first", first), flag("append", append)
    own = OwnMatches(rows, near, workers) if flag("duplicates", duplicates) else None
    tell = listener(progress)
    values = None if weights is None else as_weights(weights, len(rows), bits)
    tries = None if flips is None else whole_number("flips", flips, at_least=0)
    target = share("recall", recall)
    if one_of("method", method, ("flips", "blocks")) == "blocks":
        matcher: Matcher = ByBlocks(rows, near, tables, workers)
    else:
        matcher = ByFlips(rows, near, workers, values, tries, target, one)

    path = file_path("file", file)
    if is_there(path):
        store = SignatureFile(path)
    elif keep:
        store = SignatureFile.create(path, bits, exist_ok=True)  # another process may be quicker
    else:
        raise ArgumentError(
            f"there is no file {path}; ",
            Said("with append=True it is made", "without --no-append it is made"),
        )
    if store.bits != bits:
        raise ArgumentError(
            f"queries have {bits} bits, the signatures of {store.path} {store.bits}; expected the "
            "same"
        )
    called = store._numbered(len(rows)) if names is None else names
    found = MatchesSoFar(len(rows), one, most, near)
    if own is not None:
        own.match(found)
    chunks = chunks_for(store, len(rows), size, matcher.joins_runs)
    _match(chunks, matcher, found, len(store), tell)
    if keep:
        numbers = np.arange(len(rows)) if names is None else names
        raised = store.append(*sorted_run(rows, numbers, workers), number_on=names is None)
        called = numbers + raised  # others may have appended meanwhile
    if own is not None:
        own.name(found, called)
    whole = merged_matches(found.queries, found.parts, exact=matcher.exact)
    return BatchMatches(whole.offsets, whole.ids, whole.distances, whole.exact, query_ids=called)


def chunks_for(
    store: SignatureFile, queries: int, size: int | None = None, join: bool = True
) -> Chunks:
    """Return how a file is read for a batch, in chunks of at most `size`."""
    size = chunk_rows(queries, store.bits) if size is None else min(size, sorted_table.MOST_ROWS)
    return Chunks(store, size, min(size, max(_SHORT * queries, _SMALL)) if join else 0)


def chunk_rows(queries: int, bits: int) -> int:
    """Return the default number of signatures of a chunk: those of the batch, at least 128 MB."""
    size = max(queries, _CHUNK_BYTES * 8 // bits, 1)
    return min(size, sorted_table.MOST_ROWS)  # of a chunk, a table is made


def _match(
    chunks: Chunks, matcher: Matcher, found: MatchesSoFar, total: int, tell: Progress
) -> None:
    """Read the file and add matches until no query is open, then verify."""
    sizes = chunks.sizes()
    matcher.prepare(sizes)
    done, chunk = 0, None
    with read_ahead(iter(chunks), len(sizes)) as reading:
        while found.left and (following := next(reading, None)) is not None:
            chunk = following
            matcher.match(chunk, found)
            done += len(chunk.ids)
            tell("match", done / total)
    if chunk is not None:
        chunk.last.verify()
