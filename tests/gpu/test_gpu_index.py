"""GpuIndex asks its questions so that the answers are the scan's, in however little room."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.advice import predictions as planning
from lookalike.gpu import bands as gpu_bands
from lookalike.gpu import bench, finding, index, tiles
from lookalike.gpu import card as gpu_card
from lookalike.gpu.bench import Speed, speed
from lookalike.indexes.bands import CoreBands
from support.running import fake_card
from support.running.fake_card import FakeCard

PIECE = 512
"""Small pieces, so that small collections have several."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(index, "card", lambda number: FakeCard())
    for module in (bench, gpu_card, finding, tiles):
        monkeypatch.setattr(module, "PIECE", PIECE)
    monkeypatch.setattr(fake_card, "PIECE", PIECE)
    monkeypatch.setattr(tiles, "_UPLOAD", 700 * 16)
    monkeypatch.setattr(tiles, "_PASSING", 600 * 16)
    monkeypatch.setattr(index, "MOST_QUERIES", 16)
    monkeypatch.setattr(finding, "MOST_QUERIES", 200)
    yield


@st.composite
def collections(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray | None]:
    """Random, skewed and equal signatures; ids in any order, or none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.sampled_from([0, 1, 2, 127, 128, 513, 1500, 2600]))
    width = draw(st.sampled_from([1, 3, 8, 12, 16, 24, 32, 40]))
    kind = draw(st.sampled_from(["random", "sparse", "equal", "copies"]))
    rows = rng.integers(0, 256, (count, width), np.uint8)
    if kind == "sparse":
        rows &= rng.integers(0, 256, rows.shape, np.uint8) & rng.integers(
            0, 256, rows.shape, np.uint8
        )
    elif kind == "equal":
        rows[:] = 7
    elif kind == "copies":
        rows = rows[rng.integers(0, max(1, count // 50), count)] if count else rows
    if not draw(st.booleans()):
        return rows, None
    return rows, rng.permutation(3 * count)[:count]


@settings(max_examples=60, deadline=None)
@given(collections(), st.data())
def test_answers_are_those_of_the_scan(
    collection: tuple[np.ndarray, np.ndarray | None], data: st.DataObject
) -> None:
    signatures, ids = collection
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    stream = data.draw(st.booleans())
    gpu, scan = la.GpuIndex(signatures, ids, stream=stream), la.ScanIndex(signatures, ids)
    asked = data.draw(st.sampled_from([0, 1, 3, 40]))
    queries = rng.integers(0, 256, (asked, signatures.shape[1]), np.uint8)
    if asked and len(signatures):
        queries[: asked // 2] = signatures[rng.integers(0, len(signatures), asked // 2)]
    among = None
    if data.draw(st.booleans()):
        share = data.draw(st.sampled_from([0.0, 0.01, 0.3, 1.0]))
        among = rng.random(scan.next_id) < share
    k = data.draw(st.sampled_from([1, 2, 10, 100, 3000]))
    room = data.draw(st.sampled_from([1, 1000, finding.ROOM]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finding, "ROOM", room)
        found, right = gpu.search(queries, k, among=among), scan.search(queries, k, among=among)
        np.testing.assert_array_equal(found.ids, right.ids)
        np.testing.assert_array_equal(found.distances, right.distances)
        assert found.exact
        radius = data.draw(st.integers(0, scan.bits))
        near, truth = (one.within(queries, radius, among=among, limit=10**9) for one in (gpu, scan))
        np.testing.assert_array_equal(near.offsets, truth.offsets)
        np.testing.assert_array_equal(near.ids, truth.ids)
        np.testing.assert_array_equal(near.distances, truth.distances)


@settings(max_examples=30, deadline=None)
@given(collections(), st.booleans(), st.booleans(), st.data())
def test_pairs_are_those_of_the_scan(
    collection: tuple[np.ndarray, np.ndarray | None],
    stream: bool,
    collapse: bool,
    data: st.DataObject,
) -> None:
    signatures, ids = collection[0][:700], None if collection[1] is None else collection[1][:700]
    radius = data.draw(st.integers(0, 8 * signatures.shape[1] // 3))
    gpu, scan = la.GpuIndex(signatures, ids, stream=stream), la.ScanIndex(signatures, ids)
    limit = data.draw(st.sampled_from([0, 50, 3000, 10**7]))
    try:
        right = scan.pairs(radius, limit=limit, collapse=collapse)
    except la.errors.ResultTooLargeError as error:
        with pytest.raises(la.errors.ResultTooLargeError) as other:
            gpu.pairs(radius, limit=limit, collapse=collapse)
        assert str(other.value) == str(error)
        return
    found = gpu.pairs(radius, limit=limit, collapse=collapse)
    np.testing.assert_array_equal(found.left, right.left)
    np.testing.assert_array_equal(found.right, right.right)
    np.testing.assert_array_equal(found.distances, right.distances)


def rows_of(count: int, width: int = 16) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, width), np.uint8)


def test_a_saved_one_opens_everywhere(tmp_path: Path) -> None:
    ids = np.random.default_rng(1).permutation(4000)[:1300]
    gpu = la.GpuIndex(rows_of(1300), ids)
    gpu.save(tmp_path / "index")
    opened = la.load_index(tmp_path / "index")
    assert type(opened) is la.ScanIndex
    again = pickle.loads(pickle.dumps(gpu))
    assert type(again) is la.GpuIndex
    for one in (opened, again):
        found, right = one.search(rows_of(5), 9), gpu.search(rows_of(5), 9)
        np.testing.assert_array_equal(found.ids, right.ids)


def test_bytes_keep_what_belongs_to_an_index() -> None:
    scan = la.ScanIndex(rows_of(30))
    scan.signer, scan.names = la.SimHash(bits=128), [f"document {row}" for row in range(30)]
    gpu = la.GpuIndex.from_bytes(scan.to_bytes())
    assert gpu.signer == scan.signer
    assert gpu.names is not None and list(gpu.names) == list(scan.names)
    np.testing.assert_array_equal(gpu.search(rows_of(3), 2).ids, scan.search(rows_of(3), 2).ids)
    with pytest.raises(la.errors.FormatError, match="found a SliceIndex; expected a GpuIndex"):
        la.GpuIndex.from_bytes(la.SliceIndex(rows_of(30)).to_bytes())


def test_too_little_memory_is_told_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "card", lambda number: FakeCard(free=1000))
    with pytest.raises(
        la.errors.ArgumentError, match=r"need [\d,]+ bytes .* and 1,000 are free.*stream"
    ):
        la.GpuIndex(rows_of(900))
    assert len(la.GpuIndex(rows_of(900), stream=True)) == 900


def test_progress_hears_of_every_piece() -> None:
    heard: list[tuple[str, float]] = []
    la.GpuIndex(rows_of(1500), progress=lambda step, share: heard.append((step, share)))
    assert heard == [("copy", 512 / 1500), ("copy", 1024 / 1500), ("copy", 1)]


def test_progress_is_a_bar_where_somebody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with patch("sys.stderr.isatty", return_value=True):
        la.GpuIndex(rows_of(1500), progress=True)
    assert "copy" in capfd.readouterr().err
    la.GpuIndex(rows_of(10), progress=True)
    la.GpuIndex(rows_of(10), progress=False)
    assert capfd.readouterr() == ("", "")


def test_a_plan_weighs_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lookalike.gpu.card.card", lambda number: FakeCard())
    monkeypatch.setattr(planning, "_speed", lambda *_: Speed(4e12, 5e12, 0.001))
    chosen = la.plan(count=10_000_000, bits=1024, k=10, device="gpu")
    assert chosen.chosen.index == "gpu"
    assert la.plan(count=10_000_000, bits=1024, k=10).chosen.index != "gpu"
    small = la.plan(count=900, bits=128, k=10, device="gpu")
    assert next(option for option in small.options if option.index == "gpu").exact
    monkeypatch.setattr("lookalike.gpu.card.card", lambda number: FakeCard(free=10))
    refused = la.plan(count=10_000_000, bits=1024, k=10, device="gpu")
    assert "10 bytes of GPU memory are free" in str(refused)


def test_a_card_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.timed, "__defaults__", (1,))
    known = speed(FakeCard(), gpu_card.Layout.of(64), 4 * PIECE)  # type: ignore[arg-type]
    assert known.bytes_read > 0
    assert known.compared > 0
    lines = list(bench.lines(FakeCard(), 600))  # type: ignore[arg-type]
    assert [line.queries for line in lines] == [1, 64, 256, 1024, 1024, 0]
    assert all(line.checked for line in lines)


def test_dedup_on_a_card_has_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_card, "card", lambda number: FakeCard())
    monkeypatch.setattr(gpu_bands, "card", lambda number: FakeCard())
    words = [f"w{number}" for number in range(60)]
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(words, 30)) for _ in range(40)]
    texts += [f"{text} more" for text in texts[:20]]
    for method in ("simhash", "topsig", "minhash"):
        there, here = (
            la.dedup(texts, method=method, threshold=0.7, device=device)
            for device in ("gpu", "cpu")
        )
        assert there.keep.tolist() == here.keep.tolist()
        assert there.counts == here.counts
    for options in ({"exact": True}, {"measure": "containment"}):
        with pytest.raises(la.errors.ArgumentError, match="device='gpu' finds pairs by signatures"):
            la.dedup(texts, device="gpu", **options)
    with pytest.raises(la.errors.ArgumentError, match="device"):
        la.dedup(texts, device="tpu")


@settings(max_examples=60)
@given(
    st.sampled_from([0, 1, 2, 5, 200, 1000]), st.integers(1, 1000), st.booleans(), st.integers(0)
)
def test_groups_of_bands_on_a_card_are_those_of_the_core(
    count: int, different: int, crowded: bool, seed: int
) -> None:
    """Keys of 32 bits, most of them alone, or all among a few."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**32, (3, count), np.uint32)
    keys[:, : count // 2] = keys[:, count // 2 :][:, : count // 2]
    if crowded:
        keys %= different
    for free in (2**40, 10):  # with too little memory, the core groups them
        with patch.object(gpu_bands, "card", lambda number, free=free: FakeCard(free)):
            made = gpu_bands.GpuBands()
        for band in range(3):
            found, right = made.groups(keys, band), CoreBands().groups(keys, band)
            assert [one.dtype for one in found] == [np.uint32, np.int64]
            for one, other in zip(found, right, strict=True):
                np.testing.assert_array_equal(one, other)


def test_without_cupy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(index, "card", gpu_card.Card)
    with pytest.raises(la.errors.MissingDependencyError, match=r"lookalike\[gpu\]"):
        la.GpuIndex(rows_of(3))
