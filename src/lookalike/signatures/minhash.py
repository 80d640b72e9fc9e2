"""MinHash and b-bit MinHash: estimates of Jaccard similarity (Broder; Li and König)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import real_array, thread_count, whole_number
from lookalike.errors import ArgumentError, Said, SignatureError
from lookalike.features import FeatureKind, Words
from lookalike.features.below_zero import none_below_zero
from lookalike.features.growing import GrowingArray
from lookalike.shown import counted
from lookalike.signatures.arrays import as_signatures
from lookalike.signatures.given_hashes import GivenHash, GivenHashes
from lookalike.signatures.random import random_words
from lookalike.signatures.signed_rows import (
    EMPTY,
    ValueSigner,
    check_paired,
    marked,
    signer_mark,
)
from lookalike.signatures.signer import DocumentSigner

__all__ = ["BBitMinHash", "MinHash"]

_PERMUTATIONS, _PACKED_PERMUTATIONS = 128, 512


def _without_none(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without hashes that were not given: so they were described before there were
    such.
    """
    return {name: value for name, value in settings.items() if value is not None}


class MinHash(ValueSigner):
    """The least value of a document's features under each of `permutations` random permutations.

    A feature is the upper half of its hash, x; a permutation is x -> a·x + c modulo 2**32 with a
    random odd a and a random c, which is exact in 32 bits: nothing overflows. Two documents have
    equal values with probability J, their Jaccard similarity, so the share of equal values
    estimates J without bias, with the standard error sqrt(J·(1 - J) / permutations). A document
    without features has 2**32 - 1 everywhere.

    `hashes` take the place of random permutations, and are as many: a list of (a, c, m), for the
    function (a·x + c) modulo m of a feature x, and of tables {feature: value}, which have to have
    all features. For examples worked by hand, and to have another program's values; how good the
    estimates are is then up to who gives them.
    """

    def __init__(
        self,
        permutations: SupportsIndex = _PERMUTATIONS,
        features: FeatureKind | None = None,
        seed: SupportsIndex = 0,
        *,
        hashes: Iterable[GivenHash] | GivenHashes | None = None,
    ) -> None:
        super().__init__(Words(ngram=5) if features is None else features, seed)
        self.hashes = GivenHashes.of(hashes, self.features)
        self.permutations = whole_number("permutations", permutations, at_least=1, at_most=2**20)
        if self.hashes is not None:
            self.permutations = self.hashes.count(self.permutations, _PERMUTATIONS, self.seed)
            return
        words = random_words(self.seed, self.permutations)
        self._factors: list[int] = (words.astype(np.uint32) | np.uint32(1)).tolist()
        self._terms: list[int] = (words >> np.uint64(32)).astype(np.uint32).tolist()

    def settings(self) -> dict[str, Any]:
        """Return what the signer was made with but for the seed, in plain values."""
        return _without_none(super().settings())

    @cached_property
    def mark(self) -> str:
        """What the rows of this signer are marked with."""
        return signer_mark(self)

    def sign(self, documents: Any, *, threads: SupportsIndex | None = None) -> NDArray[np.uint32]:
        """Return the least values, `uint32[n, permutations]`.

        They are marked with the settings of this signer (see `la.BandIndex`), and are an array as
        any other.
        """
        values = GrowingArray((self.permutations,), np.uint32, documents)
        position = 0
        for source in none_below_zero(self.features.sources(documents)):
            block = values.block(len(source))
            if self.hashes is None:
                _native.minhash(source, self._factors, self._terms, thread_count(threads), block)
            else:
                self.hashes.minima(source, position, thread_count(threads), block)
            position += len(source)
        return marked(values.take(), self.mark)

    def union(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.uint32]:
        """Return the rows of documents that have the features of both, in turn.

        The very rows that signing all their features at once would give. A single row on either
        side is united with all of the other.
        """
        left, right = self._values(a, "the first values"), self._values(b, "the second values")
        check_paired(left, right)
        return marked(np.minimum(left, right), self.mark)

    def update(
        self, values: ArrayLike, documents: Any, *, threads: SupportsIndex | None = None
    ) -> NDArray[np.uint32]:
        """Return rows with the features of `documents` added, a document to a row.

        Of runs of words only those within what is added: a run that would begin in one text and
        end in the next is in neither.
        """
        return self.union(values, self.sign(documents, threads=threads))

    def count(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the estimated number of distinct features behind each row.

        Where u is the least of n uniform values, -ln(1 - u) is exponential with the rate n. Without
        bias, with a standard error of n / sqrt(permutations - 2), which takes three or more.
        """
        if self.hashes is not None:
            raise ArgumentError(
                "values of given hashes say nothing of how many features there are; count() needs "
                "random permutations, or ask feature_counts(documents)"
            )
        rows = self._values(values, "the values")
        shares = (rows.astype(np.float64) + 0.5) * 2.0**-32
        counted: NDArray[np.float64] = max(1, self.permutations - 1) / -np.log1p(-shares).sum(
            axis=1
        )
        counted[(rows == EMPTY).all(axis=1)] = 0.0
        return counted


class BBitMinHash(DocumentSigner):
    """The lowest b bits of each MinHash value, packed: smaller, and any index takes them.

    Value p takes bits p·b to p·b + b - 1 of the signature. Values that differ agree in b bits by
    chance with probability C = 2**-b, so the share of agreeing values is on average
    P = C + (1 - C)·J; `similarity` takes that back: J = (P - C) / (1 - C), with the standard error
    sqrt(P·(1 - P) / permutations) / (1 - C). For b = 1 and J = 0.5 that is sqrt(3) times MinHash's.

    The lowest bits are those of a value that is mixed with its place first. Of `hashes` that are
    given (see `MinHash`) they are those of the value itself.
    """

    def __init__(
        self,
        permutations: SupportsIndex = _PACKED_PERMUTATIONS,
        b: SupportsIndex = 1,
        features: FeatureKind | None = None,
        seed: SupportsIndex = 0,
        *,
        hashes: Iterable[GivenHash] | GivenHashes | None = None,
    ) -> None:
        super().__init__(Words(ngram=5) if features is None else features, seed)
        self.hashes = GivenHashes.of(hashes, self.features)
        if self.hashes is not None:
            permutations = self.hashes.count(permutations, _PACKED_PERMUTATIONS, self.seed)
        self._minhash = MinHash(permutations, self.features, seed, hashes=self.hashes)
        self.permutations = self._minhash.permutations
        self.b = whole_number("b", b, at_least=1, at_most=16)
        if self.bits % 8:
            raise ArgumentError(
                Said("permutations"),
                f" is {self.permutations}, of {counted(self.b, 'bit')} each: {self.bits} bits; "
                "expected a multiple of 8",
            )

    def settings(self) -> dict[str, Any]:
        """Return what the signer was made with but for the seed, in plain values."""
        return _without_none(super().settings())

    @property
    def bits(self) -> int:
        """How many bits a signature has."""
        return self.permutations * self.b

    def sign(self, documents: Any, *, threads: SupportsIndex | None = None) -> NDArray[np.uint8]:
        """Return the packed signatures, `uint8[n, bits // 8]`."""
        if self.hashes is not None:
            return self.pack(self._minhash.sign(documents, threads=threads))
        signatures = GrowingArray((self.bits // 8,), np.uint8, documents)
        factors, terms = self._minhash._factors, self._minhash._terms
        for source in none_below_zero(self.features.sources(documents)):
            block = signatures.block(len(source))
            _native.packed_minhash(source, factors, terms, self.b, thread_count(threads), block)
        return signatures.take()

    def pack(self, values: ArrayLike) -> NDArray[np.uint8]:
        """Return the signatures of MinHash values with the same permutations, features and seed."""
        minima = np.ascontiguousarray(self._minhash._values(values, "the values"))
        signatures = np.empty((len(minima), self.bits // 8), np.uint8)
        _native.pack_minima(minima, self.b, self.hashes is None, 1, signatures)
        return signatures

    def similarity(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """Return the estimated Jaccard similarity of rows of `a` with rows of `b`, in turn.

        Corrected for chance, so it can come out below 0 for documents that share nothing. Two
        documents without features come out as 1: `feature_counts` tells which these are. A single
        row on either side is compared with all of the other.
        """
        left, right = self._rows(a, "the first signatures"), self._rows(b, "the second signatures")
        check_paired(left, right, "signatures")
        left, right = (np.ascontiguousarray(side) for side in np.broadcast_arrays(left, right))
        equal = np.empty(len(left), np.int32)
        _native.equal_values(left, right, self.permutations, self.b, equal)
        chance = 2.0**-self.b
        return (equal / self.permutations - chance) / (1 - chance)

    def standard_error(self, similarity: ArrayLike) -> NDArray[np.float64]:
        """Return the standard error of an estimate where the truth is `similarity`."""
        chance = 2.0**-self.b
        truth = real_array("similarity", similarity, at_least=0, at_most=1)
        agreeing = chance + (1 - chance) * truth
        return np.sqrt(agreeing * (1 - agreeing) / self.permutations) / (1 - chance)

    def _rows(self, array: ArrayLike, name: str) -> NDArray[np.uint8]:
        rows = as_signatures(array, name, single=True)
        if 8 * rows.shape[1] != self.bits:
            raise SignatureError(
                f"{name} have {8 * rows.shape[1]} bits, this signer gives {self.bits}"
            )
        return rows
