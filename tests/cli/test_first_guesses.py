"""What people try first: a corpus where signatures are expected, a table of pandas, a pipe."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from lookalike.corpora import Problems
from lookalike.corpora.standard_input import open_standard_input
from support.running.refusals import refused

TEXTS = [f"the quick brown fox number {at} jumps over the lazy dog" for at in range(20)]


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """The same corpus in every format."""
    rows = [{"id": f"d{at}", "text": text} for at, text in enumerate(TEXTS)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "c.jsonl").write_text(lines)
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "c.json").write_text(json.dumps(rows))
    (tmp_path / "c.txt").write_text("\n".join(TEXTS))
    table = pandas.DataFrame(rows)
    table.to_csv(tmp_path / "c.csv", index=False)
    table.to_csv(tmp_path / "c.tsv", index=False, sep="\t")
    table.to_csv(tmp_path / "pandas.csv")
    pa.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "c.parquet")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(TEXTS[0])
    return tmp_path


@pytest.mark.parametrize(
    "name", ["c.jsonl", "c.jsonl.gz", "c.json", "c.csv", "c.tsv", "c.txt", "c.parquet", "docs"]
)
@pytest.mark.parametrize(
    "command",
    [
        "search {} fox",
        "plan {} -k 3",
        "index {} -o out.lookalike",
        "evaluate {} -k 3",
        "match new.runs {} --radius 3",
        "pairs {} --radius 3",
    ],
)
def test_a_corpus_for_signatures(
    corpora: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    name: str,
) -> None:
    """The error says what to do, and has no magic bytes in it."""
    monkeypatch.chdir(corpora)
    message = refused(command.format(name).split(), capsys)
    assert f"lookalike sign {name} -o NAME.lookalike" in message
    assert "LKLK" not in message and "file of pairs" not in message


def test_a_file_of_pairs_is_still_one(
    corpora: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(corpora)
    Path("pairs.csv").write_text("left,right\na,b\n")
    assert "add --groups" in refused(["pairs", "pairs.csv", "--radius", "3"], capsys)
    assert main(["pairs", "pairs.csv", "--groups"]) == 0


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("dedup c.jsonl --threshold 80", "expected a number from 0 to 1; did you mean 0.8?"),
        ("dedup c.jsonl --threshold 0,85", "expected a number from 0 to 1; did you mean 0.85?"),
        ("search c.lookalike fox --threshold 95", "did you mean 0.95?"),
        ("dedup c.jsonl out.jsonl", "out.jsonl does not exist; to write there, use -o out.jsonl"),
        ("search fox c.lookalike", "INDEX comes first: lookalike search c.lookalike ..."),
        ("topics c.jsonl", "did you mean cluster?"),
        ("collection remove docs.db fox", "did you mean delete?"),
        ("collection list docs.db", "did you mean stats?"),
        ("collection create docs.db --method recordings", "did you mean --kind recordings?"),
        ("deduplicate c.jsonl", "did you mean dedup?"),
        ("--threshold 0.5 dedup c.jsonl", "unknown option --threshold; options follow the command"),
    ],
)
def test_what_was_meant_is_suggested(
    corpora: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    answer: str,
) -> None:
    monkeypatch.chdir(corpora)
    assert main(["sign", "c.jsonl", "-o", "c.lookalike", "--quiet"]) == 0
    assert answer in refused(typed.split(), capsys)


def test_a_percentage_and_help_of_a_command(
    corpora: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(corpora)
    assert main(["dedup", "c.jsonl", "--threshold", "80%", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["threshold"] == 0.8
    with pytest.raises(SystemExit):
        main(["help", "dedup"])
    assert capsys.readouterr().out.startswith("usage: lookalike dedup INPUT... [options]")


def texts_of(data: bytes, tmp_path: Path) -> tuple[str, list[str]]:
    corpus = open_standard_input(io.BytesIO(data), [], [], None, tmp_path)
    column = "text" if "text" in corpus.columns() else corpus.columns()[0]
    batches = corpus.read([column], Problems())
    return corpus.format, [text for batch in batches for text in batch.column(0).to_pylist()]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("name", ["c.jsonl", "c.json", "c.csv", "c.tsv", "pandas.csv"])
def test_standard_input_tells_its_format(
    corpora: Path, name: str, encoding: str, packed: bool
) -> None:
    data = (corpora / name).read_text().encode(encoding)
    found, texts = texts_of(gzip.compress(data) if packed else data, corpora)
    assert (found, texts) == (Path(name).suffix[1:], TEXTS)


def test_parquet_on_standard_input(corpora: Path) -> None:
    assert texts_of((corpora / "c.parquet").read_bytes(), corpora) == ("parquet", TEXTS)


@pytest.mark.parametrize(
    "data",
    [
        b"A line of text.\nAnother, with a comma.\n",
        b"word\nword\n",
        b"a,b\n1,2,3\n",
        b"a,a\n1,2\n",
        b"\x00\x01\x02",
    ],
)
def test_text_that_may_be_anything_is_asked_about(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(la.errors.ArgumentError, match="is not a known format; set it with format"):
        texts_of(data, tmp_path)


def test_a_list_of_images_on_standard_input_is_told_the_kind(tmp_path: Path) -> None:
    image = tmp_path / "a.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    with pytest.raises(la.errors.ArgumentError, match="name of a file.* set kind='images'"):
        texts_of(f"{image}\n{tmp_path / 'b.png'}\n".encode(), tmp_path)


def test_a_table_of_many_records_on_standard_input(tmp_path: Path) -> None:
    """More than is looked at, so that the last record in sight is cut."""
    texts = [f'some "quoted" text, of row {at}\nand more' for at in range(5000)]
    data = pandas.DataFrame({"n": range(5000), "text": texts}).to_csv(index=False).encode()
    assert len(data) > 1 << 17
    assert texts_of(data, tmp_path) == ("csv", texts)


@given(st.binary(max_size=300))
def test_any_bytes_on_standard_input(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """They are read, or refused by one of our errors."""
    folder = tmp_path_factory.mktemp("bytes")
    try:
        corpus = open_standard_input(io.BytesIO(data), [], [], None, folder)
        list(corpus.read(corpus.columns(), Problems(skip_bad=True)))
    except la.LookalikeError as error:
        assert str(error)


def test_the_index_of_pandas(corpora: Path, tmp_path: Path) -> None:
    """A column without a name gets that which pandas gives it when it reads the table."""
    source = corpora / "pandas.csv"
    result = la.dedup(source)
    assert result.counts.documents == len(TEXTS)
    result.write(tmp_path / "out.csv")
    expected = pandas.read_csv(source)[result.keep].reset_index(drop=True)
    pandas.testing.assert_frame_equal(pandas.read_csv(tmp_path / "out.csv"), expected)
    (tmp_path / "two.csv").write_text("text,,\na,b,c\n")
    assert la.dedup(tmp_path / "two.csv").counts.documents == 1
    (tmp_path / "twice.csv").write_text("text,Unnamed: 1,\na,b,c\n")
    la.dedup(tmp_path / "twice.csv")
    (tmp_path / "same.csv").write_text("text,text\na,b\n")
    with pytest.raises(la.errors.FormatError, match="duplicate column names"):
        la.dedup(tmp_path / "same.csv")


@pytest.mark.parametrize("command", ["dedup", "sign -o s.lookalike", "cluster", "overlaps"])
def test_an_empty_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty/inner").mkdir(parents=True)
    name, *more = command.split()
    assert "empty has no files" in refused([name, "empty", *more], capsys)


def test_a_corpus_without_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.bin").write_bytes(b"\0\1")
    assert main(["dedup", str(tmp_path / "docs")]) == 0
    errors = capsys.readouterr().err
    assert "docs has no documents" in errors
    assert "1 row or file was left out" in errors and "a.bin: is binary" in errors


def test_a_single_file_that_is_not_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "vectors.npy", np.zeros((3, 4)))
    assert "vectors.npy is binary" in refused(["dedup", str(tmp_path / "vectors.npy")], capsys)
    assert main(["dedup", str(tmp_path / "vectors.npy"), "--skip-bad", "--quiet"]) == 0


def test_the_summary_names_the_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"url": f"u{at}", "title": "t", "abstract": text} for at, text in enumerate(TEXTS)]
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["dedup", str(path)]) == 0
    assert "text from the column 'abstract', ids from 'url'" in capsys.readouterr().out
    assert main(["dedup", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["columns"] == {"text": "abstract", "id": "url"}
    lines = tmp_path / "c.txt"
    lines.write_text("one\n")
    assert main(["dedup", str(lines)]) == 0
    assert "column" not in capsys.readouterr().out


def test_results_of_jobs_as_tables() -> None:
    words = " ".join(f"word{at}" for at in range(40))
    texts = [words, f"{words} and some more", "something else altogether"]
    found: list[tuple[Any, list[str]]] = [
        (la.dedup(texts, threshold=0.5).pairs, ["left", "right", "similarity", "distance"]),
        (la.overlaps(texts, min_words=10), ["left", "right", "words"]),
        (la.passages(texts, words), ["id", "row", "words", "share"]),
    ]
    for result, names in found:
        frame, table = result.to_pandas(), result.to_arrow()
        assert len(frame) == table.num_rows == len(result) > 0
        assert list(frame.columns) == table.column_names
        assert table.column_names[: len(names)] == names
        assert frame.to_dict("list") == table.to_pydict()
    overlap = la.overlaps(texts, min_words=10)
    row = overlap.to_pandas().iloc[0]
    assert (row.left_words_begin, row.left_words_end) == overlap[0].left_words
    for empty in (la.overlaps(["a"]), la.dedup(["a"]).pairs, la.passages(["a"], "something else")):
        assert len(empty.to_pandas()) == empty.to_arrow().num_rows == 0


@pytest.mark.parametrize(
    "kind",
    [
        la.ScanIndex,
        la.SliceIndex,
        la.BlockIndex,
        la.FlipIndex,
        la.PrefixIndex,
        la.ClusterIndex,
        la.ShardedIndex,
    ],
)
def test_one_signature(kind: Any) -> None:
    """Of bytes or of words, without its first axis: one row of results."""
    rows = np.random.default_rng(0).integers(0, 256, (300, 16), np.uint8)
    index = la.ShardedIndex([la.ScanIndex(rows)]) if kind is la.ShardedIndex else kind(rows)
    for one in (rows[7], rows[7].view(np.uint64)):
        assert index.search(one, 3).ids.tolist() == index.search(rows[7:8], 3).ids.tolist()
        near = index.within(one, 3)
        assert len(near) == 1 and 7 in near.ids


def test_one_vector() -> None:
    vectors = np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)
    index = la.VectorIndex(vectors)
    for one in (vectors[7], vectors[7].tolist(), vectors[7].astype(np.float64)):
        found = index.search(one, 3)
        assert found.ids.shape == (1, 3) and found.ids[0, 0] == 7
        assert found.ids.tolist() == index.search(vectors[7:8], 3).ids.tolist()
        near = index.within(one, 0.999)
        assert len(near) == 1 and near.ids.tolist() == [7]
    with pytest.raises(la.errors.DocumentError, match="5 dimensions; expected 16"):
        index.search(vectors[7][:5], 3)
    with pytest.raises(la.errors.DocumentError, match=r"pass vector\[None\]"):
        index.add(vectors[7])
