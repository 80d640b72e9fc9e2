"""Signatures of passages of texts: parts for `la.PartIndex`."""

from __future__ import annotations

from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import instance, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.excerpts.words import word_places
from lookalike.features.documents import list_batches
from lookalike.shown import brief
from lookalike.signatures.signer import DocumentSigner

__all__ = ["MOST_WORDS", "SignedPassages", "check_bits", "sign_passages"]

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
