"""Pairs of items as arrays, and what they mean for items that have exact copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike.display import TableColumns, Tabular

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

COLUMNS: dict[str, type[np.generic]] = {
    "left": np.int64,
    "right": np.int64,
    "similarity": np.float64,
    "distance": np.int32,
}

_REJECTED = 200
_PAIRS_AT_A_TIME = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class VerifiedPairs(Tabular):
    """Pairs of items as positions, left before right, sorted by (left, right)."""

    left: Ints
    right: Ints
    similarity: Floats
    distance: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, which: NDArray[np.generic] | slice) -> VerifiedPairs:
        return VerifiedPairs(
            self.left[which], self.right[which], self.similarity[which], self.distance[which]
        )

    def _columns(self, begin: int, end: int) -> TableColumns:
        return {name: getattr(self, name)[begin:end] for name in COLUMNS}

    def _row_count(self) -> int:
        return len(self)

    def _values(self) -> dict[str, object]:
        return {"pairs": len(self)}

    def moved(self, left: int, right: int) -> VerifiedPairs:
        """Return the same pairs with positions reduced by `left` and `right`."""
        return VerifiedPairs(self.left - left, self.right - right, self.similarity, self.distance)


def concatenated(parts: Sequence[VerifiedPairs]) -> VerifiedPairs:
    """Return all pairs in one, in the given order."""
    return VerifiedPairs(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS)
    )


def in_order(parts: Sequence[VerifiedPairs]) -> VerifiedPairs:
    """Return all pairs in one, sorted by (left, right), each once."""
    pairs = concatenated(parts)
    pairs = pairs[np.lexsort((pairs.right, pairs.left))]
    new = differing(pairs.left, pairs.right)
    return pairs if new.all() else pairs[new]


def merged(pairs: VerifiedPairs, more: VerifiedPairs) -> VerifiedPairs:
    """Return two sorted sets of pairs in one, as `in_order`; quick if `more` is small."""
    bound = 1 + max(int(some.right.max(initial=0)) for some in (pairs, more))
    keys, others = (some.left * bound + some.right for some in (pairs, more))
    places = np.searchsorted(keys, others)
    new = np.append(keys, -1)[places] != others
    if not new.any():
        return pairs
    return VerifiedPairs(
        *(
            np.insert(getattr(pairs, name), places[new], getattr(more, name)[new])
            for name in COLUMNS
        )
    )


def differing(left: Ints, right: Ints) -> Flags:
    """Return which of sorted pairs differ from the one before."""
    differs = np.ones(len(left), bool)
    differs[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    return differs


def most_similar(pairs: VerifiedPairs) -> VerifiedPairs:
    """Return the most similar pairs, at most 200."""
    order = np.lexsort((pairs.right, pairs.left, -pairs.similarity))
    return pairs[order[:_REJECTED]]


def known_similarities(pairs: VerifiedPairs, keys: Ints, count: int) -> Floats:
    """Return the similarities of the pairs `left * count + right`; NaN for unknown pairs."""
    known = pairs.left * count + pairs.right
    places = np.searchsorted(known, keys)
    there = np.append(known, -1)[places] == keys
    return np.where(there, np.append(pairs.similarity, np.nan)[places], np.nan)


def numbered(numbers: Ints, bound: int) -> tuple[Ints, Ints]:
    """Return distinct numbers, ascending, and the place of each number among them.

    All numbers are below `bound`. Nothing is sorted if that is not much more than their count.
    """
    if bound > 16 * len(numbers):
        found, places = np.unique(numbers, return_inverse=True)
        return found, places
    there = np.zeros(bound, bool)
    there[numbers] = True
    place = np.cumsum(there) - 1
    return np.flatnonzero(there), place[numbers]


def with_copies(pairs: VerifiedPairs, first: Ints, old: int) -> Iterator[VerifiedPairs]:
    """Yield the pairs and, for each new copy, a pair with its first, by (left, right)."""
    copies = np.flatnonzero(first != np.arange(len(first)))
    copies = copies[copies >= old]
    similarity, distance = np.ones(len(copies)), np.zeros(len(copies), np.int32)
    yield in_order([pairs, VerifiedPairs(first[copies], copies, similarity, distance)])


def count_with_copies(pairs: VerifiedPairs, first: Ints, old: int) -> int:
    """Return the number of pairs that `with_copies` yields."""
    return len(pairs) + int(np.count_nonzero((first != np.arange(len(first)))[old:]))


def count_every_pair(pairs: VerifiedPairs, first: Ints, old: int) -> int:
    """Return the number of pairs that `every_pair` yields."""
    all_sizes = np.bincount(first, minlength=len(first))
    old_sizes = np.bincount(first[:old], minlength=len(first))
    between = sum(
        int((sizes[pairs.left] * sizes[pairs.right]).sum()) * sign
        for sizes, sign in ((all_sizes, 1), (old_sizes, -1))
    )
    inside = all_sizes * (all_sizes - 1) // 2 - old_sizes * (old_sizes - 1) // 2
    return between + int(inside.sum())


def every_pair(pairs: VerifiedPairs, first: Ints, old: int) -> Iterator[VerifiedPairs]:
    """Yield every pair of items, by (left, right), about a million at a time.

    A copy is paired with other copies, and with all copies of the items its first is paired with.
    Two old items are never a pair.
    """
    count = len(first)
    if (first == np.arange(count)).all():
        for begin in range(0, max(1, len(pairs)), _PAIRS_AT_A_TIME):
            yield pairs[begin : begin + _PAIRS_AT_A_TIME]
        return
    members = np.argsort(first, kind="stable")
    sizes = np.bincount(first, minlength=count)
    begins = np.cumsum(sizes) - sizes
    # The partners of each first item, in both directions, and itself.
    texts = np.flatnonzero(sizes)
    one = np.concatenate([pairs.left, pairs.right, texts])
    order = np.argsort(one, kind="stable")
    two = np.concatenate([pairs.right, pairs.left, texts])[order]
    similarity = np.concatenate([pairs.similarity] * 2 + [np.ones(len(texts))])[order]
    distance = np.concatenate([pairs.distance] * 2 + [np.zeros(len(texts), np.int32)])[order]
    degrees = np.bincount(one, minlength=count)
    edges = np.cumsum(degrees) - degrees
    partners = np.bincount(one[order], sizes[two], minlength=count).astype(np.int64)[first]
    parts = np.cumsum(partners) // _PAIRS_AT_A_TIME
    bounds = np.flatnonzero(np.diff(parts, prepend=-1, append=-1))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        documents = np.arange(begin, end)
        left, edge = _spread(documents, edges[first[documents]], degrees[first[documents]])
        place, member = _spread(np.arange(len(edge)), begins[two[edge]], sizes[two[edge]])
        left, edge, right = left[place], edge[place], members[member]
        wanted = np.flatnonzero((right > left) & (right >= old))
        wanted = wanted[np.lexsort((right[wanted], left[wanted]))]
        left, edge, right = left[wanted], edge[wanted], right[wanted]
        yield VerifiedPairs(left, right, similarity[edge], distance[edge])


def _spread(values: Ints, begins: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return each value `count` times, beside the places from its beginning on."""
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(values, counts), np.repeat(begins, counts) + within
