"""Rows of the input with what was found about them, in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import lookalike as la
from lookalike.corpora.base import BATCH_ROWS

TEXT = "the early bird gets the worm and sings all day long in the tall tree"
ROWS = [
    {"id": "a", "text": TEXT, "year": 1},
    {"id": "b", "text": "something else altogether that nobody has said before", "year": 2},
    {"id": "c", "text": TEXT, "year": 3},
    {"id": "d", "text": TEXT + " again", "year": 4},
]
FOUND = ["kept", "group_id", "duplicate_of", "similarity"]


def lines(path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def parquet(path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    for row in ROWS:
        (path / f"{row['id']}.txt").write_text(str(row["text"]))
    return path


SOURCES: dict[str, Callable[[Path], Any]] = {
    "texts": lambda path: [row["text"] for row in ROWS],
    "mappings": lambda path: ROWS,
    "pandas": lambda path: pandas.DataFrame(ROWS, index=[7, 7, 8, 9]),
    "polars": lambda path: polars.DataFrame(ROWS),
    "lazy": lambda path: polars.LazyFrame(ROWS),
    "arrow": lambda path: pa.Table.from_pylist(ROWS),
    "reader": lambda path: pa.Table.from_pylist(ROWS).to_reader(),
    "jsonl": lambda path: lines(path / "rows.jsonl"),
    "parquet": lambda path: parquet(path / "rows.parquet"),
    "csv": lambda path: (
        pandas.DataFrame(ROWS).to_csv(path / "rows.csv", index=False) or path / "rows.csv"
    ),
    "files": lambda path: folder(path / "files"),
    "shards": lambda path: [lines(path / "one.jsonl"), lines(path / "two.jsonl")],
}


def check(result: Any, table: pa.Table) -> None:
    """Compare annotated rows with the attributes of the result."""
    assert table["kept"].to_pylist() == result.keep.tolist()
    ids = [result.id(row) for row in range(len(result.keep))]
    sizes = np.bincount(result.group_of, minlength=len(ids))
    groups = [None if sizes[one] < 2 else ids[one] for one in result.group_of.tolist()]
    assert table["group_id"].to_pylist() == groups
    kept = [None if one < 0 else ids[one] for one in result.duplicate_of.tolist()]
    assert table["duplicate_of"].to_pylist() == kept
    alike = [None if np.isnan(one) else one for one in result.similarity.tolist()]
    assert table["similarity"].to_pylist() == alike
    own = result.to_arrow()
    assert own["id"].to_pylist() == ids
    for name in FOUND:
        assert own[name].to_pylist() == table[name].to_pylist()
    assert pa.Table.from_batches(result.annotated_batches()).equals(table)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_rows_of_every_source_are_annotated(name: str, tmp_path: Path) -> None:
    result = la.dedup(SOURCES[name](tmp_path))
    table = result.annotated()
    check(result, table)
    assert table.column_names[-4:] == FOUND and "id" in table.column_names
    texts = [row["text"] for row in ROWS] * (2 if name == "shards" else 1)
    assert table["text"].to_pylist() == texts
    if name not in ("texts", "files"):
        years = [str(one) if name == "csv" else one for one in (1, 2, 3, 4)]  # CSV has no types
        assert table["year"].to_pylist()[:4] == years
    again = tmp_path / "annotated.parquet"
    assert result.write_annotated(again) == len(table)
    written = pq.read_table(again)
    for column in FOUND[1:]:
        assert written[column].to_pylist() == table[column].to_pylist()


def test_vectors_are_annotated() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.01]], np.float32)
    result = la.dedup(vectors)
    table = result.annotated()
    check(result, table)
    assert table.column_names == ["vector", "id", *FOUND]
    assert np.array_equal(np.array(table["vector"].to_pylist(), np.float32), vectors)


def test_images_are_annotated(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        noise = np.random.default_rng(seed).integers(0, 256, (8, 8), np.uint8)
        Image.fromarray(noise).resize((64, 48)).save(tmp_path / f"{name}.png")
    result = la.dedup(tmp_path, kind="images")
    table = result.annotated()
    check(result, table)
    assert table["id"].to_pylist() == ["a.png", "b.png", "c.png"]
    assert table["path"].to_pylist() == [str(tmp_path / f"{name}.png") for name in "abc"]
    assert table["bytes"].to_pylist() == [Path(one).stat().st_size for one in result.files]
    assert {"width", "height", "distance"} <= set(table.column_names)


def test_duplicates_of_an_old_corpus_have_its_ids() -> None:
    result = la.dedup(ROWS[1:], against=[{"id": "old", "text": TEXT}])
    table = result.annotated()
    assert table["duplicate_of"].to_pylist()[:2] == [None, "old"]
    assert table["kept"].to_pylist() == result.keep.tolist()
    assert result.to_arrow()["duplicate_of"].equals(table["duplicate_of"])


def test_only_accepted_rows_are_annotated_and_texts_are_unchanged() -> None:
    texts = ["short", f"{TEXT} https://example.org/page", TEXT]
    result = la.dedup(texts, min_words=3, strip_urls=True)
    table = result.annotated()
    assert table["text"].to_pylist() == texts[1:]
    assert table["kept"].to_pylist() == [True, False]


def test_batches_are_small_and_read_as_needed(tmp_path: Path) -> None:
    count = 2 * BATCH_ROWS + 5
    path = tmp_path / "many.jsonl"
    path.write_text("".join(f'{{"text": "number {n} of many"}}\n' for n in range(count)))
    result = la.dedup(path, min_features=1000)
    sizes = [len(batch) for batch in result.annotated_batches()]
    assert sum(sizes) == count and max(sizes) <= BATCH_ROWS
    first = next(iter(result.annotated_batches()))
    assert first["id"].to_pylist() == list(range(len(first)))


def test_a_source_that_has_changed_or_has_these_columns_is_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "rows.jsonl")
    result = la.dedup(path)
    path.write_text('{"id": "x", "text": "new"}\n')
    with pytest.raises(la.errors.DocumentError, match="has changed"):
        result.annotated()
    rows = [{"text": TEXT, "kept": 1}]
    with pytest.raises(la.errors.ArgumentError, match="already has a column 'kept'"):
        la.dedup(rows).annotated()


def test_an_id_column_of_another_name_becomes_id() -> None:
    rows = [{"key": "k1", "text": TEXT}, {"key": "k2", "text": TEXT}]
    table = la.dedup(rows, id="key").annotated()
    assert table.column_names == ["key", "text", "id", *FOUND]
    assert table["id"].to_pylist() == ["k1", "k2"]
    assert table["duplicate_of"].to_pylist() == [None, "k1"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["", "one", TEXT, TEXT + " again", "\x00\u202e<b>"]), max_size=12))
def test_any_texts(texts: list[str]) -> None:
    result = la.dedup(texts)
    table = result.annotated()
    assert table["text"].to_pylist() == texts
    check(result, table)
