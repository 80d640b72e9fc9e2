"""Survivors, clusters and pairs of the job on Spark are those of the local job, row for row."""

from __future__ import annotations

import os
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lookalike as la
from lookalike import spark as on_spark
from lookalike.dedup import propose
from lookalike.spark import propose as spark_propose
from lookalike.spark import tables, verify
from support.cases.spark_corpora import assert_as_local, frame_of_texts, mixed_corpus, template
from support.running.spark_ways import take_way


def mixed_with_template(count: int, variants: int) -> list[str | None]:
    texts: list[str | None] = [*mixed_corpus(count), *template(variants)]
    random.Random(5).shuffle(texts)
    return texts


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Lower the limits, so that a small corpus takes the way of a large one."""
    take_way(request.param, monkeypatch)
    return str(request.param)


@pytest.mark.parametrize("way", ["one task", "components", "many pairs", "crowd"], indirect=True)
def test_skewed_input(session: Any, way: str) -> None:
    """More than 200 share a band; half of the rows are one text; partitions are empty, rows are
    null, and one document is huge. LOOKALIKE_VARIANTS are those of one template, with the limits
    as they are.
    """
    variants = int(os.environ.get("LOOKALIKE_VARIANTS", "600")) if way == "one task" else 600
    texts = mixed_with_template(150, variants)
    texts += ["the same text, again and again, as often as all of the others"] * len(texts)
    texts += [None, "", None, " ".join(f"long{number}" for number in range(200_000))]
    frame = frame_of_texts(session, texts, 5)
    empty = frame.where("id = 'nobody'")
    local = assert_as_local(empty.union(frame).union(empty), texts)
    assert "groups of more than 200" in local.warnings[0]
    assert local.counts.exact_duplicates >= len(texts) // 2 - 3


def test_what_the_local_job_may_miss_is_said(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of so many signatures that the local job proposes by chance, Spark compares all."""
    frame = frame_of_texts(session, mixed_corpus(40), 2)
    with on_spark.dedup(frame, method="simhash") as found:
        assert not found.warnings
    monkeypatch.setattr(propose, "PATIENCE", 0.0)
    with on_spark.dedup(frame, method="simhash") as found:
        (warning,) = found.warnings
    assert re.fullmatch(r"all pairs of \d+ signatures were found; .* may miss .*", warning)


@pytest.mark.parametrize("hot", [20, 1 << 15])
@pytest.mark.parametrize(
    "settings",
    [
        {"method": "simhash", "bits": 64, "radius": 6, "keep": "longest"},
        {"method": "topsig", "bits": 128, "radius": 12, "threshold": 0.7, "old": 60},
    ],
)
def test_tables_find_what_the_local_job_finds(
    session: Any, settings: dict[str, Any], hot: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables as for many signatures; many are equal, many are near, and keys are divided."""
    chosen = []

    def noted(*given: Any, **options: Any) -> Any:
        chosen.append(tables.choose_tables(*given, **options))
        return chosen[-1]

    monkeypatch.setattr(spark_propose, "choose_tables", noted)
    monkeypatch.setattr(tables, "_ROW_COST", 1e-6)
    monkeypatch.setattr(tables, "_HOT", hot)
    monkeypatch.setattr(tables, "_LEAST_SAMPLED", 2)
    monkeypatch.setattr(tables, "BLOCK", 64)
    settings, words = dict(settings), "one two three four five six seven eight nine ten".split()
    texts = mixed_with_template(400, 60)
    for _ in range(150):  # other texts of the same words
        random.Random(len(texts)).shuffle(words)
        texts.append(" ".join(words))
    against, old = None, texts[: settings.pop("old", 0)]
    if old:
        against, texts = (frame_of_texts(session, old, 2, "old"), old), texts[len(old) - 20 :]
    frame = frame_of_texts(session, texts, 3)
    assert_as_local(frame, texts, against=against, ngram=1, **settings)
    (found,) = chosen
    assert found is not None and found.is_exact and len(found.tables) > settings["radius"]
    divided = any(leaf.table.divided.size or leaf.table.dense.size for leaf in found.leaves())
    assert divided == (hot == 20)


CHAINS = {"grouping": "components", "max_group": 20, "threshold": 0.6, "keep": "shortest"}


@pytest.mark.parametrize(
    ("partitions", "way", "settings"),
    [
        (1, "one task", {"keep": "last", "threshold": 0.7}),
        (3, "one task", {"keep": "none", "verify": False}),
        (2, "one task", CHAINS),
        (9, "bands", {"keep": "none", "verify": False, "old": 130}),
        (4, "components", {"keep": "last", "verify": False}),
        (2, "components", CHAINS),
        (5, "settled", CHAINS),
        (4, "settled", {"keep": "longest", "verify": False}),
        (4, "rounds", CHAINS),
        (3, "rounds", {"keep": "none", "old": 130}),
        (4, "many pairs", {"method": "simhash", "keep": "longest", "old": 130}),
        (2, "components", {"method": "topsig", "bits": 256, "verify": False}),
        (2, "crowd", {"keep": "last", "verify": False, "old": 130}),
        (2, "crowd", {"measure": "containment", "threshold": 0.9}),
        (5, "crowd", {**CHAINS, "method": "simhash"}),
        (3, "crowd in rounds", {"keep": "longest", "old": 130}),
    ],
    indirect=["way"],
)
def test_settings(
    session: Any,
    partitions: int,
    way: str,
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some of them as if there were more texts than are joined where they are; some against an old
    corpus, which has the first of them, and a few come again.
    """
    for module in (verify, spark_propose):
        monkeypatch.setattr(module, "FEW", 0 if partitions > 3 else module.FEW)
    settings, texts = dict(settings), mixed_with_template(100, 300)
    against, old = None, texts[: settings.pop("old", 0)]
    if old:
        against, texts = (frame_of_texts(session, old, 2, "old"), old), texts[len(old) - 20 :]
    frame = frame_of_texts(session, texts, partitions)
    local = assert_as_local(frame, texts, against=against, **settings)
    assert local.counts.in_old >= len(old) // 8


@pytest.mark.parametrize("way", ["one task", "components"], indirect=True)
@pytest.mark.parametrize("clusters", ["star", "components"])
def test_a_function_chooses(session: Any, way: str, clusters: str) -> None:
    """It is given the rows of whole groups, with all copies: those of the local job."""
    texts = mixed_with_template(200, 230)

    def longest_then_last(rows: list[dict[str, Any]]) -> int:
        return max(range(len(rows)), key=lambda at: (len(rows[at]["text"]), rows[at]["id"]))

    settings: dict[str, Any] = {"keep": longest_then_last, "grouping": clusters, "max_group": 50}
    if clusters == "star":
        del settings["max_group"]
    local = assert_as_local(frame_of_texts(session, texts, 3), texts, **settings)
    assert local.counts.near_duplicates > 100


@pytest.mark.parametrize("way", ["one task", "rounds"], indirect=True)
def test_nothing_to_find(session: Any, way: str) -> None:
    """No rows; rows that are too short; texts of which none is like another; copies alone."""
    words = [" ".join(f"w{word}n{number}" for word in range(9)) for number in range(300)]
    cases: list[list[str | None]] = [[], ["a", None, ""], [*words], [*words[:9], *words[:9]]]
    for texts in cases:
        assert_as_local(frame_of_texts(session, texts, 2), texts)


@pytest.mark.parametrize("wishes", [{}, {"min_words": 25, "strip_urls": True}])
def test_order_of_files_and_what_decides(
    session: Any, tmp_path: Path, wishes: dict[str, Any]
) -> None:
    """Rows are in the order of files by name and of lines, whatever pieces Spark reads; a column
    decides, of which values are missing or equal; annotated rows are those of the local job. If
    some are not wanted, rows are numbered as if there were no others.
    """
    chance = random.Random(3)
    texts = mixed_corpus(400)
    folder = tmp_path / "in put"
    folder.mkdir()
    rows = [
        {
            "name": f"r{at}",
            "text": f"{text} https://example.org/{at}" if at % 3 == 0 else text,
            "an odd, dotted.name": at,
            "position": -at,
            "score": chance.choice([None, 1.5, -2.0, 3.0]),
        }
        for at, text in enumerate(texts)
    ]
    bounds = [0, 10, 230, 240, 400]
    for file, (begin, end) in enumerate(pairwise(bounds)):
        table = pa.Table.from_pylist(rows[begin:end])
        pq.write_table(table, folder / f"{file}.parquet")
    how = {"id": "name", "keep": "max:score", "threshold": 0.5, **wishes}
    local = la.dedup(str(folder), **how)
    local.write_annotated(tmp_path / "expected.parquet")
    frame = session.read.parquet(str(folder))
    with on_spark.dedup(frame, **how, work=(tmp_path / "work").as_uri()) as found:
        names = (
            *("name", "`an odd, dotted.name`", "position"),
            *("group_id", "duplicate_of", "similarity"),
        )
        annotated = found.annotated.orderBy("row").select(*names).collect()
        assert sorted(row.row for row in found.annotated.select("row").collect()) == list(
            range(local.counts.documents)
        )
    assert found.left_out == local.documents.left_out
    expected = session.read.parquet(str(tmp_path / "expected.parquet")).select(*names).collect()
    assert list(map(tuple, annotated)) == list(map(tuple, expected))
    assert local.counts.near_duplicates > 10


def test_order_of_a_column(session: Any) -> None:
    texts: list[str | None] = [*mixed_corpus(120)]
    rows = [(f"id{at}", text, 3 * at) for at, text in enumerate(texts)]
    random.Random(0).shuffle(rows)
    frame = session.createDataFrame(rows, "id string, text string, number int").repartition(5)
    assert_as_local(frame, texts, order="number")
    twice = frame.union(frame)
    with pytest.raises(
        la.errors.ArgumentError, match="order is 'number', which has .* more than once"
    ):
        on_spark.dedup(twice, order="number")
