"""Copies of indexes, pickles too: what is done to one is not done to the other."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from support.oracles import scan as oracle

ROWS = oracle.collection(300, 8, "clustered", 0)
IDS = np.random.default_rng(0).permutation(300) * 7

KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "scan": la.ScanIndex,
    "slices": lambda rows, ids: la.SliceIndex(rows, 6, ids),
    "blocks": lambda rows, ids: la.BlockIndex(rows, ids=ids),
    "compressed blocks": lambda rows, ids: la.BlockIndex(rows, ids=ids, compressed=True),
    "flips": lambda rows, ids: la.FlipIndex(rows, ids=ids),
    "sharded": lambda rows, ids: la.ShardedIndex(
        [
            la.SliceIndex(rows[:100], 6, None if ids is None else ids[:100]),
            la.ScanIndex(rows[100:], None if ids is None else ids[100:]),
        ]
    ),
}


def pickled(index: Any) -> Any:
    return pickle.loads(pickle.dumps(index))


COPIES = [copy.copy, copy.deepcopy, pickled]


def answers(index: Any) -> list[Any]:
    found, near, pairs = index.search(ROWS[:9], 5), index.within(ROWS[:9], 3), index.pairs(2)
    return [found.ids.tolist(), near.ids.tolist(), pairs.left.tolist(), pairs.right.tolist()]


@pytest.mark.parametrize("duplicate", COPIES)
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("ids", [None, IDS])
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_answers_as_the_original_does(
    kind: str, ids: Any, saved: bool, duplicate: Any, tmp_path: Path
) -> None:
    index = KINDS[kind](ROWS, ids)
    index.signer, index.names = la.SimHash(), [f"document {i}" for i in range(300)]
    if saved:
        index.save(tmp_path / "x", notes={"a": 1})
        index = la.load_index(tmp_path / "x")
    twin = duplicate(index)
    assert type(twin) is type(index)
    assert answers(twin) == answers(index)
    assert (len(twin), twin.next_id, twin.own_ids) == (len(index), index.next_id, index.own_ids)
    assert (twin.signer, twin.name(3), twin.notes) == (index.signer, index.name(3), index.notes)
    twin.signer = twin.names = None
    assert index.signer is not None
    assert index.name(3) == "document 3"


@pytest.mark.parametrize("kind", KINDS)
def test_a_deep_copy_has_arrays_of_its_own(kind: str) -> None:
    rows, ids = ROWS.copy(), IDS.copy()
    index = KINDS[kind](rows, ids)
    before, twin = answers(index), copy.deepcopy(index)
    rows[:], ids[:] = 0, 0
    assert answers(twin) == before


@pytest.mark.parametrize("duplicate", COPIES)
def test_adding_to_a_copy_leaves_the_original_alone(duplicate: Any) -> None:
    index = la.SliceIndex(ROWS[:100], 6)
    index.add(ROWS[100:103])  # a segment with room for more
    twin = duplicate(index)
    assert twin.add(ROWS[103:105]).tolist() == index.add(ROWS[105:107]).tolist() == [103, 104]
    twin.remove([0])
    assert np.array_equal(index.living()[0], np.delete(ROWS[:107], [103, 104], axis=0))
    assert np.array_equal(twin.living()[0], ROWS[1:105])


@pytest.mark.parametrize("duplicate", COPIES)
def test_shards_are_copied_with_what_they_are_shards_of(duplicate: Any) -> None:
    index = la.ShardedIndex([la.SliceIndex(ROWS[:100], 6), la.SliceIndex(ROWS[100:], 6)])
    twin = duplicate(index)
    twin.shards[1].add(ROWS[:2])
    assert (len(index), len(twin)) == (300, 302)


@pytest.mark.parametrize("duplicate", COPIES)
def test_tuning_a_copy_leaves_the_original_alone(duplicate: Any) -> None:
    weights = np.where(np.unpackbits(ROWS, axis=1, bitorder="little"), 1, -1).astype(np.float32)
    index = la.FlipIndex(ROWS)
    twin = duplicate(index)
    twin.fit_volatility(weights + np.arange(64, dtype=np.float32) / 64)
    twin.tune_flips(ROWS, weights, 3)
    assert index.tunings == ()
    assert len(twin.tunings) == 1
    assert index.volatility.scale != twin.volatility.scale
