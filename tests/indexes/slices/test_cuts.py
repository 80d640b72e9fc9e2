"""Slices of any widths, values that are searched for, and which candidates are compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.errors import ArgumentError
from lookalike.indexes.slices import lists
from support.cases.strategies import collections
from support.oracles import scan as oracle
from support.oracles import slices as slice_oracle

CULLS = ("pessimistic", "optimistic", "both")


@st.composite
def cuts(draw: st.DrawFn, bits: int) -> tuple[int, ...]:
    """Widths of slices that have at most this number of bits together."""
    widths: list[int] = []
    while sum(widths) < bits and len(widths) < 6:
        widths.append(draw(st.integers(1, min(32, bits - sum(widths)))))
        if draw(st.booleans()) and len(set(widths)) > 2:
            break
    return tuple(widths)


@contextmanager
def searched_values(yes: bool) -> Iterator[None]:
    """Search for values where there are few signatures, too, or leave it as it is."""
    if not yes:
        yield
        return
    with patch.multiple(lists, _FREE_LIST_BYTES=0, _LISTS_PER_ROW=0, _LEAST_SEARCHED=1):
        yield


@given(
    st.data(),
    st.sampled_from([1, 2, 3, 8, 9, 16]),
    st.booleans(),
    st.integers(1, 8),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 20),
    st.sampled_from(CULLS),
    st.sampled_from([1, 3]),
)
def test_any_cut_finds_what_the_definition_finds(
    kernel: str,
    data: st.DataObject,
    width: int,
    searched: bool,
    k: int,
    expand: int,
    admit: int,
    more: int,
    cull: str,
    threads: int,
) -> None:
    rows = data.draw(collections(width=width, most=40))
    cut = data.draw(cuts(8 * width))
    with searched_values(searched):
        index = la.SliceIndex(rows, cut, threads=threads)
        living = dict(enumerate(rows))
        if data.draw(st.booleans()):
            added = data.draw(collections(width=width, most=12))
            living |= dict(zip(index.add(added).tolist(), added, strict=True))
        removing = data.draw(st.booleans())
        if living and removing:
            gone = data.draw(st.lists(st.sampled_from(sorted(living)), unique=True, max_size=5))
            index.remove(gone)
            living = {name: row for name, row in living.items() if name not in gone}
        if data.draw(st.booleans()):
            index.compact()
    queries = data.draw(collections(width=width, most=3))
    found = index.search(
        queries, k, expand=expand, admit=admit, rerank=k + more, cull=cull, threads=threads
    )
    limits = cut, expand, admit, k + more, cull
    for row, query in enumerate(queries):
        ids, distances = found[row]
        expected = slice_oracle.search(living, query, k, *limits)
        assert list(zip(distances.tolist(), ids.tolist(), strict=True)) == expected
        truth = sorted((oracle.distance(one, query), name) for name, one in living.items())
        if found.exact:
            assert expected == truth[:k]
        near = index.within(query, radius=more)[0]
        assert list(zip(near[1].tolist(), near[0].tolist(), strict=True)) == [
            one for one in truth if one[0] <= more
        ]


@given(st.data(), st.sampled_from([4, 8, 12]), st.integers(1, 5), st.integers(0, 3))
def test_searched_values_are_saved_and_built_in_pieces(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, width: int, k: int, expand: int
) -> None:
    rows = data.draw(collections(width=width, most=60))
    cut = data.draw(cuts(8 * width))
    folder = tmp_path_factory.mktemp("cut")
    with searched_values(True):
        index = la.SliceIndex(rows, cut)
        index.save(folder / "saved")
        memory = data.draw(st.integers(1, 2000))
        built = la.SliceIndex.build(folder / "built", rows, cut, memory=memory)
        both = [la.load_index(folder / "saved"), built]
        halves = [la.SliceIndex(half, cut) for half in np.array_split(rows, 2)]
        both.append(la.SliceIndex.merge(halves))
    queries = data.draw(collections(width=width, most=3))
    expected = index.search(queries, k, expand=expand)
    for other in both:
        assert isinstance(other, la.SliceIndex)
        assert other.slice_bits == cut
        found = other.search(queries, k, expand=expand)
        assert (found.ids == expected.ids).all()
        assert (found.distances == expected.distances).all()


def test_63_bits_as_32_and_31() -> None:
    generator = np.random.default_rng(63)
    rows = generator.integers(0, 256, (5000, 8), np.uint8)
    rows[:, 7] &= 0x7F  # a bit of padding, which is 0
    rows[1:4] = rows[0]
    rows[1, 0] ^= 1
    rows[2, 7] ^= 0b0110_0000
    rows[3, 3] ^= 0b1111
    index = la.SliceIndex(rows, [32, 31])
    assert index.slices == 2
    assert index.stats()["slice_bits"] == [32, 31]
    assert "32 + 31" in index.summary()
    assert index.within(rows[0], 2).ids.tolist() == [0, 1, 2]
    # A slice that is equal makes a candidate: the first, third and fourth differ in one only.
    assert index.search(rows[0], 4, expand=0).ids.tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("slice_bits", [32, 30, (32, 32), (25, 20, 19)])
def test_memory_of_wide_slices_is_bounded_by_the_signatures(
    slice_bits: int | tuple[int, ...],
) -> None:
    rows = np.random.default_rng(1).integers(0, 256, (20_000, 8), np.uint8)
    index = la.SliceIndex(rows, slice_bits)
    # Per signature and slice: a row, a value, a sketch, and an offset for at most two signatures.
    assert index.memory_bytes <= rows.nbytes + len(rows) * index.slices * (4 + 4 + 2 + 8)


def test_equal_signatures_stay_fast_where_values_are_searched_for() -> None:
    rows = np.zeros((300_000, 8), np.uint8)
    rows[::3, 0] = 1
    index = la.SliceIndex(rows, [32, 32])
    assert index.search(rows[0], 3, expand=1).ids.tolist() == [[0, 3, 6]]


@pytest.mark.parametrize(
    ("slice_bits", "message"),
    [
        ([], "0 widths with 0 bits"),
        ([40], "slice_bits is 40"),
        ([32, 32, 1], "65 bits together; expected 1 to 64"),
        (33, "slice_bits is 33"),
    ],
)
def test_bad_cuts_are_refused(slice_bits: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        la.SliceIndex(np.zeros((3, 8), np.uint8), slice_bits)  # type: ignore[arg-type]


def test_culling_is_refused_where_nothing_is_culled() -> None:
    index = la.SliceIndex(np.zeros((3, 8), np.uint8))
    query = np.zeros(8, np.uint8)
    with pytest.raises(ArgumentError, match="cull is 'best'; expected one of: pessimistic"):
        index.search(query, 1, cull="best")
    with pytest.raises(ArgumentError, match="rerank 0 compares none"):
        index.search(query, 1, rerank=0, cull="both")
    with pytest.raises(ArgumentError, match="exact search"):
        index.search(query, 1, exact=True, cull="both")


def test_culling_by_both_bounds_loses_no_candidate(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    rows = generator.integers(0, 256, (4000, 8), np.uint8)
    queries = rows[:50] ^ (generator.random((50, 8)) < 0.1).astype(np.uint8)
    index = la.SliceIndex(rows, 16)
    all_compared = index.search(queries, 1, expand=3, rerank=len(rows), explain=True)
    culled = index.search(queries, 1, expand=3, cull="both", explain=True)
    assert (culled.ids == all_compared.ids).all()
    assert all_compared.explanation is not None
    assert culled.explanation is not None
    assert culled.explanation.reranked.sum() < all_compared.explanation.reranked.sum() / 10
    assert (culled.explanation.exact == all_compared.explanation.exact).all()
