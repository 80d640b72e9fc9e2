"""The list of all clusters, the bands of similarity, and how a page is made again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.dedup.report import groups
from lookalike.dedup.report.figures import dropped_bands
from support.cases.report_pages import corpus, page_of
from support.running.page_reader import Element, read_page


def every_group(page: Element) -> list[list[str]]:
    """Return the cells of the list at the end."""
    (listed,) = page.all("table", "every")
    return [[cell.text for cell in row.all("td")] for row in listed.all("tr")[1:]]


def test_every_group_is_in_the_list(tmp_path: Path) -> None:
    result = la.dedup(corpus(4), threshold=0.7)
    page = page_of(result, tmp_path)
    found = every_group(page)
    members: dict[int, list[int]] = {}
    for row, label in enumerate(result.group_of.tolist()):
        members.setdefault(label, []).append(row)
    expected = {
        tuple(sorted(f"doc-{row}" for row in rows)): rows
        for rows in members.values()
        if len(rows) > 1
    }
    assert len(found) == len(expected) == result.counts.groups
    assert [int(cells[0]) for cells in found] == sorted(map(len, expected), reverse=True)
    for _, lowest, stays, dropped, text in found:
        rows = expected.pop(tuple(sorted([stays, *dropped.split()])))
        (kept,) = (row for row in rows if result.keep[row])
        assert stays == f"doc-{kept}"
        least = np.nanmin(result.similarity[rows])
        assert lowest == ("1" if least == 1 else f"{int(10_000 * least) / 10_000:.4f}")
        assert result.text(kept).startswith(text.removesuffix("…"))
    assert "All of them, with the first" in page.text


def test_of_many_clusters_the_smallest_are_left_out_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = la.dedup(corpus(5), threshold=0.7)
    assert isinstance(result, la.results.TextResult)
    monkeypatch.setattr(groups, "MOST_BYTES", 4000)
    page = page_of(result, tmp_path)
    found = every_group(page)
    assert 2 <= len(found) < result.counts.groups
    sizes = sorted(groups.group_sizes(result).tolist(), reverse=True)
    assert [int(cells[0]) for cells in found] == sizes[: len(found)]
    assert f"The largest {len(found)} of {result.counts.groups}" in page.text
    assert "The others are left out" in page.text


def test_of_a_large_cluster_some_ids_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    result = la.dedup([{"id": f"doc-{row}", "text": "the same text"} for row in range(1500)])
    (cells,) = every_group(page_of(result, tmp_path))
    assert cells[0] == "1,500" and cells[2] == "doc-0"
    assert cells[3].endswith(f"doc-{groups.MOST_IDS} and {1499 - groups.MOST_IDS:,} more")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0, 1) | st.just(float("nan")) | st.just(1.0), min_size=1, max_size=30),
    st.floats(0.05, 1),
)
def test_every_dropped_document_is_in_one_band(values: list[float], threshold: float) -> None:
    result = la.dedup(["one text"] * (len(values) + 1), threshold=threshold)
    assert isinstance(result, la.results.TextResult)
    result = replace(result, similarity=np.array([float("nan"), *values]))
    bands = dropped_bands(result)
    assert sum(band.count for band in bands) == len(values)
    for band in bands:
        inside = [value for value in values if band.low <= value < band.high]
        if band.name == "1, the same text":
            inside = [value for value in values if value == 1]
        if band.name == "not known":
            inside = [value for value in values if np.isnan(value)]
        assert band.count == len(inside), band


def test_the_page_says_when_by_what_and_how_it_is_made_again(tmp_path: Path) -> None:
    result = la.dedup(corpus(6), threshold=0.7, method="simhash")
    result = replace(result, made=datetime(2031, 4, 5, 6, 7, tzinfo=UTC))
    page = page_of(result, tmp_path)
    assert page.all("title")[0].text == f"Duplicates in {result.source.name}"
    assert page.all("h1")[0].text == f"Duplicates in {result.source.name}"
    assert f"Made on 5 April 2031, 06:07 UTC by lookalike {la.__version__}" in page.text
    (typed,) = page.all("p", "typed")
    assert typed.text.startswith("la.dedup(source, text='text', id='id', method='simhash', ")
    again = eval(typed.text.partition(").report")[0] + ")", {"la": la, "source": corpus(6)})
    assert (again.keep == result.keep).all() and again.settings == result.settings
    result.report(tmp_path / "typed.html", command=["lookalike", "dedup", "a <b>.jsonl"])
    page = read_page((tmp_path / "typed.html").read_text())
    assert page.all("p", "typed")[0].text == "lookalike dedup 'a <b>.jsonl'"


def test_cards_show_the_bands(tmp_path: Path) -> None:
    result = la.dedup(corpus(), threshold=0.7)
    assert isinstance(result, la.results.TextResult)
    page = page_of(result, tmp_path)
    (card,) = page.all("dl", "bands")
    names, counts = card.all("dt"), card.all("dd")
    shown_bands = {n.text: c.text for n, c in zip(names, counts, strict=True)}
    assert shown_bands == {band.name: f"{band.count:,}" for band in dropped_bands(result)}
    assert (
        list(shown_bands)[:2] == ["1, the same text", "0.95 to 1"]
        and list(shown_bands)[-1] == "0.7 to 0.75"
    )
