"""The rows of a corpus that are to be written, counted as they are read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import Corpus, Problems, arrow_positions
from lookalike.errors import ArgumentError, DocumentError

if TYPE_CHECKING:
    import pyarrow

Added = Callable[[int, int], "dict[str, pyarrow.Array]"]
"""Columns to add to the rows from one position to another."""

_ROWS_A_PIECE = 128


@dataclass
class KeptRows:
    """The rows of a corpus that are to be kept, counted as they pass."""

    corpus: Corpus
    keep: NDArray[np.bool_] | None
    added: Added | None
    problems: Problems
    identity: list[Any] | None
    _position: int = 0

    def __post_init__(self) -> None:
        twice = sorted(set(self.added(0, 0)) & set(self.corpus.columns())) if self.added else []
        if twice:
            raise ArgumentError(
                f"{self.corpus.name} has a column {twice[0]!r} already, which would be added; "
                "rename it first"
            )

    def next(self, count: int) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Return which of the next `count` rows are kept, and the columns that are added to all."""
        begin, end = self._position, self._position + count
        self._position = end
        if self.keep is not None and end > len(self.keep):
            raise DocumentError(
                f"{self.corpus.name} has more rows than when it was read before; it must not "
                "change meanwhile"
            )
        chosen = np.arange(count) if self.keep is None else np.flatnonzero(self.keep[begin:end])
        return chosen, self.added(begin, end) if self.added else {}

    def finish(self) -> None:
        """Check that the corpus is what it was, now that all of it has been read again."""
        if self.keep is not None and self._position != len(self.keep):
            raise DocumentError(
                f"{self.corpus.name} has {self._position} rows, {len(self.keep)} when it was read "
                "before; it must not change meanwhile"
            )
        if self.identity is not None:
            self.corpus.check_identity(self.identity)

    def tables(self) -> Iterator[Any]:
        """Yield batches with all columns."""
        for batch in self.corpus.rows(self.problems):
            chosen, added = self.next(len(batch))
            for name, values in added.items():
                batch = batch.append_column(name, values)
            yield from _only(batch, chosen)
        self.finish()


class RowsOfShard(KeptRows):
    """Those of one file of several, which follow those of the files before it."""

    def __init__(self, shard: Corpus, all_rows: KeptRows) -> None:
        super().__init__(shard, all_rows.keep, all_rows.added, all_rows.problems, None)
        self._all = all_rows

    def next(self, count: int) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Count them among all."""
        return self._all.next(count)

    def finish(self) -> None:
        """Leave it to the end of the last."""


def _only(batch: Any, chosen: NDArray[np.int64]) -> Iterator[Any]:
    """Yield these rows of a batch: as they lie, or copied where that would be many pieces."""
    breaks = np.flatnonzero(np.diff(chosen) != 1) + 1
    if not len(chosen) or len(breaks) > len(chosen) // _ROWS_A_PIECE:
        yield batch.take(arrow_positions(chosen))
        return
    for run in np.split(chosen, breaks):
        yield batch.slice(int(run[0]), len(run))
