"""What an index with keys answers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["KeyMatch", "KeyMatches"]


class KeyMatch(NamedTuple):
    """A key that was found, and how similar it is to the query."""

    key: Any
    similarity: float


@dataclass(frozen=True, eq=False)
class KeyMatches:
    """What each query found: most similar first, then as inserted.

    The matches of query i are at `offsets[i]` to `offsets[i + 1]`; `matches[i]` gives them as a
    list of `KeyMatch`.
    """

    offsets: NDArray[np.int64]
    """int64[queries + 1]"""
    similarities: NDArray[np.float64]
    """Estimates, or exact ones where `verified`."""
    verified: bool
    """Whether the similarities are those of the documents, and not estimates."""
    rows: NDArray[np.int64]
    """Where the index had them: smaller is earlier."""
    all_keys: Sequence[Hashable]
    exact: bool = False
    """Whether nothing above the threshold is missing: bands promise a recall, and no more."""

    @cached_property
    def keys(self) -> list[Any]:
        """The keys of all matches."""
        return list(map(self.all_keys.__getitem__, self.rows.tolist()))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, query: int) -> list[KeyMatch]:
        query = range(len(self))[query]
        part = slice(int(self.offsets[query]), int(self.offsets[query + 1]))
        return list(map(KeyMatch, self.keys[part], self.similarities[part].tolist()))

    def __iter__(self) -> Iterator[list[KeyMatch]]:
        return (self[query] for query in range(len(self)))

    def __repr__(self) -> str:
        return f"KeyMatches(queries={len(self)}, matches={len(self.rows)}, exact={self.exact})"

    def kept(self, which: NDArray[np.bool_]) -> KeyMatches:
        """Return only these matches."""
        before = np.concatenate([[0], np.cumsum(which)])
        return KeyMatches(
            before[self.offsets],
            self.similarities[which],
            self.verified,
            self.rows[which],
            self.all_keys,
        )
