"""The page of topics in a real browser: a click opens a topic, and its documents are searched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lookalike as la

SUBJECTS = {
    "space": "star galaxy telescope orbit planet nebula",
    "law": "court judge verdict appeal lawyer statute",
    "food": "bread butter recipe flour oven yeast",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [
        {"id": f"{name}/{at}", "title": f"About {name}, part {at}", "text": f"{words} {name}{at}"}
        for name, words in SUBJECTS.items()
        for at in range(20)
    ]
    path = tmp_path_factory.mktemp("topics") / "topics.html"
    la.cluster_documents(rows, 3).report(path)
    return path


@pytest.mark.parametrize("width", [1180, 390])
def test_a_click_opens_a_topic_and_its_documents_are_searched(
    width: int, browser: Any, report: Path
) -> None:
    from playwright.sync_api import expect

    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(report.as_uri())
    circles = page.locator("#map svg a")
    assert circles.count() == 3
    for number in range(3):
        card = page.locator(f"#c{number}")
        lines = card.locator(".documents li")
        expect(lines.first).to_be_hidden()
        page.locator(f'#map svg a[href="#c{number}"]').click()
        expect(card.locator("details")).to_have_attribute("open", "")
        expect(lines.first).to_be_visible()
        assert lines.count() == 20
        subject = lines.first.text_content().split()[1].rstrip(",")
        card.locator(".documents input").fill("PART 7")
        expect(lines.locator("visible=true")).to_have_count(1)
        expect(card.locator(".told")).to_have_text("1 found")
        assert lines.locator("visible=true").text_content().startswith(f"About {subject}, part 7")
        card.locator(".documents input").fill("")
        expect(lines.locator("visible=true")).to_have_count(20)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_all_topics_are_searched_at_once(browser: Any, report: Path) -> None:
    from playwright.sync_api import expect

    page = browser.new_page()
    page.goto(report.as_uri())
    page.locator("#find").fill("about law")
    expect(page.locator("article.card:visible")).to_have_count(1)
    expect(page.locator("#told")).to_have_text("in 1 of 3 clusters")
    expect(page.locator(".documents li:visible")).to_have_count(20)
    page.locator("#find").fill("nothing has this")
    expect(page.locator("article.card:visible")).to_have_count(0)
    page.locator("#find").fill("")
    expect(page.locator("article.card:visible")).to_have_count(3)
    page.close()


def test_names_on_the_map_can_be_read_on_a_phone(browser: Any, report: Path) -> None:
    """The map is wider than the screen, and scrolls inside its card."""
    context = browser.new_context(viewport={"width": 390, "height": 900})
    page = context.new_page()
    page.goto(report.as_uri())
    heights = page.eval_on_selector_all(
        "#map svg .on-map", "all => all.map(one => one.getBoundingClientRect().height)"
    )
    assert len(heights) >= 3 and min(heights) >= 9
    context.close()
