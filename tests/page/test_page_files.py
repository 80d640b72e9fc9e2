"""Images, recordings, videos and passages on the page, in a real browser, wide and narrow."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import lookalike as la
from page.conftest import HOSTILE, Serve
from support.cases.media_files import SIGNERS, part, whole

OpenPage = Callable[..., Any]
MEDIA = list(SIGNERS)
TALE = " ".join(f"word{number}" for number in range(90))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a collection of each medium, and one of passages."""
    data = tmp_path / "data"
    data.mkdir()
    for medium in MEDIA:
        with la.open_collection(data / f"{medium}.db", medium, signer=SIGNERS[medium]) as docs:
            for number in range(3):
                docs.add_file(f"{number}", whole(medium, number), metadata={"n": number})
        (tmp_path / f"{medium}.part").write_bytes(part(medium, 1))
    signer = la.PassageHash(la.SimHash(64), words=12, step=4)
    with la.open_collection(data / "passages.db", "passages", signer=signer) as docs:
        docs.add(["tale", "other"], [TALE, "nothing of the kind " * 20])
    return data


@pytest.fixture(params=[1280, 390])
def opened(request: Any, folder: Path, serve: Serve, open_page: OpenPage) -> Any:
    page = open_page(serve(folder), viewport={"width": request.param, "height": 800})
    page.wait_for_selector("#file")
    return page


def go(page: Any, name: str, view: str = "search") -> None:
    page.evaluate(f"location.hash = '#/{name}/{view}'")
    page.wait_for_function(f"document.title.endsWith('{name} · lookalike')")


def fits(page: Any) -> None:
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"]


@pytest.mark.parametrize("medium", MEDIA)
def test_a_file_is_found_and_shown(opened: Any, medium: str, tmp_path: Path) -> None:
    go(opened, medium)
    opened.locator("#file").set_input_files(tmp_path / f"{medium}.part")
    first = opened.locator(".match").first
    expect(first.locator(".head .id")).to_have_text("1")
    expect(opened.locator(".card h2")).to_have_text(f"{medium}.part")
    tabs = opened.locator("nav a").all_text_contents()
    usual = ["Search", "Groups", "Map", "Health", "Upload"]
    assert tabs == (usual if medium == "images" else ["Search", "Health", "Upload"])
    if medium != "recordings":
        image = first.locator("img.picture")
        expect(image).to_be_visible()
        size = image.evaluate("image => image.decode().then(() => image.naturalWidth)")
        assert 100 < size <= 192
        expect(opened.locator(".card img.picture")).to_be_visible()  # of the query
    if medium != "images":
        drawn = first.locator("svg.wave" if medium == "recordings" else "svg.line")
        marked = drawn.locator(".hit").evaluate_all(
            "marks => marks.map(mark => [mark.x.baseVal.value, mark.width.baseVal.value])"
        )
        every = drawn.evaluate("drawing => drawing.viewBox.baseVal.width")
        begin, end = min(at for at, _ in marked), max(at + wide for at, wide in marked)
        length = 8 if medium == "recordings" else 7
        assert 3 / length - 0.1 < begin / every < end / every < 7 / length + 0.02
        # A query of a video has frames between those of the video, at most half a step away.
        expect(first.locator(".place")).to_contain_text(
            re.compile(r" s match, from 0:0(2\.[89]|3)")
        )
        box = drawn.bounding_box()
        assert box["width"] > 250 and box["height"] >= 10
    fits(opened)
    opened.get_by_label("Filter by metadata").fill("n = 2")
    opened.click("button:has-text('Search')")
    if medium == "images":
        expect(opened.locator(".match .head .id")).to_have_text(["2"])
    else:
        expect(opened.locator("main")).to_contain_text("that meets the filter matches")
    first_link = opened.locator("nav a").last
    first_link.click()
    opened.wait_for_selector("text=Add ")
    opened.go_back()  # the search is still there
    expect(opened.get_by_label("Filter by metadata")).to_have_value("n = 2")


def test_files_are_added_and_wrong_ones_named(opened: Any, tmp_path: Path) -> None:
    name = tmp_path / "<b>& new.png"
    name.write_bytes(whole("images", 5))
    go(opened, "images", "upload")
    opened.wait_for_selector("text=Add images")
    opened.locator("#file").set_input_files([name, tmp_path / "recordings.part"])
    opened.click("button:has-text('Upload')")
    problem = opened.locator(".problem")
    expect(problem).to_contain_text("the file is a recording, by its first bytes")
    expect(problem).to_contain_text("Wrong type of file")
    row = opened.locator(".match").first
    expect(row.locator("img.picture")).to_be_visible()
    fits(opened)
    row.locator("a.id").click()
    expect(opened.locator("h1")).to_have_text("<b>& new.png")
    expect(opened.locator(".preview figcaption").first).to_contain_text("PNG")
    expect(opened.locator(".match .head .id").first).to_be_visible()
    fits(opened)


def test_groups_of_images_are_shown_as_pictures(opened: Any, tmp_path: Path) -> None:
    go(opened, "images", "upload")
    opened.wait_for_selector("text=Add images")
    opened.locator("#file").set_input_files(tmp_path / "images.part")
    opened.click("button:has-text('Upload')")
    expect(opened.locator(".match a.id")).to_have_text("images.part")
    go(opened, "images", "groups")
    card = opened.locator("section.card")
    expect(card.locator("h2")).to_have_text(["2 documents"])
    expect(card.locator("img.picture")).to_have_count(2)
    fits(opened)


def test_a_dropped_file_is_searched_for(opened: Any) -> None:
    go(opened, "recordings")
    data = list(part("recordings", 1))
    opened.evaluate(
        """data => {
          const moved = new DataTransfer();
          moved.items.add(new File([new Uint8Array(data)], "snippet.ogg"));
          document.querySelector(".drop").dispatchEvent(
            new DragEvent("drop", { dataTransfer: moved, bubbles: true, cancelable: true }));
        }""",
        data,
    )
    expect(opened.locator(".match .head .id")).to_have_text(["1"])
    expect(opened.locator(".card svg.wave .hit").first).to_be_visible()


def test_a_passage_is_marked(opened: Any) -> None:
    go(opened, "passages")
    words = TALE.split()[20:50]
    opened.fill("#text", " ".join(words))
    opened.click("button:has-text('Search')")
    expect(opened.locator(".match .head .id")).to_have_text(["tale"])
    marked = opened.locator("mark").inner_text().split()
    assert set(marked) <= set(words) and len(marked) >= 24
    expect(opened.locator(".place")).to_contain_text("words match, from word 2")
    assert opened.get_by_label("Radius (bits)").count() == 0
    go(opened, "passages", "health")
    expect(opened.locator("main")).to_contain_text("PartIndex")
    fits(opened)


@pytest.mark.parametrize(
    "preview",
    [
        HOSTILE,
        {"picture": "data:text/html,<script>window.harmed=1</script>", "seconds": 4},
        {"picture": "data:image/svg+xml;base64,PHN2Zz4=", "format": HOSTILE},
        {"picture": "https://example.org/x.png", "waveform": "****", "seconds": 1e308},
        {"waveform": HOSTILE, "seconds": -1, "width": HOSTILE, "height": [1]},
        {"waveform": "AAAA", "seconds": "NaN"},
        [1, 2, {"a": None}],
    ],
)
def test_hostile_previews_do_nothing(
    preview: Any, tmp_path: Path, serve: Serve, open_page: OpenPage
) -> None:
    """Metadata is what clients sent. The page asks nobody else, which `open_page` checks."""
    with la.open_collection(tmp_path / "files.db", "recordings", signer=la.AudioHash()) as docs:
        docs.add_file(HOSTILE, whole("recordings", 1), metadata={"preview": preview})
    page = open_page(serve(tmp_path / "files.db"))
    file = {"name": HOSTILE, "mimeType": "audio/ogg", "buffer": part("recordings", 1)}
    page.locator("#file").set_input_files(file)
    expect(page.locator(".match")).to_have_count(1)
    assert page.locator(".match img").count() == 0
    assert page.evaluate("window.harmed") is None
