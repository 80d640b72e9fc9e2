"""A corpus against an old one: what is already there goes, as in the local job, row for row."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tools.loopback_spark import LoopbackSpark

import lookalike as la
from lookalike.cli import main
from lookalike.corpora.columns import Columns
from lookalike.spark.sources import old_frame
from support.cases.spark_corpora import mixed_corpus, template


def old_and_new() -> tuple[list[str | None], list[str | None]]:
    """Return corpora that have texts in common, copies of their own, and variants of a template
    in both, more than 200 together.
    """
    texts: list[str | None] = [*mixed_corpus(90), *template(230), None, ""]
    random.Random(8).shuffle(texts)
    return texts[:130], [*texts[130:], *texts[:20]]


def test_files_and_what_decides(
    session: Any, cluster: LoopbackSpark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command: the old corpus has names of its own and ids, the new one has none, and a
    column of it decides; annotated rows and pairs are those of the local job.
    """
    old, new = old_and_new()
    files = [tmp_path / "old.jsonl", tmp_path / "new.jsonl"]
    rows: list[list[dict[str, Any]]] = [
        [{"uid": f"old{at}", "content": text} for at, text in enumerate(old)],
        [{"text": text, "score": at % 7} for at, text in enumerate(new)],
    ]
    for file, some in zip(files, rows, strict=True):
        file.write_text("\n".join(map(json.dumps, some)) + "\n")
    command = ["dedup", str(files[1]), "--against", str(files[0]), "--keep", "max:score"]
    command += ["--annotate", "--json"]
    told, written = [], []
    for engine in (["--engine", f"spark={cluster.url}"], []):
        out, pairs = (tmp_path / f"{name}{len(engine)}.jsonl" for name in ("out", "pairs"))
        assert main([*command, *engine, "-o", str(out), "--pairs", str(pairs)]) == 0
        told.append(json.loads(capsys.readouterr().out)["counts"])
        written.append([read_rows(out, ["row", "score"]), read_rows(pairs, [])])
    assert written[0] == written[1]
    assert told[0].items() <= told[1].items()
    assert any(row.get("old") for row in written[0][1])


def read_rows(path: Path, without: list[str]) -> list[dict[str, Any]]:
    """Return the rows of a file of JSON Lines, or of all in a folder, without nulls."""
    files = path.glob("part-*") if path.is_dir() else [path]
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    kept = [
        {name: value for name, value in row.items() if value is not None and name not in without}
        for row in rows
    ]
    return sorted(kept, key=lambda row: json.dumps(row, sort_keys=True))


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        la.errors.ArgumentError, match="against is old.lookalike, which has only signatures"
    ):
        old_frame(None, Path("old.lookalike"), Columns("text", None))
    with pytest.raises(
        la.errors.ArgumentError, match="against is 3 .* expected a DataFrame of PySpark"
    ):
        old_frame(None, 3, Columns("text", None))
