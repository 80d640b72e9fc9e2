"""Incoming links on Spark are the rows of the local job."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import lookalike as la
from lookalike import spark as on_spark
from lookalike.errors import ArgumentError
from lookalike.incoming.records import Counts, IncomingSettings, first_links, rows_of


def rows_of_file(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def collected(frame: Any) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: str(row["id"]))


def table(count: int) -> list[dict[str, Any]]:
    """Links between few pages, most of them to one."""
    draw = random.Random(count)
    return [
        {
            "source": f"http://h{draw.randrange(9)}.org/p{draw.randrange(40)}",
            "target": "http://hot.org/" if draw.random() < 0.6 else f"h{draw.randrange(5)}.org/x",
            "anchor": " ".join(draw.choices("fox owl bär river".split(), k=draw.randrange(4))),
            "before": "some words before", "after": "after ü", "nofollow": draw.random() < 0.1,
        }
        for _ in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"max_links": 20, "nofollow": True, "around": 1},
                                     {"min_links": 30, "internal": "absolute"}])  # fmt: skip
def test_a_table(session: Any, options: dict[str, Any], tmp_path: Path) -> None:
    rows = table(1500)
    la.incoming_links(rows, tmp_path / "local.jsonl", **options)
    frame = session.createDataFrame(rows).repartition(3)
    found = on_spark.incoming_links(frame, **options)
    assert found.columns == ["id", "crawled", "links", "sources", "anchor", "text"]
    expected = rows_of_file(tmp_path / "local.jsonl")
    assert len(expected) >= 1 and collected(found) == expected


def test_pages(session: Any, tmp_path: Path) -> None:
    pages = [
        {
            "url": f"http://{host}.example/{number}",
            "html": f"<html><body><p>page {number}</p>"
            + "".join(f'<p>see <a href="{other}">number {other}</a></p>' for other in range(number))
            + "</body></html>",
        }
        for host in ("a", "b")
        for number in range(6)
    ]
    options: dict[str, Any] = {
        "html": "html",
        "with_text": True,
        "only_crawled": True,
        "min_links": 0,
    }
    la.incoming_links(pages, tmp_path / "local.jsonl", **options)
    found = on_spark.incoming_links(session.createDataFrame(pages).repartition(4), **options)
    expected = rows_of_file(tmp_path / "local.jsonl")
    assert len(expected) == 12 and collected(found) == expected
    with pytest.raises(ArgumentError, match="expected web pages"):
        on_spark.incoming_links(session.createDataFrame([{"text": "a"}]))


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("most", [1, 3, 50])
def test_links_that_are_cut_down_in_parts(parts: int, most: int) -> None:
    """What is left out early is counted, and the sample is that of all links."""
    settings, draw = IncomingSettings(max_links=most), random.Random(parts)
    records = []
    for _ in range(300):
        source = draw.randrange(60)
        link = f"http://t{draw.randrange(3)}.org/", 1, (source * 7919) % 101, f"http://s{source}/"
        records.append((*link, draw.choice("ab"), "", ""))
    records += [(f"http://t{at}.org/", 0, 0, "", "text", "", "") for at in (0, 0, 2)]
    expected = list(rows_of(sorted(records), settings, Counts()))
    cut = [
        one
        for part in range(parts)
        for one in first_links(sorted(r for r in records if r[2] % parts == part), settings)
    ]
    assert list(rows_of(sorted(cut), settings, Counts())) == expected
    assert len(cut) <= 3 * parts * (most + 2)
