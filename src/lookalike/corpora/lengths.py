"""Which features fit the documents of a corpus: their lengths decide, unless features are given.

Word n-grams of titles, names or addresses are few, and a typo changes most of them. So a corpus of
short documents is compared by `la.ShortText`. Every document counts, not only a sample, and only
the number of short ones matters: neither threads nor partitions nor the order change the choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lookalike import _native

SHORT_CHARACTERS = 120
"""The most characters (code points) of a short document."""
SHORT_SHARE = 0.9
"""The least share of short documents in a corpus that is compared by characters."""
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


def lengths_of(texts: _native.Documents) -> TextLengths:
    """Return the lengths of some texts."""
    return TextLengths(*texts.count_short(SHORT_CHARACTERS))


class TextsOnDisk(Protocol):
    """Texts that are mapped, and not read at once."""

    @property
    def documents(self) -> _native.Documents:
        """The texts, in the form that the core reads."""

    def release(self) -> None:
        """Forget what was read."""


def lengths_on_disk(texts: TextsOnDisk, begin: int) -> TextLengths:
    """Return the lengths of the texts from `begin` on."""
    found, documents = TextLengths(), texts.documents
    for first in range(begin, len(documents), _AT_A_TIME):
        found += lengths_of(documents.part(first, first + _AT_A_TIME))
        if first + _AT_A_TIME < len(documents):
            texts.release()
    return found
