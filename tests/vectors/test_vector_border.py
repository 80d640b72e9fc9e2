"""The core refuses vectors, places and answers that do not fit together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lookalike import _native

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
NONE = ROWS[:0]


def vectors(**arrays: Any) -> _native.Vectors:
    return _native.Vectors(**{"first": ROWS, "added": NONE, "ids": None, **arrays})


def answer(k: int = 2, queries: int = 1) -> dict[str, Any]:
    return {"ids": np.zeros((queries, k), np.int64), "cosines": np.zeros((queries, k))}


def candidates(*places: int) -> None:
    listed = np.array([places], np.int64)
    vectors().best_candidates(ROWS[:1], listed, 1, **answer())


def cosines(numbers: list[int], places: list[int], out: int = 1) -> None:
    asked, named = np.array(numbers, np.int64), np.array(places, np.int64)
    vectors().cosines(ROWS[:2], asked, named, 1, np.zeros(out))


def sketches(**arrays: Any) -> _native.Sketches:
    usual = {
        "blocks": np.zeros((1, 1, 16, 4), "u1"),
        "scales": np.zeros(16, "f4"),
        "places": np.arange(4, dtype="u4"),
        "offsets": np.array([0, 4]),
        "centers": np.zeros((1, 1, 16, 4), "u1"),
        "center_scales": np.zeros(16, "f4"),
    }
    return _native.Sketches(**{**usual, **arrays}, error=0.0)


def best(**changes: Any) -> None:
    usual = {
        "vectors": vectors(),
        "skip": None,
        "queries": ROWS[:1],
        "candidates": 2,
        "probe": 1,
        "threads": 1,
        "done": np.zeros((3, 1), np.int64),
        **answer(),
    }
    sketches().best(**{**usual, **changes})


def candidates_of_sketches(places: Any) -> None:
    sketches().candidates(vectors(), None, ROWS[:1], 1, 1, places)


def nearest(count: int = 1, width: int = 4, out: int = 2) -> None:
    blocks, scales = np.zeros((1, 1, 16, 4), "u1"), np.zeros(16, "f4")
    codes = np.zeros((2, width), "u1")
    out_of = np.zeros(out, np.int64), np.zeros(out, "f4")
    _native.nearest_sketches(blocks, scales, codes, count, 1, *out_of)


def signed_sums(weights: int = 8, numbers: tuple[int, ...] = (0, 1), out: int = 2) -> None:
    asked = np.zeros((2, weights), "f4"), np.zeros((2, 1), "u1"), np.array(numbers, np.int64)
    _native.signed_sums(*asked, 1, np.zeros(out))


MISFITS: dict[str, Any] = {
    "weights of other bits": lambda: signed_sums(16),
    "few numbers": lambda: signed_sums(numbers=(0,)),
    "a number beyond": lambda: signed_sums(numbers=(0, 2)),
    "a number below": lambda: signed_sums(numbers=(0, -1)),
    "room for other sums": lambda: signed_sums(out=3),
    "few scales": lambda: sketches(scales=np.zeros(15, "f4")),
    "few blocks": lambda: sketches(places=np.arange(17, dtype="u4"), offsets=np.array([0, 17])),
    "blocks of other rows": lambda: sketches(blocks=np.zeros((1, 1, 8, 8), "u1")),
    "longer centers": lambda: sketches(centers=np.zeros((1, 2, 16, 4), "u1")),
    "offsets beyond": lambda: sketches(offsets=np.array([0, 5])),
    "no offsets": lambda: sketches(offsets=np.array([], np.int64)),
    "sketches of more": lambda: best(vectors=vectors(first=ROWS[:3])),
    "sketches of wider": lambda: best(
        vectors=vectors(first=np.zeros((4, 5), "f4"), added=np.zeros((0, 5), "f4")),
        queries=np.zeros((1, 5), "f4"),
    ),
    "fewer candidates than neighbors": lambda: best(candidates=1),
    "no room for work": lambda: best(done=np.zeros((3, 2), np.int64)),
    "few marks of sketches": lambda: best(skip=np.zeros(3, "u1")),
    "room for no candidate": lambda: candidates_of_sketches(np.zeros((1, 0), np.int64)),
    "room of other queries": lambda: candidates_of_sketches(np.zeros((2, 2), np.int64)),
    "nothing near": lambda: nearest(0),
    "wider codes": lambda: nearest(width=8),
    "room for other codes": lambda: nearest(out=1),
    "codes of other vectors": lambda: vectors().sketch(
        0, 1, np.zeros((4, 3), "u1"), np.zeros(4, "f4")
    ),
    "sketches from beyond": lambda: vectors().sketch(
        5, 1, np.zeros((0, 4), "u1"), np.zeros(0, "f4")
    ),
    "no width": lambda: vectors(first=np.zeros((4, 0), "f4"), added=np.zeros((0, 0), "f4")),
    "parts of other widths": lambda: vectors(added=np.zeros((1, 4), "f4")),
    "too few ids": lambda: vectors(ids=np.arange(3)),
    "wide queries": lambda: vectors().best_of_all(None, np.zeros((1, 4), "f4"), 1, **answer()),
    "nothing wanted": lambda: vectors().best_of_all(None, ROWS[:1], 1, **answer(0)),
    "other queries": lambda: vectors().best_of_all(None, ROWS[:1], 1, **answer(2, 2)),
    "few marks": lambda: vectors().best_of_all(np.zeros(3, "u1"), ROWS[:1], 1, **answer()),
    "few marks within": lambda: vectors().at_least(np.zeros(3, "u1"), ROWS[:1], 0.5, 9, 1),
    "a place beyond": lambda: candidates(0, 4),
    "a place below": lambda: candidates(-2),
    "a pair's query beyond": lambda: cosines([2], [0]),
    "a pair's query below": lambda: cosines([-1], [0]),
    "a pair's place beyond": lambda: cosines([0], [4]),
    "a pair's place below": lambda: cosines([0], [-1]),
    "sides of other lengths": lambda: cosines([0, 1], [0]),
    "room for others": lambda: cosines([0], [0], out=2),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_what_does_not_fit_is_refused(misfit: str) -> None:
    with pytest.raises(_native.BorderError, match="the core was called with"):
        MISFITS[misfit]()


def test_types_are_not_mixed() -> None:
    for arrays in ({"added": NONE.astype("u2")}, {"first": ROWS.astype("f8")}):
        with pytest.raises(TypeError):
            vectors(**arrays)


def test_what_fits_is_answered() -> None:
    best()
    nearest()
    signed_sums()
    candidates_of_sketches(np.zeros((1, 2), np.int64))
    candidates(0, -1, 3)
    cosines([0], [3])
    found = answer()
    vectors().best_of_all(None, ROWS[3:], 1, **found)
    assert found["ids"].tolist() == [[3, 2]]


def test_arrays_live_as_long_as_the_core_uses_them() -> None:
    held = vectors(first=np.ones((50_000, 3), "f4"), ids=np.arange(50_000))
    np.zeros((50_000, 3), "f4").fill(7)
    found = answer(1)
    held.best_of_all(None, np.ones((1, 3), "f4"), 1, **found)
    assert (found["ids"].item(), found["cosines"].item()) == (0, 1.0)
