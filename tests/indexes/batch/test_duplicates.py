"""Queries of a batch that are near others of the same batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike import SignatureFile
from support.cases.tables import found
from support.oracles import scan as oracle

Expected = list[list[tuple[int, int]]]


def expected_matches(
    stored: oracle.Signatures,
    stored_ids: list[int],
    queries: oracle.Signatures,
    ids: list[int],
    radius: int,
) -> tuple[Expected, Expected]:
    """Return the matches of each query in the file, and among the queries before it."""
    file = oracle.within(stored, queries, radius, stored_ids)
    own = [
        oracle.within(queries[:number], queries[number : number + 1], radius, ids[:number])[0]
        for number in range(len(queries))
    ]
    return file, own


@settings(max_examples=40)  # each syncs files
@given(st.data())
def test_duplicates_of_a_batch_equal_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("batch") / "file"
    width = data.draw(st.sampled_from([1, 8, 9]))
    styles = st.sampled_from(oracle.STYLES)
    stored = oracle.collection(data.draw(st.integers(0, 30)), width, data.draw(styles), 1)
    cut = data.draw(st.integers(0, len(stored)))
    for part in (stored[:cut], stored[cut:]):
        la.match_batch(path, part, 1, method="blocks")
    if data.draw(st.booleans()):
        SignatureFile(path).compact()
    queries = oracle.collection(data.draw(st.integers(0, 25)), width, data.draw(styles), 2)
    queries[::3] = stored[: len(queries[::3])] if len(stored) >= len(queries[::3]) else 0
    given_ids = data.draw(
        st.none() | st.permutations(range(40)).map(lambda some: some[: len(queries)])
    )
    ids = given_ids or list(range(len(stored), len(stored) + len(queries)))
    radius = data.draw(st.integers(0, min(3, 8 * width - 1)))
    signs = np.where(np.unpackbits(queries, axis=1, bitorder="little"), 1, -1).astype(np.float32)
    weights = None if data.draw(st.booleans()) else signs
    first, append = data.draw(st.booleans()), data.draw(st.booleans())
    method = data.draw(st.sampled_from(["flips", "blocks"]))
    file, own = expected_matches(stored, list(range(len(stored))), queries, ids, radius)
    matches = la.match_batch(
        path, queries, radius, method=method, weights=weights, recall=1, first=first, ids=given_ids,
        append=append, duplicates=True, chunk=data.draw(st.none() | st.integers(1, 20)),
        threads=data.draw(st.sampled_from([1, 3])),
    )  # fmt: skip
    assert matches.exact
    both = [sorted([*one, *other]) for one, other in zip(file, own, strict=True)]
    if not first:
        assert found(matches) == both
    else:
        for one, in_file, before in zip(found(matches), file, own, strict=True):
            assert len(one) == min(1, len(in_file) + len(before))
            if before:  # the nearest; of equals the earliest, whatever its id
                assert one[0][0] == before[0][0]
            else:
                assert set(one) <= set(in_file)
    assert len(SignatureFile(path)) == len(stored) + append * len(queries)


def test_the_earliest_of_the_nearest_is_the_first_match(tmp_path: Path) -> None:
    queries = np.zeros((5, 8), np.uint8)
    queries[2:, 0] = 1
    la.match_batch(tmp_path / "file", queries[:0])
    for first, expected in (
        (True, [[], [(0, 9)], [(1, 9)], [(0, 5)], [(0, 5)]]),
        (
            False,
            [
                *([], [(0, 9)], [(1, 8), (1, 9)], [(0, 5), (1, 8), (1, 9)]),
                [(0, 5), (0, 7), (1, 8), (1, 9)],
            ],
        ),
    ):
        options: dict[str, Any] = {"ids": [9, 8, 5, 7, 6], "append": False, "first": first}
        matches = la.match_batch(tmp_path / "file", queries, 1, duplicates=True, **options)
        assert found(matches) == expected


def test_copies_within_a_batch_stay_linear_with_first(tmp_path: Path) -> None:
    queries = np.zeros((20_000, 8), np.uint8)
    matches = la.match_batch(tmp_path / "file", queries, duplicates=True, first=True, limit=20_000)
    assert matches.ids.tolist() == [0] * 19_999
    with pytest.raises(la.errors.ResultTooLargeError):
        la.match_batch(tmp_path / "other", queries, duplicates=True, limit=20_000)


def test_ids_are_those_that_were_appended_whoever_came_between(tmp_path: Path) -> None:
    """Another process appends while the file is read: numbers go on after its own."""
    path = tmp_path / "file"
    rows = oracle.collection(10, 8, "uniform", 0)
    la.match_batch(path, rows)
    batch = np.concatenate([rows[:2] ^ 255, rows[:2] ^ 255])

    def meanwhile(step: str, share: float) -> None:
        la.match_batch(path, rows[:3], method="blocks")

    matches = la.match_batch(path, batch, duplicates=True, progress=meanwhile)
    assert matches.ids.tolist() == [13, 14]
    later = la.match_batch(path, batch[:1], 0, append=False)
    assert later.ids.tolist() == [13, 15]


@pytest.mark.parametrize("append", [True, False])
def test_numbers_end_where_int64_does(tmp_path: Path, append: bool) -> None:
    rows = oracle.collection(6, 8, "uniform", 0)
    path = tmp_path / "file"
    la.match_batch(path, rows[:1], ids=[2**63 - 3])
    found = la.match_batch(path, rows[[1, 1]], append=append, duplicates=True)
    assert found.ids.tolist() == [2**63 - 2]
    with pytest.raises(la.errors.ArgumentError, match="ids must be less than"):
        la.match_batch(path, rows[1:4], append=append, duplicates=True)
    assert len(la.match_batch(path, rows[:0], append=append)) == 0
    assert len(SignatureFile(path)) == (3 if append else 1)
    SignatureFile(path).verify()


@pytest.mark.parametrize("method", ["flips", "blocks"])
@pytest.mark.parametrize("first", [False, True])
def test_the_limit_is_of_what_is_returned(tmp_path: Path, method: str, first: bool) -> None:
    """All are near each other: queries have many matches, of which `first` keeps one."""
    rows = np.zeros((40, 8), np.uint8)
    rows[:, 0] = 1 << np.arange(40) % 8
    la.match_batch(tmp_path / "file", rows[:30])
    given: dict[str, Any] = {"method": method, "first": first, "append": False, "radius": 2}
    given |= {"file": tmp_path / "file", "queries": rows[30:], "duplicates": True}
    matches = la.match_batch(**given)
    assert len(matches.ids) == (10 if first else 10 * 30 + 45)
    same = la.match_batch(**given, limit=len(matches.ids))
    assert same.ids.tolist() == matches.ids.tolist()
    less = len(matches.ids) - 1
    with pytest.raises(
        la.errors.ResultTooLargeError, match=f"limit={less} matches .* of 10 queries"
    ):
        la.match_batch(**given, limit=less)
    given["duplicates"] = False
    with pytest.raises(la.errors.ResultTooLargeError, match="limit=9 matches .* of 10 queries"):
        la.match_batch(**given, limit=9)
