"""The page of clusters: nothing but itself, whatever documents say, and pictures that are true."""

from __future__ import annotations

import base64
import hashlib
import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.topics.report import page
from lookalike.topics.report.charts import NAMED_RADIUS, apart, plane
from support.oracles import topics as oracle
from support.running.page_reader import read_page

TEXTS = oracle.scattered(2)
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)> \"'>&lt;\x1b[2J\u202e"


def written(result: la.results.DocumentClusters, folder: Path) -> str:
    result.report(folder / "topics.html")
    return (folder / "topics.html").read_text(encoding="utf-8")


def test_it_needs_nothing_and_runs_only_its_script(tmp_path: Path) -> None:
    text = written(la.cluster_documents(TEXTS, 6), tmp_path)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert script == page.SCRIPT
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    assert f'content="{policy}"' in text
    assert "http://" not in text and "https://" not in text
    targets = re.findall(r'href="#([^"]+)"', text)
    assert targets and all(f'id="{target}"' in text for target in targets)
    read_page(text)


def test_every_cluster_is_told_of(tmp_path: Path) -> None:
    result = la.cluster_documents([{"id": f"d{at}", "text": one} for at, one in enumerate(TEXTS)])
    text = written(result, tmp_path)
    for one in result.clusters:
        card = text[text.index(f'id="c{one.number}"') :].partition("</article>")[0]
        assert all(f"<bdi>{word}</bdi>" in card for word, _ in one.words)
        assert all(f">{result.id(row)}</bdi>" in card for row in one.central)
        listed = re.findall(
            r'<li><span class="title" dir="auto">.*?<bdi class="id">(\w+)</bdi>', card
        )
        assert listed == [result.id(int(row)) for row in result.members(one.number)]
        heights = re.findall(r"<title>([\d,]+) documents?, ", card)
        assert sum(int(count.replace(",", "")) for count in heights) == one.size
    circles = re.findall(r'<circle class="accepted topic" cx="([\d.]+)" cy="([\d.]+)"', text)
    assert len(circles) == len(result)
    assert all(0 <= float(x) <= 560 and 0 <= float(y) <= 420 for x, y in circles)


def test_text_from_elsewhere_is_text(tmp_path: Path) -> None:
    rows = [
        {f"{EVIL}": f"{EVIL} word{at % 3}", "id": f"{EVIL}{at}", "title": f"{EVIL} of {at}"}
        for at in range(9)
    ]
    result = la.cluster_documents(rows, 3, text=EVIL)
    text = written(result, tmp_path)
    assert text.count("<script") == 1 and "<img" not in text and "\x1b" not in text
    assert "\u202e" not in text and "&lt;script&gt;" in text
    read_page(text)


def test_its_size_is_bounded_and_so_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_CARDS", 2)
    monkeypatch.setattr(page, "MOST_BARS", 3)
    text = written(la.cluster_documents(TEXTS, 5), tmp_path)
    assert text.count("<article") == 2 and "And 3 smaller clusters." in text
    assert "And 2 smaller clusters." in text and 'href="#c2"' not in text
    monkeypatch.setattr(page, "MOST_LISTED", 10)
    monkeypatch.setattr(page, "LEAST_LISTED", 3)
    text = written(la.cluster_documents(TEXTS, 5), tmp_path)
    assert text.count('<li><span class="title"') == 10 and "The 5 most central of " in text


def test_large_circles_have_names(tmp_path: Path) -> None:
    chance = random.Random(0)
    texts = [
        " ".join(chance.choices([f"subject{at % 40}longword{n}" for n in range(9)], k=8))
        for at in range(2000)
    ]
    text = written(la.cluster_documents(texts, 40), tmp_path)
    radii = [float(radius) for radius in re.findall(r'<circle [^>]*r="([\d.]+)"', text)]
    names = re.findall(r'<text class="on-map" x="([\d.]+)" y="([\d.]+)">', text)
    assert len(radii) == 40 and min(radii) > NAMED_RADIUS
    assert len(names) >= 40
    circles = re.findall(r'<circle class="accepted topic" cx="([\d.]+)" cy="([\d.]+)"', text)
    for x, y in circles:
        assert any(
            abs(float(x) - float(across)) < 60 and abs(float(y) - float(down)) < 30
            for across, down in names
        )


@pytest.mark.parametrize("texts", [[], ["", "?"], ["one"], ["same"] * 4])
def test_corpora_with_nothing_to_draw(texts: list[str], tmp_path: Path) -> None:
    text = written(la.cluster_documents(texts), tmp_path)
    read_page(text)
    assert ("It has no documents with words" in text) == (not "".join(texts).strip("?"))
    assert 'id="map"' not in text


def test_the_command_is_shown(tmp_path: Path) -> None:
    result = la.cluster_documents(TEXTS, 3)
    result.report(tmp_path / "t.html", command=["lookalike", "cluster", "a b.jsonl", "<x>"])
    assert (
        "lookalike cluster &#x27;a b.jsonl&#x27; &#x27;&lt;x&gt;&#x27;"
        in (tmp_path / "t.html").read_text()
    )


def test_the_map_keeps_distances_where_two_directions_are_enough() -> None:
    centers = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]], np.float32)
    places = plane(centers)
    between, real = (
        np.sqrt(((some[:, None] - some[None]) ** 2).sum(axis=2)) for some in (places, centers)
    )
    assert between == pytest.approx(real, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-50, 50), st.floats(-50, 50), st.floats(1, 20)), min_size=1, max_size=9
    )
)
def test_circles_are_moved_apart(drawn: list[tuple[float, float, float]]) -> None:
    places, radii = np.array([one[:2] for one in drawn]), np.array([one[2] for one in drawn])
    moved = apart(places, radii)
    for one in range(len(drawn)):
        for two in range(one):
            far = float(np.hypot(*(moved[one] - moved[two])))
            assert far > 0.9 * (radii[one] + radii[two])


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.parametrize("clusters", [1, 2, 6])
def test_figures_are_those_of_brute_force(clusters: int, tmp_path: Path) -> None:
    texts = ["", *TEXTS, "?", TEXTS[0]]
    result = la.cluster_documents(texts, clusters)
    page = read_page(written(result, tmp_path))
    inside = np.array([any(map(str.isalnum, text)) for text in texts])
    near, far = result.similarities, result.other_similarities
    tiles = {one.all("span", "name")[0].text: one for one in page.all("div", "tile")}
    figures = {name: one.all("b")[0].text for name, one in tiles.items()}
    sizes = np.bincount(result.labels[inside], minlength=len(result))
    assert number(figures["documents"]) == len(texts)
    assert number(figures["clusters"]) == len(sizes) == clusters
    assert number(figures["without words"]) == (~inside).sum() > 1
    assert f"{inside.sum()} documents in {clusters} cluster" in page.text
    assert figures["similarity"] == f"{near[inside].mean():.2f}"
    note = tiles["similarity"].text
    if clusters > 1:
        assert f"; {far[inside].mean():.2f} with the next nearest center" in note
    else:
        assert "next nearest" not in note
    listed = page.part("sizes").all("li")
    assert [number(one.all("span", "count")[0].text) for one in listed] == sizes.tolist()
    for at in range(len(sizes)):
        card = page.part(f"c{at}")
        own = near[result.labels == at]
        assert f"mean similarity to the center {own.mean():.2f}" in card.text
        heights = 0
        for bar in card.all("rect"):
            told = re.match(r"([\d,]+) documents?, (-?[\d.]+) to (-?[\d.]+)", bar.text)
            assert told is not None
            heights += number(told[1])
            low, high = float(told[2]), float(told[3])
            assert number(told[1]) <= ((own >= low - 6e-4) & (own <= high + 6e-4)).sum()
        assert heights == len(own)
        (central,) = card.all("table", "central")
        for row in central.all("tr")[1:]:
            cells = row.all("td")
            (id,) = cells[1].all("bdi", "id")
            assert cells[0].text == f"{near[int(id.text)]:.2f}"
        weights = [float(one.text.replace(",", "")) for one in card.all("span", "weight")]
        assert weights == sorted(weights, reverse=True)
