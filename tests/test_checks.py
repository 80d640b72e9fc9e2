"""What counts as a number, a flag, a share or a path, and what is said of the rest."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike import checks
from lookalike.shown import brief
from support.oracles import scan as oracle

ROWS = oracle.collection(60, 8, "clustered", 0)

INDEXES: dict[str, Any] = {
    "scan": la.ScanIndex(ROWS),
    "slices": la.SliceIndex(ROWS, 4),
    "blocks": la.BlockIndex(ROWS),
    "flips": la.FlipIndex(ROWS),
    "prefix": la.PrefixIndex(ROWS, 2),
    "clusters": la.ClusterIndex(ROWS, 4),
    "sharded": la.ShardedIndex([la.SliceIndex(ROWS[:40], 4), la.SliceIndex(ROWS[40:], 4)]),
    "mixed": la.ShardedIndex([la.SliceIndex(ROWS[:40], 4), la.ScanIndex(ROWS[40:])]),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_a_k_that_would_fill_the_memory_is_refused_and_the_right_one_named(kind: str) -> None:
    expected = "there are 60 signatures: .* k=60 returns all"
    for k in (2**31, 2**40, sys.maxsize, 2**64, 10**5000):
        with pytest.raises(la.errors.ResultTooLargeError, match=expected):
            INDEXES[kind].search(ROWS[:2], k)


@pytest.mark.parametrize("kind", INDEXES)
def test_a_k_beyond_the_collection_is_filled_up(kind: str) -> None:
    for k in (60, 61, 1000):
        found = INDEXES[kind].search(ROWS[:2], k)
        assert found.ids.tolist() == oracle.search(ROWS, ROWS[:2], k)[0]
        assert found.distances.tolist() == oracle.search(ROWS, ROWS[:2], k)[1]


def test_shards_smaller_than_k_do_not_count_as_few_signatures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checks, "_MOST_EMPTY_PLACES", 100)
    for kind in ("sharded", "mixed"):
        found = INDEXES[kind].search(ROWS[:3], 50, exact=True)
        assert found.ids.tolist() == oracle.search(ROWS, ROWS[:3], 50)[0]
    with pytest.raises(la.errors.ResultTooLargeError):
        INDEXES["mixed"].search(ROWS[:3], 61)


def test_larger_than_anything_is_everything() -> None:
    index = la.SliceIndex(ROWS, 4)
    for large in (2**31, 2**63, 2**64, 10**5000):
        assert len(index.within(ROWS[:1], large, limit=large).ids) == 60
        assert len(index.pairs(large, limit=large)) == 60 * 59 // 2
        assert index.search(ROWS[:1], 3, expand=large, admit=large, rerank=large).exact


def test_flags_are_true_or_false() -> None:
    assert checks.flag("x", np.bool_(True)) is True
    assert checks.flag("x", False) is False
    others: list[Any] = [0, 1, "no", None, [], np.array(True)]
    for other in others:
        with pytest.raises(la.errors.ArgumentError, match="x is .*; expected True or False"):
            checks.flag("x", other)


def test_shares_are_numbers() -> None:
    for good in (1, 0.5, np.float32(0.5), Decimal("0.5")):
        assert checks.share("x", good) == float(good)
    bad: list[Any] = [0, -1, 1.1, float("nan"), "0.5", b"1", True, np.array([0.5]), None, 10**400]
    for value in bad:
        with pytest.raises(
            la.errors.ArgumentError, match="expected a number above 0 and at most 1"
        ):
            checks.share("x", value)


def test_paths_are_names_of_files(tmp_path: Path) -> None:
    assert checks.file_path("x", "a") == Path("a")
    assert checks.file_path("x", tmp_path) == tmp_path
    bad: list[Any] = [0, 1, True, None, "", "a\0b", b"a", "\ud800"]
    for value in bad:
        with pytest.raises(la.errors.ArgumentError, match="^x is "):
            checks.file_path("x", value)
    with pytest.raises(la.errors.FileError, match="File name too long"):
        checks.file_path("x", "x" * 100_000)


def test_messages_stay_short() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert len(brief("x" * 10**6)) == 200
    assert brief(10**5000) == "a value of type int that cannot be shown"
    assert brief(Silent()) == "a value of type Silent that cannot be shown"
