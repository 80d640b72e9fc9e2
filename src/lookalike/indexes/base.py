"""What every index is and answers."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.errors import ArgumentError, CorruptIndexError
from lookalike.indexes.results import Matches, Neighbors, Pairs
from lookalike.signatures import as_signatures

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["DEFAULT_LIMIT", "Index"]

DEFAULT_LIMIT = 100_000_000
"""Results that `within` and `pairs` return at most unless told otherwise: some 2 GB."""


class Index(ABC):
    """A collection of signatures that can be searched.

    The signatures are used where they are and not copied; changing them changes the answers. All
    searches may be called from many threads at once, release the GIL, can be interrupted, and
    give the same answer for any number of threads.
    """

    kind: ClassVar[str]
    """The name of this sort of index in files."""

    def __init__(self, signatures: ArrayLike, ids: ArrayLike | None = None) -> None:
        self.signatures: NDArray[np.uint8] = as_signatures(signatures)
        self.ids: NDArray[np.int64] | None = None
        self._ascending = True
        self._container: Container | None = None
        if ids is not None:
            self.ids, self._ascending = _check_ids(ids, len(self.signatures))

    @abstractmethod
    def search(
        self, queries: ArrayLike, k: SupportsIndex, *, threads: SupportsIndex | None = None
    ) -> Neighbors:
        """Return the k nearest signatures of each query, nearest first, ties by id."""

    @abstractmethod
    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature at distance `radius` or less from each query.

        More than `limit` matches in all raise `ResultTooLargeError`.
        """

    @abstractmethod
    def pairs(
        self,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        threads: SupportsIndex | None = None,
    ) -> Pairs:
        """Return every pair of the collection at distance `radius` or less, each once.

        More than `limit` pairs raise `ResultTooLargeError`.
        """

    def __len__(self) -> int:
        return len(self.signatures)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} signatures of {self.bits} bits)"

    @property
    def bits(self) -> int:
        """How many bits each signature has."""
        return 8 * int(self.signatures.shape[1])

    @property
    def memory_bytes(self) -> int:
        """How many bytes the arrays take, in memory or mapped from a file."""
        return sum(array.nbytes for array in self._arrays().values())

    def stats(self) -> dict[str, Any]:
        """Return what there is to know about the index, in plain values."""
        return {
            "index": self.kind,
            "signatures": len(self),
            "bits": self.bits,
            "memory_bytes": self.memory_bytes,
            "file": str(self._container.path) if self._container else None,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file, whole or not at all; `la.load_index` opens it."""
        from lookalike.storage import write_container  # not needed to search, so not at import

        write_container(path, self._meta(), self._arrays())

    def verify(self) -> None:
        """Read the file behind the index and raise `CorruptIndexError` if it is damaged.

        An index that was not loaded from a file has nothing to verify.
        """
        if self._container:
            self._container.verify()

    @classmethod
    def from_container(cls, container: Container) -> Self:
        """Return the index that a container holds, its arrays mapped and not read."""
        index = cls.__new__(cls)
        index._restore(container)
        return index

    def _meta(self) -> dict[str, Any]:
        return {"index": self.kind, "ascending_ids": self._ascending}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {"signatures": self.signatures}
        if self.ids is not None:
            arrays["ids"] = self.ids
        return arrays

    def _restore(self, container: Container) -> None:
        self._container = container
        self.signatures = container.array("signatures", np.uint8, 2)
        self.ids = container.array("ids", np.int64, 1) if "ids" in container else None
        self._ascending = container.meta.get("ascending_ids") is not False
        if self.ids is not None and len(self.ids) != len(self.signatures):
            raise CorruptIndexError(
                f"{container.path} holds {len(self.signatures)} signatures and "
                f"{len(self.ids)} ids; it is damaged"
            )


def _check_ids(ids: ArrayLike, count: int) -> tuple[NDArray[np.int64], bool]:
    """Return valid ids and whether they ascend."""
    array = np.asarray(ids)
    if array.ndim != 1 or len(array) != count:
        raise ArgumentError(
            f"ids have shape {array.shape}, but there are {count} signatures; expected ({count},)"
        )
    if array.dtype.kind not in "iu" and count:
        raise ArgumentError(f"ids are {array.dtype}; expected whole numbers (int64)")
    if count and array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max:
        raise ArgumentError(f"the largest id is {array.max()}; int64 ends at 2**63 - 1")
    values = np.ascontiguousarray(array, dtype=np.int64)
    if count and values.min() < 0:
        raise ArgumentError(
            f"the smallest id is {values.min()}; expected 0 or more, because -1 marks empty places"
        )
    if bool((values[1:] > values[:-1]).all()):
        return values, True
    ordered = np.sort(values)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated):
        raise ArgumentError(f"the id {repeated[0]} is given more than once; ids must be distinct")
    return values, False
