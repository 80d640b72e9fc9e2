"""MinHash and b-bit MinHash: estimates of Jaccard similarity (Broder; Li and König)."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import as_array, real_array, thread_count, whole_number
from lookalike.errors import ArgumentError, Said, SignatureError
from lookalike.features import FeatureKind, Words
from lookalike.features.growing import GrowingArray
from lookalike.shown import counted
from lookalike.signatures.arrays import as_signatures
from lookalike.signatures.random import random_words
from lookalike.signatures.signer import DocumentSigner

__all__ = ["BBitMinHash", "MinHash"]

_EMPTY = np.uint32(2**32 - 1)


class MinHash(DocumentSigner):
    """The least value of a document's features under each of `permutations` random permutations.

    A feature is the upper half of its hash, x; a permutation is x -> a·x + c modulo 2**32 with a
    random odd a and a random c, which is exact in 32 bits: nothing overflows. Two documents have
    equal values with probability J, their Jaccard similarity, so the share of equal values
    estimates J without bias, with the standard error sqrt(J·(1 - J) / permutations). A document
    without features has 2**32 - 1 everywhere.
    """

    def __init__(
        self,
        permutations: SupportsIndex = 128,
        features: FeatureKind | None = None,
        seed: SupportsIndex = 0,
    ) -> None:
        super().__init__(Words(ngram=5) if features is None else features, seed)
        self.permutations = whole_number("permutations", permutations, at_least=1, at_most=2**20)
        words = random_words(self.seed, self.permutations)
        self._factors: list[int] = (words.astype(np.uint32) | np.uint32(1)).tolist()
        self._terms: list[int] = (words >> np.uint64(32)).astype(np.uint32).tolist()

    @property
    def bits(self) -> int:
        """How many bits a row of values has."""
        return 32 * self.permutations

    def settings(self) -> dict[str, Any]:
        """Return what the signer was made with, in plain values."""
        return {"permutations": self.permutations, "features": self.features.to_dict()}

    def sign(self, documents: Any, *, threads: SupportsIndex | None = None) -> NDArray[np.uint32]:
        """Return the least values, `uint32[n, permutations]`."""
        values = GrowingArray((self.permutations,), np.uint32, documents)
        for source in self.features.sources(documents):
            block = values.block(len(source))
            _native.minhash(source, self._factors, self._terms, thread_count(threads), block)
        return values.take()

    def similarity(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """Return the estimated Jaccard similarity of rows of `a` with rows of `b`, in turn.

        A single row on either side is compared with all of the other. Where a document has no
        features, 0.
        """
        left, right = self._values(a, "the first values"), self._values(b, "the second values")
        if len(left) != len(right) and 1 not in (len(left), len(right)):
            raise SignatureError(
                f"there are {len(left)} first rows and {len(right)} second ones; "
                "pairing them needs equal numbers"
            )
        equal = (left == right) & (left != _EMPTY)
        shares: NDArray[np.float64] = equal.mean(axis=1)
        return shares

    def standard_error(self, similarity: ArrayLike) -> NDArray[np.float64]:
        """Return the standard error of an estimate where the truth is `similarity`."""
        truth = real_array("similarity", similarity, at_least=0, at_most=1)
        return np.sqrt(truth * (1 - truth) / self.permutations)

    def _values(self, array: ArrayLike, name: str) -> NDArray[np.uint32]:
        values = as_array(name, array)
        if values.ndim == 1:
            values = values[None]
        if values.dtype != np.uint32 or values.ndim != 2 or values.shape[1] != self.permutations:
            raise SignatureError(
                f"{name} are {values.dtype} of shape {values.shape}; "
                f"expected uint32 with {self.permutations} columns, as sign() gives"
            )
        return values


class BBitMinHash(DocumentSigner):
    """The lowest b bits of each MinHash value, packed: smaller, and any index takes them.

    Value p takes bits p·b to p·b + b - 1 of the signature. Values that differ agree in b bits by
    chance with probability C = 2**-b, so the share of agreeing values is on average
    P = C + (1 - C)·J; `similarity` takes that back: J = (P - C) / (1 - C), with the standard error
    sqrt(P·(1 - P) / permutations) / (1 - C). For b = 1 and J = 0.5 that is sqrt(3) times MinHash's.
    """

    def __init__(
        self,
        permutations: SupportsIndex = 512,
        b: SupportsIndex = 1,
        features: FeatureKind | None = None,
        seed: SupportsIndex = 0,
    ) -> None:
        super().__init__(Words(ngram=5) if features is None else features, seed)
        self._minhash = MinHash(permutations, self.features, seed)
        self.permutations = self._minhash.permutations
        self.b = whole_number("b", b, at_least=1, at_most=16)
        if self.bits % 8:
            raise ArgumentError(
                Said("permutations"),
                f" is {self.permutations}, of {counted(self.b, 'bit')} each: {self.bits} bits; "
                "expected a multiple of 8",
            )

    @property
    def bits(self) -> int:
        """How many bits a signature has."""
        return self.permutations * self.b

    def settings(self) -> dict[str, Any]:
        """Return what the signer was made with, in plain values."""
        return {
            "permutations": self.permutations,
            "b": self.b,
            "features": self.features.to_dict(),
        }

    def sign(self, documents: Any, *, threads: SupportsIndex | None = None) -> NDArray[np.uint8]:
        """Return the packed signatures, `uint8[n, bits // 8]`."""
        signatures = GrowingArray((self.bits // 8,), np.uint8, documents)
        factors, terms = self._minhash._factors, self._minhash._terms
        for source in self.features.sources(documents):
            block = signatures.block(len(source))
            _native.packed_minhash(source, factors, terms, self.b, thread_count(threads), block)
        return signatures.take()

    def pack(self, values: ArrayLike) -> NDArray[np.uint8]:
        """Return the signatures of MinHash values with the same permutations, features and seed."""
        minima = np.ascontiguousarray(self._minhash._values(values, "the values"))
        signatures = np.empty((len(minima), self.bits // 8), np.uint8)
        _native.pack_minima(minima, self.b, 1, signatures)
        return signatures

    def similarity(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """Return the estimated Jaccard similarity of rows of `a` with rows of `b`, in turn.

        Corrected for chance, so it can come out below 0 for documents that share nothing. Two
        documents without features come out as 1: `feature_counts` tells which these are. A single
        row on either side is compared with all of the other.
        """
        left, right = self._rows(a, "the first signatures"), self._rows(b, "the second signatures")
        if len(left) != len(right) and 1 not in (len(left), len(right)):
            raise SignatureError(
                f"there are {len(left)} first signatures and {len(right)} second ones; "
                "pairing them needs equal numbers"
            )
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
