"""Every figure on the page beside what is computed here from the documents themselves."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import lookalike as la
from page.conftest import NAME, services

OpenPage = Callable[..., Any]
Rows = dict[str, tuple[str, dict[str, Any]]]
BITS = 128
RADIUS = BITS // 14


def rows() -> Rows:
    """Documents with copies and near copies, and metadata of several kinds."""
    rng = np.random.default_rng(3)
    words = [f"w{number}" for number in range(300)]
    found: Rows = {}
    for family in range(8):
        text = rng.choice(words, 50).tolist()
        for copy in range(family + 1):
            changed = [*text[:copy], f"new{family}x{copy}", *text[copy + 1 :]] if copy % 3 else text
            metadata = {
                "suite": ("sid", "bookworm", "O'Neill, and sons")[copy % 3],
                "year": 2018 + family,
                "code": str(100 + copy),
                "free": copy % 2 == 0,
                "tags": ["news", f"t{family}"],
            }
            found[f"{family}/{copy}"] = (" ".join(changed), metadata)
    return found


@pytest.fixture(scope="module")
def documents() -> Rows:
    return rows()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, documents: Rows) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("figures")
    path = folder / "docs.db"
    with la.open_collection(path, NAME, signer=la.SimHash(bits=BITS), durable=False) as docs:
        docs.add(
            list(documents),
            [text for text, _ in documents.values()],
            metadata=[metadata for _, metadata in documents.values()],
        )
    odd = la.BBitMinHash(64)
    with la.open_collection(path, "odd", signer=odd, durable=False) as docs:
        docs.add(["wide", "wordless"], ["one two  three\nfour five six", "!!!"])
    with la.open_collection(path, "topical", signer=la.TopSig(512), durable=False) as docs:
        docs.add(list(documents), [text for text, _ in documents.values()])
    with services(folder) as start:
        yield start(path)


@pytest.fixture
def page(address: str, open_page: OpenPage) -> Any:
    opened = open_page(address)
    opened.wait_for_selector("#text")
    return opened


def signatures(documents: Rows) -> dict[str, bytes]:
    signed = la.SimHash(bits=BITS).sign([text for text, _ in documents.values()])
    return {id: row.tobytes() for id, row in zip(documents, signed, strict=True)}


def apart(left: bytes, right: bytes) -> int:
    return (int.from_bytes(left) ^ int.from_bytes(right)).bit_count()


def percent(share: float) -> str:
    """Return a share as the page writes it: one decimal below 10% and above 99%."""
    value = 100 * share
    return f"{value:.{1 if value < 10 or value > 99 else 0}f}".removesuffix(".0") + "%"


def cosine(left: str, right: str) -> float:
    one, two = Counter(left.split()), Counter(right.split())
    lengths = [math.sqrt(sum(n * n for n in counts.values())) for counts in (one, two)]
    return sum(n * two[word] for word, n in one.items()) / math.prod(lengths)


def runs(text: str, length: int = 5) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def search(page: Any, text: str, where: str = "", radius: str = "", k: str = "100") -> None:
    page.fill("#text", text)
    page.get_by_label("Results").fill(k)
    page.get_by_label("Radius (bits)").fill(radius)
    page.get_by_label("Filter by metadata").fill(where)
    with page.expect_response(re.compile("/query$")):
        page.click("button:has-text('Search')")


def shown_ids(page: Any) -> list[str]:
    found: list[str] = page.locator(".match .head .id").all_text_contents()
    return found


FILTERS: dict[str, Callable[[dict[str, Any]], bool]] = {
    'suite == "sid"': lambda m: m["suite"] == "sid",
    "suite = sid": lambda m: m["suite"] == "sid",
    "suite='sid'": lambda m: m["suite"] == "sid",
    "suite: sid": lambda m: m["suite"] == "sid",
    '"suite" == “sid”': lambda m: m["suite"] == "sid",
    "suite != sid": lambda m: m["suite"] != "sid",
    "suite <> 'sid' and year ≥ 2020": lambda m: m["suite"] != "sid" and m["year"] >= 2020,
    'suite = "O\'Neill, and sons"': lambda m: m["suite"] == "O'Neill, and sons",
    "suite starts with O'Neill": lambda m: m["suite"].startswith("O'Neill"),
    "suite in (sid, bookworm), year < 2022": lambda m: (
        m["suite"] in ("sid", "bookworm") and m["year"] < 2022
    ),
    'suite NOT IN ["sid", "O\'Neill, and sons"]': lambda m: m["suite"] == "bookworm",
    "year == 2020": lambda m: m["year"] == 2020,
    "year >= 2019 && year<2022": lambda m: 2019 <= m["year"] < 2022,
    "year = 2019, year = 2020": lambda m: False,
    "code = 101": lambda m: m["code"] == "101",
    "code != 101": lambda m: m["code"] != "101",
    "free = true": lambda m: m["free"],
    "free != true and tags has t3": lambda m: not m["free"] and "t3" in m["tags"],
    "tags contains news": lambda m: "news" in m["tags"],
    '{"or": [{"year": 2018}, {"year": 2019}]}': lambda m: m["year"] in (2018, 2019),
}


def test_filters_mean_what_people_type(page: Any, documents: Rows) -> None:
    for where, holds in FILTERS.items():
        search(page, documents["7/0"][0], where)
        expected = {id for id, (_, metadata) in documents.items() if holds(metadata)}
        if expected:
            expect(page.locator("main")).to_contain_text(
                f"All {len(expected)} document{'s' if len(expected) > 1 else ''} that match"
            )
        else:
            expect(page.locator("main")).to_contain_text("No document matches the filter")
        assert set(shown_ids(page)) == expected, where


def test_a_filter_that_cannot_be_read_is_answered_with_what_is_allowed(page: Any) -> None:
    page.fill("#text", "anything")
    unreadable = ["suite", "suite = ", "= sid", "suite = sid,", "suite sid", '{"suite"', "a b c",
                  'suite = "sid', "suite = sid or suite = bookworm"]  # fmt: skip
    for where in unreadable:
        page.get_by_label("Filter by metadata").fill("")
        page.click("button:has-text('Search')")
        page.wait_for_selector(".match", state="attached")
        page.get_by_label("Filter by metadata").fill(where)
        page.click("button:has-text('Search')")
        problem = page.locator(".problem")
        expect(problem).to_be_visible()
        expected = "use field in (a, b)" if " or " in where else "expected: field = value"
        assert expected in problem.inner_text(), where


def test_documents_no_nearer_than_chance_are_shown_on_demand(page: Any, documents: Rows) -> None:
    search(page, "quite other words that nobody else has")
    main = page.locator("main")
    expect(main).to_contain_text("No match: the nearest documents are as far away as random")
    expect(page.locator(".match").first).to_be_hidden()
    page.click("summary:has-text('Show the nearest documents anyway')")
    expect(page.locator(".match").first).to_be_visible()
    search(page, "quite other words that nobody else has", "year = 2018")  # chosen by the filter
    expect(main).to_contain_text("that match the filter")
    expect(page.locator(".match").first).to_be_visible()
    expect(main).to_contain_text("No match: the nearest documents")


def test_no_match_names_its_cause(page: Any, documents: Rows) -> None:
    text = documents["7/0"][0]
    main = page.locator("main")
    search(page, text, "suite = SID")
    expect(main).to_contain_text("No document matches the filter")
    expect(main).to_contain_text('suite = "sid"')  # an example of what is there
    assert "radius" not in page.inner_text("main")
    search(page, text, "year = 2018", radius="3")
    count = sum(metadata["year"] == 2018 for _, metadata in documents.values())
    expect(main).to_contain_text(f"{count} document matches the filter, but none is within 3 bits")
    search(page, "quite other words that nobody else has", radius="3")
    expect(main).to_contain_text("No document is within 3 bits. Try a larger radius")


def test_the_figures_of_matches(page: Any, documents: Rows) -> None:
    text = documents["6/1"][0] + " and more"
    signed = signatures(documents)
    query = la.SimHash(bits=BITS).sign([text])[0].tobytes()
    far = sorted((apart(query, signed[id]), id) for id in documents)
    for k, radius in (("10", ""), ("100", "30"), ("2", "30"), ("1", "")):
        wanted = [one for one in far if radius == "" or one[0] <= int(radius)][: int(k)]
        search(page, text, radius=radius, k=k)
        expect(page.locator(".match")).to_have_count(len(wanted))
        assert shown_ids(page) == [id for _, id in wanted]
        assert page.locator(".likeness > span").all_text_contents() == [
            percent(max(0.0, round(math.cos(math.pi * bits / BITS), 4))) for bits, _ in wanted
        ]
        assert page.locator(".match details p").all_text_contents() == [
            f"{bits} of {BITS} bits differ." for bits, _ in wanted
        ]
        told = page.inner_text("main")
        near = f" within {radius} bits" if radius else ""
        if len(wanted) < int(k):
            assert f"All {len(wanted)} documents{near} ·" in told
        else:
            which = "nearest document" if k == "1" else f"{k} nearest documents"
            assert f"The {which}{near} ·" in told
    assert "cosine similarity of words, estimated from signatures" in told


def test_few_words_are_ranked_by_their_own_bits(page: Any, documents: Rows) -> None:
    page.goto(page.url.replace(f"#/{NAME}", "#/topical"))
    page.wait_for_selector("text=topical: 36 documents")
    text = " ".join(documents["7/0"][0].split()[:3])
    search(page, text, k="5")
    page.wait_for_selector(".match")
    signer = la.TopSig(512)
    signed = signer.sign([words for words, _ in documents.values()])
    (query,), (mask,) = signer.sign([text], mask=True)
    all_bits = np.bitwise_count(signed ^ query).sum(axis=1)
    ranked = np.bitwise_count((signed ^ query) & mask).sum(axis=1)
    ones = np.bitwise_count(signed).sum(axis=1) + np.bitwise_count(query).sum()
    decided = ones + all_bits  # of a bit that one text alone decides, half are set
    every = zip(ranked.tolist(), all_bits.tolist(), documents, decided.tolist(), strict=True)
    best = sorted(every)[:5]  # by the ranking bits, then by all, then by id
    assert shown_ids(page) == [id for _, _, id, _ in best]
    # Few words decide few bits, and the similarity is that of these.
    assert all(bits < 512 - 4 * math.sqrt(512) for *_, bits in best)
    assert page.locator(".likeness > span").all_text_contents() == [
        percent(max(0.0, round(math.cos(math.pi * far / bits), 4))) for _, far, _, bits in best
    ]
    assert page.locator(".match details p").all_text_contents() == [
        f"{far} of 512 bits differ, {near} of those that rank the matches."
        for near, far, _, _ in best
    ]
    assert "ranked only by the bits that its words determine" in page.inner_text("main")


def test_differences_name_their_measures(page: Any, documents: Rows) -> None:
    text = documents["6/1"][0] + " and more"
    search(page, text, k="8")
    page.wait_for_selector(".match")
    signed = signatures(documents)
    query = la.SimHash(bits=BITS).sign([text])[0].tobytes()
    for place, id in enumerate(shown_ids(page)[:8:3]):
        row = page.locator(".match").nth(3 * place)
        row.locator("text=Show differences").click()
        row.locator(".measures").wait_for()
        other = documents[id][0]
        bits = apart(query, signed[id])
        one, two = runs(text), runs(other)
        assert row.locator(".measures li").all_text_contents() == [
            f"Cosine similarity of words: {percent(cosine(text, other))} exact, "
            f"{percent(max(0.0, math.cos(math.pi * bits / BITS)))} estimated from signatures "
            f"({bits} of {BITS} bits differ).",
            "Jaccard similarity of word 5-grams: "
            f"{percent(len(one & two) / len(one | two))} exact.",
            "Containment of word 5-grams: "
            f"{percent(len(one & two) / min(len(one), len(two)))} of those in the smaller text "
            "also occur in the other.",
            f"Words: {len(text.split())} in the first text, {len(other.split())} in the second.",
        ]
        # What the match says is what the comparison estimates.
        above = row.locator(".likeness > span").inner_text()
        assert above == percent(max(0.0, math.cos(math.pi * bits / BITS)))


def slow_groups(documents: Rows, radius: int) -> list[list[str]]:
    signed, free, found = signatures(documents), sorted(documents), []
    while free:
        near = [id for id in free if apart(signed[free[0]], signed[id]) <= radius]
        found.append(near)
        free = [id for id in free if id not in near]
    return sorted((one for one in found if len(one) > 1), key=len, reverse=True)


@pytest.mark.parametrize("radius", [0, RADIUS, 40])
def test_the_figures_of_groups(page: Any, documents: Rows, radius: int) -> None:
    page.click("nav >> text=Groups")
    page.get_by_label("Radius (bits)").fill(str(radius))
    page.click("text=Show groups")
    expected = slow_groups(documents, radius)
    signed = signatures(documents)
    expect(page.locator("section.card h2")).to_have_text(
        [f"{len(one)} documents" for one in expected]
    )
    count = sum(map(len, expected))
    assert f"{len(expected)} groups with {count} documents in all" in page.inner_text("main")
    for place, group in enumerate(expected):
        card = page.locator("section.card").nth(place)
        assert card.locator(".id").all_text_contents() == group
        far = [apart(signed[group[0]], signed[id]) for id in group[1:]]
        shown = card.locator("li > span.soft").all_text_contents()
        assert shown == [
            "same signature"
            if bits == 0
            else percent(max(0.0, round(math.cos(math.pi * bits / BITS), 6)))
            for bits in far
        ]
        told = card.locator("h2 + p").inner_text()
        largest = max(far)
        if largest == 0:
            assert told == "All documents have the same signature."
        else:
            least = percent(max(0.0, round(math.cos(math.pi * largest / BITS), 6)))
            assert told == f"At least {least} similar to the first document."
            assert card.locator("h2 + p + details p").text_content() == (
                f"Their signatures differ from the first in up to {largest} bits."
            )
        assert largest <= radius
    # The job of the same view says the same.
    page.click("text=Find all near-duplicates")
    duplicates = count - len(expected)
    summary = f"{duplicates} duplicates · {len(expected)} groups · 0 deleted"
    expect(page.locator("main")).to_contain_text(summary)
    page.click("summary:has-text('Results')")
    found = page.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert sorted(found) == sorted(
        [id, group[0], str(apart(signed[group[0]], signed[id]))]
        for group in expected
        for id in group[1:]
    )


def test_the_figures_of_health(page: Any, documents: Rows) -> None:
    page.click("nav >> text=Health")
    page.wait_for_selector(".chart")
    signed = signatures(documents)
    copies = Counter(signed.values())
    sharing = sum(count for count in copies.values() if count > 1)
    assert 1 - len(copies) / len(signed) != pytest.approx(sharing / len(signed))
    tiles = page.locator(".tile b").all_text_contents()
    assert tiles == [str(len(signed)), str(len(copies)), percent(sharing / len(signed)), "128", "1"]
    rows = sorted(copies)
    nearest = [min(apart(one, other) for other in rows if other != one) for one in rows]
    step = math.ceil((BITS + 1) / 64)
    counts = Counter(far // step for far in nearest)
    assert page.locator(".chart").first.locator("title").all_text_contents() == [
        f"{step * place} to {min(BITS, step * place + step - 1)} bits: {count} "
        f"({percent(count / len(nearest))})"
        for place, count in sorted(counts.items())
    ]
    assert f"for all {len(rows)} signatures" in page.inner_text("main")
    hints = page.locator(".chart").last.locator("title").all_text_contents()
    drawn = [int(hint.partition(": ")[2].split()[0].replace(",", "")) for hint in hints]
    assert f"for {sum(drawn):,} random pairs" in page.inner_text("main")
    # A label stands under the bar of its value.
    labels = (
        page.locator(".chart")
        .first.locator("text")
        .evaluate_all("all => all.map(one => [one.textContent, Number(one.getAttribute('x'))])")
    )
    bars = math.ceil((BITS + 1) / step)
    for text, x in labels[1:-1]:
        assert int(x * bars / 640) == int(text) // step


def test_the_figures_of_the_map(page: Any, documents: Rows) -> None:
    page.click("nav >> text=Map")
    page.wait_for_selector(".atlas circle")
    copies = Counter(signatures(documents).values())
    expect(page.locator(".dots circle")).to_have_count(len(copies))
    regions = page.locator(".atlas g[role=button]")
    told = page.inner_text("main")
    assert f"{len(copies)} signatures, in {regions.count()} regions." in told
    sizes = []
    for place in range(regions.count()):
        region = regions.nth(place)
        region.focus()
        page.keyboard.press("Enter")
        expect(region).to_have_attribute("aria-pressed", "true")
        match = re.search(r": (\d+) signatures?$", region.get_attribute("aria-label"))
        assert match is not None
        sizes.append(int(match[1]))
        text = page.locator(".atlas + div").inner_text()
        assert re.search(rf"\b{sizes[-1]} signatures?, ", text)
        assert page.locator(".atlas + div .id").count() == 1 + sizes[-1]
    assert sum(sizes) == len(copies)


def outline(page: Any) -> str:
    found: str = page.evaluate("getComputedStyle(document.querySelector('main')).outlineStyle")
    return found


def test_no_frame_around_the_page_and_keyboard_focus_is_visible(page: Any) -> None:
    page.keyboard.press("Control+Enter")  # the browser has seen a key
    for name in ("Groups", "Map", "Health", "Upload", "Search"):
        link = page.locator(f"nav >> text={name}")
        link.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(f"nav a[aria-current]:has-text('{name}')")
        assert outline(page) == "none", name
        page.click(f"nav >> text={name}")
        assert outline(page) == "none", name
    page.click("nav >> text=Health")
    page.wait_for_selector(".chart")
    expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("Shift+Tab")  # from the content back to the last control above it
    style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert page.evaluate("document.activeElement.id") == "theme" and style == "solid"


def test_the_link_that_skips_to_the_content(page: Any) -> None:
    before = page.url
    page.focus(".skip")
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    assert page.url == before
    expect(page.locator("#text")).to_be_visible()


def test_shares_are_not_rounded_to_nothing_or_everything(page: Any) -> None:
    shares = [0, 0.0004, 0.0005, 0.004, 0.0994, 0.5, 0.99, 0.9951, 0.9996, 1]
    shown = page.evaluate(
        "async shares => { const dom = await import('/page/dom.js'); "
        "return shares.map(dom.percent); }",
        shares,
    )
    expected = ["0%", "< 0.1%", "0.1%", "0.4%", "9.9%", "50%", "99%", "99.5%", "> 99.9%", "100%"]
    assert shown == expected


def test_texts_without_differences_or_without_features_say_so(page: Any) -> None:
    page.goto(page.url.replace(f"#/{NAME}", "#/odd"))
    page.wait_for_selector("text=odd: 2 documents")
    page.fill("#text", "one two three four five six")
    page.click("button:has-text('Search')")
    page.wait_for_selector(".match")
    texts = {}
    for place, id in enumerate(shown_ids(page)):
        row = page.locator(".match").nth(place)
        row.locator("text=Show differences").click()
        row.locator(".measures").wait_for()
        texts[id] = row.inner_text()
    assert "Only the white space differs" in texts["wide"]
    assert "Jaccard similarity of word 5-grams: 100% exact, 100% estimated" in texts["wide"]
    assert "Jaccard similarity of word 5-grams: not defined" in texts["wordless"]
    assert json.dumps(texts).count("0% exact") == texts["wide"].count("100% exact")
