"""Where lists would take longer than a scan, queries are scanned: the answers are the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from support.oracles import scan as oracle


def skewed(count: int, width: int, ones: float, hubs: int, seed: int) -> NDArray[np.uint8]:
    """Signatures around a few centers, one of them zero, and a tenth anywhere."""
    generator = np.random.default_rng(seed)
    centers = generator.integers(0, 256, (hubs, width), dtype=np.uint8)
    centers[0] = 0
    noise = np.packbits(generator.random((count, 8 * width)) < ones, axis=1)
    rows = centers[generator.integers(0, hubs, count)] ^ noise
    anywhere = generator.random(count) < 0.1
    rows[anywhere] = generator.integers(0, 256, (int(anywhere.sum()), width), dtype=np.uint8)
    return rows


@given(
    st.sampled_from([1, 8, 12, 16, 33]),
    st.integers(1, 16),
    st.sampled_from([0.0, 0.02, 0.1]),
    st.integers(0, 20),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_skewed_signatures_within_a_radius(
    width: int, slice_bits: int, ones: float, radius: int, threads: int, random: object
) -> None:
    """Segments with lists and without, removed rows, ids used again: as the oracle says."""
    seed = random.randrange(1000)  # type: ignore[attr-defined]
    rows = skewed(700, width, ones, 1 + seed % 4, seed)
    index = la.SliceIndex(rows[:500], slice_bits, ids=np.arange(500) * 3)
    index.remove(np.arange(0, 300, 7) * 3)
    index.add(rows[500:], ids=np.concatenate([[0, 21], np.arange(2000, 2198)]))
    living, ids = index.living()
    queries = np.concatenate([rows[:10], skewed(10, width, ones, 1, seed)])
    found = index.within(queries, radius, threads=threads)
    assert found.exact
    expected = oracle.within(living, queries, min(radius, 8 * width), ids.tolist())
    for (names, distances), true in zip(found, expected, strict=True):
        assert list(zip(distances.tolist(), names.tolist(), strict=True)) == true


@pytest.mark.parametrize("width", [8, 16])
def test_of_one_batch_some_are_scanned(width: int) -> None:
    """Those whose lists are long; with sketches and without."""
    rows = skewed(20_000, width, 0.02, 1, 5)
    index, scan = la.SliceIndex(rows, 12), la.ScanIndex(rows)
    rare = np.random.default_rng(9).integers(0, 256, (50, width), dtype=np.uint8)
    queries = np.concatenate([rows[:50], rare])
    found = index.within(queries, 3, explain=True)
    assert found.explanation is not None
    scanned = found.explanation.lists == 0
    assert scanned[:50].mean() > 0.5
    assert not scanned[50:].any()
    assert (found.explanation.candidates[scanned] == len(rows)).all()
    true = scan.within(queries, 3)
    assert found.to_numpy().keys() == true.to_numpy().keys()
    for name, column in true.to_numpy().items():
        assert (found.to_numpy()[name] == column).all()
    with pytest.raises(la.errors.ResultTooLargeError):
        index.within(queries, 3, limit=len(true.ids) - 1)
    assert len(index.within(queries, 3, limit=len(true.ids)).ids) == len(true.ids)


@pytest.fixture(scope="module")
def large() -> NDArray[np.uint8]:
    """So many that lists are quicker than a scan, but those of the first half, which are long."""
    rows = np.random.default_rng(3).integers(0, 256, (1_200_000, 16), dtype=np.uint8)
    rows[: len(rows) // 2] = np.arange(16)
    rows[: len(rows) // 2, 0] = rows[len(rows) // 2 :, 0]
    return rows


def test_nearest_by_lists_or_by_a_scan(large: NDArray[np.uint8]) -> None:
    index, scan = la.SliceIndex(large, 19), la.ScanIndex(large)
    queries = np.concatenate([large[:3], large[-3:] ^ 1, large[3:5]])
    found = index.search(queries, 4, explain=True)
    assert found.explanation is not None
    scanned = found.explanation.lists == 0
    assert scanned.tolist() == [True] * 3 + [False] * 3 + [True] * 2
    assert found.explanation.exact[scanned].all()
    true, listed = scan.search(queries, 4), index.search(queries, 4, expand=3)
    expected = np.where(scanned[:, None], true.ids, listed.ids)
    assert (found.ids == expected).all()
    assert (found.distances[scanned] == true.distances[scanned]).all()
    bounds = found.explanation.optimistic, found.explanation.pessimistic
    assert all(
        (each[scanned] == true.distances[scanned]).all() for each in bounds if each is not None
    )
    assert index.search(queries[:3], 4).exact
    for number, query in enumerate(queries):  # whoever is asked with it
        assert (index.search(query, 4).ids[0] == found.ids[number]).all()


def test_few_signatures_are_scanned() -> None:
    rows = np.random.default_rng(1).integers(0, 256, (5000, 32), dtype=np.uint8)
    index, scan = la.SliceIndex(rows), la.ScanIndex(rows)
    queries = np.random.default_rng(2).integers(0, 256, (20, 32), dtype=np.uint8)
    index.remove(np.unique(scan.search(queries, 2).ids))
    index.add(rows[:100])
    living, ids = index.living()
    found = index.search(queries, 10)
    assert found.exact
    true = la.ScanIndex(living, ids).search(queries, 10)
    assert (found.ids == true.ids).all()
    assert (found.distances == true.distances).all()
    assert not index.search(queries, 10, expand=1).exact
    whole = la.ShardedIndex([la.SliceIndex(rows[:2000], 8), la.SliceIndex(rows[2000:], 8)])
    assert whole.search(queries, 10).exact
    assert (whole.search(queries, 10).ids == scan.search(queries, 10).ids).all()


def test_proofs_of_skewed_signatures_scan_in_time() -> None:
    """Hot lists are as good as a scan; with `exact=True` they are not read at all widths."""
    rows = skewed(4000, 32, 0.02, 2, 1)
    index = la.SliceIndex(rows, 8)
    found = index.search(rows[:30], 5, exact=True, explain=True)
    true = la.ScanIndex(rows).search(rows[:30], 5)
    assert found.exact
    assert (found.ids == true.ids).all()
    assert found.explanation is not None
    assert found.explanation.postings.mean() < 4 * len(rows)
