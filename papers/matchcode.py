"""Data structure design for efficient index search (AboutCode): equal chunks, and what they find.

The document asks for everything within 4 bits of four chunks and proves 3; it is used with larger
distances. How much is found then is a matter of counting.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lookalike.advice.predictions import share_found
from lookalike.indexes import SliceIndex
from papers.page import Section
from papers.shared import World

__all__ = ["run"]

BITS = 128
CHUNKS = 4
DISTANCES = range(1, 11)
_SEED = 24


def run(world: World) -> Iterator[Section]:
    """Look for signatures at known distances by equal chunks, and exactly."""
    count = world.scale.chunk_pairs
    generator = np.random.default_rng(_SEED)
    rows = generator.integers(0, 256, (count, BITS // 8), dtype=np.uint8)
    index = SliceIndex(rows, threads=1)
    lines = []
    for distance in DISTANCES:
        flips = np.zeros((count, BITS), bool)
        places = generator.random((count, BITS)).argsort(axis=1)[:, :distance]
        np.put_along_axis(flips, places, True, axis=1)
        queries = rows ^ np.packbits(flips, axis=1, bitorder="little")
        by_chunk = flips.reshape(count, CHUNKS, -1).any(axis=2)
        equal = float(np.logical_not(by_chunk).any(axis=1).mean())
        few = slice(min(count, 2000))
        matches = index.within(queries[few], distance, threads=1)
        exact = np.mean([number in matches[number][0] for number in range(len(matches))])
        lines.append(
            (
                str(distance),
                "all" if distance < CHUNKS else "none promised",
                f"{share_found(BITS, [BITS // CHUNKS] * CHUNKS, 0, distance):.1%}",
                f"{equal:.1%}",
                f"{exact:.1%}",
            )
        )
    yield Section(
        "Four equal chunks: what they promise, and what they find",
        f"{BITS}-bit fingerprints in {CHUNKS} chunks, {count:,} pairs at each distance, bits "
        "changed at random places. x chunks guarantee x − 1 bits; beyond, the share found falls "
        "quickly. `SliceIndex.within` reads near values of chunks too, and stays complete.",
        ("bits changed", "the document", "chunks, by counting", "chunks, found", "`within`, found"),
        lines,
    )
