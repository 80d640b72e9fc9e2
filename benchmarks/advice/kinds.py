"""Collections whose bits are not fair, as those of real data: what plans are tried on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["KINDS", "copies", "descriptors", "molecules", "skewed", "uniform"]

Rows = NDArray[np.uint8]


def molecules(count: int, seed: int = 0, bits: int = 1024) -> Rows:
    """Return sparse fingerprints with correlated bits: 20 to 80 bits of 1024 are set.

    A substructure sets several bits, the same ones wherever it occurs. Scaffolds are made of
    common substructures, families vary scaffolds, and members add substructures of their own.
    """
    rng = np.random.default_rng(seed)
    usual = rng.zipf(1.3, size=(600, 8)) * 7919 % bits  # some bits belong to most substructures
    parts = np.where(rng.random((600, 8)) < 0.5, usual, rng.integers(0, bits, (600, 8)))
    popular = 1 / np.arange(1, 601)
    popular /= popular.sum()

    def drawn(number: int, each: int) -> NDArray[np.int64]:
        return rng.choice(600, (number, each), p=popular)

    scaffolds = drawn(max(1, count // 400), 5)
    families = np.concatenate(
        [
            scaffolds[rng.integers(0, len(scaffolds), max(1, count // 25))],
            drawn(max(1, count // 25), 2),
        ],
        axis=1,
    )
    own = np.concatenate([families[rng.integers(0, len(families), count)], drawn(count, 2)], axis=1)
    present = np.zeros((count, bits), np.uint8)
    rows = np.arange(count)[:, None]
    for column in range(own.shape[1]):
        kept = rng.random(count) < 0.9
        chosen = parts[own[:, column]]
        present[rows[kept], chosen[kept]] = 1
    present[rows, rng.integers(0, bits, (count, 3))] = 1
    return np.packbits(present, axis=1, bitorder="little")


def descriptors(count: int, seed: int = 0, bits: int = 256) -> Rows:
    """Return signs of projections of clustered vectors of few dimensions, as images have them."""
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(max(2, count // 100), 24)) * rng.gamma(1.5, 1.0, 24)
    chosen = rng.choice(len(places), count, p=rng.dirichlet(np.full(len(places), 0.7)))
    spread = rng.gamma(2.0, 0.3, (count, 1))
    vectors = places[chosen] + spread * rng.normal(size=(count, 24))
    planes, shift = rng.normal(size=(24, bits)), rng.normal(size=bits) * 2
    return np.packbits(vectors @ planes + shift > 0, axis=1, bitorder="little")


def uniform(count: int, seed: int = 0, bits: int = 256) -> Rows:
    """Return fair and independent bits: no neighbor is much nearer than others."""
    return np.random.default_rng(seed).integers(0, 256, (count, bits // 8), dtype=np.uint8)


def skewed(count: int, seed: int = 0, bits: int = 512) -> Rows:
    """Return independent bits of which some are set often and most hardly ever."""
    rng = np.random.default_rng(seed)
    often = np.clip(rng.pareto(1.2, bits) * 0.01, 0.001, 0.35)
    return np.packbits(rng.random((count, bits), np.float32) < often, axis=1, bitorder="little")


def copies(count: int, seed: int = 0, bits: int = 128) -> Rows:
    """Return copies of a few hundred signatures, a third of them with a few bits changed."""
    rng = np.random.default_rng(seed)
    originals = rng.integers(0, 256, (max(1, count // 40), bits // 8), dtype=np.uint8)
    rows = originals[rng.zipf(1.5, count) % len(originals)]
    changed = (rng.random((count, bits)) < 0.03) & (rng.random((count, 1)) < 0.33)
    return rows ^ np.packbits(changed, axis=1, bitorder="little")


KINDS: dict[str, Callable[[int, int], Rows]] = {
    "molecules": molecules,
    "descriptors": descriptors,
    "uniform": uniform,
    "skewed": skewed,
    "copies": copies,
}
