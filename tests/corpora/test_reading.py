"""Every format gives the same rows, in order, in bounded batches."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.corpora import Problems, format_of, open_corpus, tables, write_corpus
from lookalike.corpora.encodings import Encodings
from lookalike.corpora.formats import json_lines, lines, parquet

Rows = list[dict[str, Any]]
ROWS: Rows = [
    {"id": "a", "text": "one line"},
    {"id": "b", "text": 'with "quotes", commas\nand a new line'},
    {"id": "c", "text": "ünïcödé 日本 🦊"},
    {"id": "d", "text": " spaces kept "},
]


def write(path: Path, rows: Rows) -> Path:
    """Write rows the plain way."""
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    if name.endswith(".jsonl"):
        data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    elif name.endswith(".json"):
        data = json.dumps(rows).encode()
    elif name.endswith((".csv", ".tsv")):
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), delimiter="," if "csv" in name else "\t")
        writer.writeheader()
        writer.writerows(rows)
        data = text.getvalue().encode()
    else:
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
        return path
    if path.suffix == ".gz":
        data = gzip.compress(data)
    if path.suffix == ".zst":
        data = pa.compress(data, "zstd", asbytes=True)
    path.write_bytes(data)
    return path


def read(
    source: Any, columns: Sequence[str] = ("id", "text"), skip_bad: bool = False, **options: Any
) -> list[tuple[Any, ...]]:
    corpus = open_corpus(source, **options)
    found: list[tuple[Any, ...]] = []
    for batch in corpus.read(columns, Problems(skip_bad)):
        assert batch.schema.names == list(columns)
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    assert corpus.done == 1.0 or not found
    return found


EXPECTED = [(row["id"], row["text"]) for row in ROWS]
NAMES = ["c.jsonl", "c.jsonl.gz", "c.jsonl.zst", "c.json", "c.json.gz", "c.csv", "c.csv.gz",
         "c.csv.zst", "c.tsv", "c.parquet", "c.ndjson.jsonl"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_formats_give_the_same_rows(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, ROWS)
    assert open_corpus(path).columns() == ["id", "text"]
    assert read(path) == EXPECTED
    assert read(str(path)) == EXPECTED
    assert read(path, ["text", "nothing"]) == [(text, None) for _, text in EXPECTED]


@pytest.mark.parametrize("name", NAMES)
def test_several_files_are_one_corpus(name: str, tmp_path: Path) -> None:
    suffix = name.removeprefix("c")
    one, two = write(tmp_path / f"1{suffix}", ROWS), write(tmp_path / f"2{suffix}", ROWS[:2])
    assert read([two, one]) == EXPECTED[:2] + EXPECTED
    assert read(str(tmp_path / f"*{suffix}")) == EXPECTED + EXPECTED[:2]
    assert open_corpus([one, two]).name == f"{one} and 1 more"


@pytest.mark.parametrize(
    "make",
    [
        pa.Table.from_pylist,
        lambda rows: pa.Table.from_pylist(rows).to_batches()[0],
        lambda rows: pa.Table.from_pylist(rows).to_reader(),
        pandas.DataFrame,
        polars.DataFrame,
        list,
        iter,
    ],
)
def test_tables_in_memory(make: Any) -> None:
    assert read(make(ROWS)) == EXPECTED


@pytest.mark.parametrize(
    "make",
    [list, tuple, iter, pa.array, lambda t: pa.chunked_array([t]), pandas.Series, polars.Series],
)
def test_columns_in_memory(make: Any) -> None:
    texts = [text for _, text in EXPECTED]
    assert read(make(texts), ["text"]) == [(text,) for text in texts]


@settings(max_examples=60)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=30),
    st.integers(1, 200),
    st.sampled_from(["", "\n", "\r\n"]),
)
def test_any_text_survives_json_lines(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], size: int, end: str
) -> None:
    path = tmp_path_factory.mktemp("json") / "c.jsonl"
    body = "\r\n".join(json.dumps({"text": text}, ensure_ascii=size % 2 == 0) for text in texts)
    path.write_bytes((body + (end if texts else "")).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BATCH_BYTES", size)
        assert read(path, ["text"]) == [(text,) for text in texts]


@settings(max_examples=60)
@given(
    st.binary(max_size=200).map(lambda data: data.replace(b"\xef", b"e")),
    st.integers(1, 50),
    st.integers(1, 60),
)
def test_lines_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, size: int, most: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "c.txt"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BATCH_BYTES", size)
        problems = Problems(skip_bad=True)
        as_they_are = Encodings("utf-8")  # any bytes, of which no encoding is to be guessed
        batches = list(lines.line_batches(path, most, problems, None, as_they_are))
        with_all = list(lines.line_batches(path, 1000, Problems(), None, as_they_are))
    expected = [line + b"\n" for line in data.split(b"\n")]
    expected[-1] = expected[-1][:-1]
    expected = [line for line in expected if line]
    assert [line for batch in with_all for line in batch.lines.to_pylist()] == expected
    found = {
        batch.first + at: line
        for batch in batches
        for at, line in enumerate(batch.lines.to_pylist())
    }
    numbered = dict(enumerate(expected, 1))
    assert found == {number: line for number, line in numbered.items() if len(line) <= most}
    assert problems.bad == len(numbered) - len(found)
    named = [int(re.findall("line ([0-9]+)", example)[0]) for example in problems.examples]
    assert named == [number for number in numbered if number not in found][:5]


def test_text_by_line(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\r\n two \nlast")
    assert read(path, ["text"]) == [("one",), ("",), (" two ",), ("last",)]
    assert read(path, ["text"], format="files") == [("one\r\n\r\n two \nlast",)]


def test_a_folder_is_a_document_a_file(tmp_path: Path) -> None:
    for name, data in {
        "b.txt": b"text b",
        "a/deep/file.py": b"print('a')",
        "binary": b"PK\0\x01",
        "latin1.txt": b"caf\xe9",
        "unknown.txt": b"a word\n\xff\n",
        "empty": b"",
        "bom.md": b"\xef\xbb\xbfmarked",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    corpus = open_corpus(tmp_path)
    problems = Problems()
    (batch,) = corpus.read(["path", "text", "bytes"], problems)
    assert batch.to_pylist() == [
        {"path": "a/deep/file.py", "text": "print('a')", "bytes": 10},
        {"path": "b.txt", "text": "text b", "bytes": 6},
        {"path": "bom.md", "text": "marked", "bytes": 6},
        {"path": "empty", "text": "", "bytes": 0},
        {"path": "latin1.txt", "text": "caf\xe9", "bytes": 5},
    ]
    assert problems.binary == 1
    assert problems.left_out == {"unknown encoding": 1}
    assert [file.partition(": ")[0] for file in problems.files] == [
        str(tmp_path / "binary"), str(tmp_path / "unknown.txt"),
    ]  # fmt: skip
    (notice,) = problems.notices()
    assert "latin1.txt was read as cp1252" in notice
    assert open_corpus(str(tmp_path / "**/*.py")).format == "files"


BROKEN = '{"text": "one"}\n\n{"text": "tw\n[1, 2]\n"word"\n{"text": "five"}\n\xff\n{"text": 6}\n'


def test_broken_json_lines_are_named(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(BROKEN.encode("latin-1"))
    with pytest.raises(
        la.errors.DocumentError, match=r"c\.jsonl, line 7: is not valid UTF-8"
    ) as caught:
        read(path, ["text"])
    assert "skip_bad" in str(caught.value)
    problems = Problems(skip_bad=True)
    rows = [batch.to_pylist() for batch in open_corpus(path).read(["text"], problems)]
    assert list(chain(*rows)) == [{"text": "one"}, {"text": "five"}, {"text": "6"}]
    assert problems.bad == 4
    assert [example.split(": ")[0].split(", ")[1] for example in problems.examples] == [
        "line 7", "line 3", "line 4", "line 5",
    ]  # fmt: skip
    path.write_bytes(b'{"text": "one"}\n{"text": ')
    with pytest.raises(la.errors.DocumentError, match=r"line 2: is not JSON \(Expecting value"):
        read(path, ["text"])


def test_mixed_types_become_text(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": 1.5}\n{"text": null}\n{"text": ["a"]}\n{"id": 1}\n{"text": true}\n')
    assert [row[0] for row in read(path, ["text"])] == ["1.5", None, '["a"]', None, "true"]


def test_a_hundred_megabytes_on_one_line(tmp_path: Path) -> None:
    text = "word " * 20_000_000
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps({"text": "short"}) + "\n" + json.dumps({"text": text}) + "\n")
    rows = read(path, ["text"])
    assert [len(row[0]) for row in rows] == [5, len(text)]
    plain = tmp_path / "c.txt"
    plain.write_text(text + "\nshort")
    assert [len(row[0]) for row in read(plain, ["text"])] == [len(text), 5]
    table = tmp_path / "c.csv"
    table.write_text(f"id,text\n1,{text}\n2,short\n")
    assert [len(row[1]) for row in read(table)] == [len(text), 5]


def test_broken_csv_rows_are_named(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("id,text\n1,one\n2,too,many\n3,three\n4\n5,five\n")
    with pytest.raises(la.errors.DocumentError, match=r"c\.csv, line 3: "):
        read(path)
    problems = Problems(skip_bad=True)
    rows = [batch.to_pylist() for batch in open_corpus(path).read(["text"], problems)]
    assert list(chain(*rows)) == [{"text": "one"}, {"text": "three"}, {"text": "five"}]
    assert problems.bad == 2 and "line 3" in problems.examples[0]


def test_semicolons(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("id;text\n1;a, b\n")
    assert read(path) == [("1", "a, b")]
    assert write_corpus(open_corpus(path), tmp_path / "o.csv", keep=np.array([True])) == 1
    assert (tmp_path / "o.csv").read_text() == "id;text\n1;a, b\n"


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("c.parquet", b"not parquet", "is not valid Parquet"),
        ("c.jsonl.gz", b"not gzip", "cannot be read"),
        ("c.json", b'{"a": 1}', "expected an array of objects"),
        ("c.json", b"[{},", "is not JSON"),
        ("c.csv", b"", "is empty; expected a header"),
        ("c.csv", b"a,a\n1,2\n", "duplicate column names"),
    ],
)
def test_what_is_not_what_it_says(name: str, data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(la.errors.FileError, match=message):
        read(tmp_path / name)


@pytest.mark.parametrize("cut", [1, 20, 100])
def test_a_gzip_file_cut_short_is_an_error(cut: int, tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl.gz", ROWS * 1000)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(la.LookalikeError):
        read(path)


def test_sources_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(la.errors.FileError, match="no such file or folder"):
        open_corpus(tmp_path / "nothing.jsonl")
    with pytest.raises(la.errors.FileError, match="no file matches this pattern"):
        open_corpus(str(tmp_path / "*.jsonl"))
    for source in (5, {"a": 1}, b"bytes"):
        with pytest.raises(la.errors.ArgumentError, match="the source is of type"):
            open_corpus(source)
    with pytest.raises(la.errors.DocumentError, match="document 1 is of type int"):
        open_corpus(["a", 1])
    with pytest.raises(la.errors.DocumentError, match="lone surrogates"):
        open_corpus(["\ud800"])
    (tmp_path / "a.csv").write_text("text\n")
    (tmp_path / "a.jsonl").write_text("")
    with pytest.raises(la.errors.FormatError, match="several formats"):
        open_corpus(str(tmp_path / "a.*"))


def test_a_name_that_is_a_pattern_is_that_file(tmp_path: Path) -> None:
    path = write(tmp_path / "[1]*.jsonl", ROWS)
    assert read(path) == EXPECTED


def test_types_of_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"a": 1, "b": {"c": [1]}}\n{"a": 2.5, "d": null, "e": "2020-01-01"}\n')
    (batch,) = open_corpus(path).rows(Problems())
    assert batch.to_pylist() == [
        {"a": 1.0, "b": {"c": [1]}, "d": None, "e": None},
        {"a": 2.5, "b": None, "d": None, "e": "2020-01-01"},
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.JSONL", "jsonl"), ("a.ndjson.gz", "jsonl"), ("a.pq", "parquet"), ("a.txt.zst", "text"),
     ("a.gz", None), ("LICENSE", None), ("a.tsv", "tsv")],
)  # fmt: skip
def test_formats_by_name(name: str, expected: str | None) -> None:
    assert format_of(Path(name)) == expected


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lines, "BATCH_BYTES", 1000)
    monkeypatch.setattr(tables, "BATCH_ROWS", 3)
    path = write(tmp_path / "c.jsonl", ROWS * 100)
    sizes = [batch.nbytes for batch in open_corpus(path).read(["text"], Problems())]
    assert len(sizes) > 10 and max(sizes) < 2000
    assert json_lines  # the same constant serves it
    assert [len(batch) for batch in open_corpus(ROWS).read(["text"], Problems())] == [3, 1]


@pytest.mark.parametrize("name", ["c.csv", "c.parquet"])
def test_no_other_file_is_taken_for_one_whose_name_is_a_pattern(name: str, tmp_path: Path) -> None:
    write(tmp_path / f"1{name}", ROWS[:1])
    write(tmp_path / f"11{name}", ROWS[:2])
    for pattern in ("[1]", "*", "?"):
        assert read(write(tmp_path / f"{pattern}{name}", ROWS)) == EXPECTED


def test_csv_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,one\n")
    (tmp_path / "b.csv").write_text("text,id\ntwo,2\n")
    with pytest.raises(la.errors.FormatError, match="b.csv has the columns text, id, but"):
        open_corpus(str(tmp_path / "*.csv"))


def test_a_header_may_have_a_line_end(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text('"the\nid",text\n1,one\n')
    assert read(path, ["the\nid", "text"]) == [("1", "one")]


def test_the_first_of_several_json_lines_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    (tmp_path / "b.jsonl").write_text('{"content": "one"}\n')
    corpus = open_corpus(str(tmp_path / "*.jsonl"))
    assert corpus.columns() == ["content"]


def test_folders_of_parquet_add_no_columns(tmp_path: Path) -> None:
    (tmp_path / "year=2020").mkdir()
    path = write(tmp_path / "year=2020" / "c.parquet", ROWS)
    assert open_corpus(path).columns() == ["id", "text"]


def test_names_that_are_not_unicode(tmp_path: Path) -> None:
    def named(name: bytes) -> Path:
        return Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))

    for ending in (b".jsonl", b".csv", b".csv.gz", b".json"):
        assert read(write(named(b"\xe9" + ending), ROWS)) == EXPECTED


def test_pipes_are_refused(tmp_path: Path) -> None:
    for name in ("pipe.jsonl", "pipe"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(la.errors.FileError, match="is not a plain file"):
            open_corpus(tmp_path / name)


def test_half_a_character_in_json(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('[{"text": "\\ud83e\\udd8a"}, {"text": "\\ud83e"}]')
    with pytest.raises(la.errors.DocumentError, match="element 1: has a lone surrogate"):
        read(path, ["text"])
    problems = Problems(skip_bad=True)
    batches = open_corpus(path).read(["text"], problems)
    assert [batch.to_pylist() for batch in batches] == [[{"text": "🦊"}]] and problems.bad == 1


def test_mappings_may_have_different_keys() -> None:
    rows = [{"id": "a"}, {"text": "one"}]
    assert read(rows) == [("a", None), (None, "one")]
    with pytest.raises(la.errors.DocumentError, match="is not a table"):
        open_corpus([{"n": 1 << 80}])
    with pytest.raises(la.errors.DocumentError, match="is not a table"):
        open_corpus(pandas.DataFrame({"text": ["one", 2]}))


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: (row for row in rows),
        lambda rows: pa.Table.from_pylist(rows).to_reader(),
    ],
)
def test_what_can_be_read_once_gives_whole_rows_back(make: Any) -> None:
    rows = [{"n": 1, "content": "one"}, {"n": 2, "content": "two"}, {"n": 3, "content": "one"}]
    found = la.dedup(make(rows), keep="max:n").kept()
    assert (found if isinstance(found, list) else found.to_pylist()) == rows[1:]


@pytest.mark.parametrize("name", ["c.jsonl", "c.txt"])
def test_an_empty_file_has_nothing_left_of_another(name: str, tmp_path: Path) -> None:
    """Memory that was used before may begin with a byte order mark."""
    full, empty = tmp_path / f"full-{name}", tmp_path / name
    full.write_bytes(b'\xef\xbb\xbf{"text": "a"}\n')
    empty.write_bytes(b"")
    for _ in range(20):
        assert len(read(full, ["text"])) == 1
        assert read(empty, ["text"]) == []


def test_a_byte_order_mark_goes_only_where_it_is_one(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_bytes(b"\xef\xbb\xbf\xef\xbb\xbfa\n\xef\xbb\xbfb")
    assert read(path, ["text"]) == [("\ufeffa",), ("\ufeffb",)]
    path.write_bytes(b"\xef\xbb\xbf")
    assert read(path, ["text"]) == []


def test_lines_longer_than_a_batch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = ["x" * length for length in (1, 9, 10, 11, 100, 1000, 3, 50)]
    path = tmp_path / "c.txt"
    path.write_text("\n".join(texts))
    monkeypatch.setattr(lines, "BATCH_BYTES", 10)
    assert [text for (text,) in read(path, ["text"])] == texts


def not_unicode() -> pa.Array:
    strings = pa.array([b"good", b"ab\xff cd"], pa.binary())
    return pa.Array.from_buffers(pa.string(), 2, strings.buffers())


def test_parquet_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pyarrow.parquet.write_table(pa.table({"text": not_unicode()}), path)
    with pytest.raises(la.errors.FileError, match="cannot be read after row 0: .*UTF8"):
        read(path, ["text"])


@pytest.mark.parametrize("name", [b"x\xff.parquet", b"s3:y.parquet", b"file:x.parquet"])
def test_parquet_of_any_name(name: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with open(name, "wb") as file:
        pyarrow.parquet.write_table(pa.table({"text": ["a"]}), file)
    corpus = open_corpus(Path(os.fsdecode(name)))
    target = Path(os.fsdecode(b"o" + name))
    assert write_corpus(corpus, target, keep=np.array([True])) == 1
    assert target.exists()


def test_long_rows_of_parquet_make_small_batches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "c.parquet"
    texts = [f"{at:08}" * 1000 for at in range(100)]
    pyarrow.parquet.write_table(pa.table({"text": texts}), path, use_dictionary=False)
    monkeypatch.setattr(parquet, "BATCH_BYTES", 100_000)
    batches = list(open_corpus(path).read(["text"], Problems()))
    assert max(map(len, batches)) == 12
    assert [text for batch in batches for text in batch["text"].to_pylist()] == texts


def test_json_in_parquet_is_text(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    duckdb.execute(f"COPY (SELECT '\"a b\"'::JSON AS text) TO '{path}'")
    result = la.dedup(path)
    assert result.text(0) == '"a b"'


def test_keys_that_cannot_be_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"\\ud800": "hello"}\n')
    with pytest.raises(la.errors.DocumentError, match="line 1: is not JSON"):
        la.dedup(path)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", ROWS)
    corpus = open_corpus(path)
    path.unlink()
    with pytest.raises(la.errors.FileError, match="cannot be read"):
        la.dedup(corpus)


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@pytest.mark.parametrize("depth", [48, 49, 50, 63, 64, 100, 126, 127, 1_000, 20_000])
def test_what_is_nested_deep_is_text_from_a_level_on(depth: int, tmp_path: Path) -> None:
    """Types of more than 64 levels are more than Arrow takes, and those of 126 end DuckDB."""
    lines = [
        '{"id": "a", "text": "one", "n": 1}',
        f'{{"id": "b", "text": "two", "n": {nested(depth)}, "list": {"[" * depth}{"]" * depth}}}',
        f'{{"id": "c", "text": "three", "m": {nested(depth)}}}',
    ]
    path = tmp_path / "deep.jsonl"
    path.write_text("\n".join(lines))
    corpus = open_corpus(path)
    rows = list(chain.from_iterable(batch.to_pylist() for batch in corpus.rows(Problems())))
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert rows[1]["n"] == nested(depth), "text, because elsewhere it is a number"
    value, levels = rows[2]["m"], 0
    while isinstance(value, dict):
        value, levels = value["a"], levels + 1
    assert levels == min(depth, 49)
    assert value == (1 if depth < 50 else nested(depth - levels))
    write_corpus(corpus, tmp_path / "out.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").num_rows == 3


def test_what_is_nested_deep_in_an_array_is_named(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text(f'[{{"id": "a", "m": {nested(299)}}}, {{"id": "b", "m": {nested(300)}}}]')
    corpus = open_corpus(path)
    with pytest.raises(
        la.errors.DocumentError, match="element 1: is nested more than 300 levels deep"
    ):
        list(corpus.rows(Problems()))
    problems = Problems(skip_bad=True)
    (batch,) = corpus.rows(problems)
    assert batch.to_pylist()[0]["id"] == "a"
    assert (len(batch), problems.bad) == (1, 1)
