from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.indexes.clusters import majority
from support.cases.tables import threads_used
from support.oracles import clusters as cluster_oracle
from support.oracles import scan as oracle

HALF: Any = 0.5


@given(
    count=st.integers(1, 130),
    width=st.sampled_from([1, 3, 8, 11, 16]),
    style=st.sampled_from(oracle.STYLES),
    k=st.integers(1, 6),
    rounds=st.integers(0, 7),
    seed=st.integers(0, 2**64 - 1),
    threads=threads_used,
    sample=st.sampled_from([1, 2, 5, 40]),
    together=st.integers(1, 4),
    candidates=st.integers(1, 4),
)
@settings(max_examples=60)
def test_clusters_are_as_defined(
    count: int,
    width: int,
    style: str,
    k: int,
    rounds: int,
    seed: int,
    threads: int | None,
    sample: int,
    together: int,
    candidates: int,
) -> None:
    rows = oracle.collection(count, width, style, seed % 1000)
    k = min(k, count)
    with patch.multiple(majority, ROUNDS_A_PASS=together, CANDIDATES=candidates):
        found = la.cluster(rows, k, seed=seed, rounds=rounds, threads=threads, sample=sample)
    centers, nearest = cluster_oracle.clusters(
        rows, k, seed, rounds, sample, together=together, candidates=candidates
    )
    assert found.centers.tolist() == centers.tolist()
    pairs = zip(found.distances.tolist(), found.labels.tolist(), strict=True)
    assert list(pairs) == nearest
    sizes = [sum(own == number for _, own in nearest) for number in range(k)]
    assert found.sizes.tolist() == sizes
    assert found.mean_distance == pytest.approx(np.mean([far for far, _ in nearest]))
    for number, size in enumerate(sizes):
        members = found.members(number).tolist()
        assert sorted(members) == [
            row for row, (_, own) in enumerate(nearest) if own == number
        ]  # fmt: skip
        assert [nearest[row][0] for row in members] == sorted(nearest[row][0] for row in members)
        mean = found.mean_distances[number]
        assert (size == 0) == bool(np.isnan(mean))


def test_kernels_agree(kernel: str) -> None:
    rows = oracle.collection(3_000, 16, "clustered", 5)
    found = la.cluster(rows, 40, seed=3)
    assert len(found) == 40
    assert int(found.distances.sum()) == 1050


def test_groups_are_found_again() -> None:
    rng = np.random.default_rng(2)
    true = rng.integers(0, 256, (20, 32), np.uint8)
    label = rng.integers(0, 20, 4_000)
    noise = np.packbits(rng.random((4_000, 256)) < 0.1, axis=1)
    found = la.cluster(true[label] ^ noise, 60, seed=1)
    # Each group has signatures of one origin, but for a few.
    whole = sum(np.bincount(label[found.labels == g]).max(initial=0) for g in range(60))
    assert whole > 0.98 * 4_000
    assert found.mean_distance < 0.11 * 256


def test_more_rounds_bring_centers_nearer() -> None:
    rows = oracle.collection(2_000, 32, "uniform", 4)
    far = [la.cluster(rows, 50, rounds=rounds).mean_distance for rounds in (0, 1, 5)]
    assert far == sorted(far, reverse=True)
    assert far[-1] < far[0]


def test_equal_signatures_leave_groups_empty() -> None:
    rows = np.repeat(np.arange(3, dtype=np.uint8)[:, None], 50, axis=0)
    found = la.cluster(rows, 10)
    assert found.mean_distance == 0
    assert sorted(found.sizes.tolist()) == [0] * 7 + [50] * 3
    assert np.isnan(found.mean_distances[found.sizes == 0]).all()


def test_nothing_has_no_groups() -> None:
    found = la.cluster(np.empty((0, 8), np.uint8), 1)
    assert (len(found), found.mean_distance, found.sizes.tolist()) == (0, 0.0, [])
    assert "signatures=0, groups=0" in repr(found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: la.cluster(r, 0), "k is 0; .* from 1 to 30"),
        (lambda r: la.cluster(r, 31), "k is 31; .* from 1 to 30"),
        (lambda r: la.cluster(r, 3, seed=-1), "seed is -1"),
        (lambda r: la.cluster(r, 3, rounds=HALF), "rounds is 0.5"),
        (lambda r: la.cluster(r, 3, threads=0), "threads is 0"),
        (lambda r: la.cluster(r, 3, sample=0), "sample is 0"),
        (lambda r: la.cluster(r, 3).members(3), "group is 3; .* from 0 to 2"),
    ],
)
def test_bad_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        call(oracle.collection(30, 8, "uniform", 2))
