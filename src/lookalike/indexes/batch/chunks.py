"""What a batch is matched with: a file in chunks, and the matches so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import CorruptIndexError
from lookalike.indexes.merging import MatchColumns, merged_matches
from lookalike.indexes.results import Matches, too_many_matches

if TYPE_CHECKING:
    from lookalike.indexes.batch.run_reading import RunReader
    from lookalike.indexes.batch.signature_file import SignatureFile

__all__ = ["Chunk", "Chunks", "Ids", "Matcher", "MatchesSoFar", "Numbers", "Signatures"]

Signatures = NDArray[np.uint8]
Ids = NDArray[np.int64]
Numbers = NDArray[np.int64]


@dataclass
class Chunk:
    """Signatures of the file with their ids; mapped if they are of one run."""

    signatures: Signatures
    ids: Ids
    is_sorted: bool
    last: RunReader
    """The last of the runs that they are of; the others have been read to their ends."""

    def verify(self) -> None:
        """Raise if these are not what was written; the last run is read to its end for that."""
        self.last.verify()


@dataclass(frozen=True)
class Chunks:
    """How a file is read: runs cut into chunks of at most `size`, those up to `short` joined."""

    store: SignatureFile
    size: int
    short: int

    def sizes(self) -> list[int]:
        """Return how many signatures each chunk has."""
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
                yield _joined(pieces, reader)

    def _parts(self) -> Iterator[list[tuple[int, int, int]]]:
        """Yield what each chunk is made of: (run, begin, end)."""
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


def _joined(parts: Sequence[tuple[Signatures, Ids]], last: RunReader) -> Chunk:
    if len(parts) == 1:
        return Chunk(*parts[0], is_sorted=True, last=last)
    signatures = np.concatenate([signatures for signatures, _ in parts])
    return Chunk(signatures, np.concatenate([ids for _, ids in parts]), False, last)


@dataclass
class MatchesSoFar:
    """The matches so far."""

    queries: int
    first: bool
    limit: int
    radius: int
    parts: list[MatchColumns] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.is_open = np.ones(self.queries, bool)
        """Which queries are still to be asked."""

    @property
    def left(self) -> int:
        """How many these are."""
        return self.queries - self.count if self.first else self.queries

    def add(self, query: Numbers, ids: Ids, distances: NDArray[np.int32]) -> None:
        """Take matches; with `first`, only one of each query, and none if it has one already."""
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

    def matches(self, exact: bool) -> Matches:
        """Return all, sorted by (query, distance, id)."""
        return merged_matches(self.queries, self.parts, exact=exact)


class Matcher(ABC):
    """A way to find the matches of queries in a chunk."""

    exact: bool
    joins_runs: bool = True
    """Whether one long chunk is better than several short ones."""

    def prepare(self, sizes: Sequence[int]) -> None:  # noqa: B027 (not everybody needs it)
        """Get to know how many signatures each chunk will have."""

    @abstractmethod
    def match(self, chunk: Chunk, found: MatchesSoFar) -> None:
        """Add the matches of the queries that are still asked."""
