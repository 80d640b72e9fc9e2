"""The page in a real browser, beside what the collection itself says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import lookalike as la
from lookalike.compare.texts import word_diff
from page.conftest import HOSTILE, NAME, Serve, texts

OpenPage = Callable[..., Any]
VIEWS = ("Search", "Groups", "Map", "Health", "Upload")
READY = {
    "Search": "#text",
    "Groups": "section.card, main p:has-text('No two documents')",
    "Map": ".atlas circle",
    "Health": ".chart",
    "Upload": "#file",
}


@pytest.fixture
def page(database: Path, serve: Serve, open_page: OpenPage) -> Any:
    opened = open_page(serve(database))
    opened.wait_for_selector("#text")
    return opened


def view(page: Any, name: str) -> None:
    page.click(f"nav >> text={name}")
    page.wait_for_selector(READY[name])


def search(page: Any, text: str) -> None:
    page.fill("#text", text)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".matches", state="attached")
    if (anyway := page.locator("summary:has-text('anyway')")).count():
        anyway.click()  # no document is nearer than chance


def shown_ids(page: Any) -> list[str]:
    found: list[str] = page.locator(".match .head .id").all_text_contents()
    return found


def test_a_search_shows_what_the_collection_finds(page: Any, database: Path) -> None:
    text = texts()["a/0"] + " and more"
    search(page, text)
    with la.open_collection(database, NAME) as docs:
        answer = docs.search(text, 10)
    assert shown_ids(page) == [match.id for match in answer]
    assert page.locator(".likeness > span").all_text_contents() == [
        "100%" if share == 1 else "> 99.9%" if share > 0.999 else f"{share:.0%}"
        for share in (one or 0.0 for one in answer.similarities)
    ]
    assert page.locator(".match details p").all_text_contents() == [
        f"{match.distance} of 128 bits differ." for match in answer
    ]
    expect(page.locator(".match details p").first).to_be_hidden()
    page.locator(".match summary").first.click()
    expect(page.locator(".match details p").first).to_be_visible()
    widths = page.locator(".bar i").evaluate_all("bars => bars.map(bar => bar.offsetWidth)")
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > widths[-1]
    assert "The 10 nearest documents" in page.inner_text("main")


def test_conditions_and_a_radius_narrow_a_search(page: Any) -> None:
    page.get_by_label("Filter by metadata").fill("family = a, place >= 2")
    search(page, texts()["a/0"])
    assert set(shown_ids(page)) == {f"a/{number}" for number in range(2, 6)}
    page.get_by_label("Filter by metadata").fill("")
    page.get_by_label("Radius (bits)").fill("0")
    page.click("button:has-text('Search')")
    expect(page.locator(".match")).to_have_count(1)
    assert shown_ids(page) == ["a/0"]
    page.get_by_label("Filter by metadata").fill("family")
    page.click("button:has-text('Search')")
    expect(page.locator(".problem")).to_contain_text("expected: field = value")


def test_differences_are_those_of_compare(page: Any) -> None:
    documents = texts()
    asked = documents["a/0"] + " unheard"
    search(page, asked)
    place = shown_ids(page).index("a/3")
    row = page.locator(".match").nth(place)
    row.locator("text=Show differences").click()
    row.locator(".sides").wait_for()
    parts = word_diff(asked, documents["a/3"]).parts
    for kind, tag in (("delete", "del"), ("insert", "ins")):
        expected = [part.text.strip() for part in parts if part.kind == kind]
        assert expected
        assert [one.strip() for one in row.locator(tag).all_text_contents()] == expected
    row.locator("text=Hide differences").click()
    expect(row.locator(".sides")).to_have_count(0)


def test_a_document_has_its_text_and_neighbors(page: Any, database: Path) -> None:
    search(page, texts()["b/1"])
    page.click(".match .id >> text=b/1")
    page.wait_for_selector("h2:has-text('Neighbors')")
    expect(page.locator(".text")).to_have_text(texts()["b/1"])
    with la.open_collection(database, NAME) as docs:
        near = [match.id for match in docs.search(texts()["b/1"], 11)]
    assert near[0] == "b/1"
    expect(page.locator(".match .head .id")).to_have_text(near[1:])
    page.go_back()
    expect(page.locator("#text")).to_have_value(texts()["b/1"])
    expect(page.locator(".match .head .id").first).to_have_text("b/1")  # still there


def test_groups_are_the_families(page: Any) -> None:
    view(page, "Groups")
    page.get_by_label("Radius (bits)").fill("30")
    page.click("text=Show groups")
    titles = page.locator("section.card h2")
    expect(titles).to_have_text(["6 documents", "4 documents", "3 documents"])
    first = page.locator("section.card").first
    first.locator("button:has-text('Differences')").first.click()
    first.locator("ins").first.wait_for()
    assert first.locator("del").all_text_contents()[0].strip() == "changeda0"
    assert "changeda1" in " ".join(first.locator("ins").all_text_contents())


def test_a_job_lists_duplicates(page: Any) -> None:
    view(page, "Groups")
    page.get_by_label("Radius (bits)").fill("30")
    page.click("text=Find all near-duplicates")
    page.wait_for_selector("summary:has-text('Results')")
    page.click("summary:has-text('Results')")
    expect(page.locator("tbody tr")).to_have_count(5 + 3 + 2)


def test_the_map_is_zoomed_and_leads_to_documents(page: Any) -> None:
    view(page, "Map")
    dots = page.locator(".dots circle")
    expect(dots).to_have_count(len(texts()))
    box = page.get_attribute(".atlas svg", "viewBox")
    page.focus(".atlas svg")
    page.keyboard.press("+")
    nearer = page.get_attribute(".atlas svg", "viewBox")
    assert float(nearer.split()[2]) < float(box.split()[2])
    page.keyboard.press("0")
    assert page.get_attribute(".atlas svg", "viewBox") == box
    page.mouse.move(500, 500)
    page.mouse.wheel(0, -400)
    expect(page.locator(".atlas svg")).not_to_have_attribute("viewBox", box)
    page.click("[aria-label='Show all']")
    region = page.locator(".atlas g[role=button]").first
    region.focus()
    page.keyboard.press("Enter")
    expect(region).to_have_attribute("aria-pressed", "true")
    page.wait_for_selector("text=The most central document")
    id = dots.first.get_attribute("data-id")
    dots.first.click(force=True)
    page.wait_for_selector("h2:has-text('Neighbors')")
    expect(page.locator("main")).to_contain_text(texts()[id][:20])


def test_health_counts(page: Any) -> None:
    view(page, "Health")
    tiles = page.locator(".tile b").all_text_contents()
    assert tiles[0] == str(len(texts()))
    assert tiles[3] == "128"
    expect(page.locator(".chart")).to_have_count(2)
    assert page.locator(".chart rect").count() > 4


def test_a_file_is_uploaded(page: Any, database: Path, tmp_path: Path) -> None:
    lines = [
        {"id": f"new {number}", "text": f"brought in as number {number}"} for number in range(5)
    ]
    file = tmp_path / "more.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in [*lines, {"id": "", "text": "no id"}]))
    view(page, "Upload")
    page.set_input_files("#file", file)
    page.click("button:has-text('Upload')")
    page.wait_for_selector("text=5 added")
    with la.open_collection(database, NAME) as docs:
        assert docs.count() == len(texts()) + 5
        assert docs.get("new 3") is not None
    view(page, "Search")
    search(page, "brought in as number 3")
    assert shown_ids(page)[0] == "new 3"


def test_a_file_that_cannot_be_read_is_told(page: Any, tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_bytes(b"\x00\xff{{{" * 50)
    view(page, "Upload")
    page.set_input_files("#file", file)
    page.click("button:has-text('Upload')")
    page.wait_for_selector(".problem")
    assert len(page.inner_text(".problem")) > 30


def test_hostile_texts_are_shown_and_do_nothing(page: Any) -> None:
    search(page, texts()[HOSTILE])
    visible = HOSTILE.replace("\u202e", "\u2039U+202E\u203a")
    assert shown_ids(page)[0] == visible
    page.click(".match .id >> nth=0")
    page.wait_for_selector("h2:has-text('Neighbors')")
    expect(page.locator("h1")).to_have_text(visible)
    for name in VIEWS[1:]:
        view(page, name)
    assert page.evaluate("window.harmed") is None
    assert page.locator("main img, main script").count() == 0


def test_a_key_is_asked_for(
    database: Path, serve: Serve, open_page: OpenPage, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.json"
    command = [sys.executable, "-m", "lookalike.cli", "serve", "--new-key", "--keys", str(keys)]
    secret = subprocess.run(
        [*command, "--read-only"], check=True, capture_output=True, text=True
    ).stdout.strip()
    page = open_page(serve(database, "--keys", str(keys)))
    page.wait_for_selector("text=needs an API key")
    page.fill("#key", "no such key")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=invalid API key")
    page.fill("#key", secret)
    page.keyboard.press("Enter")
    page.wait_for_selector("#text")
    search(page, texts()["a/1"])
    assert shown_ids(page)[0] == "a/1"
    assert secret not in page.url
    assert secret not in page.evaluate("JSON.stringify(localStorage) + document.cookie")
    view(page, "Upload")
    page.set_input_files("#file", {"name": "x.txt", "mimeType": "text/plain", "buffer": b"a text"})
    page.click("button:has-text('Upload')")
    expect(page.locator(".problem")).to_contain_text("read-only")


def test_what_is_not_there_is_told(page: Any) -> None:
    page.goto(page.url.split("#")[0] + f"#/{NAME}/document/nobody")
    expect(page.locator(".problem")).to_contain_text("nobody")
    page.goto(page.url.split("#")[0] + "#/other/search")
    page.wait_for_selector("text=Collection not found")
    page.route("**/query", lambda route: route.abort())
    page.goto(page.url.split("#")[0] + f"#/{NAME}/search")
    page.wait_for_selector("#text")
    page.fill("#text", "anything")
    page.click("button:has-text('Search')")
    expect(page.locator(".problem")).to_contain_text("No response from the service")


def test_keys_alone_are_enough(page: Any) -> None:
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type(texts()["c/0"])
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".match")
    page.locator(".match .id").first.press("Enter")
    page.wait_for_selector("h2:has-text('Neighbors')")
    expect(page.locator("#main")).to_be_focused()


def test_shared_words_are_named_and_fit_a_phone(
    tmp_path: Path, serve: Serve, open_page: OpenPage
) -> None:
    long = "incomprehensibilities counterrevolutionaries electroencephalographs otherwise"
    with la.open_collection(tmp_path / "words.db", NAME, purpose="search") as docs:
        docs.add(["long", "short"], [f"some {long} words", "otherwise not"])
    page = open_page(serve(tmp_path / "words.db"), viewport={"width": 360, "height": 700})
    page.wait_for_selector("#text")
    search(page, "otherwise not incomprehensibilities counterrevolutionaries")
    told = page.locator(".likeness > span").all_text_contents()
    assert [one.split("% · ")[1] for one in told] == [
        "shares the words otherwise, incomprehensibilities, counterrevolutionaries",
        "shares the words otherwise, not",
    ]
    assert page.locator(".match details").count() == 0  # there are no bits to show
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_phone_in_both_themes(
    theme: str, database: Path, serve: Serve, open_page: OpenPage
) -> None:
    page = open_page(serve(database), viewport={"width": 360, "height": 700}, color_scheme=theme)
    page.wait_for_selector("#text")
    search(page, texts()["a/0"])
    page.click("text=Show differences >> nth=1")
    page.wait_for_selector(".sides")
    for name in VIEWS:
        if name != "Search":
            view(page, name)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
    colors = [page.evaluate("getComputedStyle(document.documentElement).backgroundColor")]
    for _ in range(3):
        page.click("#theme")
        colors.append(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
    dark, light = "rgb(17, 21, 28)", "rgb(246, 247, 249)"
    own = dark if theme == "dark" else light
    assert colors == [own, light, dark, own]
