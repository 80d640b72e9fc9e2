from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from support.cases.arguments import on_fake_card
from support.cases.strategies import collections_with_queries, distinct_ids
from support.oracles import masks as mask_oracle
from support.oracles import scan as oracle

Data = tuple[oracle.Signatures, oracle.Signatures]
threads_used = st.sampled_from([None, 1, 2, 5])
kinds = st.sampled_from(["scan", "slices", "changed", "sharded", "nested"])
slice_widths = st.sampled_from([1, 4, 7, 8, 11])


def some_masks(draw: st.DataObject, queries: oracle.Signatures) -> oracle.Signatures:
    """Masks of every density, of whole bytes too, so that slices are without bits that count."""
    density = draw.draw(st.sampled_from(mask_oracle.DENSITIES))
    seed = draw.draw(st.integers(0, 2**32 - 1))
    masks = mask_oracle.masks(len(queries), queries.shape[1], density, seed)
    if draw.draw(st.booleans()):
        whole = np.random.default_rng(seed).random(masks.shape) < density
        masks = np.where(whole, np.uint8(255), np.uint8(0))
    return masks


def an_index(
    kind: str, rows: oracle.Signatures, ids: list[int] | None, slice_bits: int
) -> la.ScanIndex | la.SliceIndex | la.ShardedIndex:
    """Return an index over the rows, of one part or of several."""
    if kind == "scan":
        return la.ScanIndex(rows, ids)
    if kind == "slices":
        return la.SliceIndex(rows, slice_bits, ids)
    if kind == "changed":  # with a second segment, without lists, and rows that are gone
        half = len(rows) // 2
        index = la.SliceIndex(rows[:half], slice_bits, None if ids is None else ids[:half])
        index.add(rows[half:], None if ids is None else ids[half:])
        gone = index.add(rows, None if ids is None else [2**62 + at for at in range(len(rows))])
        index.remove(gone)
        return index
    cut = len(rows) // 3
    parts: list[la.Index] = [
        la.SliceIndex(rows[:cut], slice_bits, None if ids is None else ids[:cut]),
        la.ScanIndex(rows[cut:], None if ids is None else ids[cut:]),
    ]
    whole = la.ShardedIndex(parts)
    return whole if kind == "sharded" else la.ShardedIndex([whole])


def found_by_search(result: la.results.Neighbors, query: int) -> list[mask_oracle.Found]:
    assert result.unmasked is not None
    kept = result.ids[query] >= 0
    columns = (result.distances, result.unmasked, result.ids)
    assert all((column[query][~kept] == -1).all() for column in columns)
    return list(zip(*(column[query][kept].tolist() for column in columns), strict=True))


def found_within(result: la.results.Matches, query: int) -> list[mask_oracle.Found]:
    assert result.unmasked is not None
    part = slice(result.offsets[query], result.offsets[query + 1])
    columns = (result.distances, result.unmasked, result.ids)
    return list(zip(*(column[part].tolist() for column in columns), strict=True))


@given(st.data(), collections_with_queries(), st.integers(1, 90), threads_used)
@settings(max_examples=60)
def test_scans_equal_the_oracle_with_every_kernel(
    kernel: str, draw: st.DataObject, data: Data, k: int, threads: int | None
) -> None:
    rows, queries = data
    ids = draw.draw(distinct_ids(len(rows)))
    masks = some_masks(draw, queries)
    index = la.ScanIndex(rows, ids)
    expected = [mask_oracle.ordered(rows, *both, ids) for both in zip(queries, masks, strict=True)]
    radius = draw.draw(st.integers(0, 8 * rows.shape[1]))
    nearest = index.search(queries, k, masks=masks, threads=threads)
    matches = index.within(queries, radius, masks=masks, threads=threads)
    assert nearest.exact
    assert matches.exact
    for query, everything in enumerate(expected):
        assert found_by_search(nearest, query) == everything[:k]
        assert found_within(matches, query) == [one for one in everything if one[0] <= radius]


@given(st.data(), collections_with_queries(), kinds, slice_widths, st.integers(1, 90), threads_used)
@settings(max_examples=150)
def test_every_index_that_takes_masks_equals_the_oracle(
    draw: st.DataObject, data: Data, kind: str, slice_bits: int, k: int, threads: int | None
) -> None:
    rows, queries = data
    ids = draw.draw(distinct_ids(len(rows)))
    if ids is not None and kind == "changed":
        ids = [one % 2**61 for one in ids]
        ids = ids if len(set(ids)) == len(ids) else None
    masks = some_masks(draw, queries)
    index = an_index(kind, rows, ids, slice_bits)
    named = list(range(len(rows))) if ids is None else ids
    among = draw.draw(st.none() | st.lists(st.sampled_from(named), unique=True)) if named else None
    kept = [at for at, name in enumerate(named) if among is None or name in among]
    only = [named[at] for at in kept]
    radius = draw.draw(st.integers(0, 8 * rows.shape[1]))
    options: dict[str, Any] = {"masks": masks, "among": among, "threads": threads}
    nearest = index.search(queries, k, **options)
    matches = index.within(queries, radius, **options)
    assert nearest.exact
    assert matches.exact
    for query, (signature, mask) in enumerate(zip(queries, masks, strict=True)):
        everything = mask_oracle.ordered(rows[kept], signature, mask, only)
        assert found_by_search(nearest, query) == everything[:k]
        assert found_within(matches, query) == [one for one in everything if one[0] <= radius]


def a_large_collection(count: int, width: int) -> tuple[oracle.Signatures, oracle.Signatures]:
    rows = oracle.collection(count, width, "uniform", 3)
    rows[1::50] = rows[0]
    queries = rows[[0, 5, 9]] ^ (oracle.collection(3, width, "uniform", 4) & np.uint8(1))
    return rows, queries


@pytest.mark.parametrize(("count", "width"), [(60_000, 8), (40_000, 16), (9_000, 128)])
def test_large_collections_are_the_same_for_any_thread_count(count: int, width: int) -> None:
    """Several tiles, chunks and blocks of queries, ties by the thousand, lists that are read."""
    rows, few = a_large_collection(count, width)
    queries = np.repeat(few, 100, axis=0)
    densities = np.tile(mask_oracle.DENSITIES, 43)[: len(queries)]
    masks = np.concatenate(
        [mask_oracle.masks(1, width, share, at) for at, share in enumerate(densities)]
    )
    scan, slices = la.ScanIndex(rows), la.SliceIndex(rows, 8)
    whole = scan.search(queries, 12, masks=masks, threads=1)
    for query in range(0, len(queries), 37):
        far = np.bitwise_count((queries[query] ^ rows) & masks[query]).sum(axis=1)
        ties = np.bitwise_count(queries[query] ^ rows).sum(axis=1)
        order = np.lexsort((np.arange(count), ties, far))[:12]
        assert whole.ids[query].tolist() == order.tolist()
        assert whole.distances[query].tolist() == far[order].tolist()
    near = scan.within(queries[::60], width, masks=masks[::60], threads=1)
    for threads in (1, 2, 3):
        for index in (scan, slices):
            same = index.search(queries, 12, masks=masks, threads=threads)
            assert np.array_equal(same.ids, whole.ids)
            assert np.array_equal(same.distances, whole.distances)
            again = index.within(queries[::60], width, masks=masks[::60], threads=threads)
            assert np.array_equal(again.ids, near.ids)
            assert np.array_equal(again.offsets, near.offsets)
            assert again.unmasked is not None
            assert near.unmasked is not None
            assert np.array_equal(again.unmasked, near.unmasked)


LISTED = oracle.collection(30_000, 9, "uniform", 8)
LISTED[::3] = LISTED[:10_000] ^ (np.random.default_rng(1).random((10_000, 9)) < 0.1)


@given(
    st.sampled_from([6, 9, 12]),
    st.lists(st.sampled_from([0, 1, 15, 126, 254, 255]), min_size=9, max_size=9),
    st.integers(0, 29_990),
    st.integers(0, 5),
    st.integers(1, 40),
    st.booleans(),
)
@settings(max_examples=60)
def test_lists_equal_scans(
    slice_bits: int, mask: list[int], first: int, radius: int, k: int, removed: bool
) -> None:
    """Masks that leave slices whole, cut into them, or leave them out."""
    index, scan = sliced(slice_bits, removed)
    queries = LISTED[first : first + 4] ^ np.uint8(4)
    masks = np.tile(np.array(mask, np.uint8), (4, 1))
    expected, found = (
        one.within(queries, radius, masks=masks, limit=10**7) for one in (scan, index)
    )
    assert np.array_equal(found.offsets, expected.offsets)
    assert found_within(found, 0) == found_within(expected, 0)
    assert np.array_equal(found.ids, expected.ids)
    nearest = index.search(queries, k, masks=masks)
    truth = scan.search(queries, k, masks=masks)
    for query in range(4):
        assert found_by_search(nearest, query) == found_by_search(truth, query)


@cache
def sliced(slice_bits: int, removed: bool) -> tuple[la.SliceIndex, la.ScanIndex]:
    """Return an index whose lists are worth reading, and a scan over the same."""
    index = la.SliceIndex(LISTED, slice_bits)
    if removed:
        index.remove(np.arange(0, 30_000, 7))
    return index, la.ScanIndex(*index.living())


def test_those_lists_are_read() -> None:
    masks = np.full((4, 9), 255, np.uint8)
    masks[:, 3:] = 0
    for slice_bits in (6, 9, 12):
        index, _ = sliced(slice_bits, removed=False)
        for result in (
            index.within(LISTED[:4], 0, masks=masks, explain=True),
            index.search(LISTED[:4], 1, masks=masks, explain=True),
        ):
            assert result.explanation is not None
            assert slice_bits < 9 or (result.explanation.lists > 0).all()


def test_slices_whose_bits_do_not_count_are_not_read() -> None:
    rows, queries = a_large_collection(200_000, 16)
    index = la.SliceIndex(rows, 16)
    masks = np.zeros_like(queries)
    masks[:, 4:6] = 255  # the third of eight slices, all of it
    masks[2, 6] = 1  # and a bit of the fourth, whose lists would be half of everything
    for result in (
        index.search(queries, 3, masks=masks, explain=True),
        index.within(queries, 0, masks=masks, explain=True),
    ):
        assert result.explanation is not None
        assert result.explanation.exact.all()
        assert (result.explanation.lists >= 1).all()
        assert result.explanation.lists[:2].max() <= 1 + (1 + 16)  # within 0 bits, then within 1
        assert (result.explanation.candidates < len(rows) // 8).all()
    nothing = index.search(queries, 3, masks=np.zeros_like(queries), explain=True)
    assert nothing.explanation is not None
    assert (nothing.explanation.lists == 0).all()  # a scan answers


@pytest.mark.parametrize("kind", ["scan", "slices", "changed", "sharded"])
def test_a_mask_of_all_bits_is_the_plain_search(kind: str) -> None:
    rows = oracle.collection(700, 16, "clustered", 5)
    index = an_index(kind, rows, None, 8)
    masks = np.full((9, 16), 255, np.uint8)
    options: dict[str, Any] = {} if kind == "scan" else {"exact": True}
    plain, masked = index.search(rows[:9], 30, **options), index.search(rows[:9], 30, masks=masks)
    assert np.array_equal(plain.ids, masked.ids)
    assert np.array_equal(plain.distances, masked.distances)
    assert masked.unmasked is not None
    assert np.array_equal(plain.distances, masked.unmasked)
    near, also = index.within(rows[:9], 20), index.within(rows[:9], 20, masks=masks)
    assert np.array_equal(near.ids, also.ids)
    assert np.array_equal(near.distances, also.distances)


@pytest.mark.parametrize("kind", ["scan", "slices", "changed", "sharded"])
def test_where_no_bit_counts_everything_is_at_no_distance(kind: str) -> None:
    rows = oracle.collection(700, 16, "clustered", 5)
    index = an_index(kind, rows, None, 8)
    masks = np.zeros((2, 16), np.uint8)
    plain = la.ScanIndex(rows).search(rows[:2], 30)
    masked = index.search(rows[:2], 30, masks=masks)
    assert np.array_equal(masked.ids, plain.ids)
    assert not masked.distances.any()
    assert masked.unmasked is not None
    assert np.array_equal(masked.unmasked, plain.distances)
    assert len(index.within(rows[:2], 0, masks=masks).ids) == 2 * len(rows)


@pytest.mark.parametrize("kind", ["scan", "slices", "sharded"])
def test_saved_indexes_take_masks(kind: str, tmp_path: Path) -> None:
    rows = oracle.collection(3_000, 16, "uniform", 1)
    masks = mask_oracle.masks(4, 16, 0.4, 2)
    index = an_index(kind, rows, None, 8)
    index.save(tmp_path / "index.lookalike")
    loaded: Any = la.load_index(tmp_path / "index.lookalike")
    expected = index.search(rows[:4], 6, masks=masks)
    assert np.array_equal(loaded.search(rows[:4], 6, masks=masks).ids, expected.ids)


@pytest.mark.parametrize("kind", ["scan", "slices", "changed", "sharded"])
def test_the_limit_is_exact(kind: str) -> None:
    rows = oracle.collection(40, 8, "equal", 0)
    index = an_index(kind, rows, None, 8)
    masks = np.full((2, 8), 7, np.uint8)
    assert len(index.within(rows[:2], 0, masks=masks, limit=80).ids) == 80
    with pytest.raises(
        la.errors.ResultTooLargeError, match=r"limit=79 matches within radius 0 of 2 que"
    ):
        index.within(rows[:2], 0, masks=masks, limit=79)


def test_unmasked_distances_are_a_column() -> None:
    rows = oracle.collection(9, 8, "uniform", 0)
    masks = np.full((1, 8), 15, np.uint8)
    result = la.ScanIndex(rows).search(rows[:1], 3, masks=masks)
    assert list(result.to_numpy()) == ["query", "id", "distance", "unmasked"]
    assert result.to_arrow().column("unmasked").to_pylist()[0] == 0
    matches = la.ScanIndex(rows).within(rows[:1], 64, masks=masks)
    assert len(matches.to_numpy()["unmasked"]) == 9
    assert list(la.ScanIndex(rows).search(rows[:1], 3).to_numpy()) == ["query", "id", "distance"]


@pytest.mark.parametrize("kind", ["scan", "slices", "sharded"])
def test_masks_that_do_not_fit_are_named(kind: str) -> None:
    rows = oracle.collection(20, 8, "uniform", 0)
    index = an_index(kind, rows, None, 8)
    for ask in (index.search, index.within):
        with pytest.raises(la.errors.ArgumentError, match="got 1 masks for 2 queries"):
            ask(rows[:2], 3, masks=rows[:1])
        with pytest.raises(la.errors.SignatureError, match="masks have 128 bits, the index has 64"):
            ask(rows[:2], 3, masks=np.zeros((2, 16), np.uint8))
        with pytest.raises(la.errors.SignatureError, match="masks are float64; expected uint8"):
            ask(rows[:2], 3, masks=np.zeros((2, 8)))


@pytest.mark.parametrize("name", ["expand", "admit", "rerank"])
@pytest.mark.parametrize("kind", ["slices", "sharded"])
def test_what_may_be_missed_is_no_question_with_masks(kind: str, name: str) -> None:
    rows = oracle.collection(20, 8, "uniform", 0)
    index = an_index(kind, rows, None, 8)
    setting: dict[str, Any] = {name: 5}
    with pytest.raises(
        la.errors.ArgumentError, match=f"{name} does not apply to a search with masks"
    ):
        index.search(rows[:1], 3, masks=rows[:1], **setting)


def test_other_indexes_refuse_masks() -> None:
    rows = oracle.collection(200, 8, "uniform", 0)
    blocks, flips = la.BlockIndex(rows, radius=3), la.FlipIndex(rows)
    prefixes, card = la.PrefixIndex(rows), on_fake_card(la.GpuIndex)(rows)
    masks: Any = rows[:1]
    for index in (blocks, flips, prefixes, card, la.ClusterIndex(rows)):
        for ask in (index.search, index.within):
            with pytest.raises(la.errors.ArgumentError, match="Use ScanIndex or SliceIndex"):
                ask(rows[:1], 3, masks=masks)
    shards = la.ShardedIndex([la.ScanIndex(rows), blocks])
    for ask_all in (shards.search, shards.within):
        with pytest.raises(la.errors.ArgumentError, match="BlockIndex does not support masks"):
            ask_all(rows[:1], 3, masks=masks)


@settings(max_examples=30, deadline=None)
@given(collections_with_queries(), st.data())
def test_answers_with_masks_are_merged_as_one_index_gives_them(
    data: Data, draw: st.DataObject
) -> None:
    rows, queries = data
    masks, cut = some_masks(draw, queries), draw.draw(st.integers(0, len(rows)))
    k = draw.draw(st.integers(1, 5))
    parts = [
        la.ScanIndex(part).search(queries, k, masks=masks) for part in (rows[:cut], rows[cut:])
    ]
    merged = la.indexes.merge_neighbors(parts, starts=[0, cut])
    whole = la.ScanIndex(rows).search(queries, k, masks=masks)
    np.testing.assert_array_equal(merged.ids, whole.ids)
    np.testing.assert_array_equal(merged.distances, whole.distances)
    np.testing.assert_array_equal(merged.unmasked, whole.unmasked)
    with pytest.raises(la.errors.ArgumentError, match="Leave rerank out"):
        la.indexes.merge_neighbors(parts, rerank=k, starts=[0, cut])
    plain = la.ScanIndex(rows[cut:]).search(queries, k)
    with pytest.raises(la.errors.ArgumentError, match="some are not"):
        la.indexes.merge_neighbors([parts[0], plain], starts=[0, cut])
