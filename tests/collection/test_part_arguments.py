"""Odd values for every argument of a collection of parts: they work, or an error of ours says why
not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.recordings.sounds import music

import lookalike as la
from collection.test_arguments import ODD, ours

ROWS = np.arange(40, dtype=np.uint8).reshape(10, 4)
PAIRS: list[Any] = [
    *((ROWS, value) for value in (*ODD, [[1], [2, 3]], range(10), [2**70] * 10, [0.5] * 10)),
    *((value, range(10)) for value in ODD),
    *((ROWS,), (ROWS, None, None), [ROWS, ROWS[:3]], [[1], [2, 3]], "nowhere.wav"),
]
"""Signatures and positions, of which one or both are none."""
SETTINGS = (
    *("k", "radius", "tolerance", "min_votes", "min_score", "where", "exclude", "explain", "text"),
    *("mask", "plan", "threads"),
)
SIGNERS: dict[str, tuple[dict[str, Any], Any]] = {
    "given": ({"bits": 32, "parts": True}, ROWS),
    "passages": ({"signer": la.PassageHash(la.SimHash(32), words=3, step=1)}, "one two three four"),
    "recordings": ({"signer": la.AudioHash()}, (music(1, 2, 8000), 8000)),
}


@pytest.mark.parametrize("sort", SIGNERS)
def test_searches_and_writes(sort: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made, query = SIGNERS[sort]
    with la.open_collection("docs.db", cache=False, **made) as docs:
        docs.add(["a", "b"], signatures=[(ROWS, None), (ROWS[:4], range(4))])
        assert ours(docs.search, query=query)
        assert ours(docs.search, query=(ROWS, range(10))) and docs.search(ROWS, 1).ids == ["a"]
        for value in [*ODD, *PAIRS]:
            ours(docs.search, query=value)
            ours(docs.search_many, queries=value)
            ours(docs.search_many, queries=[value])
        for name in SETTINGS:
            for value in ODD:
                ours(docs.search, **{"query": query, name: value})
        calls: list[tuple[Callable[..., object], str]] = [
            (docs.parts_of, "id"), (docs.get, "id"), (docs.count, "where"), (docs.delete, "ids"),
        ]  # fmt: skip
        for call, name in calls:
            for value in ODD:
                ours(call, **{name: value})
        for value in [*ODD, *PAIRS]:
            ours(docs.upsert, ids=["x"], signatures=value)
            ours(docs.upsert, ids=["x"], signatures=[value])
            ours(docs.upsert, ids=["x"], texts=[value])
        assert docs.verify().ok


def test_opening(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    la.open_collection(path, bits=32, parts=True).close()
    for value in ODD:
        given = {"bits": 32, "parts": value}
        fine = ours(lambda **given: la.open_collection(path, **given).close(), **given)
        assert fine == (isinstance(value, bool | np.bool_))
