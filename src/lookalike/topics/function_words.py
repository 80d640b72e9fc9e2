"""Words that say nothing about topics: function words of the languages of a corpus, and numbers.

A language is one of the corpus if some documents have many of its stop words. In other languages,
function words are recognized by how they are spread over documents and clusters.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.features import Words
from lookalike.features.stop_words import STOP_LISTS
from lookalike.signatures.arrays import distinct
from lookalike.topics.listed import Listed, is_among

Hashes = NDArray[np.uint64]

_LEAST_SHARE, _BESIDE_BEST = 0.1, 1 / 3
"""Minimum share of stop words in a document of their language: of all words, and beside the share
of the language that has most.
"""
_LEAST_DOCUMENTS, _LEAST_WORDS = 0.02, 3
"""Minimum share of documents in a language of the corpus, and number of its stop words in these."""
_DUMPED = 0.8
"""Share of hexadecimal bytes, a digit and a letter, that a corpus with dumps of bytes has."""


def meaningless_words(words: Words, sample: Listed) -> Hashes:
    """Return the function words of the languages of a sample, and numbers, as hashes, ascending."""
    found = [_hashes(words, _numbers())]
    lists = [_hashes(words, tuple(sorted(one))) for one in STOP_LISTS.values()]
    known = np.flatnonzero(is_among(sample.features, distinct(np.concatenate(lists))))
    rows, features, counts = sample.rows[known], sample.features[known], sample.counts[known]
    shares = np.stack(
        [
            np.bincount(rows, counts * is_among(features, one), minlength=len(sample))
            for one in lists
        ]
    ) / np.maximum(sample.lengths, 1.0)
    least = np.maximum(_LEAST_SHARE, _BESIDE_BEST * shares.max(axis=0))
    documents = np.count_nonzero(shares >= least, axis=1)
    for one, count in zip(lists, documents.tolist(), strict=True):
        different = len(distinct(features[is_among(features, one)]))
        if count > _LEAST_DOCUMENTS * len(sample) and different >= _LEAST_WORDS:
            found.append(one)
    mixed, pairs = _digit_pairs()
    if is_among(_hashes(words, mixed), distinct(sample.features)).sum() >= _DUMPED * len(mixed):
        found.append(_hashes(words, pairs))
    return distinct(np.concatenate(found))


@cache
def _numbers() -> tuple[str, ...]:
    """Return numbers of up to four digits, and those of two or four hexadecimal digits."""
    decimal = {f"{number:0{width}d}" for width in (1, 2, 3, 4) for number in range(10**width)}
    short = {f"{number:02x}" for number in range(1 << 8)}
    long = {f"{number:04x}" for number in range(1 << 16)}
    return tuple(sorted(decimal | {one for one in short | long if not one.isalpha()}))


@cache
def _digit_pairs() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return hexadecimal bytes of a digit and a letter, and those of two letters."""
    every = [f"{number:02x}" for number in range(1 << 8)]
    mixed = tuple(one for one in every if not one.isalpha() and not one.isdigit())
    return mixed, tuple(one for one in every if one.isalpha())


def _hashes(words: Words, texts: tuple[str, ...]) -> Hashes:
    documents = _native.Documents.from_list(list(texts), 0)
    words.source(documents)  # which learns the stems
    return distinct(words._reader.extract(documents)[1])
