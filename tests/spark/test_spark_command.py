"""`lookalike dedup --engine spark`, and the examples of docs/spark.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tools.loopback_spark import LoopbackSpark

from lookalike.cli import main
from lookalike.corpora import Problems, open_corpus, write_table
from lookalike.shown import counted
from support.cases.spark_corpora import mixed_corpus
from support.running.refusals import refused
from support.running.written_rows import json_rows


def test_lines_stay_as_they_are(
    session: Any, cluster: LoopbackSpark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Survivors are the bytes that the local job writes; a bad line is refused, or left out, and
    short documents are.
    """
    lines = [
        json.dumps({"name": f"n{at}", "text": text}) + " " * (at % 3)
        for at, text in enumerate(mixed_corpus(150))
    ]
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text("\n".join(lines[:40]) + "\n\n")
    (folder / "b.jsonl").write_text("\n".join([*lines[40:], '{"name": "bad']))
    command = ["dedup", str(folder), "--id", "name", "--skip-bad", "--json", "--min-words", "25"]
    assert main([*command, "-o", str(tmp_path / "local")]) == 0
    expected = json.loads(capsys.readouterr().out)
    engine = ["--engine", f"spark={cluster.url}", "--format", "jsonl"]
    out = tmp_path / "out"
    assert main([*command, *engine, "-o", str(out), "--work", str(tmp_path / "work")]) == 0
    printed = capsys.readouterr()
    counts = json.loads(printed.out)["counts"]
    for name in ("kept", "left_out"):
        assert counts[name] == expected["counts"][name] > 0
    assert "1 bad line left out" in printed.err
    assert f"{counted(counts['left_out'], 'document')} left out: too short" in printed.err
    written = "".join(path.read_text() for path in sorted(out.glob("part-*")))
    local = "".join((tmp_path / "local" / name).read_text() for name in ("a.jsonl", "b.jsonl"))
    # Spark begins with the largest pieces; the lines are the same.
    assert sorted(written.splitlines()) == sorted(filter(None, local.splitlines()))
    message = refused(["dedup", str(folder), *engine, "-o", str(tmp_path / "more")], capsys)
    assert "has 1 lines that are not JSON objects" in message
    # What was written is a corpus for the local job, by its names.
    assert {path.suffix for path in out.glob("part-*")} == {".jsonl"}
    assert main(["dedup", str(out), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)["counts"]
    assert again["documents"] == again["kept"] == counts["kept"]
    # An output that is there is seen before the work.
    for option in ("-o", "--pairs"):
        message = refused(["dedup", "nowhere.jsonl", *engine, option, str(out)], capsys)
        assert "exists already" in message


@pytest.mark.parametrize("pages", [False, True])
def test_annotated_numbers_are_numbers(
    session: Any,
    cluster: LoopbackSpark,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    pages: bool,
) -> None:
    """Annotated lines are those of the local job, with the row; values keep their types."""
    texts = mixed_corpus(60)
    if pages:
        texts = [f"<html><body><article><p>{text}</p></article></body></html>" for text in texts]
    rows = [
        {"id": f"n{at}", "text": text, "n": at, "share": at / 4, "tags": ["a", "b"], "none": None}
        for at, text in enumerate(texts)
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    command = ["dedup", str(tmp_path / "in.jsonl"), "--annotate", "--quiet"]
    command += ["--html", "text"] if pages else []
    assert main([*command, "-o", str(tmp_path / "local.jsonl")]) == 0
    engine = ["--engine", f"spark={cluster.url}", "-o", str(tmp_path / "out")]
    assert main([*command, *engine]) == 0
    local = {row["id"]: row for row in json_rows(tmp_path / "local.jsonl")}
    found = json_rows(tmp_path / "out")
    assert len(found) == len(local) == 60
    for row in found:
        expected = local[row["id"]]
        names = {name for name in expected if expected[name] is not None} if pages else expected
        assert {name: row[name] for name in names} == {name: expected[name] for name in names}
        assert row["n"] == row["row"]


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet", "text"])
def test_formats_that_spark_reads_and_writes(
    session: Any, cluster: LoopbackSpark, tmp_path: Path, format: str
) -> None:
    """The local job reads what Spark has written, also with quotes and delimiters in texts."""
    texts = [f'{text}, "so\tto" say' for text in mixed_corpus(60)]
    name = tmp_path / f"in.{'txt' if format == 'text' else format}"
    if format == "text":
        name.write_text("\n".join(texts) + "\n")
    else:
        table = pa.table({"name": list(map(str, range(60))), "text": texts})
        write_table(iter(table.to_batches()), name)
    command = ["dedup", str(name), "--quiet", "-o"]
    assert main([*command, str(tmp_path / f"local{name.suffix}")]) == 0
    assert main([*command, str(tmp_path / "out"), "--engine", f"spark={cluster.url}"]) == 0
    local, out = (
        sorted(rows_of(tmp_path / where, format)) for where in (f"local{name.suffix}", "out")
    )
    assert out == local and 0 < len(out) < 60
    parts = (tmp_path / "out").glob("part-*")
    assert all(name.suffix in path.suffixes for path in parts)


def rows_of(path: Path, format: str) -> list[tuple[str, ...]]:
    corpus = open_corpus(sorted(path.glob("part-*")) or [path], format)
    batches = corpus.read(corpus.columns(), Problems())
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
