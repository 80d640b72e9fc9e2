"""Rows under keys: the core's table, and which row belongs to which key now."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import ArgumentError
from lookalike.indexes.bands import BandLayout
from lookalike.shown import brief

__all__ = ["KeyedRows", "as_keys"]

_FEW = 1024
_COPIED_AT_A_TIME = 1 << 14


class _Table:
    """The core's table, and the key of each of its rows; both only grow.

    A search goes on in the table that it began with, whatever happens meanwhile.
    """

    def __init__(self, permutations: int, layout: BandLayout) -> None:
        seed = secrets.randbits(64)  # so that nobody can make rows that all lie in one place
        self.rows = _native.BandTable(permutations, layout.bands, layout.rows, False, seed)
        self.keys: list[Any] = []

    def append(self, keys: list[Any], rows: NDArray[np.uint32]) -> None:
        first = len(self.keys)
        self.keys.extend(keys)  # before the rows: whoever searches may find them at once
        try:
            self.rows.insert(rows)
        except BaseException:
            del self.keys[first:]
            raise


class KeyedRows:
    """Rows that come and go under keys; whoever writes waits for those who write."""

    def __init__(self, permutations: int, layout: BandLayout) -> None:
        self._permutations = permutations
        self._layout = layout
        self._writing = threading.Lock()
        self._table = _Table(permutations, layout)
        self._numbers: dict[Any, int] = {}  # of rows in the table; in order of insertion

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, key: object) -> bool:
        try:
            return key in self._numbers
        except TypeError:
            raise _unhashable(key) from None

    def keys(self) -> list[Any]:
        """Return all keys, as inserted."""
        return list(self._numbers)

    @property
    def memory_bytes(self) -> int:
        """How many bytes rows and bands take."""
        return self._table.rows.memory_bytes

    def row(self, key: Hashable) -> NDArray[np.uint32]:
        """Return the row under a key."""
        with self._writing:
            row: NDArray[np.uint32] = self._values(np.array([self._number(key)]))[0]
            return row

    def contents(self) -> tuple[list[Any], NDArray[np.uint32]]:
        """Return keys and rows, as inserted."""
        with self._writing:
            return self.keys(), self._values(self._all_numbers())

    def insert(self, keys: list[Any], rows: NDArray[np.uint32], replace: bool = False) -> None:
        """Insert rows under keys that are not there yet, or are to be replaced; all or none."""
        if len(keys) != len(rows):
            raise ArgumentError(f"there are {len(keys)} keys and {len(rows)} rows")
        with self._writing:
            first = len(self._table.keys)
            try:
                new = dict(zip(keys, range(first, first + len(keys)), strict=True))
            except TypeError:
                raise _unhashable(next(key for key in keys if not _is_hashable(key))) from None
            if len(new) != len(keys):
                raise ArgumentError("a key is given more than once; nothing was inserted")
            old: list[Any] = []
            if not self._numbers.keys().isdisjoint(new):
                old = [key for key in keys if key in self._numbers]
            if old and not replace:
                raise ArgumentError(
                    f"the key {brief(old[0])} is in the index already; remove it first, or pass "
                    "replace=True; nothing was inserted"
                )
            self._table.append(keys, rows)
            if old:
                self._table.rows.remove(np.array([self._numbers.pop(key) for key in old]))
            self._numbers.update(new)
            self._tidy()

    def remove(self, keys: list[Any]) -> None:
        """Remove rows under keys; all or none."""
        with self._writing:
            numbers = [self._number(key) for key in keys]
            if len(set(numbers)) != len(numbers):
                raise ArgumentError("a key is given more than once; nothing was removed")
            self._table.rows.remove(np.array(numbers, np.int64))
            for key in keys:
                del self._numbers[key]
            self._tidy()

    def query(
        self, queries: NDArray[np.uint32], least: int, limit: int, threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], list[Any]]:
        """Return offsets, rows and numbers of equal values, as the core does; and all keys."""
        table = self._table
        bands = self._layout.bands
        offsets, rows, equal = table.rows.query(queries, bands, least, limit, threads)
        return offsets.view(np.int64), rows.view(np.int64), equal, table.keys

    def _number(self, key: Hashable) -> int:
        try:
            return self._numbers[key]
        except KeyError:
            raise ArgumentError(f"the key {brief(key)} is not in the index") from None
        except TypeError:
            raise _unhashable(key) from None

    def _all_numbers(self) -> NDArray[np.int64]:
        return np.fromiter(self._numbers.values(), np.int64, len(self._numbers))

    def _values(self, numbers: NDArray[np.int64]) -> NDArray[np.uint32]:
        rows = np.empty((len(numbers), self._permutations), np.uint32)
        self._table.rows.copy(numbers, rows)
        return rows

    def _tidy(self) -> None:
        """Begin a new table when more rows were removed than are there.

        Each removal pays for a constant share of that, however many rows share a band.
        """
        if self._table.rows.removed <= max(_FEW, len(self._numbers)):
            return
        table = _Table(self._permutations, self._layout)
        keys, numbers = self.keys(), self._all_numbers()
        for begin in range(0, len(keys), _COPIED_AT_A_TIME):
            part = slice(begin, begin + _COPIED_AT_A_TIME)
            table.append(keys[part], self._values(numbers[part]))
        self._numbers = dict(zip(keys, range(len(keys)), strict=True))
        self._table = table


def as_keys(keys: Iterable[Hashable]) -> list[Any]:
    """Return keys in a list; those of an array as Python's own."""
    if isinstance(keys, np.ndarray) and keys.ndim == 1:
        return list(keys.tolist())
    try:
        return list(keys)
    except TypeError:
        raise ArgumentError(
            f"keys are {brief(keys)} of type {type(keys).__name__}; expected a list of keys"
        ) from None


def _is_hashable(key: object) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _unhashable(key: object) -> ArgumentError:
    return ArgumentError(
        f"the key {brief(key)} of type {type(key).__name__} cannot be looked up; expected a "
        "string, a number, bytes, a tuple of these or anything else that can be hashed"
    )
