"""What is written is what was read, less what was to go, plus what was to be added."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.corpora import Problems, open_corpus, write_corpus, write_table
from lookalike.corpora.formats import parquet

LINES = [
    '{"id":1,  "text": "one", "when": "2020-01-01T00:00:00Z", "x": 1.0}',
    '  {"text": "tw\\u00f6", "id": 2}',
    '{"id": 3, "text": "three", "nested": {"a": [1, 2.50]}}',
    "{}",
]
KEEP = np.array([True, False, True, True])


def added(begin: int, end: int) -> dict[str, Any]:
    return {
        "cluster": pa.array(range(begin, end), pa.int64()),
        "similarity": pa.array([None if at % 2 else 0.5 for at in range(begin, end)], pa.float64()),
    }


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [row for batch in open_corpus(path).rows(Problems()) for row in batch.to_pylist()]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.jsonl"
    path.write_text("\n".join(LINES))
    return path


@pytest.mark.parametrize("name", ["o.jsonl", "o", "o.jsonl.gz", "o.ndjson.zst"])
def test_lines_stay_as_they_are(name: str, source: Path, tmp_path: Path) -> None:
    target = tmp_path / name
    assert write_corpus(open_corpus(source), target, keep=KEEP) == 3
    with pa.input_stream(target) as stream:
        assert stream.read().decode() == "\n".join([LINES[0], LINES[2], LINES[3]]) + "\n"


def test_added_keys_leave_the_others_alone(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "o.jsonl"
    assert write_corpus(open_corpus(source), target, added=added) == 4
    lines = target.read_text().splitlines()
    assert lines[0] == LINES[0][:-1] + ', "cluster": 0, "similarity": 0.5}'
    assert lines[3] == '{"cluster": 3, "similarity": null}'
    assert json.loads(lines[1]) == {"text": "twö", "id": 2, "cluster": 1, "similarity": None}


@given(st.lists(st.booleans(), max_size=60), st.integers(0, 9))
def test_any_choice_of_lines(
    tmp_path_factory: pytest.TempPathFactory, chosen: list[bool], run: int
) -> None:
    """Long runs are written as they lie, short ones gathered: the same bytes either way."""
    folder = tmp_path_factory.mktemp("lines")
    keep = np.repeat(np.array(chosen, bool), run * 4 + 1)
    lines = [f"line {at}\n" for at in range(len(keep))]
    (folder / "c.txt").write_text("".join(lines))
    write_corpus(open_corpus(folder / "c.txt"), folder / "o.txt", keep=keep)
    expected = "".join(line for line, stays in zip(lines, keep, strict=True) if stays)
    assert (folder / "o.txt").read_text() == expected


@pytest.mark.parametrize("target", ["o.parquet", "o.csv", "o.tsv", "o.json", "o.csv.gz", "o.jsonl"])
@pytest.mark.parametrize("name", ["s.jsonl", "s.parquet", "s.csv", "s.json"])
def test_any_format_to_any_other(name: str, target: str, tmp_path: Path) -> None:
    rows = [{"id": f"i{at}", "text": f'text, "{at}"\n日本', "n": at} for at in range(5)]
    table = pa.Table.from_pylist(rows)
    write_table(iter(table.to_batches()), tmp_path / name)
    keep = np.array([True, True, False, False, True])
    assert write_corpus(open_corpus(tmp_path / name), tmp_path / target, keep=keep) == 3
    found = rows_of(tmp_path / target)
    assert [{**row, "n": int(row["n"])} for row in found] == [rows[0], rows[1], rows[4]]
    annotated = tmp_path / f"a{target}"
    assert write_corpus(open_corpus(tmp_path / name), annotated, added=added) == 5
    assert [int(row["cluster"]) for row in rows_of(annotated)] == list(range(5))


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": ["a", "b", "c"],
            "when": pa.array([1, 2, None], pa.timestamp("us")),
            "list": [[1], [], None],
            "struct": [{"x": 1.5}, {"x": None}, None],
            "small": pa.array([1, 2, 3], pa.int8()),
            "blob": [b"\0", b"", None],
            "category": pa.array(["x", "y", "x"]).dictionary_encode(),
            "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
            "money": pa.array([1, 2, 3], pa.decimal128(9, 2)),
        }
    ).replace_schema_metadata({"made by": "a test"})
    pyarrow.parquet.write_table(table, tmp_path / "s.parquet")
    write_corpus(open_corpus(tmp_path / "s.parquet"), tmp_path / "o.parquet", keep=np.ones(3, bool))
    found = pyarrow.parquet.read_table(tmp_path / "o.parquet")
    assert found.to_pylist() == table.to_pylist()
    expected = pyarrow.parquet.read_schema(tmp_path / "s.parquet")
    assert found.schema.equals(expected, check_metadata=True)


def test_values_of_several_types_become_text(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text('{"text": "a"}\n{"text": 1.5}\n{"text": ["b"]}\n')
    write_corpus(open_corpus(tmp_path / "s.jsonl"), tmp_path / "o.parquet")
    found = pyarrow.parquet.read_table(tmp_path / "o.parquet")["text"]
    assert found.to_pylist() == ["a", "1.5", '["b"]']


def test_parquet_files_of_several_schemas_are_united(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"text": ["a"], "n": [1]}), tmp_path / "1.parquet")
    pyarrow.parquet.write_table(pa.table({"text": ["b"], "m": ["x"]}), tmp_path / "2.parquet")
    corpus = open_corpus([tmp_path / "1.parquet", tmp_path / "2.parquet"])
    write_corpus(corpus, tmp_path / "o.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "o.parquet").to_pylist() == [
        {"text": "a", "n": 1, "m": None},
        {"text": "b", "n": None, "m": "x"},
    ]


@pytest.mark.parametrize("size", [1, 700, 10**9])
def test_row_groups(size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parquet, "_GROUP_BYTES", size)
    table = pa.table({"text": [f"text {at}" for at in range(100)]})
    assert write_table(iter(table.to_batches(max_chunksize=7)), tmp_path / "o.parquet") == 100
    assert pyarrow.parquet.read_table(tmp_path / "o.parquet").equals(table)
    groups = pyarrow.parquet.ParquetFile(tmp_path / "o.parquet").num_row_groups
    assert groups == {1: 15, 10**9: 1}.get(size, groups)


def test_files_of_a_folder_are_copied(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("a/one.txt", "a/two.txt", "three.md"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (source / "binary").write_bytes(b"\0")
    keep = np.array([True, False, True])
    assert write_corpus(open_corpus(source), tmp_path / "out", keep=keep) == 2
    names = [str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")]
    assert sorted(names) == ["a/one.txt", "three.md"]
    with pytest.raises(la.errors.FileError, match="already exists"):
        write_corpus(open_corpus(source), tmp_path / "out", keep=keep)
    assert write_corpus(open_corpus(source), tmp_path / "o.jsonl", keep=keep) == 2
    assert rows_of(tmp_path / "o.jsonl")[0]["path"] == "a/one.txt"


def test_a_corpus_that_changes_meanwhile_is_noticed(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "o.jsonl"
    for keep in (KEEP[:3], np.append(KEEP, True)):
        with pytest.raises(la.errors.DocumentError, match="has changed since it was read"):
            write_corpus(open_corpus(source), target, keep=keep)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.jsonl"]


def test_bad_rows_are_left_out_alike(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "a"}\nbroken\n{"text": "b"}\n')
    keep = np.array([False, True])
    assert write_corpus(open_corpus(path), tmp_path / "o.jsonl", keep=keep, skip_bad=True) == 1
    assert (tmp_path / "o.jsonl").read_text() == '{"text": "b"}\n'
    with pytest.raises(la.errors.DocumentError, match="line 2"):
        write_corpus(open_corpus(path), tmp_path / "o2.parquet", keep=keep)
    assert not (tmp_path / "o2.parquet").exists()


@pytest.mark.parametrize("name", ["o.jsonl", "o.parquet", "o.csv"])
def test_nothing_is_half_written(
    name: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / name
    target.write_text("what was there before")

    def full(begin: int, end: int) -> dict[str, Any]:
        if begin != end:
            raise OSError(28, "No space left on device")
        return added(begin, end)

    with pytest.raises(la.errors.FileError, match=f"{name} cannot be written: .*No space left"):
        write_corpus(open_corpus(source), target, added=full)
    assert target.read_text() == "what was there before"
    assert len(list(tmp_path.iterdir())) == 2


def test_what_cannot_be_written(source: Path, tmp_path: Path) -> None:
    with pytest.raises(la.errors.ArgumentError, match="'text'"):
        write_corpus(open_corpus(source), tmp_path / "o.txt", keep=KEEP)
    with pytest.raises(la.errors.FileError, match="cannot be written"):
        write_corpus(open_corpus(source), tmp_path / "no" / "o.jsonl", keep=KEEP)
    (tmp_path / "c.jsonl").write_text('{"cluster": 1}\n')
    with pytest.raises(la.errors.ArgumentError, match="already has a column 'cluster'"):
        write_corpus(open_corpus(tmp_path / "c.jsonl"), tmp_path / "o.jsonl", added=added)


@pytest.mark.parametrize("name", ["c.csv", "c.parquet"])
def test_no_rows_still_have_columns(name: str, tmp_path: Path) -> None:
    empty = pa.table({"id": pa.array([], pa.string()), "text": pa.array([], pa.string())})
    write_table(iter(empty.to_batches() or [pa.RecordBatch.from_pylist([], empty.schema)]),
                tmp_path / name)  # fmt: skip
    assert write_corpus(open_corpus(tmp_path / name), tmp_path / f"out-{name}") == 0
    assert open_corpus(tmp_path / f"out-{name}").columns() == ["id", "text"]


def test_bad_csv_rows_are_left_out_alike(tmp_path: Path) -> None:
    """Whatever columns are read: the bad one may be another."""
    path = tmp_path / "c.csv"
    path.write_bytes(b"text,other\none,caf\xe9\ntwo,2\n")
    corpus = open_corpus(path, encoding="utf-8")
    rows = [batch.num_rows for batch in corpus.read(["text"], Problems(skip_bad=True))]
    assert sum(rows) == 1
    write_corpus(corpus, tmp_path / "out.csv", keep=np.ones(1, bool), skip_bad=True)
    assert (tmp_path / "out.csv").read_text() == "text,other\ntwo,2\n"


def test_keys_that_a_table_cannot_tell_apart(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "one", "Text": "two"}\n')
    with pytest.raises(la.errors.FormatError, match=r"write \.jsonl instead"):
        write_corpus(open_corpus(path), tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]


def test_links_stay_and_what_is_no_plain_file_is_refused(source: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.jsonl").symlink_to("real/target.jsonl")
    write_corpus(open_corpus(source), tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(rows_of(tmp_path / "real" / "target.jsonl")) == len(LINES)
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name in ("pipe.jsonl", "real"):
        with pytest.raises(la.errors.FileError, match="is not a plain file"):
            write_corpus(open_corpus(source), tmp_path / name)
    assert (tmp_path / "pipe.jsonl").is_fifo() and (tmp_path / "real").is_dir()


@pytest.mark.parametrize(
    "kind",
    [
        pa.string_view(),
        pa.list_(pa.string_view()),
        pa.struct([("x", pa.string_view())]),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
    ],
)
def test_types_that_arrow_cannot_take_rows_of(kind: pa.DataType, tmp_path: Path) -> None:
    plain: Any = {"list": ["a", "b"], "struct": {"x": "a"}}.get(str(kind).partition("<")[0], "a")
    table = pa.table(
        {"text": [f"text {at}" for at in range(50)], "v": pa.array([plain] * 50, kind)}
    )
    keep = np.arange(50) % 3 > 0
    expected = [row for row, stays in zip(table.to_pylist(), keep, strict=True) if stays]
    rows = 7 if "dictionary" in str(kind) else None
    pyarrow.parquet.write_table(table, tmp_path / "s.parquet", row_group_size=rows)
    sources = [open_corpus(tmp_path / "s.parquet")]
    if "dictionary" not in str(kind):
        sources.append(open_corpus(table))
    for source in sources:
        assert write_corpus(source, tmp_path / "o.parquet", keep=keep) == len(expected)
        assert pyarrow.parquet.read_table(tmp_path / "o.parquet").to_pylist() == expected


def test_half_floats_to_csv(tmp_path: Path) -> None:
    table = pa.table({"text": ["a"], "h": pa.array([np.float16(0.5)], pa.float16())})
    write_corpus(open_corpus(table), tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text() == "text,h\na,0.5\n"


def test_keys_may_have_the_names_of_types(tmp_path: Path) -> None:
    row = {"text": "a b", "JSON": 7, "x": {"NULL": "q", "l": [None]}, "n": None}
    (tmp_path / "s.jsonl").write_text(json.dumps(row) + "\n")
    write_corpus(open_corpus(tmp_path / "s.jsonl"), tmp_path / "o.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "o.parquet").to_pylist() == [row]


@pytest.mark.parametrize("line", ['{"text":"a",}', '{"text":"a" , }', '{"text":"a,"}', "{}"])
def test_added_keys_make_json_of_every_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(f'{line}\n{{"text": "b"}}\n')
    write_corpus(open_corpus(tmp_path / "s.jsonl"), tmp_path / "o.jsonl", added=added)
    found = [json.loads(each) for each in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [row["cluster"] for row in found] == [0, 1]
