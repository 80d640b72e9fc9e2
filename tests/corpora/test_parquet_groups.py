"""Row groups made by several threads are one file, which every reader understands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.corpora import Problems, open_corpus, write_corpus
from lookalike.corpora.base import limited
from lookalike.corpora.formats.parquet_layout import write_groups

VALUES = {
    "text": st.none() | st.text(max_size=20),
    "same": st.sampled_from(["a", "b" * 3000]),
    "number": st.none() | st.integers(-(2**63), 2**63 - 1),
    "flag": st.none() | st.booleans(),
    "share": st.floats(allow_nan=False),
    "list": st.none() | st.lists(st.none() | st.text(max_size=3), max_size=3),
    "inner": st.fixed_dictionaries({"x": st.none() | st.integers(0, 9)}),
}
SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        pa.field("same", pa.dictionary(pa.int32(), pa.string()), metadata={"of": "field"}),
        ("number", pa.int64()),
        ("flag", pa.bool_()),
        ("share", pa.float64()),
        ("list", pa.list_(pa.field("element", pa.large_string()))),
        ("inner", pa.struct([("x", pa.int8())])),
    ],
    metadata={"of": "schema"},
)


def table_of(rows: list[dict[str, Any]]) -> Any:
    columns = [pa.array([row[name] for row in rows], SCHEMA.field(name).type) for name in VALUES]
    return pa.table(columns, schema=SCHEMA)


@settings(max_examples=25, deadline=None)
@given(
    groups=st.lists(st.lists(st.fixed_dictionaries(VALUES), min_size=1, max_size=3), max_size=4),
    compression=st.sampled_from(["snappy", "zstd", "gzip", "lz4", "brotli", "none"]),
    threads=st.integers(1, 4),
)
def test_groups_joined_are_the_tables_one_after_the_other(
    groups: list[list[dict[str, Any]]],
    compression: str,
    threads: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("groups") / "c.parquet"
    tables = [table_of(rows) for rows in groups]
    write_groups(iter(tables), SCHEMA, path, compression, threads)
    expected = pa.concat_tables([SCHEMA.empty_table(), *tables])
    with pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        assert file.schema_arrow.equals(SCHEMA, check_metadata=True)
        assert file.read().cast(SCHEMA).equals(expected)
        assert file.metadata.num_rows == len(expected)
        for at, table in enumerate(tables):
            group = file.metadata.row_group(at)
            assert group.num_rows == len(table)
            assert file.read_row_group(at).cast(SCHEMA).equals(table)
            numbers = [value for value in table["number"].to_pylist() if value is not None]
            statistics = group.column(2).statistics
            if numbers:
                assert (statistics.min, statistics.max) == (min(numbers), max(numbers))
        assert file.metadata.num_row_groups == len(tables)
    counted = duckdb.execute(
        f"SELECT count(*), count(text), sum(number::HUGEINT) FROM read_parquet('{path}')"
    ).fetchall()
    numbers = [value for value in expected["number"].to_pylist() if value is not None]
    texts = len(expected) - expected["text"].null_count
    assert counted == [(len(expected), texts, sum(numbers) if numbers else None)]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("zstd", "ZSTD"),
        ("lz4", "LZ4"),
        ("none", "UNCOMPRESSED"),
        ("gzip", "GZIP"),
        ({"text": "zstd", "n": "snappy"}, "ZSTD"),
    ],
)
def test_what_stays_is_compressed_as_the_input(given: Any, kept: str, tmp_path: Path) -> None:
    texts = [f"{at} words of some text that is not like another {at * at}" for at in range(200)]
    table = pa.table({"text": texts, "n": range(200)})
    pa.parquet.write_table(table, tmp_path / "in.parquet", compression=given)
    result = la.dedup(tmp_path / "in.parquet")
    result.write(tmp_path / "out.parquet")
    result.write_annotated(tmp_path / "all.parquet")
    for name in ("out", "all"):
        group = pa.parquet.ParquetFile(tmp_path / f"{name}.parquet").metadata.row_group(0)
        assert {group.column(at).compression for at in range(group.num_columns)} == {kept}
    assert pa.parquet.read_table(tmp_path / "out.parquet").equals(table)


def test_many_groups_are_in_order_for_any_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookalike.corpora.formats.parquet._GROUP_BYTES", 20)
    monkeypatch.setattr("lookalike.corpora.formats.parquet.BATCH_ROWS", 3)
    table = pa.table({"text": [f"row {at}" for at in range(100)], "n": range(100)})
    pa.parquet.write_table(table, tmp_path / "in.parquet", row_group_size=7)
    keep = np.arange(100) % 5 != 0
    made = []
    for threads in (1, 2, 5):
        path = tmp_path / f"{threads}.parquet"
        with limited(None, threads):
            write_corpus(open_corpus(tmp_path / "in.parquet"), path, keep=keep)
        made.append(path.read_bytes())
        assert pa.parquet.ParquetFile(path).num_row_groups > 15
        assert pa.parquet.read_table(path).equals(table.filter(pa.array(keep)))
    assert made[0] == made[1] == made[2]


def test_a_dictionary_of_short_values_is_read_in_large_batches(tmp_path: Path) -> None:
    texts = [f"{at} is a text of its own" for at in range(20_000)]
    pa.parquet.write_table(pa.table({"text": texts}), tmp_path / "c.parquet")
    batches = list(open_corpus(tmp_path / "c.parquet").read(["text"], Problems()))
    assert len(batches) <= 4  # not hundreds, as if each text were as long as all together
    assert [text for batch in batches for text in batch.column(0).to_pylist()] == texts
