"""The tables of a `MinHashLSH`, which datasketch keeps and people read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookalike.compat.datasketch.lsh import MinHashLSH

__all__ = ["HashTable", "Keys"]


class _View(ABC):
    """A table of datasketch's, as it would be: computed when it is asked for."""

    @abstractmethod
    def _contents(self) -> dict[Any, Any]: ...

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._contents())

    def __len__(self) -> int:
        return len(self._contents())

    def __contains__(self, key: Any) -> bool:
        return key in self._contents()

    has_key = __contains__
    size = __len__

    def get(self, key: Any) -> Any:
        """Return what is under a key."""
        return self._contents().get(key, [])

    def getmany(self, *keys: Any) -> list[Any]:
        """Return what is under each key."""
        return [self.get(key) for key in keys]

    def keys(self) -> list[Any]:
        """Return all keys."""
        return list(self)

    def itemcounts(self) -> dict[Any, int]:
        """Return how much is under each key."""
        return {key: len(values) for key, values in self._contents().items()}


class Keys(_View):
    """The bands of each key, as bytes."""

    def __init__(self, lsh: MinHashLSH) -> None:
        self._lsh = lsh

    def _contents(self) -> dict[Any, Any]:
        return self._lsh._rows

    def get(self, key: Any) -> list[bytes]:
        """Return the bands under a key."""
        rows = self._lsh._rows.get(key, [])
        return [band for bands in self._lsh._bands(rows) for band in bands]


class HashTable(_View):
    """The keys of each band's values."""

    def __init__(self, lsh: MinHashLSH, band: int) -> None:
        self._lsh = lsh
        self._band = band

    def _contents(self) -> dict[Any, Any]:
        return self._lsh._tables()[self._band]

    def get(self, key: Any) -> set[Any]:
        """Return the keys that have these values."""
        found: set[Any] = self._contents().get(key, set())
        return found
