"""Strings in two arrays: their bytes, and where each string ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError, CorruptIndexError

if TYPE_CHECKING:
    from lookalike.storage.container import Container


class Strings(Sequence[str]):
    """A sequence of strings in two arrays, which may be mapped; strings are decoded when used.

    It is equal to any sequence of the same strings. Invalid ends raise `CorruptIndexError`.
    """

    def __init__(
        self, ends: NDArray[np.int64], data: NDArray[np.uint8], container: Container | None = None
    ) -> None:
        self._ends = ends
        self._data = data
        self._container = container

    @classmethod
    def of(cls, strings: Iterable[str]) -> Strings:
        """Return these strings; a `Strings` unchanged."""
        if isinstance(strings, Strings):
            return strings
        try:
            each = iter(strings)
        except TypeError:
            raise ArgumentError(
                f"expected a list of strings, got a {type(strings).__name__}"
            ) from None
        encoded = []
        for position, string in enumerate(each):
            try:
                encoded.append(string.encode())
            except (AttributeError, UnicodeEncodeError):
                raise ArgumentError(
                    f"item {position} is {string!r}; expected a string that can be encoded as UTF-8"
                ) from None
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        return cls(np.cumsum(lengths), np.frombuffer(b"".join(encoded), np.uint8))

    @classmethod
    def restored(cls, container: Container, prefix: str) -> Strings | None:
        """Return the strings in a container; None if there are none."""
        if f"{prefix}_ends" not in container:
            return None
        ends = container.array(f"{prefix}_ends", np.int64, 1)
        data = container.array(f"{prefix}_bytes", np.uint8, 1)
        return cls(ends, data, container)

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays to save, by name; verified, if they come from a file."""
        if self._container:
            self._container.verify_rest()
        return {f"{prefix}_ends": self._ends, f"{prefix}_bytes": self._data}

    def __reduce__(self) -> tuple[type[Strings], tuple[NDArray[Any], ...]]:
        return type(self), tuple(self.arrays("").values())  # with the content of a mapped file

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = range(len(self))[index]
        begin = int(self._ends[position - 1]) if position else 0
        end = int(self._ends[position])
        if not 0 <= begin <= end <= len(self._data):
            where = self._container.path if self._container else "strings"
            raise CorruptIndexError(
                f"{where}: the string {position} is at bytes {begin} to {end} of "
                f"{len(self._data)}; the file is damaged"
            )
        return self._data[begin:end].tobytes().decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return (self[position] for position in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        shown = [*map(repr, self[:3]), *(["..."] if len(self) > 3 else [])]
        return f"Strings([{', '.join(shown)}])"
