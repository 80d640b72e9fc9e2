"""Rows held from the first reading are those that a second one would find."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike import _native
from lookalike.corpora import Problems, open_corpus
from lookalike.corpora.formats.parquet import ParquetCorpus

ROOM = 1 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "c.parquet"
    write(path, [f"text {at}" for at in range(50)])
    return path


def write(path: Path, texts: list[str]) -> None:
    table = pa.table({"id": range(len(texts)), "text": texts, "more": [[at] for at in texts]})
    pa.parquet.write_table(table, path, row_group_size=7)


def opened(path: Path, room: int) -> ParquetCorpus:
    corpus = open_corpus(path)
    assert isinstance(corpus, ParquetCorpus)
    corpus.room = room
    return corpus


def rows_of(batches: Iterator[Any]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def forbid_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise AssertionError("decoded again")

    monkeypatch.setattr(ParquetCorpus, "_plain", fail)


def test_rows_are_decoded_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, other = opened(path, ROOM), opened(path, 0)
    for columns in (["text", "id"], ["nowhere", "text"]):
        corpus = opened(path, ROOM)
        assert rows_of(corpus.read(columns, Problems())) == rows_of(other.read(columns, Problems()))
    expected = rows_of(other.rows(Problems()))
    with monkeypatch.context() as patched:
        forbid_decoding(patched)
        assert rows_of(corpus.rows(Problems())) == expected
        assert corpus.done == 1.0
    assert rows_of(corpus.rows(Problems())) == expected  # held no more, but read again


def test_a_corpus_that_changed_is_read_again(path: Path) -> None:
    corpus = opened(path, ROOM)
    list(corpus.read(["text"], Problems()))
    write(path, ["another"])
    os.utime(path, ns=(1, 1))
    assert rows_of(corpus.rows(Problems())) == [{"id": 0, "text": "another", "more": ["another"]}]


def test_what_was_not_read_to_its_end_is_not_held(path: Path) -> None:
    corpus = opened(path, ROOM)
    next(iter(corpus.read(["text"], Problems())))
    assert len(rows_of(corpus.rows(Problems()))) == 50


def test_rows_that_take_more_room_than_files_say_are_let_go(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pa.parquet.write_table(pa.table({"text": ["b" * 10_000] * 500}), path)
    corpus = opened(path, ROOM)
    assert corpus._decoded_bytes < ROOM  # a dictionary of one value, 500 times
    assert len(rows_of(corpus.read(["text"], Problems()))) == 500
    assert corpus._held is not None and not corpus._held
    assert len(rows_of(corpus.rows(Problems()))) == 500


def test_bad_rows_are_reported_at_each_reading(path: Path) -> None:
    write(path, ["a", "b" * 150, "c"])
    corpus = opened(path, ROOM)
    corpus.max_document = 100
    for _ in range(3):
        problems = Problems(skip_bad=True)
        assert [row["text"] for row in rows_of(corpus.rows(problems))] == ["a", "c"]
        assert problems.bad == 1


@given(values=st.lists(st.binary(max_size=20)), cut=st.integers(0, 10), data=st.binary(max_size=9))
def test_the_longest_of_values_after_their_lengths(
    values: list[bytes], cut: int, data: bytes
) -> None:
    whole = b"".join(len(value).to_bytes(4, "little") + value for value in values)
    assert longest(whole) == max(map(len, values), default=0)
    if values and cut:
        last = 4 + len(values[-1])
        shortened = whole[: -min(cut, last)]
        expected = max(map(len, values[:-1]), default=0) if cut >= last else None
        assert longest(shortened) == expected
    assert (longest(data) or 0) <= max(0, len(data) - 4)


def longest(data: bytes) -> int | None:
    return _native.longest_prefixed(np.frombuffer(data, np.uint8))
