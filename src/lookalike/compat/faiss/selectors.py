"""Selectors: which ids a search may return, or `remove_ids` take out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import as_array
from lookalike.errors import ArgumentError
from lookalike.shown import brief

__all__ = [
    "IDSelector",
    "IDSelectorAll",
    "IDSelectorAnd",
    "IDSelectorArray",
    "IDSelectorBatch",
    "IDSelectorBitmap",
    "IDSelectorNot",
    "IDSelectorOr",
    "IDSelectorRange",
    "IDSelectorTranslated",
    "IDSelectorXOr",
    "SearchParameters",
    "as_int64",
]

Mask = NDArray[np.bool_]


def as_int64(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Return whole numbers as one dimension of int64, or say what came instead."""
    array = as_array(name, values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ArgumentError(
            f"{name} are {array.dtype} of shape {array.shape}; expected whole numbers in one "
            "dimension"
        )
    return np.ascontiguousarray(array, np.int64)


class IDSelector(ABC):
    """A set of ids."""

    @abstractmethod
    def members(self, ids: NDArray[np.int64]) -> Mask:
        """Return which of the ids are in the set."""

    def is_member(self, id: SupportsIndex) -> bool:
        """Return whether an id is in the set."""
        return bool(self.members(np.array([id.__index__()], np.int64))[0])


class IDSelectorAll(IDSelector):
    """Every id."""

    def members(self, ids: NDArray[np.int64]) -> Mask:
        """Return True for each."""
        return np.ones(len(ids), bool)


class IDSelectorArray(IDSelector):
    """The ids of an array."""

    def __init__(self, ids: ArrayLike) -> None:
        self.ids = as_int64("ids", ids)

    def members(self, ids: NDArray[np.int64]) -> Mask:
        """Return which are in the array."""
        return np.isin(ids, self.ids)


class IDSelectorBatch(IDSelectorArray):
    """The same; in faiss a hash table, where the other is a list."""


class IDSelectorRange(IDSelector):
    """Ids from `imin` up to, and without, `imax`."""

    def __init__(
        self, imin: SupportsIndex, imax: SupportsIndex, assume_sorted: bool = False
    ) -> None:
        self.imin, self.imax = imin.__index__(), imax.__index__()
        self.assume_sorted = assume_sorted

    def members(self, ids: NDArray[np.int64]) -> Mask:
        """Return which are in the range."""
        return (ids >= self.imin) & (ids < self.imax)


class IDSelectorBitmap(IDSelector):
    """Ids whose bit is set: bit `id % 8` of byte `id // 8`."""

    def __init__(self, bitmap: ArrayLike) -> None:
        array = as_array("bitmap", bitmap)
        if array.ndim != 1 or array.dtype != np.uint8:
            raise ArgumentError(f"bitmap is {brief(bitmap)}; expected uint8 in one dimension")
        self._set = np.unpackbits(array, bitorder="little").astype(bool)

    def members(self, ids: NDArray[np.int64]) -> Mask:
        """Return which have their bit set."""
        inside = (ids >= 0) & (ids < len(self._set))
        found = np.zeros(len(ids), bool)
        found[inside] = self._set[ids[inside]]
        return found


class IDSelectorNot(IDSelector):
    """What is not in another set."""

    def __init__(self, sel: IDSelector) -> None:
        self.sel = sel

    def members(self, ids: NDArray[np.int64]) -> Mask:
        """Return which are not in the other."""
        return ~self.sel.members(ids)


class _Both(IDSelector):
    def __init__(self, lhs: IDSelector, rhs: IDSelector) -> None:
        self.lhs, self.rhs = lhs, rhs


class IDSelectorAnd(_Both):
    """What is in both sets."""

    def members(self, ids: NDArray[np.int64]) -> Mask:
        """Return which are in both."""
        return self.lhs.members(ids) & self.rhs.members(ids)


class IDSelectorOr(_Both):
    """What is in one of two sets, or both."""

    def members(self, ids: NDArray[np.int64]) -> Mask:
        """Return which are in one of them."""
        return self.lhs.members(ids) | self.rhs.members(ids)


class IDSelectorXOr(_Both):
    """What is in one of two sets and not in both."""

    def members(self, ids: NDArray[np.int64]) -> Mask:
        """Return which are in exactly one."""
        return self.lhs.members(ids) ^ self.rhs.members(ids)


class IDSelectorTranslated(IDSelector):
    """Positions whose id, `id_map[position]`, is in another set."""

    def __init__(self, id_map: ArrayLike, sel: IDSelector) -> None:
        self.id_map, self.sel = as_int64("id_map", id_map), sel

    def members(self, ids: NDArray[np.int64]) -> Mask:
        """Return which are positions of ids in the set."""
        return self.sel.members(self.id_map[ids])


class SearchParameters:
    """What a search is told beside the queries: `sel`, which ids it may return."""

    def __init__(self, sel: IDSelector | None = None, **others: Any) -> None:
        if others:
            raise ArgumentError(f"{sorted(others)} are unknown here; expected sel alone")
        if sel is not None and not isinstance(sel, IDSelector):
            raise ArgumentError(f"sel is {brief(sel)}; expected an IDSelector or None")
        self.sel = sel
