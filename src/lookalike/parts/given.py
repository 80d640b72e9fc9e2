"""What callers give: items, signatures of their parts, and positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import as_array
from lookalike.errors import ArgumentError, Said, SignatureError
from lookalike.shown import brief
from lookalike.signatures import as_signatures

__all__ = ["FARTHEST", "Item", "all_positions", "check_distinct", "item_id", "listed", "rows_of"]

FARTHEST = 2**59
"""Positions go up to here, on both sides of 0, so that differences can be counted."""

Item = str | int


def listed(name: str, values: Iterable[Any]) -> list[Any]:
    """Return what comes one for each item or query."""
    if isinstance(values, str | bytes):
        raise ArgumentError(Said(name), f" are {brief(values)}; expected a list, one for each")
    try:
        return list(values)
    except TypeError:
        raise ArgumentError(
            Said(name), f" are {brief(values)}; expected a list, one for each"
        ) from None


def item_id(item: object) -> Item:
    """Return what an item is called: NumPy's numbers and strings as Python's."""
    if isinstance(item, np.str_ | np.integer):
        item = item.item()
    if isinstance(item, bool) or not isinstance(item, str | int):
        raise ArgumentError(
            f"an item is called {brief(item)} of type {type(item).__name__}; expected a string or "
            "a whole number"
        )
    return item if type(item) in (str, int) else str(item) if isinstance(item, str) else int(item)


def check_distinct(items: Sequence[Item], outcome: str) -> None:
    """Refuse items of which one is there twice, and say what came of it."""
    seen: set[Item] = set()
    for one in items:
        if one in seen:
            raise ArgumentError(f"the item {brief(one)} is given more than once; {outcome}")
        seen.add(one)


def rows_of(signatures: ArrayLike, bits: int) -> NDArray[np.uint8]:
    """Return the signatures of parts; none at all may have any shape.

    Beside what counts as signatures everywhere, numbers of as many bits: `uint32[n]` of 32.
    """
    words = as_array("signatures", signatures)
    if words.size == 0 and words.ndim <= 2:
        return np.empty((0, bits // 8), np.uint8)
    if words.ndim == 1 and words.dtype.kind == "u" and 8 * words.dtype.itemsize == bits:
        little = np.ascontiguousarray(words.astype(words.dtype.newbyteorder("<")))
        words = little.view(np.uint8).reshape(-1, bits // 8)
    rows = as_signatures(words)
    if 8 * rows.shape[1] != bits:
        raise SignatureError(
            f"signatures have {8 * rows.shape[1]} bits, the index has {bits}; sign both with the "
            "same signer"
        )
    return rows


def all_positions(
    name: str, offsets: Iterable[ArrayLike | None] | None, counts: Sequence[int]
) -> list[NDArray[np.int64]]:
    """Return positions of the parts of several items or queries."""
    if offsets is None:
        return [np.arange(count) for count in counts]
    several = listed(name, offsets)
    if len(several) != len(counts):
        raise ArgumentError(Said(name), f" are those of {len(several)}; expected {len(counts)}")
    return [
        np.arange(count) if one is None else _positions(name, one, count)
        for one, count in zip(several, counts, strict=True)
    ]


def _positions(name: str, offsets: ArrayLike, count: int) -> NDArray[np.int64]:
    array = as_array(name, offsets)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or array.shape != (count,):
        raise ArgumentError(
            Said(name),
            f" are {array.dtype} of shape {array.shape}, {brief(offsets)}; expected {count} whole "
            "numbers, one for each part",
        )
    if count and not -FARTHEST <= int(array.min()) <= int(array.max()) <= FARTHEST:
        raise ArgumentError(
            Said(name), f" are {brief(offsets)}; expected numbers from -2**59 to 2**59"
        )
    return array.astype(np.int64)
