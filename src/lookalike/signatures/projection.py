"""Projection: the signs of random projections of dense vectors (Charikar)."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import as_array, thread_count, whole_number
from lookalike.errors import DocumentError
from lookalike.signatures.bit_weights import BitWeightSigner
from lookalike.signatures.random import random_normals
from lookalike.signatures.simhash import signature_bits

_MOST_NORMALS = 1 << 28  # random numbers of a signer, one for each bit and dimension: 1 GiB


class Projection(BitWeightSigner):
    """Signatures of dense vectors: signs of random projections.

    Bit j is 1 if the product of the vector with the j-th random Gaussian vector is at least 0. Two
    vectors at angle θ differ in each bit with probability θ/π. The same vector has the same bits on
    every machine.

    Args:
        bits: Number of bits, a multiple of 8 (default: 256).
        dimensions: Number of dimensions of the vectors.
        seed: Random seed (default: 0).

    Examples:
        >>> signer = la.Projection(bits=64, dimensions=3)
        >>> signatures = signer.sign(np.array([[1, 2, 3], [2, 4, 6]], np.float32))
        >>> la.hamming(signatures[0], signatures[1]).tolist()
        [0]
    """

    medium = "vector"

    def __init__(
        self, bits: SupportsIndex = 256, dimensions: SupportsIndex = 0, seed: SupportsIndex = 0
    ) -> None:
        super().__init__(seed)
        self.bits = signature_bits(bits)
        self.dimensions = whole_number(
            "dimensions", dimensions, at_least=1, at_most=_MOST_NORMALS // self.bits
        )
        normals = random_normals(self.seed, self.dimensions * self.bits)
        self._matrix = normals.reshape(self.dimensions, self.bits)

    def sign(
        self, vectors: ArrayLike, *, threads: SupportsIndex | None = None
    ) -> NDArray[np.uint8]:
        """Return the signatures, `uint8[n, bits // 8]`, of vectors `[n, dimensions]`.

        Vectors are converted to float32 first. The zero vector has all bits set.
        """
        rows, signatures = self._rows(vectors)
        _native.project(rows, self._matrix, thread_count(threads), signatures)
        return signatures

    def _sign_with_weights(
        self, documents: ArrayLike, threads: SupportsIndex | None
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        rows, signatures = self._rows(documents)
        weights = np.empty((len(rows), self.bits), np.float32)
        _native.project_with_sums(rows, self._matrix, thread_count(threads), signatures, weights)
        return signatures, weights

    def _rows(self, vectors: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """Return checked vectors, and an array for their signatures."""
        array = as_array("vectors", vectors)
        if array.ndim != 2 or array.shape[1] != self.dimensions:
            raise DocumentError(
                f"vectors have shape {array.shape}; expected (count, {self.dimensions})"
            )
        if array.dtype.kind not in "fiu":
            raise DocumentError(f"vectors are {array.dtype}; expected float32")
        rows = np.ascontiguousarray(array, np.float32)
        bad = ~np.isfinite(rows).all(axis=1)
        if bad.any():
            raise DocumentError(
                f"vector {int(bad.argmax())} has a value that is infinite or not a number; "
                "leave it out or replace it"
            )
        return rows, np.empty((len(rows), self.bits // 8), np.uint8)
