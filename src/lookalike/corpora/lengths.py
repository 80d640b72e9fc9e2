"""Which features fit the documents of a corpus: their lengths decide, unless features are given.

Word n-grams of titles, names or addresses are few, and a typo changes most of them. So a corpus of
short documents is compared by `la.ShortText`. Every document counts, not only a sample, and only
the number of short ones matters: neither threads nor partitions nor the order change the choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import compute, pa

SHORT_CHARACTERS = 120
"""The most characters (code points) of a short document."""
SHORT_SHARE = 0.9
"""The least share of short documents in a corpus that is compared by characters."""
_LONGEST_CHARACTER = 4  # bytes of UTF-8
_AT_A_TIME = 1 << 16


@dataclass(frozen=True)
class TextLengths:
    """How many documents of a corpus are short, of those that have a text."""

    short: int = 0
    documents: int = 0

    def __add__(self, other: TextLengths) -> TextLengths:
        return TextLengths(self.short + other.short, self.documents + other.documents)

    @property
    def features(self) -> str:
        """The features that fit: "short" or "words"."""
        fits = self.documents > 0 and self.short / self.documents >= SHORT_SHARE
        return "short" if fits else "words"

    @property
    def reason(self) -> str:
        """Why these features were chosen, in words."""
        if not self.documents:
            return "there are no documents with text"
        share = np.floor(1000 * self.short / self.documents) / 10
        return f"{share:g}% of the documents have at most {SHORT_CHARACTERS} characters"


def lengths_of(texts: Any, sizes: NDArray[np.int64]) -> TextLengths:
    """Return the lengths of an Arrow array of texts without nulls; `sizes` are their bytes."""
    short = int(((sizes > 0) & (sizes <= SHORT_CHARACTERS)).sum())
    # Only of these, characters have to be counted.
    most = SHORT_CHARACTERS * _LONGEST_CHARACTER
    unsure = np.flatnonzero((sizes > SHORT_CHARACTERS) & (sizes <= most))
    # By buffers: conversions of Arrow import pandas where it is installed, which takes 0.15 s.
    rows = pa.Array.from_buffers(pa.int64(), len(unsure), [None, pa.py_buffer(unsure)])
    counted = compute.utf8_length(texts.take(rows))
    kind = f"int{counted.type.bit_width}"
    characters = np.frombuffer(counted.buffers()[1], kind)[: len(counted)]
    short += int((characters <= SHORT_CHARACTERS).sum())
    return TextLengths(short, int((sizes > 0).sum()))


class TextsOnDisk(Protocol):
    """Texts that are mapped, and not read at once."""

    @property
    def arrow(self) -> Any:
        """The texts as an Arrow array."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The bytes of each text."""

    def release(self) -> None:
        """Forget what was read."""


def lengths_on_disk(texts: TextsOnDisk, begin: int) -> TextLengths:
    """Return the lengths of the texts from `begin` on."""
    found, sizes = TextLengths(), texts.lengths
    for first in range(begin, len(sizes), _AT_A_TIME):
        some = slice(first, first + _AT_A_TIME)
        found += lengths_of(texts.arrow[some], sizes[some])
        if first + _AT_A_TIME < len(sizes):
            texts.release()
    return found
