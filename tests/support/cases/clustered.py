"""Collections with neighbors at all distances, as documents have them."""

from __future__ import annotations

import numpy as np

from support.oracles import scan as oracle


def clustered(count: int, width: int, seed: int = 0) -> oracle.Signatures:
    """Return signatures around some centers, a few bits to a third of all bits away."""
    rng = np.random.default_rng(seed)
    centers = rng.integers(0, 256, (max(1, count // 20), width), dtype=np.uint8)
    noise = rng.random((count, 8 * width)) < rng.uniform(0, 0.33, (count, 1))
    chosen: oracle.Signatures = centers[rng.integers(0, len(centers), count)]
    return chosen ^ np.packbits(noise, axis=1, bitorder="little")
