"""An index of words in memory: which documents have the words of a query, the best first?

Documents are ranked by BM25 and by pieces of words, in the core (`native/words/index.hpp`). An
index consists of segments that are never changed, only replaced. So a copy of an index stays as it
is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.collection.documents import damaged
from lookalike.collection.stores.entries import Entries
from lookalike.collection.stores.schema import Numbers
from lookalike.errors import CorruptIndexError, FormatError
from lookalike.signatures.arrays import distinct
from lookalike.storage.container import Container, open_container, write_container

MOST_QUERY_WORDS: int = _native.most_query_words
_PIECE_SHARE, _PIECE_WHOLE = _native.piece_share
_KIND = "words"
_ARRAYS: dict[str, type[np.generic]] = {
    "numbers": np.int64, "lengths": np.uint32, "words": np.uint64, "offsets": np.int64,
    "documents": np.uint32, "counts": np.uint8, "piece_offsets": np.int64, "pieces": np.uint8,
}  # fmt: skip
"""The arrays of a segment, in the order in which the core takes them."""
_GROWTH = 4  # a segment has more than this many times the size of the next one
_MOST_REMOVED = 1 / 4  # the share of a segment that is removed before the segment is written again


class QueryWords(NamedTuple):
    """The different words of a query as they are written, lower-case, and how they are compared."""

    words: list[str]
    hashes: NDArray[np.uint64]
    offsets: NDArray[np.int64]  # where the pieces of each word begin, and where the last ones end
    pieces: NDArray[np.uint16]

    def first(self, count: int) -> QueryWords:
        """Return some of the words."""
        return QueryWords(
            self.words[:count], self.hashes[:count], self.offsets[: count + 1], self.pieces
        )


class FoundWords(NamedTuple):
    """The best documents for some words, best first, and what is known of the words."""

    numbers: Numbers
    scores: NDArray[np.int64]
    has: NDArray[np.uint64]  # bit i: the document has word i
    frequencies: NDArray[np.int64]  # the number of documents that have each word
    weights: NDArray[np.int64]  # the largest score that each word can give, without its pieces

    @property
    def best_score(self) -> int:
        """A score that no document can exceed."""
        return int(self.weights.sum()) * (_PIECE_WHOLE + _PIECE_SHARE) // _PIECE_WHOLE


@dataclass(frozen=True)
class _Segment:
    arrays: tuple[NDArray[Any], ...]
    native: Any  # the same arrays, checked by the core
    removed: NDArray[np.uint32]  # positions of documents that do not count any more, ascending

    @classmethod
    def of(cls, arrays: tuple[NDArray[Any], ...]) -> _Segment:
        return cls(arrays, _native.WordSegment(*arrays), np.empty(0, np.uint32))

    @property
    def part(self) -> tuple[Any, NDArray[np.uint32]]:
        return self.native, self.removed

    @property
    def numbers(self) -> Numbers:
        return self.arrays[0]

    @property
    def size(self) -> int:
        """The number of documents and of entries of words."""
        return len(self.numbers) + len(self.arrays[4])

    def without(self, positions: NDArray[np.int64]) -> _Segment:
        """Return the segment without some documents."""
        removed = np.union1d(self.removed, positions.astype(np.uint32))
        fewer = replace(self, removed=removed)
        return fewer if len(removed) <= _MOST_REMOVED * len(self.numbers) else _merged([fewer])


def _merged(segments: Iterable[_Segment]) -> _Segment:
    return _Segment.of(_native.merge_words([one.part for one in segments]))


class WordIndex:
    """Postings of words. Not thread-safe, but copies are independent of each other."""

    def __init__(self, segments: Iterable[_Segment] = ()) -> None:
        self._segments = tuple(one for one in segments if len(one.numbers))
        self.notes: dict[str, Any] = {}

    @classmethod
    def build(cls, batches: Iterable[Entries]) -> WordIndex:
        """Return the index of documents with ascending numbers."""
        segments = [_segment(batch) for batch in batches]
        return cls([_merged(segments)] if segments else ())

    def __len__(self) -> int:
        return sum(len(one.numbers) - len(one.removed) for one in self._segments)

    @property
    def memory_bytes(self) -> int:
        """The size of the arrays."""
        return sum(array.nbytes for one in self._segments for array in one.arrays)

    def __copy__(self) -> WordIndex:
        return WordIndex(self._segments)

    def add(self, new: Entries) -> None:
        """Add documents with larger numbers than there are."""
        segments = [*self._segments, _segment(new)]
        while len(segments) > 1 and segments[-2].size <= _GROWTH * segments[-1].size:
            segments[-2:] = [_merged(segments[-2:])]
        self._segments = tuple(segments)

    def remove(self, numbers: Numbers) -> None:
        """Remove documents; raise if one is not there."""
        segments, left = [], distinct(numbers)
        for one in self._segments:
            places = np.minimum(np.searchsorted(one.numbers, left), len(one.numbers) - 1)
            there = (one.numbers[places] == left) & ~np.isin(places, one.removed)
            segments.append(one.without(places[there]) if there.any() else one)
            left = left[~there]
        if len(left):
            raise CorruptIndexError(f"the keyword index does not have the number {left[0]}")
        self._segments = tuple(one for one in segments if len(one.numbers))

    def search(self, query: QueryWords, k: int) -> FoundWords:
        """Return the k best documents for the first words of a query, ties by number."""
        parts = [one.part for one in self._segments]
        _, hashes, offsets, pieces = query.first(MOST_QUERY_WORDS)
        return FoundWords(*_native.search_words(parts, hashes, offsets, pieces, k))

    def save(self, path: Path, notes: Mapping[str, Any]) -> None:
        """Write the index to a file, whole or not at all."""
        whole = _merged(self._segments)
        arrays = dict(zip(_ARRAYS, whole.arrays, strict=True))
        write_container(path, {"index": _KIND, "notes": dict(notes)}, arrays)

    @classmethod
    def load(cls, path: Path) -> WordIndex:
        """Open a saved index, checked."""
        container: Container = open_container(path)
        if container.meta.get("index") != _KIND:
            raise FormatError(f"{path} is not a keyword index")
        container.verify_ahead()
        arrays = tuple(container.array(name, type, 1) for name, type in _ARRAYS.items())
        try:
            index = cls([_Segment.of(arrays)])
        except _native.BorderError as error:
            raise CorruptIndexError(f"{path} is damaged: {error}") from None
        notes = container.meta.get("notes")
        index.notes = notes if isinstance(notes, dict) else {}
        return index


def _segment(bags: Entries) -> _Segment:
    try:
        arrays = _native.build_words(bags.numbers, bags.offsets, bags.data)
    except _native.BorderError:
        raise damaged("the keyword index has entries of another format") from None
    return _Segment.of(arrays)
