"""Documents signed while others are read have the signatures that they would have had later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.corpora.formats import parquet
from lookalike.dedup import sign
from lookalike.jobs import documents as early
from lookalike.signatures.arrays import distinct

WORDS = [f"word{at}" for at in range(40)]


def texts(count: int, seed: int) -> list[str | None]:
    generator = np.random.default_rng(seed)
    made: list[str | None] = [
        " ".join(generator.choice(WORDS, generator.integers(0, 30))) for _ in range(count)
    ]
    for at in generator.integers(0, count, count // 4).tolist():
        made[at] = made[int(generator.integers(count))]
    made[count // 2] = None
    return made


def written(path: Path, values: list[str | None]) -> Path:
    pa.parquet.write_table(pa.table({"text": pa.array(values, pa.string())}), path)
    return path


def outcome(path: Path, **given: Any) -> list[Any]:
    result = la.dedup(path, **given)
    signed = result.signed
    return [
        result.keep.tolist(),
        result.duplicate_of.tolist(),
        signed.signatures.tolist(),
        signed.positions.tolist(),
        signed.too_short.tolist(),
    ]


@pytest.mark.parametrize("room", [0, 4000, 9000, 1 << 20])
@pytest.mark.parametrize("method", ["minhash", "simhash"])
@pytest.mark.parametrize("old", ["", "corpus", "signatures"])
def test_early_signatures_change_nothing(
    room: int, method: str, old: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early, "_MOST_BYTES", room)
    monkeypatch.setattr(parquet, "BATCH_ROWS", 7)
    monkeypatch.setattr(sign, "_AT_A_TIME", 5)
    path = written(tmp_path / "new.parquet", texts(60, 1))
    settings: dict[str, Any] = {"method": method, "ngram": 2, "min_features": 3}
    if old:
        before = written(tmp_path / "old.parquet", texts(40, 2))
        settings["against"] = before
        if old == "signatures":
            la.dedup(before, threads=1, method=method, ngram=2, min_features=3).save_signatures(
                tmp_path / "old.lookalike"
            )
            settings |= {"against": tmp_path / "old.lookalike", "verify": False}
    assert outcome(path, threads=3, **settings) == outcome(path, threads=1, **settings)


def test_as_many_are_signed_early_as_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "BATCH_ROWS", 10)
    path = written(tmp_path / "c.parquet", [f"{at} is a number of its own" for at in range(100)])
    width = la.dedup(path, threads=1).signed.signatures.shape[1]
    counted: list[int] = []
    original = early.EarlySignatures._sign

    def counting(self: early.EarlySignatures, some: Any) -> Any:
        counted.append(len(some))
        return original(self, some)

    monkeypatch.setattr(early.EarlySignatures, "_sign", counting)
    for room, expected in ((10**9, 100), (35 * width, 30), (0, 0)):
        monkeypatch.setattr(early, "_MOST_BYTES", room)
        counted.clear()
        la.dedup(path, threads=2)
        assert sum(counted) == expected
    for alone in ({"threads": 1}, {"threads": 2, "features": str.split}):
        counted.clear()
        la.dedup(path, **alone)
        assert not counted


def test_an_error_while_reading_ends_the_signing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "BATCH_ROWS", 10)
    path = written(tmp_path / "c.parquet", [*map(str, range(95)), "x" * 1000])
    with pytest.raises(la.LookalikeError, match="more than 500 bytes"):
        la.dedup(path, threads=2, max_document=500)


@given(st.lists(st.integers(-5, 5)))
def test_distinct_numbers(numbers: list[int]) -> None:
    found = distinct(np.array(numbers, np.int64))
    assert found.dtype == np.int64 and found.tolist() == sorted(set(numbers))
