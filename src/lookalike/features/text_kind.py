"""Kinds of features that texts have, whoever finds them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from lookalike import _native
from lookalike.features.base import BATCH, FeatureKind
from lookalike.features.documents import text_batches

__all__ = ["TextKind"]


class TextKind(FeatureKind, abstract=True):
    """A kind whose documents are texts."""

    def is_document(self, value: Any) -> bool:
        """Return whether this is one text."""
        return isinstance(value, str)

    def sources(self, documents: Any, size: int | None = BATCH) -> Iterator[_native.Source]:
        """Yield batches of documents; see `FeatureKind.sources`."""
        position = 0
        for batch in text_batches(documents, size):
            yield self.batch_source(batch, position)
            position += len(batch)

    @abstractmethod
    def batch_source(self, batch: _native.Documents, position: int) -> _native.Source:
        """Return texts as the core reads them; messages count them from `position` on."""
