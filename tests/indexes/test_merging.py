"""One answer from several equals the answer of the whole."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.indexes.results import merged_matches
from support.cases.strategies import collections_with_queries
from support.oracles import scan as oracle


@given(collections_with_queries(), st.integers(0, 40), st.integers(1, 4))
def test_matches_of_parts_are_those_of_the_whole(
    data: tuple[oracle.Signatures, oracle.Signatures], radius: int, count: int
) -> None:
    rows, queries = data
    cuts = np.array_split(np.arange(len(rows)), count)
    found = [la.ScanIndex(rows[part], part).within(queries, radius) for part in reversed(cuts)]
    columns = [(one.query, one.ids, one.distances) for one in found]
    merged = merged_matches(len(queries), columns, exact=False)
    assert not merged.exact
    assert merged.offsets.dtype == merged.ids.dtype == np.int64
    assert merged.distances.dtype == np.int32
    pairs = [list(zip(far.tolist(), ids.tolist(), strict=True)) for ids, far in merged]
    assert pairs == oracle.within(rows, queries, radius)
    assert len(merged_matches(3, [], exact=True)) == 3


@pytest.mark.parametrize("bits", [8, 16])
@given(st.data())
def test_a_proof_of_slices_holds_for_every_signature(bits: int, draw: st.DataObject) -> None:
    """All that a signature can be is enumerated: in how many bits each slice differs."""
    slice_bits = draw.draw(st.integers(2, bits))
    widths = _native.slice_widths(bits, slice_bits)
    expand = draw.draw(st.integers(0, widths[0]))
    admit = draw.draw(st.integers(0, expand))
    apart = np.array(list(product(*(range(width + 1) for width in widths))))
    seen = (apart <= admit).any(axis=1)
    scores = np.where(apart <= expand, np.array(widths) - apart, 0).sum(axis=1)
    kths, rests = np.meshgrid(np.arange(-1, bits + 1), np.arange(-1, bits + 1))
    kth, rest = kths.ravel().astype(np.int32), rests.ravel().astype(np.int32)
    proven = np.zeros(len(kth), np.uint8)
    _native.slice_proofs(bits, slice_bits, expand, admit, rest, kth, proven)
    for near, score in zip(kth[proven == 1].tolist(), rest[proven == 1].tolist(), strict=True):
        left = ~seen | ((scores > 0) & (scores <= score))
        assert 0 <= near < apart[left].sum(axis=1).min(initial=bits + 1)
    if expand < min(widths):  # else all of them are seen, whatever they are
        assert not proven[(kth == bits) | (kth < 0)].any()
        assert proven[(kth == 0) & (rest < 0)].all(), "what was not seen differs somewhere"
