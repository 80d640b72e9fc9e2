"""How much is held at a time, and what becomes of documents that are longer."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from lookalike.corpora import Problems, open_corpus
from lookalike.corpora.base import limited
from lookalike.corpora.formats import json_array, lines, parquet
from lookalike.corpora.formats.delimited import DelimitedCorpus, Records
from lookalike.corpora.formats.json_array import JsonArrayCorpus
from lookalike.corpora.formats.parquet_layout import measure_pages
from lookalike.errors import ArgumentError, DocumentError, FileError
from lookalike.jobs import context
from lookalike.jobs import documents as reading

MOST = 1000
SHORT = [f"a short document with the number {at}" for at in range(4)]
LONG = "a long one " * 200


def rows_with(*long_ones: int) -> list[dict[str, str]]:
    texts = list(SHORT)
    for place in long_ones:
        texts.insert(place, LONG + str(place))
    return [{"id": str(at), "text": text} for at, text in enumerate(texts)]


def write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    """Write rows without any of our own code, but for compression."""
    name = path.name
    if name == "folder":
        path.mkdir()
        for row in rows:
            (path / f"{row['id']}.md").write_text(row["text"])
        return
    if ".parquet" in name:
        pa.parquet.write_table(
            pa.Table.from_pylist(rows), path, data_page_size=1, write_batch_size=1
        )
        return
    if ".csv" in name:
        text = io.StringIO()
        writer = csv.writer(text, quoting=csv.QUOTE_ALL)
        writer.writerows([["id", "text"], *([row["id"], row["text"]] for row in rows)])
        data = text.getvalue()
    elif ".txt" in name:
        data = "".join(row["text"] + "\n" for row in rows)
    elif ".jsonl" in name:
        data = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        data = json.dumps(rows)
    packed = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
    raw = data.encode()
    path.write_bytes(pa.compress(raw, packed, asbytes=True) if packed else raw)


NAMES = ["c.jsonl", "c.jsonl.gz", "c.jsonl.zst", "c.csv", "c.csv.gz", "c.csv.zst", "c.txt",
         "c.txt.zst", "c.parquet", "folder"]  # fmt: skip


@pytest.mark.parametrize("batch", [7, 1 << 20], ids=["small batches", "one batch"])
@pytest.mark.parametrize("places", [(0,), (1, 2, 6)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_document_that_is_too_long(
    name: str, places: tuple[int, ...], batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (lines, json_array, parquet):
        monkeypatch.setattr(module, "BATCH_BYTES", batch)
    path = tmp_path / name
    write_rows(path, rows_with(*places))
    with pytest.raises(
        DocumentError, match=r"more than 1,000|the limit of max_document"
    ) as refused:
        la.dedup(path, max_document=MOST)
    first = {"c.csv": places[0] + 2, "c.txt": places[0] + 1, "c.jso": places[0] + 1}.get(name[:5])
    where = f"{places[0]}.md: " if name == "folder" else f"row {places[0]}: "
    assert (where if first is None else f"line {first}: ") in str(refused.value) or "row group" in (
        str(refused.value)
    )
    result = la.dedup(path, max_document=MOST, skip_bad=True)
    assert [result.text(row) for row in range(result.counts.documents)] == SHORT
    assert result.counts.bad_rows == len(places) == len(result.documents.examples)
    # What is read again leaves out the same ones.
    target = tmp_path / ("copy" if name == "folder" else f"copy{path.suffixes[0]}")
    assert result.write(target) == len(SHORT)
    copy = la.dedup(target)
    assert sorted(copy.text(row) for row in range(len(SHORT))) == SHORT
    # And with room for them, they are documents like any other.
    assert la.dedup(path, max_document=10_000).counts.documents == len(SHORT) + len(places)


def test_a_json_array_cannot_be_read_past_what_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    write_rows(path, rows_with(2))
    for skip_bad in (False, True):
        with pytest.raises(FileError, match="more than 1,000 characters, .* max_document"):
            la.dedup(path, max_document=MOST, skip_bad=skip_bad)
    assert la.dedup(path, max_document=10_000).counts.documents == 5


def test_resumed_jobs_know_what_was_too_long(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    write_rows(path, rows_with(1))
    counts = [
        la.dedup(path, max_document=most, skip_bad=True, work=tmp_path / "w").counts.documents
        for most in (MOST, 10_000, MOST)
    ]
    assert counts == [4, 5, 4]


def test_max_document_and_memory_limit_go_together(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    write_rows(path, rows_with())
    with pytest.raises(ArgumentError, match="the maximum is 20,000,000: raise the memory limit to"):
        la.dedup(path, memory_limit=800_000_000, max_document=20_000_001)
    corpus = open_corpus(path)
    la.dedup(corpus, memory_limit=840_000_000)
    assert corpus.max_document == 21_000_000
    la.dedup(corpus, memory_limit=10**12)
    assert corpus.max_document == 256 << 20
    with pytest.raises(ArgumentError, match="max_document is 0"):
        la.dedup(path, max_document=0)


@pytest.mark.parametrize(
    "command",
    [["dedup"], ["sign", "-o", "s.npy"], ["compare", "0", "1", "--in"]],
    ids=lambda c: c[0],
)
def test_on_the_command_line(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(Path("c.jsonl"), rows_with(0))
    assert main([*command, "c.jsonl", "--max-document", "1KB"]) == 1
    assert "c.jsonl, line 1: has more than 1,000 bytes" in capsys.readouterr().err
    assert main([*command, "c.jsonl", "--max-document", "1MB"]) == 0


def test_a_table_that_does_not_fit_into_the_limit(tmp_path: Path) -> None:
    """Lines of JSON take some ten times their size on their way to a table."""
    path = tmp_path / "c.jsonl"
    with open(path, "w") as file:
        file.writelines(json.dumps({"text": f"{at} word" * 2_500_000}) + "\n" for at in range(4))
    corpus = open_corpus(path)
    with (
        limited(70_000_000, 1),
        pytest.raises(FileError, match="more memory .* raise memory_limit"),
    ):
        list(corpus.rows(Problems()))


def test_too_many_documents_for_the_limit_are_noticed_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.txt"
    path.write_text("a line\n" * 3000)
    monkeypatch.setattr(lines, "BATCH_BYTES", 700)
    monkeypatch.setattr(context, "_BYTES_A_DOCUMENT", 1 << 20)
    with pytest.raises(ArgumentError, match=r"is .* about 3,000 documents, [1-9]0\d of them"):
        la.dedup(path, memory_limit=700_000_000)


def test_what_expands_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.txt.zst"
    path.write_bytes(pa.compress(b"the same line again\n" * 500_000, "zstd", asbytes=True))
    monkeypatch.setattr(reading, "_EXPANDED_BYTES", 1 << 20)
    monkeypatch.setattr(reading, "_EXPANSION", 1000)
    with pytest.raises(DocumentError, match="expands to more than .* decompress it first"):
        la.dedup(path)


# The real thing: what a process takes that is given a bomb.

MEASURED = """
import sys
from pathlib import Path
from lookalike.cli import main
status = main(["dedup", sys.argv[1], "--memory-limit", "700MB", "--quiet"])
peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
print(status, int(peak) // 1000)
"""


def bomb_of_lines(path: Path) -> None:
    with pa.CompressedOutputStream(os.fspath(path), "zstd") as stream:
        stream.write(b'id,text\n1,short\n2,"' if ".csv" in path.name else b'{"text": "')
        for _ in range(300):
            stream.write(b"a" * (1 << 20))


def bomb_of_parquet(path: Path) -> None:
    table = pa.table({"text": pa.array(["a" * 120_000_000], pa.large_string())})
    pa.parquet.write_table(
        table, path, compression="zstd", use_dictionary=False, write_statistics=False
    )


@pytest.mark.parametrize(
    ("name", "make"),
    [("b.jsonl.zst", bomb_of_lines), ("b.csv.zst", bomb_of_lines), ("b.parquet", bomb_of_parquet)],
)
def test_a_bomb_does_not_go_off(name: str, make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / name
    make(path)
    assert path.stat().st_size < 100_000
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True
    )
    status, megabytes = map(int, done.stdout.split())
    assert status == 1 and "max_document" in done.stderr and done.stderr.count("\n") == 1
    assert megabytes < 500


# Records of CSV


def records_of(data: bytes) -> list[bytes]:
    """Slowly and obviously: character by character."""
    found, begin, quoted, value_begins = [], 0, False, True
    at = 0
    while at < len(data):
        one = data[at : at + 1]
        if quoted:
            quoted = one != b'"'
            value_begins = one == b'"'  # a second one goes on with the value
        elif one == b'"' and value_begins:
            quoted = True
        elif one in b"\r\n":
            if data[at : at + 2] == b"\r\n":
                at += 1
            found.append(data[begin : at + 1])
            begin = at + 1
            value_begins = True
        else:
            value_begins = one == b","
        at += 1
    return found + ([data[begin:]] if begin < len(data) else [])


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from([b"a", b",", b'"', b"\n", b"\r", b'""', b"\r\n"]), max_size=40),
    st.integers(1, 12),
    st.integers(1, 30),
)
def test_records_end_outside_of_quotes(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], size: int, most: int
) -> None:
    data = b"".join(parts)
    path = tmp_path_factory.mktemp("records") / "c.csv"
    path.write_bytes(data)
    problems = Problems(skip_bad=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BATCH_BYTES", size)
        batches = list(lines.line_batches(path, most, problems, Records(",")))
    found = [
        (batch.line(at), record)
        for batch in batches
        for at, record in enumerate(batch.lines.to_pylist())
    ]
    expected, line = [], 1
    for record in records_of(data):
        expected.append((line, record))
        line += record.count(b"\n")
    assert found == [one for one in expected if len(one[1]) <= most]
    assert problems.bad == len(expected) - len(found)


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.text('ab,"\n é', max_size=6), min_size=2, max_size=2), max_size=12),
    st.integers(1, 40),
)
def test_csv_in_parts_is_csv(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], size: int
) -> None:
    path = tmp_path_factory.mktemp("parts") / "c.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["id", "text"], *rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BATCH_BYTES", size)
        found = [
            [row["id"] or "", row["text"] or ""]
            for batch in DelimitedCorpus([path], "csv").read(["id", "text"], Problems())
            for row in batch.to_pylist()
        ]
    assert found == rows


def test_bad_records_are_named_by_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text('id,text\n1,"two\n\nlines"\n2,too,many\n3,three\n4,5" of snow\n5,a,b\n')
    with pytest.raises(DocumentError, match=r"c\.csv, line 5: "):
        la.dedup(path)
    result = la.dedup(path, skip_bad=True)
    assert [result.text(row) for row in range(3)] == ["two\n\nlines", "three", '5" of snow']
    named = [example.partition(": ")[0] for example in result.documents.examples]
    assert named == [f"{path}, line 5", f"{path}, line 8"]


# Arrays of JSON

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=50)
@given(
    st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=3), max_size=6),
    st.integers(1, 20),
    st.sampled_from([None, 0, 3]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
)
def test_an_array_in_pieces_is_the_array(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    size: int,
    indent: int | None,
    encoding: str,
) -> None:
    path = tmp_path_factory.mktemp("array") / "c.json"
    path.write_text(f" {json.dumps(rows, indent=indent)}\n", encoding=encoding)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_array, "BATCH_BYTES", size)
        found = [row for part in JsonArrayCorpus([path]).objects(Problems()) for row in part]
    assert found == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value"),
        ("[", "Expecting value"),
        ("[{}", "Expecting ',' delimiter"),
        ("[{},]", "Expecting value"),
        ("[{} {}]", "Expecting ',' delimiter at character 4"),
        ("[{}]\n[{}]", "Extra data at character 5.*name it .jsonl"),
        ('[{}, {"a": tru}]', "Expecting value at character 11"),
        ("{}", "begins with a JSON object"),
        ("12", "begins with a JSON number"),
        ("[" * 100_000, "recursion"),
        ('[{"a": "' + "b" * 50 + "\x01", "control character"),
    ],
)
def test_what_is_no_array(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    for size in (3, 1 << 20):
        monkeypatch.setattr(json_array, "BATCH_BYTES", size)
        with pytest.raises(FileError, match=message):
            la.dedup(path)


def test_types_of_an_array_are_those_of_all_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.json"
    rows = [
        {"text": "a", "n": 1},
        {"text": "b", "n": 1.5, "m": {"x": 1}},
        {"text": "c", "m": {"y": 2}},
    ]
    path.write_text(json.dumps(rows))
    monkeypatch.setattr(json_array, "BATCH_ROWS", 1)
    table = pa.Table.from_batches(open_corpus(path).rows(Problems()))
    assert table["n"].to_pylist() == [1.0, 1.5, None]
    assert table["m"].to_pylist()[1:] == [{"x": 1, "y": None}, {"x": None, "y": 2}]
    path.write_text(json.dumps([{"text": "a", "n": 1}, {"text": "b", "n": "one"}]))
    with pytest.raises(FileError, match="values of a key have different types"):
        list(open_corpus(path).rows(Problems()))


# Pages of Parquet


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_pages_are_measured_before_they_are_read(
    version: str, compression: str, tmp_path: Path
) -> None:
    path = tmp_path / "c.parquet"
    texts = [str(at) * 500 for at in range(1000, 1200)]
    table = pa.table(
        {"plain": texts, "same": ["x" * 3000] * 200, "n": range(200), "l": [["a"]] * 200}
    )
    pa.parquet.write_table(
        table,
        path,
        compression=compression,
        data_page_version=version,
        data_page_size=1 << 14,
        use_dictionary=["same"],
        write_batch_size=1,
    )
    group = pa.parquet.ParquetFile(path).metadata.row_group(0)
    plain, same = (measure_pages(path, group, [name]) for name in ("plain", "same"))
    assert 1900 < plain.long_value <= 2000 < plain.row + 10 < 2020 and plain.repeated == 0
    assert 1 << 14 <= plain.largest < 1 << 15
    assert same.repeated == 3000 and same.largest == 3004 and same.row < 10
    assert plain.rows_within(20_000, 1000) == 9
    assert same.rows_within(15_000, 1000) == 20  # a few may be so long, but hardly all
    everything = measure_pages(path, group, ["plain", "same", "n", "l"])
    assert everything.largest == plain.largest and everything.repeated == same.repeated


def test_repeated_values_are_unfolded_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = "b" * 10_000
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(500, np.int32)), pa.array([value]))
    monkeypatch.setattr(parquet, "BATCH_BYTES", 100_000)
    for store in (False, True):  # read as text, or as a dictionary
        path = tmp_path / f"{store}.parquet"
        pa.parquet.write_table(pa.table({"text": same}), path, store_schema=store)
        batches = list(open_corpus(path).read(["text"], Problems()))
        assert sum(map(len, batches)) == 500
        assert max(map(len, batches)) <= 40


def test_damaged_pages_are_told(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pa.parquet.write_table(pa.table({"text": ["a", "b"]}), path, use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:8] = b"\xff" * 4  # where the first page's header is
    path.write_bytes(data)
    with pytest.raises(FileError, match="is not valid Parquet: a page of the column 'text'"):
        la.dedup(path)
