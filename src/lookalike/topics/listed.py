"""The features of documents, and how often each of them occurs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.pairs import Ints
from lookalike.features import FeatureKind

_BRIEF = 300.0
"""Words of a document from which a word has to be repeated to count."""


@dataclass(frozen=True, eq=False)
class Listed:
    """The features of some documents, each once, with the number of its occurrences."""

    offsets: Ints
    features: NDArray[np.uint64]
    counts: NDArray[np.float64]

    @classmethod
    def of(cls, kind: FeatureKind, documents: _native.Documents, threads: int) -> Listed:
        """Read the features of documents."""
        count = _native.WeightKind.count
        return cls(*_native.list_features(kind.source(documents), count, None, threads))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def rows(self) -> Ints:
        """The document of each feature."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def lengths(self) -> NDArray[np.float64]:
        """The number of occurrences in each document."""
        return np.bincount(self.rows, self.counts, minlength=len(self)).astype(np.float64)

    def without(self, features: NDArray[np.uint64]) -> Listed:
        """Return the others; those that are left out ascend."""
        if not len(features):
            return self
        kept = ~is_among(self.features, features)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
        return Listed(before[self.offsets], self.features[kept], self.counts[kept])

    def part(self, begin: int, end: int) -> Listed:
        """Return the features of the documents from `begin` to `end`."""
        offsets = self.offsets[begin : end + 1]
        inside = slice(int(offsets[0]), int(offsets[-1]))
        return Listed(offsets - offsets[0], self.features[inside], self.counts[inside])

    @classmethod
    def joined(cls, parts: list[Listed]) -> Listed:
        """Return the features of all documents of several parts."""
        begins = np.cumsum([0, *(len(part.features) for part in parts)])
        offsets = [part.offsets[1:] + begin for part, begin in zip(parts, begins, strict=False)]
        return cls(
            np.concatenate([np.zeros(1, np.int64), *offsets]),
            np.concatenate([np.empty(0, np.uint64), *(part.features for part in parts)]),
            np.concatenate([np.empty(0), *(part.counts for part in parts)]),
        )


def prominence(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the number of occurrences from which a word counts for documents of these lengths."""
    least: NDArray[np.float64] = 1.0 + np.floor(np.sqrt(lengths / _BRIEF))
    return least


def are_long(lengths: NDArray[np.float64]) -> bool:
    """Return whether words have to be repeated to count in most documents of these lengths."""
    return len(lengths) > 0 and bool(np.median(lengths) >= _BRIEF)


def places_of(features: NDArray[np.uint64], some: NDArray[np.uint64]) -> Ints:
    """Return where each feature is among some others, which are different; -1 if it is not."""
    places = np.empty(len(features), np.int64)
    _native.places_of(np.ascontiguousarray(features), np.ascontiguousarray(some), places)
    return places


def is_among(features: NDArray[np.uint64], some: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which features are among some others, which are different."""
    return places_of(features, some) >= 0
