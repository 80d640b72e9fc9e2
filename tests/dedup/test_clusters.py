from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike.dedup.pairs.verify import VerifiedPairs
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.survivors.cluster import cluster_documents
from support import dedup_oracle

COMPONENTS = DedupSettings(cluster="components")


def pairs_of(pairs: set[tuple[int, int]]) -> VerifiedPairs:
    columns = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    left, right = np.ascontiguousarray(columns.T)
    return VerifiedPairs(left, right, np.full(len(left), 0.9), np.zeros(len(left), np.int32))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, set[tuple[int, int]]]:
    count = draw(st.integers(1, 30))
    member = st.integers(0, count - 1)
    drawn = draw(st.sets(st.tuples(member, member), max_size=60))
    return count, {(min(pair), max(pair)) for pair in drawn if pair[0] != pair[1]}


@given(graphs())
def test_components_are_what_pairs_connect(graph: tuple[int, set[tuple[int, int]]]) -> None:
    count, pairs = graph
    found = cluster_documents(
        count, np.arange(count), pairs_of(pairs), COMPONENTS, np.arange(count)
    )
    assert found.labels.tolist() == dedup_oracle.components(count, pairs)
    assert not found.warnings


@given(graphs(), st.randoms(use_true_random=False))
def test_in_a_star_everyone_is_paired_with_the_centre(
    graph: tuple[int, set[tuple[int, int]]], random: object
) -> None:
    count, pairs = graph
    order = list(range(count))
    random.shuffle(order)  # type: ignore[attr-defined]
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    found = cluster_documents(count, np.arange(count), pairs_of(pairs), DedupSettings(), rank)
    centres = dedup_oracle.stars(order, pairs)
    first: dict[int, int] = {}
    for member, centre in enumerate(centres):
        first.setdefault(centre, member)
    assert found.labels.tolist() == [first[centre] for centre in centres]


def test_a_long_chain_is_split_and_warned_of() -> None:
    links = {(at, at + 1) for at in range(50)}
    settings = DedupSettings(cluster="components", max_cluster=20)
    found = cluster_documents(60, np.arange(60), pairs_of(links), settings, np.arange(60))
    assert found.warnings[0].startswith("1 cluster grew past")
    assert "chains" in found.warnings[0] and "51" in found.warnings[0]
    sizes = np.bincount(found.labels)
    assert sizes.max() == 2  # each is alike to the one before it, and to no other that stays
    unsplit = cluster_documents(60, np.arange(60), pairs_of(links), COMPONENTS, np.arange(60))
    assert np.bincount(unsplit.labels).max() == 51 and not unsplit.warnings


@pytest.mark.parametrize("settings", [DedupSettings(), COMPONENTS])
def test_equal_texts_follow_their_first(settings: DedupSettings) -> None:
    first = np.array([0, 1, 0, 3, 1])
    found = cluster_documents(5, first, pairs_of({(1, 3)}), settings, np.arange(5))
    assert found.labels.tolist() == [0, 1, 0, 1, 1]
