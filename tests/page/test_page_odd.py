"""The page where things are unusual: a slow service, ids that addresses do not take, no texts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

import lookalike as la
from page.conftest import NAME, Serve, texts
from support.running.waiting import wait_until
from support.services.endless_overviews import begun, gone

OpenPage = Callable[..., Any]
STRANGE = ["..", ".", "a\n", "a", "a\nb", "/", "%2F", "x?y#z", "\x1b[31m", "i" * 1000]


def slowly(route: Any) -> None:
    time.sleep(0.4)
    route.continue_()


def test_what_is_shown_stays_while_the_rest_is_waited_for(
    database: Path, serve: Serve, open_page: OpenPage
) -> None:
    page = open_page(serve(database))
    page.wait_for_selector("#text")
    page.route("**/query", slowly)
    page.route("**/groups?*", slowly)
    page.route("**/distances", slowly)
    here = page.url.split("#")[0]
    page.goto(f"{here}#/{NAME}/document/{quote('a/0', safe='')}")
    page.wait_for_selector(".match")
    expect(page.locator(".text")).to_have_text(texts()["a/0"])
    page.goto(f"{here}#/{NAME}/groups")
    page.wait_for_selector("section.card, main p:has-text('No two documents')")
    expect(page.locator("button:has-text('Show groups')")).to_have_count(1)
    page.goto(f"{here}#/{NAME}/health")
    page.wait_for_selector(".chart")
    expect(page.locator(".tile")).to_have_count(5)


def test_the_groups_are_those_of_the_last_radius(
    database: Path, serve: Serve, open_page: OpenPage
) -> None:
    page = open_page(serve(database))
    page.wait_for_selector("#text")
    held: list[Any] = []

    def hold(route: Any) -> None:
        if "radius=30" in route.request.url:
            route.continue_()
        else:
            held.append(route)

    page.route("**/groups?*", hold)
    page.goto(f"{page.url.split('#')[0]}#/{NAME}/groups")
    wait_until(lambda: held or page.wait_for_timeout(10))
    page.get_by_label("Radius (bits)").fill("30")
    page.click("text=Show groups")
    titles = page.locator("section.card h2")
    expect(titles).to_have_text(["6 documents", "4 documents", "3 documents"])
    for route in held:  # what was asked first is answered last
        route.continue_()
    page.wait_for_timeout(500)
    expect(titles).to_have_text(["6 documents", "4 documents", "3 documents"])


def test_what_nobody_looks_at_any_more_is_not_computed(
    database: Path, serve: Serve, open_page: OpenPage
) -> None:
    names = (
        "from lookalike.service import overviews; from support.services import endless_overviews"
    )
    page = open_page(serve(database, first=f"{names}; overviews._TASK = endless_overviews.TASK"))
    page.wait_for_selector("#text")
    page.click("nav >> text=Groups")
    wait_until(lambda: begun(database))
    page.get_by_label("Radius (bits)").fill("30")
    page.click("text=Show groups")
    wait_until(lambda: len(begun(database)) == 2)
    (first, usual), (second, other) = begun(database)
    assert (usual, other) == (128 // 14, 30)
    wait_until(lambda: gone(first))
    assert not gone(second)
    page.click("nav >> text=Upload")
    wait_until(lambda: gone(second))


def test_ids_that_addresses_do_not_take(tmp_path: Path, serve: Serve, open_page: OpenPage) -> None:
    path = tmp_path / "strange.db"
    with la.open_collection(path, NAME, signer=la.SimHash(bits=64), durable=False) as docs:
        docs.add(STRANGE, [f"the text of number {place}" for place in range(len(STRANGE))])
        found = [match.id for match in docs.search("the text of number", len(STRANGE))]
    page = open_page(serve(path), viewport={"width": 360, "height": 700})
    page.wait_for_selector("#text")
    page.fill("#text", "the text of number")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".match")).to_have_count(len(STRANGE))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    links = page.locator(".match .head .id").evaluate_all("all => all.map(one => one.href)")
    for link, id in zip(links, found, strict=True):
        page.goto(link)
        expect(page.locator(".text")).to_have_text(f"the text of number {STRANGE.index(id)}")
        page.wait_for_selector(".match")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_collection_of_signatures_alone(
    count: int, tmp_path: Path, serve: Serve, open_page: OpenPage
) -> None:
    path = tmp_path / "bare.db"
    with la.open_collection(path, NAME, bits=64, keep_text=False, durable=False) as docs:
        if count:
            docs.add(
                [f"n{place}" for place in range(count)],
                signatures=np.array([[place // 2] * 8 for place in range(count)], np.uint8),
            )
    page = open_page(serve(path))
    page.wait_for_selector("#text")
    page.fill("#text", "00" * 8)
    page.keyboard.press("Control+Enter")
    told = ["has no documents", "All 1 document", "All 3 documents"][(0, 1, 3).index(count)]
    page.wait_for_selector(f"text={told}")
    expect(page.locator(".match")).to_have_count(count)
    assert page.locator("text=Show differences").count() == 0
    here = page.url.split("#")[0]
    for view, ready in (
        ("groups", "section.card" if count > 1 else "text=No near-duplicates"),
        ("map", ".atlas circle" if count else "text=The collection is empty"),
        ("health", ".chart" if count > 1 else "text=at least two distinct signatures"),
    ):
        page.goto(f"{here}#/{NAME}/{view}")
        page.wait_for_selector(ready)
        assert page.locator("button:has-text('Differences')").count() == 0
    if count:
        page.goto(f"{here}#/{NAME}/document/n0")
        page.wait_for_selector("text=This collection does not store texts.")
        expect(page.locator(".match")).to_have_count(count - 1)


def test_a_collection_of_images_shows_them(
    tmp_path: Path, serve: Serve, open_page: OpenPage
) -> None:
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    for number, path in enumerate(paths):
        noise = np.random.default_rng(number).integers(0, 256, (90, 120), np.uint8)
        Image.fromarray(noise).resize((240, 180)).save(path)
    signer = la.ImageHash(bits=64)
    with la.open_collection(tmp_path / "photos.db", NAME, signer=signer, durable=False) as docs:
        pictures = [{"picture": la.images.thumbnail(path, 64)} for path in paths]
        docs.add([path.name for path in paths], [str(path) for path in paths], metadata=pictures)
    page = open_page(serve(tmp_path / "photos.db"))
    page.locator("#file").set_input_files(paths[1])
    page.wait_for_selector(".match")
    assert page.locator(".match .head .id").first.inner_text() == "1.png"
    picture = page.locator(".match img").first
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [64, 48]
    assert page.locator("text=Show differences").count() == 0
    assert "data:" not in page.inner_text("main")
    page.click(".match .id >> text=1.png")
    expect(page.locator("main img")).to_have_count(3)
    expect(page.locator("text=Show differences")).to_have_count(0)


def test_a_file_that_is_dropped_is_looked_for(
    database: Path, serve: Serve, open_page: OpenPage
) -> None:
    page = open_page(serve(database))
    page.wait_for_selector("#text")
    carried = page.evaluate_handle(
        "text => { const carried = new DataTransfer(); "
        "carried.items.add(new File([text], 'note.txt')); return carried; }",
        texts()["b/2"],
    )
    page.dispatch_event("form.drop", "dragenter", {"dataTransfer": carried})
    expect(page.locator("form.over")).to_have_count(1)
    page.dispatch_event("form.drop", "drop", {"dataTransfer": carried})
    page.wait_for_selector(".match")
    expect(page.locator("form.over")).to_have_count(0)
    expect(page.locator("#text")).to_have_value(texts()["b/2"])
    expect(page.locator(".match .head .id").first).to_have_text("b/2")
