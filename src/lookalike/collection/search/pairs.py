"""All pairs of documents within a radius."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import thread_count
from lookalike.collection.answers import Pair
from lookalike.collection.documents import Seen, check_row, damaged, seen
from lookalike.collection.stores.base import State, View
from lookalike.errors import ResultTooLargeError
from lookalike.indexes.all_pairs import pairs_of_rows


def document_pairs(
    view: View,
    state: State,
    radius: int,
    limit: int,
    threads: int | None,
    recall: float | None = None,
    versions: dict[str, Seen] | None = None,
) -> list[Pair]:
    """Return every pair, each once, by (left, right); with a `recall`, each with that chance.

    The versions of the documents that were compared are added to `versions`.
    """
    found = view.whole_table(state)
    numbers = found.numbers
    if not len(numbers):
        return []
    near = pairs_of_rows(
        found.signatures, numbers, radius, limit, False, thread_count(threads), recall=recall
    )
    touched = np.unique(np.concatenate([near.left, near.right]))
    wanted = touched if state.documents == state.signatures else numbers
    ids = _ids(view, state, wanted, versions)
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


def _ids(
    view: View, state: State, numbers: NDArray[np.int64], versions: dict[str, Seen] | None
) -> dict[int, list[str]]:
    """Return the ids of the documents of each signature; of all, or of those that have one each."""
    ids: dict[int, list[str]] = {number: [] for number in numbers.tolist()}
    names = set()
    for row, signature in view.documents_of(state, numbers, None, False):
        check_row(row, signature, text=False)
        ids.setdefault(row.signature, []).append(row.id)
        names.add(row.id)
        if versions is not None:
            versions[row.id] = seen(row)
    expected = state.documents - state.signatures + len(numbers)
    if len(ids) > len(numbers) or not all(ids.values()):
        raise damaged("a signature has no document")
    if sum(map(len, ids.values())) != expected or len(names) != expected:
        raise damaged(f"there are {len(names)} documents, not {expected}")
    return ids


def _pair(one: str, two: str, distance: int) -> Pair:
    return Pair(min(one, two), max(one, two), distance)
