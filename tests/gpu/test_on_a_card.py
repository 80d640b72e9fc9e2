"""On a real card: every answer is the scan's, bit for bit."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import lookalike as la

WHY_NOT = None
if find_spec("cupy") is None:
    WHY_NOT = "no CuPy here; pip install 'lookalike[gpu]' on a machine with an NVIDIA card"
else:
    try:
        la.GpuIndex(np.zeros((1, 8), np.uint8))
    except la.errors.MissingDependencyError as error:
        WHY_NOT = str(error)

pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))

KINDS = ("random", "sparse", "equal", "copies", "half")
COUNTS = (0, 1, 127, 5000, 70_000, 200_001)
WIDTHS = (1, 8, 12, 16, 24, 32, 40, 64, 128, 256, 512)


def made(kind: str, count: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Return signatures: fair bits, few ones, one signature alone, or many times among others."""
    rows = rng.integers(0, 256, (count, width), np.uint8)
    if kind == "sparse":
        rows &= rng.integers(0, 256, rows.shape, np.uint8) & np.roll(rows, 1, axis=1)
    elif kind == "equal":
        rows[:] = 5
    elif kind == "copies" and count:
        rows = rows[rng.integers(0, max(1, count // 1000), count)]
    elif kind == "half" and count:
        rows[rng.permutation(count)[: count // 2]] = rows[0]
    return rows


def poison() -> None:
    """Fill memory that the next search will get, so that what is not written shows."""
    cupy = pytest.importorskip("cupy")
    cupy.full(1 << 26, 0xA5, cupy.uint8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_answer_is_the_scans(kind: str, count: int, width: int) -> None:
    rng = np.random.default_rng([KINDS.index(kind), count, width])
    count = min(count, 20_000_000 // width)
    signatures = made(kind, count, width, rng)
    ids = rng.permutation(2 * count)[:count] if rng.random() < 0.3 else None
    poison()
    gpu = la.GpuIndex(signatures, ids, stream=bool(rng.random() < 0.2))
    scan = la.ScanIndex(signatures, ids)
    asked = int(rng.choice([1, 2, 65, 300]))
    queries = rng.integers(0, 256, (asked, width), np.uint8)
    if count:
        queries[: asked // 2] = signatures[rng.integers(0, count, asked // 2)]
    among = rng.random(scan.next_id) < rng.choice([0.01, 0.5]) if rng.random() < 0.3 else None
    for k in (1, 10, 2048):
        poison()
        found, right = (one.search(queries, k, among=among) for one in (gpu, scan))
        np.testing.assert_array_equal(found.ids, right.ids)
        np.testing.assert_array_equal(found.distances, right.distances)
    for radius in (0, 3, width, 8 * width):
        if asked * count > 2_000_000 and radius > width:
            continue
        near, truth = (one.within(queries, radius, among=among) for one in (gpu, scan))
        np.testing.assert_array_equal(near.offsets, truth.offsets)
        np.testing.assert_array_equal(near.ids, truth.ids)
        np.testing.assert_array_equal(near.distances, truth.distances)


@pytest.mark.parametrize("width", [1, 8, 16, 24, 128, 512])
def test_cards_without_tensor_instructions_count_bits(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lookalike.gpu.card import card

    monkeypatch.setitem(vars(card(0)), "has_tensors", False)
    rng = np.random.default_rng(width)
    for kind in KINDS:
        signatures = made(kind, 70_003, width, rng)
        queries = np.concatenate([signatures[:40], rng.integers(0, 256, (90, width), np.uint8)])
        poison()
        gpu, scan = la.GpuIndex(signatures), la.ScanIndex(signatures)
        found, right = gpu.search(queries, 17), scan.search(queries, 17)
        np.testing.assert_array_equal(found.ids, right.ids)
        np.testing.assert_array_equal(found.distances, right.distances)
        near, truth = gpu.within(queries, width // 2), scan.within(queries, width // 2)
        np.testing.assert_array_equal(near.ids, truth.ids)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [8, 16, 128, 200])
def test_pairs_are_the_scans(kind: str, width: int) -> None:
    rng = np.random.default_rng(width)
    signatures = made(kind, 20_000 if kind in ("random", "sparse") else 2000, width, rng)
    gpu, scan = la.GpuIndex(signatures), la.ScanIndex(signatures)
    for radius in (0, width // 2, width):
        found, right = (one.pairs(radius, collapse=True) for one in (gpu, scan))
        np.testing.assert_array_equal(found.left, right.left)
        np.testing.assert_array_equal(found.right, right.right)
        np.testing.assert_array_equal(found.distances, right.distances)


def test_arrays_of_the_card_are_taken_and_given_back() -> None:
    cupy = pytest.importorskip("cupy")
    rows = np.random.default_rng(0).integers(0, 256, (70_001, 24), np.uint8)
    for given in (cupy.asarray(rows), cupy.asarray(rows).view(cupy.uint64)):
        index = la.GpuIndex(given)
        np.testing.assert_array_equal(index.living()[0], rows)


def test_shards_on_one_card() -> None:
    rows = np.random.default_rng(0).integers(0, 256, (9001, 16), np.uint8)
    shards = la.ShardedIndex([la.GpuIndex(rows[:5000]), la.GpuIndex(rows[5000:], stream=True)])
    found, right = shards.search(rows[:9], 7), la.ScanIndex(rows).search(rows[:9], 7)
    np.testing.assert_array_equal(found.ids, right.ids)
    assert found.exact


@pytest.mark.parametrize("band_bytes", [1, 2, 3, 4, 7, 8, 10, 12, 31, 32, 33, 63, 64, 66, 100])
def test_bands_are_those_of_the_core(band_bytes: int) -> None:
    from lookalike.gpu.bands import GpuBands
    from lookalike.indexes.bands import CoreBands

    rng = np.random.default_rng(band_bytes)
    for count in (0, 1, 2, 999, 300_001):
        bands = 1 + int(rng.integers(0, 5))
        width = band_bytes * bands + int(rng.integers(0, 3))
        rows = made("copies", count, width, rng) if rng.random() < 0.5 else made(
            "half", count, width, rng
        )  # fmt: skip
        gpu, core = GpuBands(), CoreBands()
        found, right = (np.zeros((bands, count + 7), np.uint32) for _ in range(2))
        poison()
        gpu.fill(rows, band_bytes, 5, found)
        core.fill(rows, band_bytes, 5, right)
        np.testing.assert_array_equal(found, right)
        for band in range(bands):
            poison()
            for one, other in zip(gpu.groups(right, band), core.groups(right, band), strict=True):
                np.testing.assert_array_equal(one, other)
