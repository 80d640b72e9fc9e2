"""Pages, and documents that are not wanted: what is left of them is what the local job leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lookalike as la
from lookalike import spark as on_spark
from support.cases.spark_corpora import mixed_corpus
from support.cases.web_pages import page

ENGLISH = "The cat is sitting on the roof, and waits until it is evening again at long last. " * 3


def as_rows(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)


def assert_same_rows(
    found: on_spark.SparkDedup, local: la.results.TextResult, folder: Path
) -> None:
    """Compare annotated rows and kept, with all columns, pairs, counts and what is missing."""
    annotated, kept, pairs = (folder / f"{name}.parquet" for name in ("all", "kept", "pairs"))
    local.write_annotated(annotated)
    local.write(kept)
    local.write_pairs(pairs)
    for frame, file in (
        (found.annotated.drop("row"), annotated),
        (found.kept, kept),
        (found.pairs, pairs),
    ):
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        assert as_rows(rows) == as_rows(pq.read_table(file).to_pylist())
    assert found.to_dict()["counts"].items() <= vars(local.counts).items()
    assert found.left_out == local.documents.left_out


def test_pages(session: Any, tmp_path: Path) -> None:
    """Of a column of pages, one of which is too deep; the old corpus has texts."""
    words = mixed_corpus(40)
    links = '<a href="/one">one</a> <a href="/two">two</a>'
    rows: list[dict[str, Any]] = [
        {"id": f"p{at}", "url": f"https://example.org/{at}/", "title": "mine", "page": body}
        for at, body in enumerate(
            page(f"{ENGLISH} {text}", title=f"T{at}", links=links if at % 3 else "")
            for at, text in enumerate(words)
        )
    ]
    rows[7]["page"] = "<div>" * 2000 + "deep" + "</div>" * 2000
    rows[8]["page"] = None
    old = [{"uid": f"o{at}", "text": f"{ENGLISH} {text}"} for at, text in enumerate(words[:12])]
    how: dict[str, Any] = {"html": "page", "min_links": 1, "threshold": 0.7}
    local = la.dedup(rows, against=old, **how)
    assert {"unreadable pages", "few links"} == set(local.documents.left_out)
    assert local.counts.in_old and local.counts.groups
    schema = "id string not null, url string not null, title string, page string"
    frame = session.createDataFrame(rows, schema)
    against = session.createDataFrame(old, "uid string, text string")
    with on_spark.dedup(frame.coalesce(2), against=against, **how) as found:
        assert_same_rows(found, local, tmp_path)


def test_what_is_refused(session: Any) -> None:
    frame = session.createDataFrame([("a", "b")], "id string, text string")
    for how, told in (
        ({"html": "page"}, "the DataFrame has no column 'page' for the HTML"),
        ({"page_limits": la.pages.PageLimits()}, "the DataFrame has no web pages"),
        ({"language": "english"}, "language is 'english'; expected a language"),
    ):
        with pytest.raises(la.errors.ArgumentError, match=told):
            on_spark.dedup(frame, **how)
