"""PassageHash: the passages of a text, for collections in which texts are found by a passage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import instance, whole_number
from lookalike.errors import DocumentError, Said
from lookalike.excerpts.signing import MOST_WORDS, check_bits, sign_passages
from lookalike.features import FeatureKind
from lookalike.parts.signer import PartSigner, SignedParts, VoteSettings
from lookalike.signatures import SimHash
from lookalike.signatures.signer import DocumentSigner

__all__ = ["PassageHash"]

_BITS = 64
_LEAST_VOTES = 2


class PassageHash(PartSigner):
    """Signatures of passages of `words` words each, with the words that they begin with.

    `by` signs a passage: a signer of texts whose signatures are bits, `la.SimHash(64)` unless told.
    Of a document there is a passage every `step` words, and one that ends with the text; of a
    query, one that begins with each word: wherever it was cut from, some of its passages are those
    of the document. A text of fewer words is one passage, one without words has none.
    """

    medium = "text"
    _seeded = False

    def __init__(
        self,
        by: DocumentSigner | None = None,
        words: SupportsIndex = 50,
        step: SupportsIndex = 10,
    ) -> None:
        super().__init__(0)
        self.by = SimHash(_BITS) if by is None else check_bits("by", by)
        self.words = whole_number("words", words, at_least=1, at_most=MOST_WORDS)
        self.step = whole_number("step", step, at_least=1, at_most=MOST_WORDS)
        self.bits = 8 * self.by.sign([]).shape[1]

    @property
    def votes(self) -> VoteSettings:
        """What suits passages: words that were left out or put in move what follows a little."""
        return VoteSettings(self.bits // 10, self.step, _LEAST_VOTES)

    @property
    def features(self) -> FeatureKind:
        """What passages are signed by."""
        return self.by.features

    def sign(self, document: str, *, threads: SupportsIndex | None = None) -> NDArray[np.uint8]:
        """Return the signatures of the passages of one document, `uint8[n, bits // 8]`."""
        return self.sign_parts(document, threads=threads).signatures

    def sign_parts(self, document: str, *, threads: SupportsIndex | None = None) -> SignedParts:
        """Return the signatures of the passages of one document, and the word that each begins
        with: what `PartIndex.add` takes.
        """
        return self._signed([_text(document)], self.step, threads)[0]

    def sign_query(self, thing: str, *, threads: SupportsIndex | None = None) -> SignedParts:
        """Return the same of a text that is looked for, a passage at every word: what
        `PartIndex.search` takes.
        """
        return self._signed([_text(thing)], 1, threads)[0]

    def sign_each(
        self, things: Sequence[str], *, threads: SupportsIndex | None = None
    ) -> Iterator[SignedParts | DocumentError]:
        """Yield the passages of each document."""
        yield from self._signed(things, self.step, threads)

    def check_lasting(self) -> None:
        """Raise unless equal descriptions mean equal bits, now and in another program."""
        self.by.check_lasting()

    def said(self) -> Said:
        """Return what the signer is called in a message."""
        return Said(
            repr(self),
            f"passagehash (words {self.words}, step {self.step}) of {self.by.said().typed}",
        )

    def _signed(
        self, documents: Sequence[str], step: int, threads: SupportsIndex | None
    ) -> list[SignedParts]:
        found = sign_passages(self.by, documents, words=self.words, step=step, threads=threads)
        return [SignedParts(*passages) for passages in found]


def _text(document: Any) -> str:
    return instance("document", document, str, "a text")
