"""All pairs of documents within a radius."""

from __future__ import annotations

import numpy as np

from lookalike.checks import thread_count
from lookalike.collection.answers import Pair
from lookalike.collection.stores.base import State, View
from lookalike.errors import ResultTooLargeError
from lookalike.indexes.all_pairs import pairs_of_rows

__all__ = ["document_pairs"]


def document_pairs(
    view: View, state: State, radius: int, limit: int, threads: int | None
) -> list[Pair]:
    """Return every pair, each once, by (left, right)."""
    parts = list(view.signatures_after(state, -1))
    if not parts:
        return []
    signatures = np.concatenate([part.signatures for part in parts])
    numbers = np.concatenate([part.numbers for part in parts])
    near = pairs_of_rows(signatures, numbers, radius, limit, False, thread_count(threads))
    touched = np.unique(np.concatenate([near.left, near.right]))
    ids: dict[int, list[str]] = {}
    several = state.documents > state.signatures
    wanted = numbers if several else touched
    for row in view.documents_of(state, wanted, None, False):
        ids.setdefault(row.signature, []).append(row.id)
    sizes = {number: len(names) for number, names in ids.items()}
    left, right = near.left.tolist(), near.right.tolist()
    total = sum(size * (size - 1) // 2 for size in sizes.values())
    total += sum(sizes[one] * sizes[two] for one, two in zip(left, right, strict=True))
    if total > limit:
        raise ResultTooLargeError(
            f"there are {total} pairs within radius {radius}, more than limit={limit}; "
            "ask with a smaller radius, or raise the limit"
        )
    result = [
        _pair(one, two, 0)
        for names in ids.values()
        for place, one in enumerate(names)
        for two in names[:place]
    ]
    result += [
        _pair(one, two, distance)
        for a, b, distance in zip(left, right, near.distances.tolist(), strict=True)
        for one in ids[a]
        for two in ids[b]
    ]
    result.sort(key=lambda pair: (pair.left, pair.right))
    return result


def _pair(one: str, two: str, distance: int) -> Pair:
    return Pair(min(one, two), max(one, two), distance)
