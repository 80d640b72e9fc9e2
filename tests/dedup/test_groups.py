from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookalike.dedup.decide import Decision, decide
from lookalike.dedup.pairs import VerifiedPairs
from lookalike.dedup.settings import DedupSettings
from support.oracles import dedup as dedup_oracle

COMPONENTS = DedupSettings(grouping="components")


def pairs_of(pairs: set[tuple[int, int]]) -> VerifiedPairs:
    columns = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    left, right = np.ascontiguousarray(columns.T)
    return VerifiedPairs(left, right, np.full(len(left), 0.9), np.zeros(len(left), np.int32))


def decided(
    count: int,
    pairs: set[tuple[int, int]],
    settings: DedupSettings,
    rank: NDArray[np.int64] | None = None,
    first: NDArray[np.int64] | None = None,
) -> Decision:
    own = np.arange(count)
    return decide(pairs_of(pairs), own if rank is None else rank, settings, first=first)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, set[tuple[int, int]]]:
    count = draw(st.integers(1, 30))
    member = st.integers(0, count - 1)
    drawn = draw(st.sets(st.tuples(member, member), max_size=60))
    return count, {(min(pair), max(pair)) for pair in drawn if pair[0] != pair[1]}


@given(graphs())
def test_components_are_what_pairs_connect(graph: tuple[int, set[tuple[int, int]]]) -> None:
    count, pairs = graph
    found = decided(count, pairs, COMPONENTS)
    assert found.group_of.tolist() == dedup_oracle.components(count, pairs)
    assert not found.warnings


@given(graphs(), st.randoms(use_true_random=False))
def test_in_a_star_everyone_is_paired_with_the_center(
    graph: tuple[int, set[tuple[int, int]]], random: object
) -> None:
    count, pairs = graph
    order = list(range(count))
    random.shuffle(order)  # type: ignore[attr-defined]
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    found = decided(count, pairs, DedupSettings(), rank)
    centers = dedup_oracle.stars(order, pairs)
    first: dict[int, int] = {}
    for member, center in enumerate(centers):
        first.setdefault(center, member)
    assert found.group_of.tolist() == [first[center] for center in centers]


def test_a_long_chain_is_split_and_warned_of() -> None:
    links = {(at, at + 1) for at in range(50)}
    settings = DedupSettings(grouping="components", max_group=20)
    found = decided(60, links, settings)
    assert found.warnings[0].startswith("1 group had more than")
    assert "chains" in found.warnings[0] and "51" in found.warnings[0]
    sizes = np.bincount(found.group_of)
    assert sizes.max() == 2  # each is alike to the one before it, and to no other that stays
    unsplit = decided(60, links, COMPONENTS)
    assert np.bincount(unsplit.group_of).max() == 51 and not unsplit.warnings


@pytest.mark.parametrize("settings", [DedupSettings(), COMPONENTS])
def test_equal_texts_follow_their_first(settings: DedupSettings) -> None:
    first = np.array([0, 1, 0, 3, 1])
    found = decided(5, {(1, 3)}, settings, first=first)
    assert found.group_of.tolist() == [0, 1, 0, 1, 1]


@given(graphs(), st.sampled_from(["star", "components"]), st.booleans())
def test_dropped_items_name_a_kept_one_and_know_how_similar_it_is(
    graph: tuple[int, set[tuple[int, int]]], grouping: str, compares: bool
) -> None:
    count, pairs = graph

    def compare(
        left: NDArray[np.int64], right: NDArray[np.int64], *, screen: bool
    ) -> VerifiedPairs:
        some = {(int(a), int(b)) for a, b in zip(left, right, strict=True)}
        assert not some & pairs or screen
        below = np.array([0.9 if pair in pairs else 0.2 for pair in sorted(some)])
        found = pairs_of(some)
        return VerifiedPairs(found.left, found.right, below, found.distance)

    found = decide(
        pairs_of(pairs),
        np.arange(count)[::-1].copy(),
        DedupSettings(grouping=grouping),
        compare=compare if compares else None,
    )
    assert {*zip(found.pairs.left.tolist(), found.pairs.right.tolist(), strict=True)} == pairs
    for item, other in enumerate(found.duplicate_of.tolist()):
        if other < 0:
            assert np.isnan(found.similarity[item])
            continue
        assert found.duplicate_of[other] < 0 and found.group_of[other] == found.group_of[item]
        known = (min(item, other), max(item, other)) in pairs
        assert known or grouping == "components"
        unknown = 0.2 if compares else np.nan
        assert found.similarity[item] == pytest.approx(0.9 if known else unknown, nan_ok=True)
