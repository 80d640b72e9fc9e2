"""Rows that stay in memory from the first reading to the next, if there is room for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lookalike.corpora.base import Corpus, Problems, Rows


@dataclass
class HeldRows:
    """Rows of a corpus with all columns, which need not be decoded again while it is the same.

    Where some were bad nothing is held: whoever reads again is told of these again.
    """

    room: int
    """Bytes that they may have."""
    _batches: list[Rows] = field(default_factory=list)
    _identity: list[Any] | None = None

    def held(self, corpus: Corpus) -> bool:
        """Return whether these are all rows of it, as it is now."""
        return self._identity is not None and self._identity == corpus.identity()

    def given_up(self) -> Iterator[Rows]:
        """Yield them, and hold none any more: memory is free as soon as they were worked on."""
        batches, self._batches, self._identity = deque(self._batches), [], None
        while batches:
            yield batches.popleft()

    def holding(
        self, corpus: Corpus, batches: Iterator[Rows], problems: Problems
    ) -> Iterator[Rows]:
        """Yield the same, and hold them when all have passed; too many are let go."""
        identity, bad, size = corpus.identity(), problems.bad, 0
        passed: list[Rows] = []
        for batch in batches:
            size += batch.nbytes
            if size <= self.room:
                passed.append(batch)
            else:
                passed.clear()
            yield batch
        if size <= self.room and problems.bad == bad and identity == corpus.identity():
            self._batches, self._identity = passed, identity
