"""Fingerprints in any number, like those of real documents: for experiments on a large scale.

Drawn from a seed, so that everybody has the same. What they are like was measured on real text,
64-bit SimHash of words with TF-IDF weights; the constants below are what came out:

- Of 120,000 arXiv abstracts, the weight behind a bit has the standard deviation 0.99 and an excess
  kurtosis of -0.2: normal, of variance 1. It is not quite centered: the share of documents with a
  bit set differs from bit to bit, by 0.076 (standard deviation over the 64 bits), which is what
  means of standard deviation 0.19 give.
- 0.3% of these abstracts have another one within 3 bits (1.3% if words are not weighted, because
  function words then decide), and those that have one have 1.4 on average.
- Of 2,453 package descriptions that were edited between two Debian releases, 21% kept their
  signature and another 19% are within 3 bits. The weights of a pair differ by a normal amount whose
  standard deviation is the pair's own: log-normal, with the median 0.24 and 1.0 as deviation of its
  logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, sqrt
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import seed_number, share, whole_number

__all__ = ["GeneratedFingerprints", "generate_fingerprints"]

BITS = 64
MEAN_SPREAD = 0.19
EDIT_MEDIAN, EDIT_SPREAD = 0.24, 1.0
COPIED = 0.21
MORE_PARTNERS = 0.3
"""The chance that a document with a partner has one more, and so on: 1.4 on average."""
EDITED = 0.01
"""The share of queries with partners; four in ten of these are within 3 bits."""
_CHUNK = 1 << 20
_DIGITS = 8
"""Binary digits of the probability of each bit."""


@dataclass(frozen=True, eq=False)
class GeneratedFingerprints:
    """A collection, and queries of which some are edited copies of documents in it."""

    signatures: NDArray[np.uint64]
    """uint64[count]"""
    queries: NDArray[np.uint64]
    """uint64[queries]"""
    weights: NDArray[np.float32]
    """float32[queries, 64]: those behind the queries' bits."""
    partners: NDArray[np.int64]
    """int64[n, 2]: (query, row) of documents of which one is an edited copy of the other."""


def generate_fingerprints(
    count: SupportsIndex,
    queries: SupportsIndex,
    *,
    edited: float = EDITED,
    seed: SupportsIndex = 0,
) -> GeneratedFingerprints:
    """Return `count` fingerprints and `queries` more, a share `edited` of which have partners.

    60 million take some ten seconds and 480 MB; queries 264 bytes each. The same seed and numbers
    give the same fingerprints.
    """
    size = whole_number("count", count, at_least=1)
    asked = whole_number("queries", queries, at_least=0)
    part = share("edited", edited)
    generator = np.random.default_rng(seed_number(seed))
    means = generator.normal(0, MEAN_SPREAD, BITS).astype(np.float32)
    signatures = np.empty(size, np.uint64)
    for begin in range(0, size, _CHUNK):
        signatures[begin : begin + _CHUNK] = _without_weights(
            means, min(_CHUNK, size - begin), generator
        )
    weights = np.empty((asked, BITS), np.float32)
    for begin in range(0, asked, _CHUNK):
        block = weights[begin : begin + _CHUNK]
        generator.standard_normal(out=block, dtype=np.float32)
        block += means
    changed = np.flatnonzero(generator.random(asked) < part)
    numbers = generator.geometric(1 - MORE_PARTNERS, len(changed))
    query = np.repeat(changed, numbers)[:size]
    rows = generator.choice(size, len(query), replace=False, shuffle=False)
    spread = generator.lognormal(np.log(EDIT_MEDIAN), EDIT_SPREAD, len(query))
    spread[generator.random(len(query)) < COPIED] = 0
    for begin in range(0, len(query), _CHUNK):
        some = slice(begin, begin + _CHUNK)
        changes = generator.standard_normal((len(query[some]), BITS), dtype=np.float32)
        changes *= spread[some, None].astype(np.float32)
        signatures[rows[some]] = signs(weights[query[some]] + changes)
    return GeneratedFingerprints(
        signatures, signs(weights), weights, np.stack([query, rows], axis=1)
    )


def signs(weights: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return the 64-bit signatures that weights are behind."""
    packed = np.packbits(weights >= 0, axis=1, bitorder="little")
    words: NDArray[np.uint64] = packed.view("<u8")[:, 0].astype(np.uint64, copy=False)
    return words


def _without_weights(
    means: NDArray[np.float32], count: int, generator: np.random.Generator
) -> NDArray[np.uint64]:
    """Return signs of normal weights of these means without drawing the weights.

    A bit of probability p is made from coins by the binary digits of p, the last one first: a coin
    "or" what there is where the digit is 1, "and" where it is 0.
    """
    chances = [round((1 + erf(float(mean) / sqrt(2))) / 2 * 2**_DIGITS) for mean in means]
    words = np.zeros(count, np.uint64)
    for digit in range(_DIGITS):
        mask = np.uint64(sum(1 << bit for bit, p in enumerate(chances) if p >> digit & 1))
        coins = generator.integers(0, 2**64, count, dtype=np.uint64)
        words = (words & coins) | (mask & (words ^ coins))
    return words
