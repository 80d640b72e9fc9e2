"""GpuIndex asks its questions so that the answers are the scan's, in however little room."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.gpu import finding, index, layout, nearest, source, tiles
from support import fake_card
from support.fake_card import FakeCard

PIECE = 512
"""Small pieces, so that small collections have several."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(index, "card", lambda number: FakeCard())
    for module in (layout, nearest, source, tiles):
        monkeypatch.setattr(module, "PIECE", PIECE)
    monkeypatch.setattr(fake_card, "PIECE", PIECE)
    monkeypatch.setattr(tiles, "_UPLOAD", 700 * 16)
    monkeypatch.setattr(source, "_PASSING", 600 * 16)
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
    limit = data.draw(st.sampled_from([0, 50, 10**7]))
    try:
        right = scan.pairs(radius, limit=limit, collapse=collapse)
    except la.ResultTooLargeError as error:
        with pytest.raises(la.ResultTooLargeError) as other:
            gpu.pairs(radius, limit=limit, collapse=collapse)
        assert str(other.value) == str(error)
        return
    found = gpu.pairs(radius, limit=limit, collapse=collapse)
    np.testing.assert_array_equal(found.left, right.left)
    np.testing.assert_array_equal(found.right, right.right)
    np.testing.assert_array_equal(found.distances, right.distances)
