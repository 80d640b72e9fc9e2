"""Signatures of passages of texts: parts for `la.PartIndex`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import instance, whole_number
from lookalike.common_passages.results import word_places
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.features import FeatureKind
from lookalike.features.base import list_batches
from lookalike.parts.signer import PartSigner, SignedParts, VoteSettings
from lookalike.shown import brief
from lookalike.signatures import SimHash
from lookalike.signatures.signer import DocumentSigner

MOST_WORDS = 2**31
_AT_A_TIME = 256
_BITS, _LEAST_VOTES = 64, 2


def sign_passages(
    signer: DocumentSigner,
    documents: Any,
    *,
    words: SupportsIndex = 50,
    step: SupportsIndex = 10,
    threads: SupportsIndex | None = None,
) -> list[SignedParts]:
    """Sign passages of `words` words, one every `step` words, of each document.

    `signer` makes bits, such as `la.SimHash(64)` or `la.TopSig(1024)`. The last passage ends with
    the text; a text of fewer words is one passage, one without words none. Sign a query with a step
    of 1: wherever it was cut from, some of its passages are those of the document. An offset is the
    word that a passage begins with.

    Examples:
        >>> import lookalike as la
        >>> (signed,) = la.sign_passages(la.SimHash(64), ["one two three four"], words=3, step=1)
        >>> signed.offsets.tolist()
        [0, 1]
    """
    check_bits("signer", signer)
    wide = whole_number("words", words, at_least=1, at_most=MOST_WORDS)
    forward = whole_number("step", step, at_least=1, at_most=MOST_WORDS)
    signed: list[SignedParts] = []
    for _, batch in list_batches(documents, _AT_A_TIME):
        texts: list[str] = []
        offsets: list[NDArray[np.int64]] = []
        for document in batch:
            text = instance("a document", document, str, "a text")
            places = word_places(text)
            count = len(places.begins)
            last = max(0, count - wide)
            own = np.array([*range(0, last, forward), *([last] if count else [])], np.int64)
            offsets.append(own)
            ends = places.ends[np.minimum(own + wide, count) - 1]
            spans = zip(places.begins[own].tolist(), ends.tolist(), strict=True)
            texts += [text[begin:end] for begin, end in spans]
        rows = signer.sign(texts, threads=threads)
        cuts = np.cumsum([len(own) for own in offsets])[:-1]
        signed += map(SignedParts, np.split(rows, cuts), offsets)
    return signed


def check_bits(name: str, signer: object) -> DocumentSigner:
    """Return a signer of documents whose signatures are bits."""
    given = instance(name, signer, DocumentSigner, "one such as la.SimHash()")
    if given.sign([]).dtype != np.uint8:
        raise ArgumentError(
            Said(name),
            f" is {brief(given)}, whose signatures are not bits; use la.SimHash or la.TopSig",
        )
    return given


class PassageHash(PartSigner):
    """Signatures of passages of `words` words each, with the words that they begin with.

    `by` signs passages in bits (default: `la.SimHash(64)`). A document has a passage every `step`
    words, and one that ends with the text. A query has one at every word. So some of its passages
    are those of the document, wherever it was cut from. A text of fewer words is one passage, one
    without words has none.

    Examples:
        >>> import lookalike as la
        >>> la.PassageHash(words=3, step=1).sign("one two three four").shape
        (2, 8)
    """

    _seeded = False
    unit = "words"

    def __init__(
        self, by: DocumentSigner | None = None, words: SupportsIndex = 50, step: SupportsIndex = 10
    ) -> None:
        super().__init__(0)
        self.by = SimHash(_BITS) if by is None else check_bits("by", by)
        self.words = whole_number("words", words, at_least=1, at_most=MOST_WORDS)
        self.step = whole_number("step", step, at_least=1, at_most=MOST_WORDS)
        self.bits = 8 * self.by.sign([]).shape[1]

    @property
    def votes(self) -> VoteSettings:
        """Settings for passages: removed or added words move those after them a little."""
        return VoteSettings(self.bits // 10, self.step, _LEAST_VOTES, length=self.words)

    @property
    def features(self) -> FeatureKind:
        """The features that passages are signed by."""
        return self.by.features

    def sign(self, document: str, *, threads: SupportsIndex | None = None) -> NDArray[np.uint8]:
        """Return the signatures of the passages of one document, `uint8[n, bits // 8]`."""
        return self.sign_parts(document, threads=threads).signatures

    def sign_parts(self, document: str, *, threads: SupportsIndex | None = None) -> SignedParts:
        """Return the signatures and first words of passages, for `PartIndex.add`."""
        return self._signed([_text(document)], self.step, threads)[0]

    def sign_query(self, thing: str, *, threads: SupportsIndex | None = None) -> SignedParts:
        """Return the same of a query, with a passage at every word, for `PartIndex.search`."""
        return self._signed([_text(thing)], 1, threads)[0]

    def sign_each(
        self, things: Sequence[str], *, threads: SupportsIndex | None = None
    ) -> Iterator[SignedParts | DocumentError]:
        """Yield the passages of each document."""
        yield from self._signed(things, self.step, threads)

    def check_persistent(self) -> None:
        """Raise unless equal descriptions mean equal bits, now and in another program."""
        self.by.check_persistent()

    def said(self) -> Said:
        """Return what the signer is called in a message."""
        return Said(
            repr(self),
            f"passagehash (words {self.words}, step {self.step}) of {self.by.said().typed}",
        )

    def _signed(
        self, documents: Sequence[str], step: int, threads: SupportsIndex | None
    ) -> list[SignedParts]:
        return sign_passages(self.by, documents, words=self.words, step=step, threads=threads)


def _text(document: Any) -> str:
    return instance("document", document, str, "a text")
