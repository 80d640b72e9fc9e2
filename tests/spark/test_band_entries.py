"""Keys of bands on their way to where equal ones meet; without a Spark."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookalike.spark import bands
from lookalike.spark.packed import gathered


@given(
    st.integers(1, 5),
    st.integers(1, 9),
    st.lists(st.integers(0, 6), max_size=30),
    st.sampled_from([1 << 31, 7]),
)
def test_entries_go_to_their_buckets(
    band_count: int, buckets: int, drawn: list[int], step: int
) -> None:
    """Whether native or, where a key is large, by NumPy: every key of every document, once."""
    positions = np.arange(len(drawn), dtype=np.int64) * step
    keys = (np.array(drawn, np.uint32) * np.uint32(0x9E3779B1))[None, :] ^ np.arange(
        band_count, dtype=np.uint32
    )[:, None]
    expected = Counter(
        (int((int(key) + band * 0x9E3779B1) % buckets), int(key), band, int(position))
        for band, row in enumerate(keys)
        for key, position in zip(row, positions, strict=True)
    )
    marked = bands.marked_entries(positions, keys, [None] * band_count, buckets)
    for way in (bands.band_entries([positions], [keys], buckets), marked):
        assert _entries(list(way)) == expected


def _entries(batches: list[object]) -> Counter[tuple[int, int, int, int]]:
    found: Counter[tuple[int, int, int, int]] = Counter()
    for batch in batches:
        for at in range(len(batch)):  # type: ignore[arg-type]
            row = batch.slice(at, 1)  # type: ignore[attr-defined]
            entries: NDArray[np.void] = gathered(iter([row]), bands.BAND_ENTRY)[bands.PAIRS]
            bucket = row.column("bucket")[0].as_py()
            found.update((bucket, *map(int, entry)) for entry in entries.tolist())
    return found
