"""Slice indexes: what they find, beside the definition; each path and each kernel."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.indexes.rows import Rows
from lookalike.indexes.segments import Segment
from lookalike.indexes.slices.lists import slice_width
from support.cases.strategies import collections, distinct_ids
from support.oracles import scan as oracle
from support.oracles import slices as slice_oracle

narrow = st.sampled_from([1, 2, 3, 8, 9, 16])


@st.composite
def histories(draw: st.DrawFn) -> tuple[la.SliceIndex, dict[int, oracle.Signatures]]:
    """An index that has been added to, removed from and compacted, and what should be in it."""
    rows = draw(collections(width=draw(narrow), most=40))
    ids = draw(distinct_ids(len(rows)))
    index = la.SliceIndex(rows, draw(st.integers(1, 14)), ids)
    living = dict(zip(range(len(rows)) if ids is None else ids, rows, strict=True))
    for _ in range(draw(st.integers(0, 3))):
        step = draw(st.sampled_from(["add", "remove", "compact"]))
        if step == "add":
            more = draw(collections(width=rows.shape[1], most=12))
            if index.next_id < 2**62:
                living |= dict(zip(index.add(more).tolist(), more, strict=True))
        elif step == "remove" and living:
            gone = draw(st.lists(st.sampled_from(sorted(living)), unique=True, max_size=9))
            index.remove(gone)
            living = {name: row for name, row in living.items() if name not in gone}
        elif step == "compact":
            index.compact()
    return index, living


@given(
    st.data(),
    histories(),
    st.integers(1, 12),
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 40),
    st.sampled_from([1, 3]),
)
def test_search_equals_the_definition_with_every_kernel(
    kernel: str,
    draw: st.DataObject,
    history: tuple[la.SliceIndex, dict[int, oracle.Signatures]],
    k: int,
    expand: int,
    admit: int,
    more: int,
    threads: int,
) -> None:
    index, living = history
    queries = draw.draw(collections(width=index.bits // 8, most=3))
    settings: dict[str, Any] = {"expand": expand, "admit": admit, "rerank": k + more}
    result = index.search(queries, k, explain=True, threads=threads, **settings)
    explanation = result.explanation
    assert explanation is not None
    assert len(index) == len(living)
    truth = _brute_force(living, queries, k)
    for row, query in enumerate(queries):
        expected = slice_oracle.search(living, query, k, index.slice_bits, expand, admit, k + more)
        ids, distances = result[row]
        assert list(zip(distances.tolist(), ids.tolist(), strict=True)) == expected
        assert (result.ids[row, len(ids) :] == -1).all()
        if explanation.exact[row]:
            assert expected == truth[row]
        assert explanation.candidates[row] >= min(explanation.reranked[row], len(expected))
        for place, name in enumerate(ids.tolist()):
            points = slice_oracle.score(living[name], query, index.slice_bits, expand, admit)
            low, high = slice_oracle.bounds(points, index.bits, index.slice_bits, expand)
            assert explanation.optimistic is not None
            assert explanation.pessimistic is not None
            assert explanation.optimistic[row, place] == low <= distances[place]
            assert explanation.pessimistic[row, place] == high >= distances[place]


@given(st.data(), histories(), st.integers(1, 50), st.sampled_from([1, 3]))
def test_exact_search_is_exact(
    draw: st.DataObject,
    history: tuple[la.SliceIndex, dict[int, oracle.Signatures]],
    k: int,
    threads: int,
) -> None:
    index, living = history
    queries = draw.draw(collections(width=index.bits // 8, most=3))
    result = index.search(queries, k, exact=True, threads=threads)
    assert result.exact
    found = [list(zip(far.tolist(), ids.tolist(), strict=True)) for ids, far in result]
    assert found == _brute_force(living, queries, k)


@pytest.mark.parametrize(
    ("rows", "query", "slice_bits", "k", "settings"),
    [
        (
            oracle.collection(369, 2, "uniform", 1048487073),
            oracle.collection(5, 2, "uniform", 1048487074)[2],
            11,
            18,
            {"expand": 3, "admit": 3, "rerank": 52},
        ),
        (
            oracle.collection(379, 2, "uniform", 381351902),
            oracle.collection(5, 2, "uniform", 381351903)[1],
            14,
            15,
            {"expand": 4, "admit": 2, "rerank": 37},
        ),
        (
            oracle.collection(365, 14, "clustered", 492768335),
            oracle.collection(365, 14, "clustered", 492768335)[61],
            15,
            18,
            {"expand": 2, "admit": 0, "rerank": 28, "exact": True},
        ),
    ],
)
def test_a_lower_score_may_be_nearer(
    rows: oracle.Signatures, query: oracle.Signatures, slice_bits: int, k: int, settings: Any
) -> None:
    """Cases in which the bound of the best score left would prove too much."""
    index = la.SliceIndex(rows, slice_bits)
    truth = la.ScanIndex(rows).search(query, k)
    halves = la.ShardedIndex([la.SliceIndex(half, slice_bits) for half in np.array_split(rows, 2)])
    for searched in (index, halves):
        result = searched.search(query, k, **settings)
        if result.exact:
            assert np.array_equal(result.ids, truth.ids)
    assert np.array_equal(index.search(query, k, rerank=k, exact=True).ids, truth.ids)


@pytest.mark.parametrize("seed", range(150))
def test_what_is_proven_is_true(seed: int) -> None:
    rng = np.random.default_rng(seed)
    width = int(rng.choice([1, 2, 3, 9, 14]))
    rows = oracle.collection(int(rng.integers(1, 400)), width, str(rng.choice(oracle.STYLES)), seed)
    queries = np.concatenate([rows[:3], oracle.collection(4, width, "uniform", seed + 1)])
    index = la.SliceIndex(rows, int(rng.integers(1, 17)))
    k = int(rng.integers(1, 30))
    truth = la.ScanIndex(rows).search(queries, k)
    for exact in (False, True):
        result = index.search(
            queries,
            k,
            expand=int(rng.integers(0, 6)),
            admit=int(rng.integers(0, 6)),
            rerank=k + int(rng.integers(0, 60)),
            exact=exact,
            explain=True,
        )
        assert result.explanation is not None
        proven = result.explanation.exact
        assert proven.all() or not exact
        assert np.array_equal(result.ids[proven], truth.ids[proven])


@given(st.data(), histories(), st.sampled_from([1, 3]))
def test_within_is_complete_and_says_each_once(
    draw: st.DataObject,
    history: tuple[la.SliceIndex, dict[int, oracle.Signatures]],
    threads: int,
) -> None:
    index, living = history
    queries = draw.draw(collections(width=index.bits // 8, most=4))
    radius = draw.draw(st.integers(0, index.bits + 1))
    result = index.within(queries, radius, explain=True, threads=threads)
    found = [list(zip(far.tolist(), ids.tolist(), strict=True)) for ids, far in result]
    nearest = _brute_force(living, queries, len(living))
    assert found == [[pair for pair in line if pair[0] <= radius] for line in nearest]
    assert result.exact
    assert result.explanation is not None


@given(st.data(), histories(), st.sampled_from([1, 3]))
def test_pairs_are_complete_and_collapse_to_stars(
    draw: st.DataObject,
    history: tuple[la.SliceIndex, dict[int, oracle.Signatures]],
    threads: int,
) -> None:
    index, living = history
    radius = draw.draw(st.integers(0, index.bits))
    names, rows = list(living), np.array(list(living.values()))
    rows = rows.reshape(len(names), index.bits // 8)
    expected = oracle.pairs(rows, radius, names)
    assert _listed(index.pairs(radius, threads=threads)) == expected
    star = _listed(index.pairs(radius, collapse=True, threads=threads))
    first: dict[bytes, int] = {}
    for name in sorted(names):
        first.setdefault(living[name].tobytes(), name)
    kept = set(first.values())
    assert star == sorted(
        pair
        for pair in expected
        if {pair[0], pair[1]} <= kept or (pair[2] == 0 and pair[0] in kept)
    )


def _brute_force(
    living: dict[int, oracle.Signatures], queries: oracle.Signatures, k: int
) -> list[list[tuple[int, int]]]:
    return [
        sorted((oracle.distance(row, query), name) for name, row in living.items())[:k]
        for query in queries
    ]


def _listed(pairs: la.results.Pairs) -> list[tuple[int, int, int]]:
    columns = (pairs.left.tolist(), pairs.right.tolist(), pairs.distances.tolist())
    return list(zip(*columns, strict=True))


# The papers' own numbers


@pytest.mark.parametrize(("expand", "lists"), [(0, 1), (1, 17), (2, 137), (3, 697), (4, 2517)])
def test_lists_per_slice_of_16_bits(expand: int, lists: int) -> None:
    index = la.SliceIndex(oracle.collection(100, 8, "uniform", 0), 16)
    explanation = index.search(index.living()[0][:2], 1, expand=expand, explain=True).explanation
    assert explanation is not None
    assert explanation.lists.tolist() == [4 * lists] * 2


def test_uneven_slices() -> None:
    assert _native.slice_widths(63, 32) == [32, 31]
    assert _native.slice_widths(64, 22) == [22, 21, 21]
    assert _native.slice_widths(1024, 16) == [16] * 64
    for bits in range(1, 200):
        for slice_bits in range(1, 29):
            widths = _native.slice_widths(bits, slice_bits)
            assert widths == slice_oracle.widths(bits, slice_bits)
            assert sum(widths) == bits
            assert max(widths) <= slice_bits
            assert max(widths) - min(widths) <= 1


def test_slices_of_8_bits_find_all_at_distance_2_and_of_12_bits_11_of_23() -> None:
    masks = [1 << a | 1 << b for a, b in combinations(range(24), 2)]
    rows = np.array([list(mask.to_bytes(3, "little")) for mask in masks], np.uint8)
    query = np.zeros((1, 3), np.uint8)
    for slice_bits, found in ((8, 1.0), (12, 11 / 23)):
        explanation = la.SliceIndex(rows, slice_bits).search(query, 1, expand=0, explain=True)
        assert explanation.explanation is not None
        assert explanation.explanation.candidates[0] / len(rows) == pytest.approx(found)


def test_bounds_of_a_signature_that_appears_in_3_of_4_slices() -> None:
    query = np.array([[1, 2, 3, 4]], np.uint8)
    row = np.array([[1, 2, 3, 255 ^ 4]], np.uint8)
    explanation = la.SliceIndex(row, 8).search(query, 1, expand=0, explain=True).explanation
    assert explanation is not None
    assert explanation.optimistic is not None
    assert explanation.pessimistic is not None
    assert (explanation.optimistic[0, 0], explanation.pessimistic[0, 0]) == (1, 8)
    assert slice_oracle.bounds(0, 32, 8, 0) == (4, 32)  # in no slice
    assert slice_oracle.bounds(0, 32, 8, 1) == (8, 32)  # nor within one bit of any


def test_lists_take_no_more_than_the_paper_says() -> None:
    rows = oracle.collection(3_000, 128, "uniform", 0)
    index = la.SliceIndex(rows, 16)
    assert index.memory_bytes - rows.nbytes <= 4 * (3_000 * 64 + 2**16 * 64)


def test_the_width_grows_by_a_bit_when_the_collection_doubles() -> None:
    assert slice_width(1_000_000, 1024) == 16
    widths = [slice_width(2**n, 1024) for n in range(12, 33)]
    assert all(b - a in (0, 1) for a, b in pairwise(widths))
    assert slice_width(10**15, 1024) == 28
    assert slice_width(0, 64) >= 1
    assert slice_width(1_000_000, 1024, memory=300_000_000) == 16
    assert slice_width(1_000_000, 1024, memory=272_600_000) == 17
    with pytest.raises(la.errors.ArgumentError, match="take at least"):
        slice_width(1_000_000, 1024, memory=200_000_000)


# Larger collections, threads, parts


def test_any_number_of_threads_gives_the_same_answer() -> None:
    rows = oracle.collection(30_000, 32, "clustered", 3)
    index = la.SliceIndex(rows, 8)
    for admit in (0, 1, 3):
        for count in (1, 40):
            one = index.search(rows[:count], 9, expand=3, admit=admit, threads=1)
            for threads in (2, 5):
                many = index.search(rows[:count], 9, expand=3, admit=admit, threads=threads)
                assert np.array_equal(one.ids, many.ids)
                assert one.exact == many.exact
    wide = index.within(rows[:50], 20, threads=1)
    assert np.array_equal(wide.ids, index.within(rows[:50], 20, threads=3).ids)
    assert np.array_equal(wide.ids, la.ScanIndex(rows).within(rows[:50], 20).ids)


@pytest.mark.parametrize(("slice_bits", "expand"), [(8, 0), (8, 3), (16, 0), (16, 1)])
@pytest.mark.parametrize("threads", [1, 3])
def test_scores_of_near_copies(slice_bits: int, expand: int, threads: int) -> None:
    """Scores up to all of 1024 bits, which a byte does not hold, by tables and by sorting."""
    rng = np.random.default_rng(slice_bits + expand)
    base = rng.integers(0, 256, (1, 128), np.uint8)
    share = np.concatenate([np.zeros(5), np.geomspace(0.001, 0.5, 995)])[:, None]
    rows = base ^ np.packbits(rng.random((1000, 1024)) < share, axis=1)
    rows = np.concatenate([rows, rng.integers(0, 256, (1500, 128), np.uint8)])
    rows = rows[rng.permutation(len(rows))]
    ids = rng.permutation(10_000)[: len(rows)]
    for names in (None, ids):
        index = la.SliceIndex(rows, slice_bits, names)
        living = dict(zip(index.living()[1].tolist(), rows, strict=True))
        for admit in {0, expand}:
            for rerank in (20, 600):
                settings: dict[str, Any] = {"expand": expand, "admit": admit, "rerank": rerank}
                found = index.search(base, 9, threads=threads, **settings)
                expected = slice_oracle.search(
                    living, base[0], 9, slice_bits, expand, admit, rerank
                )
                answer = zip(found.distances[0].tolist(), found.ids[0].tolist(), strict=True)
                assert list(answer) == expected


@pytest.mark.parametrize("threads", [1, 3])
def test_large_scores_of_no_candidates(kernel: str, threads: int) -> None:
    """Further lists add more than a byte holds to rows that are no candidates; all of it goes."""
    rng = np.random.default_rng(3)
    base = rng.integers(0, 256, (1, 128), np.uint8)
    far = base ^ (1 << rng.integers(0, 8, (1, 128))).astype(np.uint8)  # one bit of each slice
    rows = np.concatenate([np.repeat(far, 700, axis=0), np.repeat(base, 30, axis=0)])
    rows = np.concatenate([rows, rng.integers(0, 256, (30_000, 128), np.uint8)])
    index = la.SliceIndex(rows, 8)
    for query, first, count in ((base, 700, 30), (far, 0, 700), (base, 700, 30)):
        settings: dict[str, Any] = {"rerank": len(rows), "threads": threads}
        few = index.search(query, 800, expand=1, admit=0, explain=True, **settings)
        assert few.explanation is not None
        assert few.explanation.lists[0] == 9 * 128  # lists, not slices of candidates
        assert few.ids[0, :count].tolist() == list(range(first, first + count))
        assert (few.distances[0] > 128).sum() == 800 - count
        more = index.search(query, 800, expand=1, admit=1, **settings)
        assert (more.distances[0] <= 128).sum() == 730


@pytest.mark.parametrize("slice_bits", [3, 4, 5, 8, 13, 17, 26])
@pytest.mark.parametrize("skewed", [False, True])
def test_lists_that_admit_no_candidates(kernel: str, slice_bits: int, skewed: bool) -> None:
    """Few candidates are compared slice by slice, many by further lists: to the same scores.

    Skewed signatures have more candidates than is to be expected of their number.
    """
    rng = np.random.default_rng(slice_bits)
    rows = rng.integers(0, 256, (3_000, 51), np.uint8)
    if skewed:
        rows[::2, : 51 // 2] = rows[0, : 51 // 2]
    near = rows[0] ^ np.packbits(rng.random((60, 408)) < 0.06, axis=1)
    rows = np.concatenate([rows, near])
    index = la.SliceIndex(rows, slice_bits)
    index.remove(range(0, 3_000, 7))
    living = dict(zip(index.living()[1].tolist(), index.living()[0], strict=True))
    queries = np.concatenate([near[:1], rows[1:2]])
    read = {}
    for expand in (2, 4):
        for admit in range(expand):
            settings: dict[str, Any] = {"expand": expand, "admit": admit, "rerank": 50}
            for threads in (1, 3):
                found = index.search(queries, 9, explain=True, threads=threads, **settings)
                for row, query in enumerate(queries):
                    expected = slice_oracle.search(living, query, 9, slice_bits, expand, admit, 50)
                    answer = zip(
                        found.distances[row].tolist(), found.ids[row].tolist(), strict=True
                    )
                    assert [one for one in answer if one[1] >= 0] == expected
            assert found.explanation is not None
            read[expand, admit] = int(found.explanation.lists[0])
    # Each path was taken: slices alone, lists from the start, and lists because of many candidates.
    widths = slice_oracle.widths(408, slice_bits)
    lists = [sum(math.comb(width, ones) for width in widths) for ones in range(5)]
    at_once = kernel == "avx512"  # which compares many slices at once: lists never pay here
    if slice_bits == 8:
        assert read[4, 0] == lists[0]
        assert read[4, 3] == sum(lists[:4] if at_once else lists)
    if slice_bits == 13:
        assert read[2, 1] == sum(lists[: 3 if skewed and not at_once else 2])


@given(st.data(), histories(), st.integers(0, 3), st.integers(0, 3), st.sampled_from([1, 3]))
def test_a_batch_is_answered_as_its_queries_one_by_one(
    draw: st.DataObject,
    history: tuple[la.SliceIndex, dict[int, oracle.Signatures]],
    expand: int,
    admit: int,
    threads: int,
) -> None:
    index, living = history
    queries = draw.draw(collections(width=index.bits // 8, most=60, least=1))
    queries = np.concatenate([queries, *(row[None] for row in living.values()), queries[:3]])
    settings: dict[str, Any] = {"expand": expand, "admit": admit, "rerank": 9, "explain": True}
    batch = index.search(queries, 3, threads=threads, **settings)
    assert batch.explanation is not None
    for row, query in enumerate(queries):
        alone = index.search(query, 3, threads=1, **settings)
        assert alone.explanation is not None
        assert np.array_equal(batch.ids[row], alone.ids[0])
        assert np.array_equal(batch.distances[row], alone.distances[0])
        for counted in ("lists", "postings", "candidates", "reranked"):
            assert getattr(batch.explanation, counted)[row] == getattr(alone.explanation, counted)


def test_64_bit_lists_give_the_same_answers() -> None:
    rows = oracle.collection(2_000, 16, "clustered", 3)
    index = la.SliceIndex(rows, 9)
    expected = index.search(rows[:20], 5, expand=2)
    near = index.within(rows[:20], 12)
    index._segments = (Segment.build(Rows(rows), 9, 2, wide=True),)
    lists = index._segments[0].lists
    assert lists is not None
    assert lists[0].dtype == np.uint64
    assert np.array_equal(index.search(rows[:20], 5, expand=2).ids, expected.ids)
    assert np.array_equal(index.within(rows[:20], 12).ids, near.ids)
    index._segments = (index._segments[0], *index._segments)
    index.compact()  # merges 64-bit lists


def test_building_sorts_each_list() -> None:
    rows = oracle.collection(3_000, 5, "clustered", 1)
    for threads in (1, 4):
        segment = Segment.build(Rows(rows), 11, threads)
        assert segment.lists is not None
        offsets, postings = segment.lists[:2]
        values = np.array([slice_oracle.slices(row, 11) for row in rows])
        begin = 0
        for position, width in enumerate(slice_oracle.widths(40, 11)):
            order = np.argsort(values[:, position], kind="stable")
            assert np.array_equal(postings[position * 3_000 : (position + 1) * 3_000], order)
            starts = np.searchsorted(values[order, position], np.arange(1 << width))
            assert np.array_equal(offsets[begin : begin + (1 << width)], starts)
            begin += 1 << width


def test_merged_and_sharded_parts_equal_the_whole() -> None:
    rows = oracle.collection(3_001, 24, "clustered", 8)
    whole = la.SliceIndex(rows, 10)
    parts = [la.SliceIndex(part, 10) for part in np.array_split(rows, 4)]
    sharded, merged = la.ShardedIndex(parts), la.SliceIndex.merge(parts)
    assert len(sharded) == len(merged) == 3_001
    for expand, admit, rerank in ((0, 0, 20), (1, 1, 10), (3, 1, 100), (2, 2, 5_000)):
        settings: dict[str, Any] = {"expand": expand, "admit": admit, "rerank": rerank}
        expected = whole.search(rows[::300], 7, explain=True, **settings)
        for other in (sharded, merged):
            found = other.search(rows[::300], 7, explain=True, **settings)
            assert np.array_equal(found.ids, expected.ids)
            assert np.array_equal(found.distances, expected.distances)
            assert found.explanation is not None
            assert expected.explanation is not None
            assert np.array_equal(found.explanation.exact, expected.explanation.exact)
            assert np.array_equal(
                np.asarray(found.explanation.optimistic),
                np.asarray(expected.explanation.optimistic),
            )
    for other in (sharded, merged):
        assert np.array_equal(
            other.search(rows[:9], 5, exact=True).ids, whole.search(rows[:9], 5, exact=True).ids
        )
        near = other.within(rows[:9], 40)
        assert np.array_equal(near.ids, whole.within(rows[:9], 40).ids)
        assert np.array_equal(near.offsets, whole.within(rows[:9], 40).offsets)
        assert _listed(other.pairs(3)) == _listed(whole.pairs(3))
    mixed = la.ShardedIndex([la.ScanIndex(rows[:1000]), la.SliceIndex(rows[1000:], 10)])
    exact = la.ScanIndex(rows)
    assert np.array_equal(mixed.search(rows[:9], 5, exact=True).ids, exact.search(rows[:9], 5).ids)
    parts[0].add(rows[:2])
    grown = sharded.search(rows[:3], 3_003, exact=True, explain=True)
    assert all(len(set(line)) == 3_003 for line in grown.ids.tolist())
    assert grown.explanation is not None
    with pytest.raises(la.errors.ResultTooLargeError, match="limit=3 matches"):
        sharded.within(rows[:9], 192, limit=3)


def test_exact_search_ends_on_a_collection_without_lists() -> None:
    rows = np.array([[0] * 8, [255] * 8], np.uint8)
    index = la.SliceIndex(rows, slice_bits=28)
    assert index._segments[0].lists is None
    assert index.search(rows[:1], 2, exact=True).ids.tolist() == [[0, 1]]
    assert la.SliceIndex(rows, slice_bits=8).search(rows[:1], 2, exact=True).exact


def test_near_duplicates_are_found() -> None:
    """Neighbors within a tenth of the bits have slices in common, nearly always."""
    rng = np.random.default_rng(0)
    rows = oracle.collection(5_000, 128, "uniform", 0)
    flips = np.packbits(rng.random((500, 1024)) < 0.1, axis=1)
    found = la.SliceIndex(rows, 12).search(rows[:500] ^ flips, 1, expand=1).ids[:, 0]
    assert math.isclose(np.mean(found == np.arange(500)), 1.0)
