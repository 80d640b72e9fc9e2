"""Lazy frames and datasets in splits: what comes in by some form goes out in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest

import lookalike as la

SAME = "the quick brown fox jumps over the lazy dog near the old river bank"
OWN = "minimum wage legislation was debated in parliament on tuesday afternoon"


class Dataset:
    """As much of a dataset of Hugging Face as is used."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def with_format(self, kind: str) -> Dataset:
        assert kind == "arrow"
        return self

    def iter(self, size: int) -> Iterator[Any]:
        for begin in range(0, len(self.table), size):
            yield self.table.slice(begin, size)

    def select(self, positions: Any) -> Dataset:
        return Dataset(self.table.take(pa.array(positions)))

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("rows are not read one by one")


class StreamedDataset:
    """One that comes row by row: it has no `select`, and can be read once."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def with_format(self, kind: str) -> StreamedDataset:
        return self

    def iter(self, size: int) -> Iterator[Any]:
        table, self.table = self.table, None
        yield table


class DatasetDict(dict[str, Dataset]):
    """Datasets by name."""


def splits(**columns: list[Any]) -> DatasetDict:
    return DatasetDict(
        train=Dataset(pa.table({"text": [SAME, OWN], **{k: v[:2] for k, v in columns.items()}})),
        empty=Dataset(pa.table({"text": pa.array([], pa.string())})),
        test=Dataset(
            pa.table({"text": [SAME, "of its own"], **{k: v[2:] for k, v in columns.items()}})
        ),
    )


def test_splits_are_one_corpus_and_come_back_as_splits() -> None:
    result = la.dedup(splits())
    assert result.keep.tolist() == [True, True, False, True] and result.duplicate_of[2] == 0
    kept = result.kept()
    assert type(kept) is DatasetDict and list(kept) == ["train", "empty", "test"]
    assert [kept[name].table["text"].to_pylist() for name in kept] == [
        [SAME, OWN],
        [],
        ["of its own"],
    ]
    assert kept["train"].table.column_names == ["text"]


def test_splits_in_a_file_have_their_names(tmp_path: Path) -> None:
    la.dedup(splits()).write(tmp_path / "o.jsonl")
    names = [line.split('"split":')[1] for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert names == ['"train"}', '"train"}', '"test"}']
    mine = la.dedup(splits(split=["a", "b", "c", "d"]), keep="max:split")
    assert mine.keep.tolist() == [False, True, True, True]


def test_splits_of_other_types_are_refused() -> None:
    parts = DatasetDict(a=Dataset(pa.table({"text": [SAME]})), b=Dataset(pa.table({"text": [1]})))
    with pytest.raises(la.errors.DocumentError, match="different types"):
        la.dedup(parts)
    with pytest.raises(la.errors.ArgumentError, match="the source is of type dict"):
        la.dedup({})


def test_a_dataset_that_is_spent_gives_a_table() -> None:
    kept = la.dedup(StreamedDataset(pa.table({"text": [SAME, OWN, SAME]}))).kept()
    assert kept.to_pydict() == {"text": [SAME, OWN]}


def test_lazy_frames_stay_lazy(tmp_path: Path) -> None:
    frame = polars.LazyFrame({"text": [SAME, "x", SAME], "n": [1, 2, 3]}).filter(
        polars.col("text") != "x"
    )
    result = la.dedup(frame, keep="last")
    kept = result.kept()
    assert isinstance(kept, polars.LazyFrame)
    assert kept.collect().to_dict(as_series=False) == {"text": [SAME], "n": [3]}
    assert result.write(tmp_path / "o.parquet") == 1
    eager = la.dedup(frame.collect()).kept()
    assert isinstance(eager, polars.DataFrame) and eager["n"].to_list() == [1]
