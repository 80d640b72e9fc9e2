"""`lookalike clean` on Spark: the texts, removed ranges and counts of the local job."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.loopback_spark import LoopbackSpark

import lookalike as la
from lookalike import spark as on_spark
from lookalike.cli import main
from lookalike.errors import ArgumentError
from lookalike.spark import repeats
from lookalike.spark.packed import gathered
from support.cases.spark_corpora import frame_of_texts
from support.running.refusals import refused
from support.running.spark_rounds import found_pieces
from support.running.written_rows import json_rows, written_lines

LICENSE = "This program is free software. You can redistribute it, and modify it under these terms."


def corpus(count: int, *, words: int = 12, seed: int = 0) -> list[str | None]:
    """Return texts of few words and ends of sentences, so that runs repeat, also within a text;
    some are equal, empty or null, and a third has a license.
    """
    chance = random.Random(seed)
    alphabet = [f"wörd{number}" for number in range(words)]
    ends = [" ", " ", " ", " ", ", ", ". ", "! ", "\n", "\n\n"]
    texts: list[str | None] = []
    while len(texts) < count:
        kind = chance.random()
        text = "".join(chance.choice(alphabet) + chance.choice(ends)
                       for _ in range(chance.randint(0, 40)))  # fmt: skip
        if kind < 0.1 and texts:
            texts.append(chance.choice(texts))
        elif kind < 0.15:
            texts.append(chance.choice([None, "", " \n"]))
        elif kind < 0.5:
            texts.append(f"{text}\n\n{LICENSE.upper() if kind < 0.2 else LICENSE}\n{text[::-1]}")
        else:
            texts.append(text.capitalize())
    return texts


def ordered(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def assert_as_local(
    frame: Any, rows: list[dict[str, Any]], **options: Any
) -> la.results.CleanResult:
    """Compare cleaned rows, annotations, removed ranges, units and counts."""
    local = la.clean(rows, **options)
    with on_spark.clean(frame, **options) as found:
        assert vars(found.counts) == vars(local.counts)
        told, expected = found.to_dict(), local.to_dict()
        assert told["settings"] == expected["settings"] and told["columns"] == expected["columns"]
        assert found.summary().splitlines()[:5] == local.summary().splitlines()[:5]
        removed = found.removed_with_text.toArrow().to_pylist()
        table = local.to_arrow().to_pylist()
        texts = [local.removed_text(at) for at in range(len(local))]
        names = [one | {"text": text} for one, text in zip(table, texts, strict=True)]
        assert ordered(removed) == ordered(names)
        cleaned = dict(zip(np.flatnonzero(local.keep).tolist(), local.texts(), strict=True))
        expected_rows = [
            row if row["text"] is None else row | {"text": cleaned[at]}
            for at, row in enumerate(rows)
            if at in cleaned
        ]
        assert ordered(row.asDict() for row in found.documents.collect()) == ordered(expected_rows)
        added = local._added(0, len(rows))
        values = zip(*(one.to_pylist() for one in added.values()), strict=True)
        marks = [dict(zip(added, some, strict=True)) for some in values]
        annotated = [row | mark for row, mark in zip(rows, marks, strict=True)]
        assert ordered(row.asDict() for row in found.annotated.collect()) == ordered(annotated)
        if local.settings.unit is not None:
            assert list(map(vars, found.units(50))) == list(map(vars, local.units(50)))
    return local


@pytest.mark.parametrize(
    ("partitions", "options"),
    [
        (4, {"words": 4, "remove": "all", "boundary": "word", "min_left": 4}),
        (3, {"words": 5, "keep": "longest"}),
    ],
)
def test_runs_of_words(session: Any, partitions: int, options: dict[str, Any]) -> None:
    texts = corpus(90, words=14)
    rows = [{"id": f"id{at}", "text": text} for at, text in enumerate(texts)]
    local = assert_as_local(frame_of_texts(session, texts, partitions), rows, **options)
    assert local.counts.changed > 20 and len(local) > local.counts.changed
    assert local.rounds > 1


@pytest.mark.parametrize(
    ("partitions", "options"),
    [
        (5, {"unit": "line", "max_documents": 3, "remove": "all", "keep": "last", "min_left": 0}),
    ],
)
def test_units(session: Any, partitions: int, options: dict[str, Any]) -> None:
    texts = corpus(120)
    rows = [{"text": text} for text in texts]
    frame = frame_of_texts(session, texts, partitions).select("text")
    assert assert_as_local(frame, rows, **options).counts.changed > 20


def test_columns_of_any_name(session: Any) -> None:
    """Names that the job uses itself, or that have dots, are those of the user."""
    rows: list[dict[str, Any]] = [
        {"position": at, "id": f"a{at % 5}", "text": text or "", "a.b": [at], "left": at / 2}
        for at, text in enumerate(corpus(40, seed=3))
    ]
    schema = "position int, id string, text string, `a.b` array<int>, left double"
    frame = session.createDataFrame([tuple(row.values()) for row in rows], schema)
    assert assert_as_local(frame, rows, unit="paragraph", keep="min:left").counts.changed > 5


def test_nothing_to_remove(session: Any) -> None:
    rows: list[dict[str, Any]] = [{"id": "a", "text": "only one"}, {"id": "b", "text": None}]
    frame = session.createDataFrame([("a", "only one"), ("b", None)], "id string, text string")
    for options in ({"words": 2}, {"unit": "line"}):
        assert assert_as_local(frame, rows, **options).counts.changed == 0


@pytest.mark.parametrize("more", [[], ["--annotate", "--skip-bad", "--unit", "paragraph"]])
def test_lines(
    session: Any,
    cluster: LoopbackSpark,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
) -> None:
    """Lines are those of the local job, byte for byte; numbers and lists stay what they are."""
    texts = corpus(70, words=40)
    lines = [
        json.dumps({"n": at, "text": text, "tags": [at, "é"]}, ensure_ascii=at % 2 == 0) + " " * at
        for at, text in enumerate(texts)
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("\n".join(lines[:33]) + "\n")
    bad = ["{no"] if "--skip-bad" in more else []
    (tmp_path / "in" / "b.jsonl").write_text("\n".join([*lines[33:], *bad]))
    command = ["clean", str(tmp_path / "in"), "--passage-words", "5", "--json", "--id", "n"]
    command += [*more, "--with-text", "--keep", "max:n"]
    local = [*command, "-o", str(tmp_path / "local"), "--removed", str(tmp_path / "r.jsonl")]
    assert main(local) == 0
    expected = json.loads(capsys.readouterr().out)
    engine = ["--engine", f"spark={cluster.url}", "--format", "jsonl", "--work", f"{tmp_path}/w"]
    out = [*command, *engine, "-o", str(tmp_path / "out"), "--removed", str(tmp_path / "removed")]
    assert main(out) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told["counts"] == expected["counts"] and told["counts"]["changed"] > 10
    assert told["counts"]["bad_rows"] == len(bad) and ("left out" in printed.err) == bool(bad)
    assert written_lines(tmp_path / "out") == written_lines(tmp_path / "local")
    assert ordered(json_rows(tmp_path / "removed")) == ordered(json_rows(tmp_path / "r.jsonl"))
    assert not list((tmp_path / "w").glob("*"))


def test_what_very_many_documents_have_is_a_few_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task gets a record of each slice and bucket, however many documents have a window."""
    largest = []

    def counted(plan: Any, joined: bool, batches: Any) -> Any:
        held = list(batches)
        records = gathered(iter(held), repeats.RECORD).get(repeats._PLACES)
        if records is not None:
            largest.append(int(np.unique(records["first"], return_counts=True)[1].max()))
        return meet(plan, joined, iter(held))

    meet = repeats.meet_places
    monkeypatch.setattr(repeats, "meet_places", counted)
    texts = [f"Number {at}. {LICENSE}" for at in range(3000)]
    for options in ({"words": 10}, {"unit": "sentence"}):
        found, _, _ = found_pieces(texts, [1000, 2000], 1000, options)
        assert {document for document, *_ in found} == set(range(1, 3000))
        assert max(largest) == 3  # of three batches


def test_what_is_refused(session: Any, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["clean", "in.jsonl", "--engine", "spark"]
    for option in (["--threads", "2"], ["--report", "r.html"], ["--in-place"], ["--encoding", "x"],
                   ["--max-document", "1MB"], ["--memory-limit", "1GB"],
                   ["--gap", "4"]):  # fmt: skip
        assert refused([*command, *option], capsys).startswith(f"{option[0]} does nothing with")
    assert refused([*command, "--removed", "-"], capsys).startswith("--removed is -; with --engine")
    assert refused([*command, "--max-documents", "2"], capsys).startswith("--max-documents is for")
    frame = session.createDataFrame([("a", 1)], "text string, kept int")
    with (
        on_spark.clean(frame) as found,
        pytest.raises(ArgumentError, match="already has a column 'kept'"),
    ):
        _ = found.annotated
