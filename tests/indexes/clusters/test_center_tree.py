"""Many centers in two levels: what is given to whom is true, and nearly the nearest."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.indexes.clusters import majority
from support.cases.clustered import clustered
from support.cases.tables import threads_used
from support.oracles import clusters as cluster_oracle
from support.oracles import scan as oracle


@given(
    count=st.integers(1, 120),
    width=st.sampled_from([1, 3, 8, 16]),
    style=st.sampled_from(oracle.STYLES),
    k=st.integers(1, 40),
    branches=st.integers(1, 7),
    seed=st.integers(0, 2**64 - 1),
    threads=threads_used,
)
@settings(max_examples=60)
def test_a_signature_has_the_nearest_center_of_its_branches(
    count: int, width: int, style: str, k: int, branches: int, seed: int, threads: int | None
) -> None:
    rows, k = oracle.collection(count, width, style, seed % 1000), min(k, count)
    with patch.multiple(majority, LARGE=0, _BRANCHES=branches):
        found = la.cluster(rows, k, seed=seed, threads=threads)
        grown = majority.CenterTree.trained(rows, k, seed, majority.ROUNDS, threads or 1)
    assert found.centers.tolist() == grown.centers.tolist()
    assert (found.centers.shape, len(grown.offsets)) == ((k, width), len(grown.branches) + 1)
    assert (int(grown.offsets[0]), int(grown.offsets[-1])) == (0, k)
    for row, label, far in zip(rows, found.labels.tolist(), found.distances.tolist(), strict=True):
        near = sorted(
            (oracle.distance(row, branch), number) for number, branch in enumerate(grown.branches)
        )[:branches]
        candidates = [
            number
            for _, branch in near
            for number in range(int(grown.offsets[branch]), int(grown.offsets[branch + 1]))
        ]
        assert (far, label) == min(
            (oracle.distance(row, grown.centers[number]), number) for number in candidates
        )
    if branches >= len(grown.branches):
        nearest = cluster_oracle.nearest(rows, found.centers)
        assert nearest == list(zip(found.distances.tolist(), found.labels.tolist(), strict=True))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20), st.data())
def test_centers_are_shared_out_as_there_are_signatures(
    sizes: list[int], data: st.DataObject
) -> None:
    used = sum(size > 0 for size in sizes)
    if not used:
        return
    k = data.draw(st.integers(used, sum(sizes)))
    shares = majority.proportional_shares(np.array(sizes), k).tolist()
    assert sum(shares) == k
    assert all(0 < share <= size or share == size == 0
               for share, size in zip(shares, sizes, strict=True))  # fmt: skip


def test_a_tree_is_nearly_as_good_as_all_with_all() -> None:
    rows = clustered(6000, 32)
    flat = la.cluster(rows, 300, seed=2)
    with patch.object(majority, "LARGE", 100):
        found = la.cluster(rows, 300, seed=2)
    assert found.mean_distance < 1.06 * flat.mean_distance
    assert found.sizes.max() < 3 * flat.sizes.max()


def test_an_index_of_many_groups_answers_as_any_other() -> None:
    rows = clustered(3000, 16)
    with patch.object(majority, "LARGE", 10):
        index = la.ClusterIndex(rows, 90)
        again = la.ClusterIndex(rows, 90, threads=3)
    assert index.to_bytes() == again.to_bytes()
    truth = la.ScanIndex(rows)
    assert (index.search(rows[:50], 7, exact=True).ids == truth.search(rows[:50], 7).ids).all()
    near = index.within(rows[:50], 30)
    assert near.ids.tolist() == truth.within(rows[:50], 30).ids.tolist()
