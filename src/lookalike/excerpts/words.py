"""Where the words of a text are, in characters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.features.documents import text_batches
from lookalike.indexes.results import as_int64

__all__ = ["WordPlaces", "word_places"]


class WordPlaces(NamedTuple):
    """Begin and end of each word of a text."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    def characters(self, begin: int, end: int) -> tuple[int, int]:
        """Return the characters from one word to before another one; there is a word between."""
        return int(self.begins[begin]), int(self.ends[end - 1])


def word_places(text: str) -> WordPlaces:
    """Return where the words of a text are: those of `Words()`."""
    (documents,) = text_batches([text], None)
    begins, ends = _native.word_places(documents, 0)
    return WordPlaces(as_int64(begins), as_int64(ends))
