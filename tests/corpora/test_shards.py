"""Folders: rows of shards, a document a file, or both, and then it is said what was taken."""

from __future__ import annotations

import gzip
import json
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
from lookalike.corpora import Problems, open_corpus, write_corpus
from lookalike.errors import ArgumentError, FileError, FormatError


def shard(path: Path, names: list[str]) -> Path:
    """Write rows in the format of the file's name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pa.parquet.write_table(pa.table({"id": names, "text": names}), path)
    elif path.suffix == ".csv":
        path.write_text("id,text\n" + "".join(f"{name},{name}\n" for name in names))
    else:
        with pa.output_stream(path) as file:  # compressed if the name says so
            lines = (json.dumps({"id": name, "text": name}) + "\n" for name in names)
            file.write("".join(lines).encode())
    return path


def ids_of(corpus: Any) -> list[str]:
    return [
        str(value)
        for batch in corpus.read([*corpus.columns(), "none"][:1], Problems())
        for value in batch.column(0).to_pylist()
    ]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".csv"])
def test_shards_are_rows_in_order_of_name(suffix: str, tmp_path: Path) -> None:
    for name in ("b", "a/z", "a/b", "c"):
        shard(tmp_path / f"{name}{suffix}", [f"{name}{at}" for at in range(3)])
    corpus = open_corpus(tmp_path)
    assert corpus.format == suffix[1:] and not corpus.notices
    assert ids_of(corpus) == [f"{name}{at}" for name in ("a/b", "a/z", "b", "c") for at in range(3)]


def test_packed_and_unpacked_shards_are_of_one_format(tmp_path: Path) -> None:
    shard(tmp_path / "1.jsonl", ["one"])
    shard(tmp_path / "0.jsonl.gz", ["zero"])
    assert ids_of(open_corpus(tmp_path)) == ["zero", "one"]


def test_other_files_are_documents(tmp_path: Path) -> None:
    for name in ("b.txt", "a.md", "c.json"):
        (tmp_path / name).write_text(name)
    corpus = open_corpus(tmp_path)
    assert corpus.format == "files" and ids_of(corpus) == ["a.md", "b.txt", "c.json"]
    assert not corpus.notices


def test_of_a_mixed_folder_most_bytes_decide_and_the_rest_is_told(tmp_path: Path) -> None:
    shard(tmp_path / "0.jsonl", ["x" * 500])
    shard(tmp_path / "1.csv", ["y"])
    (tmp_path / "README.md").write_text("z")
    corpus = open_corpus(tmp_path)
    assert ids_of(corpus) == ["x" * 500]
    (notice,) = corpus.notices
    assert "read the rows of 1 jsonl file and skipped 2 files (1.csv, README.md)" in notice
    (tmp_path / "README.md").write_text("z" * 5000)
    corpus = open_corpus(tmp_path)
    assert corpus.format == "files" and len(ids_of(corpus)) == 3
    (notice,) = corpus.notices
    assert "2 files (0.jsonl, 1.csv) with rows" in notice
    assert ids_of(open_corpus(tmp_path, "csv")) == ["y"]
    assert len(ids_of(open_corpus(tmp_path, "files"))) == 3
    assert not open_corpus(tmp_path, "files").notices


def test_hidden_files_neither_count_nor_come_along(tmp_path: Path) -> None:
    shard(tmp_path / "0.jsonl", ["a"])
    shard(tmp_path / ".1.jsonl", ["b"])
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "pack").write_bytes(b"x" * 10_000)
    corpus = open_corpus(tmp_path)
    assert ids_of(corpus) == ["a"] and not corpus.notices


def test_names_that_say_nothing_are_taken_with_a_format(tmp_path: Path) -> None:
    (tmp_path / "part-00000").write_text('{"id": "a"}\n')
    (tmp_path / "part-00001").write_text('{"id": "b"}\n')
    assert ids_of(open_corpus(tmp_path, "jsonl")) == ["a", "b"]
    with pytest.raises(FileError, match="has no files of the format 'csv'"):
        open_corpus(shard(tmp_path / "x" / "1.jsonl", ["a"]).parent, "csv")


def test_files_beside_a_folder_say_what_is_meant(tmp_path: Path) -> None:
    inside = shard(tmp_path / "folder" / "1.csv", ["in"]).parent
    shard(tmp_path / "folder" / "2.jsonl", ["x" * 1000])
    beside = shard(tmp_path / "0.csv", ["beside"])
    corpus = open_corpus([beside, inside])
    assert ids_of(corpus) == ["beside", "in"] and corpus.root is None and corpus.notices
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    with pytest.raises(FormatError, match="several formats"):
        open_corpus([tmp_path / "notes.txt", inside])


def test_a_folder_that_cannot_be_read_is_not_left_out(tmp_path: Path) -> None:
    shard(tmp_path / "0.jsonl", ["a"])
    (tmp_path / "closed").mkdir(mode=0)
    try:
        if (tmp_path / "closed").stat().st_mode & 0o777 == 0 and _may_not_list(tmp_path / "closed"):
            with pytest.raises(FileError, match=r"closed: cannot be read .* left out"):
                open_corpus(tmp_path)
    finally:
        (tmp_path / "closed").chmod(0o700)


def _may_not_list(folder: Path) -> bool:
    try:
        list(folder.iterdir())
    except PermissionError:
        return True
    return False


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_what_stays_of_each_shard_is_in_its_own(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    suffix = data.draw(st.sampled_from([".jsonl", ".jsonl.gz", ".parquet", ".csv"]))
    sizes = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    names = [f"{'x/' if at % 2 else ''}{at}" for at in range(len(sizes))]
    for name, size in zip(names, sizes, strict=True):
        shard(folder / f"{name}{suffix}", [f"{name}-{at}" for at in range(size)])
    total = sum(sizes)
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=total, max_size=total)), bool)
    corpus = open_corpus(folder, suffix.split(".")[1])
    out = folder.with_name(folder.name + "-out")
    assert write_corpus(corpus, out, keep=keep) == keep.sum()
    expected, begin = {}, 0
    in_order = sorted(zip(names, sizes, strict=True))
    for name, size in sorted(in_order, key=lambda one: Path(folder, one[0] + suffix)):
        expected[f"{name}{suffix}"] = [f"{name}-{at}" for at in range(size) if keep[begin + at]]
        begin += size
    found = {
        str(file.relative_to(out)): ids_of(open_corpus(file))
        for file in out.rglob("*")
        if file.is_file()
    }
    assert found == expected


def test_a_whole_job_over_shards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = "the quick brown fox jumps over the lazy dog near the old river bank"
    shard(tmp_path / "in" / "0.jsonl", [same, "another text that is about the minimum wage"])
    shard(tmp_path / "in" / "1.jsonl", [same])
    (tmp_path / "in" / "note").write_text("?")
    result = la.dedup(tmp_path / "in", id="id")
    assert result.counts.documents == 3 and result.counts.kept == 2
    assert "skipped 1 file (note)" in result.warnings[0]
    out = tmp_path / "out"
    assert main(["dedup", str(tmp_path / "in"), "-o", str(out)]) == 0
    assert capsys.readouterr().err.count("skipped 1 file (note)") == 1
    assert [len(file.read_text().splitlines()) for file in sorted(out.iterdir())] == [2, 0]
    assert main(["dedup", str(tmp_path / "in"), "-o", str(out)]) == 1
    assert "already exists" in capsys.readouterr().err
    assert main(["dedup", str(tmp_path / "in"), "-o", str(tmp_path / "all.csv"), "--quiet"]) == 0
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 3


def test_shards_that_change_meanwhile_leave_no_folder(tmp_path: Path) -> None:
    source = shard(tmp_path / "in" / "0.jsonl", ["a", "b"])
    result = la.dedup(tmp_path / "in")
    corpus = result.source
    source.write_text(source.read_text() + '{"id": "c", "text": "c"}\n')
    with pytest.raises(
        la.errors.DocumentError, match="has changed since it was read: it has 3 rows"
    ):
        write_corpus(corpus, tmp_path / "out", keep=result.keep, identity=result.source_identity)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


@pytest.mark.parametrize("name", ["x.xlsx", "x.jsonl.bz2", "x.jsonl.new", "x.html"])
def test_a_suffix_that_is_no_format_is_refused(name: str, tmp_path: Path) -> None:
    source = shard(tmp_path / "0.jsonl", ["a"])
    with pytest.raises(ArgumentError, match=r"is not an output format. .* \.jsonl"):
        la.dedup(source).write(tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["x", "x.gz", "x.dat", "x.JSONL"])
def test_names_that_say_no_other_format_are_fine(name: str, tmp_path: Path) -> None:
    source = shard(tmp_path / "0.jsonl", ["a"]).rename(tmp_path / "0.dat")
    assert la.dedup(source, format="jsonl").write(tmp_path / name) == 1
    with pa.input_stream(tmp_path / name) as stream:
        assert json.loads(stream.read()) == {"id": "a", "text": "a"}


def test_parquet_is_not_packed_once_more(tmp_path: Path) -> None:
    result = la.dedup(shard(tmp_path / "0.jsonl", ["a"]))
    for write in (result.write, result.write_pairs):
        with pytest.raises(ArgumentError, match="compresses its columns itself"):
            write(tmp_path / "x.parquet.gz")


@pytest.mark.parametrize("name", ["shards/out.jsonl", "shards/inner/out.parquet", "link/out.jsonl"])
def test_nothing_is_written_into_a_folder_that_is_read(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shards = tmp_path / "shards"
    (shards / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(shards)
    (shards / "a.jsonl").write_text('{"text": "one"}\n{"text": "one"}\n')
    for option in ("-o", "--pairs"):
        assert main(["dedup", str(shards), option, str(tmp_path / name)]) != 0
        assert "is in the input folder" in capsys.readouterr().err
    assert not (tmp_path / name).exists()
    with pytest.raises(la.errors.ArgumentError, match="is in the input folder"):
        la.dedup(shards).write(tmp_path / name)
    assert main(["dedup", str(shards), "--in-place"]) == 0  # its only file
    assert main(["dedup", str(shards), "-o", str(tmp_path / "shards.jsonl")]) == 0


def test_a_folder_of_other_files_beside_a_file_is_told_to_be_left(tmp_path: Path) -> None:
    beside = shard(tmp_path / "0.jsonl", ["beside"])
    for name in ("a.txt", "b.md"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "folder" / name).write_text(name)
    corpus = open_corpus([beside, tmp_path / "folder"])
    assert ids_of(corpus) == ["beside"]
    (notice,) = corpus.notices
    assert "read the rows of 1 jsonl file and skipped 2 files (a.txt, b.md)" in notice
    assert "all files of the folder; to read these, give only the folder" in notice


@pytest.mark.parametrize("ending", [".txt", ".json", ".txt.gz"])
def test_parts_that_spark_wrote(tmp_path: Path, ending: str) -> None:
    """Lines of JSON are rows, whatever Spark calls the file; other lines are documents each."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    (folder / "._SUCCESS.crc").write_bytes(b"crc")
    for part in range(3):
        rows = "" if part == 0 else f'{{"id": {part}, "text": "document {part}"}}\n'
        data = gzip.compress(rows.encode()) if ending.endswith(".gz") else rows.encode()
        (folder / f"part-0000{part}-ab-c000{ending}").write_bytes(data)
    corpus = open_corpus(folder)
    assert corpus.format == "jsonl" and not corpus.notices
    rows_of = [row for batch in corpus.read(["id"], Problems()) for row in batch[0].to_pylist()]
    assert rows_of == ["1", "2"]
    (folder / "another.md").write_text("then it is a folder like any other")
    assert open_corpus(folder).format == "files"


def test_lines_that_spark_wrote(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "part-00000-ab-c000.txt").write_text("one document\nand another\n")
    corpus = open_corpus(tmp_path)
    assert corpus.format == "text"
    assert sum(len(batch) for batch in corpus.read(["text"], Problems())) == 2


def texts_of(corpus: Any) -> list[str]:
    batches = corpus.read(["text"], Problems())
    return [value for batch in batches for value in batch.column(0).to_pylist()]


LINES = {"a.txt": "one\ntwo\n", "b.txt": "three\nfour\n"}


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in LINES.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_text_file_has_a_document_per_line(texts: Path) -> None:
    for source in ("a.txt", Path("a.txt"), [Path("a.txt")], "a*.txt"):
        corpus = open_corpus(source)
        assert corpus.format == "text" and texts_of(corpus) == ["one", "two"]
        assert "per line; --format files" in corpus.unit
    assert texts_of(open_corpus("a.txt", "files")) == ["one\ntwo\n"]
    assert texts_of(open_corpus("a.txt", whole_files=True)) == ["one\ntwo\n"]


def test_several_text_files_are_a_document_each(texts: Path) -> None:
    for source in ("*.txt", [Path("a.txt"), Path("b.txt")], [Path("*.txt")]):
        corpus = open_corpus(source)
        assert corpus.format == "files" and texts_of(corpus) == list(LINES.values())
        assert ids_of(corpus) == list(LINES) and "per file; --format text" in corpus.unit
        lines = open_corpus(source, "text")
        assert texts_of(lines) == ["one", "two", "three", "four"] and not lines.unit
    assert texts_of(open_corpus(texts)) == list(LINES.values())
    assert texts_of(open_corpus([Path("a.txt")] * 2)) == ["one\ntwo\n"] * 2


def test_texts_beside_other_documents_are_documents(texts: Path) -> None:
    Path("c.md").write_text("five\nsix\n")
    assert texts_of(open_corpus([Path("a.txt"), Path("c.md")])) == ["one\ntwo\n", "five\nsix\n"]
    with pytest.raises(FormatError, match="several formats"):
        open_corpus([Path("a.txt"), shard(texts / "rows.jsonl", ["x"])])


def test_compressed_texts_have_a_document_per_line(texts: Path) -> None:
    Path("c.txt.gz").write_bytes(gzip.compress(b"five\nsix\n"))
    assert texts_of(open_corpus([Path("c.txt.gz")] * 2)) == ["five", "six"] * 2
    assert texts_of(open_corpus([Path("a.txt"), Path("c.txt.gz")])) == ["one", "two", "five", "six"]


@pytest.mark.parametrize(
    ("names", "documents", "note"),
    [(["a.txt"], 2, "one document per line; --format files"), (["a.txt", "b.txt"], 2, "per file")],
)
def test_the_summary_says_what_a_document_is(
    names: list[str], documents: int, note: str, texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dedup", *names]) == 0
    first = capsys.readouterr().out.splitlines()[0].split()
    assert first[:2] == ["documents", str(documents)] and note in " ".join(first)


def test_an_unknown_file_of_json_lines_gets_a_notice(texts: Path) -> None:
    rows = '{"text": "one"}\n{"text": "two"}\n'
    long = '{"text": "' + "x" * (1 << 17) + '"}\n'
    for content in (rows, "\ufeff" + rows, long):
        Path("rows.dat").write_text(content, encoding="utf-8")
        (notice,) = open_corpus("rows.dat").notices
        assert "rows.dat is read as one document" in notice and "--format jsonl" in notice
        assert not open_corpus("rows.dat", "files").notices
        assert not open_corpus("rows.dat", "jsonl").notices
    for content in ("{ braces }\n", "", "[1, 2]\n", "plain\n" + rows):
        Path("rows.dat").write_text(content)
        assert not open_corpus("rows.dat").notices
