"""Arrays of pairs: what is quick for few or dense ones is what sorting would give."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lookalike.dedup.pairs import VerifiedPairs, in_order, merged, numbered

SOME = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40)


def pairs_of(drawn: list[tuple[int, int]]) -> VerifiedPairs:
    """Return them in order, each once; what is known of a pair follows from the pair."""
    chosen = sorted({(left, left + 1 + right) for left, right in drawn})
    left, right = np.array(chosen, np.int64).reshape(-1, 2).T
    return VerifiedPairs(
        np.ascontiguousarray(left),
        np.ascontiguousarray(right),
        left / (1.0 + right),
        (left * 100 + right).astype(np.int32),
    )


@given(SOME, SOME)
def test_merging_is_sorting_both(some: list[tuple[int, int]], more: list[tuple[int, int]]) -> None:
    expected = in_order([pairs_of(some), pairs_of(more)])
    found = merged(pairs_of(some), pairs_of(more))
    for name in ("left", "right", "similarity", "distance"):
        column = getattr(found, name)
        assert column.dtype == getattr(expected, name).dtype
        assert column.tolist() == getattr(expected, name).tolist()


@given(st.lists(st.integers(0, 300), max_size=60), st.sampled_from([301, 5000]))
def test_numbers_have_their_places(drawn: list[int], bound: int) -> None:
    numbers = np.array(drawn, np.int64)
    found, places = numbered(numbers, bound)
    assert found.tolist() == sorted(set(drawn))
    assert found[places].tolist() == drawn
