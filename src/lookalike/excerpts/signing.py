"""Signatures of passages of texts: parts for `la.PartIndex`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import instance, whole_number
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.excerpts.results import word_places
from lookalike.features import FeatureKind
from lookalike.features.base import list_batches
from lookalike.parts.signer import PartSigner, SignedParts, VoteSettings
from lookalike.shown import brief
from lookalike.signatures import SimHash
from lookalike.signatures.signer import DocumentSigner

__all__ = [
    "MOST_WORDS",
    "PassageHash",
    "SignedPassages",
    "check_bits",
    "sign_passages",
]

MOST_WORDS = 2**31
_AT_A_TIME = 256


class SignedPassages(NamedTuple):
    """The passages of one text, for `la.PartIndex.add` and `search`."""

    signatures: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    """The word that each passage begins with, counted from 0."""


def sign_passages(
    signer: DocumentSigner,
    documents: Any,
    *,
    words: SupportsIndex = 50,
    step: SupportsIndex = 10,
    threads: SupportsIndex | None = None,
) -> list[SignedPassages]:
    """Sign passages of `words` words, one every `step` words, of each document.

    `signer` is one whose signatures are bits, such as `la.SimHash(64)` or `la.TopSig(1024)`. The
    last passage ends with the text; a text of fewer words is one passage, one without words none.
    A query is signed with a step of 1: wherever it was cut from, some of its passages are those
    of the document.
    """
    check_bits("signer", signer)
    wide = whole_number("words", words, at_least=1, at_most=MOST_WORDS)
    forward = whole_number("step", step, at_least=1, at_most=MOST_WORDS)
    signed = []
    for _, batch in list_batches(documents, _AT_A_TIME):
        texts: list[str] = []
        offsets: list[NDArray[np.int64]] = []
        for document in batch:
            text = instance("a document", document, str, "a text")
            places = word_places(text)
            count = len(places.begins)
            last = max(0, count - wide)
            begins = np.unique([*range(0, last, forward), *([last] if count else [])])
            own = np.array(begins, np.int64)
            offsets.append(own)
            ends = np.minimum(own + wide, count)
            texts += [
                text[begin:end]
                for begin, end in zip(
                    places.begins[own].tolist(), places.ends[ends - 1].tolist(), strict=True
                )
            ]
        rows = signer.sign(texts, threads=threads)
        cuts = np.cumsum([len(own) for own in offsets])[:-1]
        signed += [
            SignedPassages(part, own)
            for part, own in zip(np.split(rows, cuts), offsets, strict=True)
        ]
    return signed


def check_bits(name: str, signer: object) -> DocumentSigner:
    """Return a signer of documents whose signatures are bits."""
    given = instance(name, signer, DocumentSigner, "one such as la.SimHash()")
    if given.sign([]).dtype != np.uint8:
        raise ArgumentError(
            Said(name),
            f" is {brief(given)}, whose signatures are no bits; take la.SimHash or la.TopSig",
        )
    return given


_BITS = 64
_LEAST_VOTES = 2


class PassageHash(PartSigner):
    """Signatures of passages of `words` words each, with the words that they begin with.

    `by` signs a passage: a signer of texts whose signatures are bits, `la.SimHash(64)` unless told.
    Of a document there is a passage every `step` words, and one that ends with the text; of a
    query, one that begins with each word: wherever it was cut from, some of its passages are those
    of the document. A text of fewer words is one passage, one without words has none.
    """

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
