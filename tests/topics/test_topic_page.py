"""The page of clusters: nothing but itself, whatever documents say, and pictures that are true."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.topics.report import page
from lookalike.topics.report.charts import apart, plane
from support.oracles import topics as oracle
from support.running.page_reader import read_page

TEXTS = oracle.scattered(2)
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)> \"'>&lt;\x1b[2J\u202e"


def written(result: la.results.DocumentClusters, folder: Path) -> str:
    result.report(folder / "topics.html")
    return (folder / "topics.html").read_text(encoding="utf-8")


def test_it_needs_nothing_and_runs_nothing(tmp_path: Path) -> None:
    text = written(la.cluster_documents(TEXTS, 6), tmp_path)
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'none'"
    assert f'content="{policy}"' in text
    assert "<script" not in text and "http://" not in text and "https://" not in text
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
        heights = re.findall(r"<title>([\d,]+) documents?, ", card)
        assert sum(int(count.replace(",", "")) for count in heights) == one.size
    circles = re.findall(r'<circle class="accepted topic" cx="([\d.]+)" cy="([\d.]+)"', text)
    assert len(circles) == len(result)
    assert all(0 <= float(x) <= 560 and 0 <= float(y) <= 420 for x, y in circles)


def test_text_from_elsewhere_is_text(tmp_path: Path) -> None:
    rows = [{f"{EVIL}": f"{EVIL} word{at % 3}", "id": f"{EVIL}{at}"} for at in range(9)]
    result = la.cluster_documents(rows, 3, text=EVIL)
    text = written(result, tmp_path)
    assert "<script" not in text and "<img" not in text and "\x1b" not in text
    assert "\u202e" not in text and "&lt;script&gt;" in text
    read_page(text)


def test_its_size_is_bounded_and_so_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_CARDS", 2)
    monkeypatch.setattr(page, "MOST_BARS", 3)
    text = written(la.cluster_documents(TEXTS, 5), tmp_path)
    assert text.count("<article") == 2 and "And 3 smaller clusters." in text
    assert "And 2 smaller clusters." in text and 'href="#c2"' not in text


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
    rows = np.zeros((4, 8), np.uint8)
    rows[1, :4] = 255
    rows[2, 4:] = 255
    rows[3] = 255
    places = plane(rows)
    between = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
    bits = np.unpackbits(rows[:, None] ^ rows[None], axis=2).sum(axis=2)
    assert between**2 == pytest.approx(bits, abs=1e-9)


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
    signer = result.settings.signer()
    signed = signer.fit(texts).sign(texts)
    bits = result.bits
    far = np.array(
        [[np.bitwise_count(row ^ one).sum() for one in result.centers] for row in signed]
    )
    inside = np.array([any(map(str.isalnum, text)) for text in texts])
    nearest, order = far.min(axis=1), np.sort(far, axis=1)
    assert result.distances[inside].tolist() == nearest[inside].tolist()
    tiles = {one.all("span", "name")[0].text: one for one in page.all("div", "tile")}
    figures = {name: one.all("b")[0].text for name, one in tiles.items()}
    sizes = np.bincount(result.labels[inside], minlength=len(result))
    assert number(figures["documents"]) == len(texts)
    assert number(figures["clusters"]) == len(sizes) == clusters
    assert number(figures["without words"]) == (~inside).sum() > 1
    assert f"{inside.sum()} documents in {clusters} cluster" in page.text
    assert figures["from the center"] == f"{100 * nearest[inside].mean() / bits:.1f}%"
    note = tiles["from the center"].text
    if clusters > 1:
        next_share = 100 * order[inside, 1].mean() / bits
        assert f"; {next_share:.1f}% from the next nearest center" in note
    else:
        assert "next nearest" not in note
    listed = page.part("sizes").all("li")
    assert [number(one.all("span", "count")[0].text) for one in listed] == sizes.tolist()
    for at in range(len(sizes)):
        card = page.part(f"c{at}")
        own = nearest[result.labels == at]
        share = f"{100 * own.mean() / bits:.1f}% of the bits from the center on average"
        assert share in card.text
        for bar in card.all("rect"):
            told = re.match(r"([\d,]+) documents?, ([\d,]+)(?: to ([\d,]+))? bits", bar.text)
            assert told is not None
            low, high = number(told[2]), number(told[3] or told[2])
            assert number(told[1]) == ((own >= low) & (own <= high)).sum()
        (central,) = card.all("table", "central")
        for row in central.all("tr")[1:]:
            cells = [cell.text for cell in row.all("td")]
            assert number(cells[0]) == nearest[int(cells[1])]
        weights = [float(one.text.replace(",", "")) for one in card.all("span", "weight")]
        assert weights == sorted(weights, reverse=True)
