"""Made-up collections to search, the same in every run, and queries that suit them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["DISTRIBUTIONS", "Workload", "draw"]

Signatures = NDArray[np.uint8]

SEED = 20
CLUSTER_SIZE = 50
DUPLICATE_SHARE = 0.1
QUERY_FLIPS = 3


@dataclass(frozen=True, eq=False)
class Workload:
    """A collection and the queries to ask it."""

    signatures: Signatures
    queries: Signatures


def draw(distribution: str, count: int, bits: int, queries: int) -> Workload:
    """Return `count` signatures, and queries of which every second, from the first, has a match.

    Those are signatures of the collection with at most three bits flipped, so that searches within
    a radius have something to find. The others are held out: drawn with the collection, but not
    in it, as new documents are.
    """
    generator = np.random.default_rng(SEED)
    held_out = queries // 2
    rows = DISTRIBUTIONS[distribution](count + held_out, bits, generator)
    collection = rows[:count]
    asked = np.empty((queries, bits // 8), np.uint8)
    asked[1::2] = rows[count:]
    near = collection[generator.integers(count, size=queries - held_out)]
    flip_bits(near, generator.integers(1, QUERY_FLIPS, size=len(near), endpoint=True), generator)
    asked[0::2] = near
    return Workload(collection, asked)


def uniform(count: int, bits: int, generator: Generator) -> Signatures:
    """Return signatures of fair coin tosses: no structure, distances close to half the bits."""
    return generator.integers(0, 256, size=(count, bits // 8), dtype=np.uint8)


def skewed(count: int, bits: int, generator: Generator) -> Signatures:
    """Return signatures as real ones are: bits of all probabilities, clusters, duplicates.

    Many bits are nearly always 0 or nearly always 1. Bits go together, because rows are members of
    clusters, a few of them very large, and differ from their center in up to a 32nd of the bits.
    A tenth of the rows are exact copies of others; of narrow signatures more turn out equal.
    """
    probability = generator.beta(0.5, 0.5, size=bits)
    clusters = max(1, count // CLUSTER_SIZE)
    tosses = generator.random((clusters, bits), dtype=np.float32) < probability
    centers = np.packbits(tosses, axis=1, bitorder="little")
    # The square of a uniform draw favors the first clusters: sizes fall like 1 / sqrt(rank).
    member_of = (clusters * generator.random(count) ** 2).astype(np.int64)
    rows = centers[member_of]
    flip_bits(rows, generator.integers(0, bits // 32, size=count, endpoint=True), generator)

    copied = generator.random(count) < DUPLICATE_SHARE
    originals = np.flatnonzero(~copied)
    rows[copied] = rows[generator.choice(originals, np.count_nonzero(copied))]
    return rows


def flip_bits(rows: Signatures, flips: NDArray[np.int64], generator: Generator) -> None:
    """Flip `flips[i]` random bits of row i, in place; a bit drawn twice is as it was."""
    for done in range(int(flips.max())):
        remaining = np.flatnonzero(flips > done)
        bit = generator.integers(8 * rows.shape[1], size=len(remaining))
        rows[remaining, bit // 8] ^= np.left_shift(1, bit % 8).astype(np.uint8)


DISTRIBUTIONS: dict[str, Callable[[int, int, Generator], Signatures]] = {
    "uniform": uniform,
    "skewed": skewed,
}
