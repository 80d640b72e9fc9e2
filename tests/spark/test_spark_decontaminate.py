"""`lookalike decontaminate` on Spark: the rows, hits and counts of the local job."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tools.loopback_spark import LoopbackSpark

import lookalike as la
from lookalike import spark as on_spark
from lookalike.cli import main
from lookalike.errors import ArgumentError
from support.cases.spark_corpora import frame_of_texts
from support.running.refusals import refused
from support.running.written_rows import json_rows, written_lines


def corpus(count: int) -> tuple[list[str | None], dict[str, list[str]]]:
    """Return texts, some of them with items in them, and benchmarks of these."""
    chance = random.Random(count)
    words = [f"wörd{number}" for number in range(60)]
    items = [" ".join(chance.choices(words, k=chance.randint(4, 30))) for _ in range(12)]
    texts: list[str | None] = [None, "", " "]
    while len(texts) < count:
        text = " ".join(chance.choices(words, k=chance.randint(0, 50)))
        if chance.random() < 0.3:
            item = chance.choice(items).upper().replace(" ", ", ")
            text = f"{text} {item}! {chance.choice(texts) or ''}"
        texts.append(text)
    return texts, {"a": items[:7], "none": ["some words that no text here has at all, really"],
                   "b": items[5:]}  # fmt: skip


@pytest.mark.parametrize(
    ("partitions", "named", "options"),
    [
        (1, True, {"action": "cut", "margin": 3}),
        (5, False, {"rule": "near", "action": "mark", "ngram": 3}),
        (3, True, {"rule": "share", "ngram": 4, "min_share": 0.3}),
    ],
)
def test_as_local(session: Any, partitions: int, named: bool, options: dict[str, Any]) -> None:
    texts, benchmarks = corpus(150)
    rows: list[dict[str, Any]] = [{"id": f"id{at}", "text": text} for at, text in enumerate(texts)]
    frame = frame_of_texts(session, texts, partitions)
    if not named:
        rows, frame = [{"text": text} for text in texts], frame.select("text")
    local = la.decontaminate(rows, benchmarks, **options)
    assert 3 < len(local.contaminated) < len(texts)
    with on_spark.decontaminate(frame, benchmarks, **options) as found:
        assert sorted(found.hits.toArrow().to_pylist(), key=str) == sorted(
            local.to_arrow().to_pylist(), key=str
        )
        told, expected = found.to_dict(), local.to_dict()
        assert {**told, "seconds": 0} == {**expected, "seconds": 0}
        assert found.summary().splitlines()[:4] == local.summary().splitlines()[:4]
        contaminated = {one.row: one for one in local.contaminated}
        made = [row.asDict() for row in found.documents.collect()]
        marks = {row: one.items_text for row, one in contaminated.items()}
        if local.settings.action == "drop":
            assert made == [row for at, row in enumerate(rows) if at not in contaminated]
        elif local.settings.action == "cut":
            new = {row: {"text": one.new_text} for row, one in contaminated.items()}
            assert made == [row | new.get(at, {}) for at, row in enumerate(rows)]
        else:
            assert made == [
                {**row, "contaminated": at in marks, "contaminated_by": marks.get(at, "")}
                for at, row in enumerate(rows)
            ]


@pytest.mark.parametrize(
    "more", [["--action", "cut", "--skip-bad"], ["--action", "mark"], ["--annotate"]]
)
def test_lines(
    session: Any,
    cluster: LoopbackSpark,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
) -> None:
    """Lines are those of the local job, byte for byte; numbers and lists stay what they are."""
    texts, benchmarks = corpus(80)
    lines = [
        json.dumps({"n": at, "text": text, "tags": [at, "é"]}, ensure_ascii=at % 2 == 0) + " " * at
        for at, text in enumerate(texts)
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("\n".join(lines[:33]) + "\n")
    bad = ["{no"] if "--skip-bad" in more else []
    (tmp_path / "in" / "b.jsonl").write_text("\n".join([*lines[33:], *bad]))
    (tmp_path / "evals").mkdir()
    for name, items in benchmarks.items():
        rows = [{"id": f"{name}-{at}", "question": item} for at, item in enumerate(items)]
        (tmp_path / "evals" / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ["decontaminate", str(tmp_path / "in"), "--benchmarks", str(tmp_path / "evals")]
    command += ["--json", "--id", "n", *more]
    local = [*command, "-o", str(tmp_path / "local"), "--hits", str(tmp_path / "hits.jsonl")]
    assert main(local) == 0
    expected = json.loads(capsys.readouterr().out)
    engine = ["--engine", f"spark={cluster.url}", "--format", "jsonl"]
    out = [*command, *engine, "-o", str(tmp_path / "out"), "--hits", str(tmp_path / "hits")]
    assert main(out) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    for name in ("documents", "contaminated", "benchmarks", "bad_rows", "skipped_items"):
        assert told[name] == expected[name]
    assert told["bad_rows"] == len(bad) and ("left out" in printed.err) == bool(bad)
    assert written_lines(tmp_path / "out") == written_lines(tmp_path / "local")
    assert sorted(json_rows(tmp_path / "hits"), key=str) == sorted(
        json_rows(tmp_path / "hits.jsonl"), key=str
    )


def test_what_is_refused(session: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "evals.txt").write_text("a line\n")
    command = ["decontaminate", "in.jsonl", "--benchmarks", str(tmp_path / "evals.txt")]
    command += ["--engine", "spark"]
    for option in (["--threads", "2"], ["--report", "r.html"], ["--in-place"], ["--encoding", "x"],
                   ["--max-document", "1MB"]):  # fmt: skip
        assert refused([*command, *option], capsys).startswith(f"{option[0]} does nothing with")
    assert refused([*command, "--hits", "-"], capsys).startswith("--hits is -; with --engine")
    assert refused([*command, "--gap", "2"], capsys).startswith("--gap is for --rule near")
    frame = session.createDataFrame([("a", 1)], "text string, contaminated int")
    with (
        on_spark.decontaminate(frame, ["some text"], action="mark") as found,
        pytest.raises(ArgumentError, match="already has a column 'contaminated'"),
    ):
        _ = found.documents
