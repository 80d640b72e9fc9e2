"""Every figure of the reports beside what is computed here, slowly, from the texts themselves."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import lookalike as la
from lookalike.dedup.summary import size_text
from support.cases.report_pages import edited, page_of, text_of
from support.running.page_reader import Element


def corpus(seed: int = 0) -> list[dict[str, Any]]:
    """Return families in which copies of one text are near-duplicates of another, and others."""
    rng = random.Random(seed)
    texts = []
    for family in range(12):
        base = text_of(rng)
        near = [edited(rng, base, words) for words in range(1, 1 + family % 4)]
        texts += [base] * (1 + family % 2)
        for text in near:
            texts += [text] * rng.choice([1, 2, 3])
        texts.append(base.replace(" ", "\n", 1))  # the same words, another text
    rng.shuffle(texts)
    return [{"id": f"d{at}", "text": text} for at, text in enumerate(texts)]


def grams(text: str, length: int = 5) -> set[tuple[str, ...]]:
    words = text.lower().split()
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def jaccard(left: str, right: str) -> float:
    one, two = grams(left), grams(right)
    return len(one & two) / len(one | two)


def number(text: str) -> int:
    return int(text.replace(",", ""))


def shown_similarity(value: float) -> str:
    return "1" if value == 1 else f"{int(value * 10_000 + 1e-6) / 10_000:.4f}"


def tiles(page: Element) -> dict[str, str]:
    return {
        one.all("span", "name")[0].text: one.all("b")[0].text for one in page.all("div", "tile")
    }


def bands(page: Element) -> dict[str, int]:
    (card,) = page.all("dl", "bands")
    names, counts = card.all("dt"), card.all("dd")
    return {n.text: number(c.text) for n, c in zip(names, counts, strict=True)}


CASES: list[dict[str, Any]] = [
    {"threshold": 0.6},
    {"threshold": 0.6, "keep": "longest"},
    {"threshold": 0.6, "keep": "last"},
    {"threshold": 0.55, "grouping": "components"},
    {"threshold": 0.6, "keep": "none"},
    {"threshold": 0.6, "exact": True},
    {"threshold": 0.6, "verify": False},
    {"threshold": 0.6, "against": 15},
    {"threshold": 0.6, "against": 15, "exact": True},
    {"threshold": 1.0},
]


@pytest.mark.parametrize("case", CASES, ids=[str(case) for case in CASES])
def test_figures_of_a_corpus(case: dict[str, Any], tmp_path: Path) -> None:
    rows = corpus()
    settings = dict(case)
    old = rows[: settings.pop("against", 0)]
    new = rows[len(old) :]
    settings |= {"against": old} if old else {}
    result = la.dedup(new, text="text", id="id", **settings)
    page = page_of(result, tmp_path)
    texts, old_texts = [row["text"] for row in new], [row["text"] for row in old]
    keep, threshold = result.keep.tolist(), case["threshold"]
    dropped = [row for row in range(len(texts)) if not keep[row]]
    named = {
        row: texts[result.duplicate_of[row]]
        if result.duplicate_of[row] >= 0
        else old_texts[result.matched_old[row]]
        for row in dropped
    }
    similar = {row: jaccard(texts[row], named[row]) for row in dropped}
    estimated = {row for row in dropped if result.estimated[row]}
    seen, copies = Counter(old_texts), set()
    for row, text in enumerate(texts):
        if seen[text] or (case.get("keep") == "none" and texts.count(text) > 1):
            copies.add(row)
        seen[text] += 1
    exact = copies - estimated
    known = [similar[row] for row in dropped if row not in estimated]
    members = Counter(result.group_of.tolist())
    sizes = [size for size in members.values() if size > 1]
    all_bytes = sum(len(text.encode()) for text in texts)
    saved = sum(len(texts[row].encode()) for row in dropped)
    found = tiles(page)
    expected = {
        "documents": f"{len(texts)}",
        "kept": f"{sum(keep)}",
        "exact duplicates": f"{len(exact)}",
        "near-duplicates": f"{len(dropped) - len(exact) - len(estimated)}",
        "lowest similarity": shown_similarity(min(known)),
        "groups": f"{len(sizes)}",
        "saved": f"{saved / all_bytes:.1%}",
    }
    assert found | expected == found
    assert sum(keep) + len(exact) + number(found["near-duplicates"]) + len(estimated) == len(texts)
    if case.get("grouping") != "components" and not estimated:
        assert min(known) >= threshold
    assert re.search(rf"the largest has {max(sizes):,}\b", page.text)
    assert f"That saves {size_text(saved)} of {size_text(all_bytes)} of text." in page.text
    if "below threshold" in found:
        assert number(found["below threshold"]) == sum(one < threshold for one in similar.values())
    if old:
        assert number(found["in the old corpus"]) == int((result.matched_old >= 0).sum())

    # The bands, and how they agree with the exact duplicates.
    shown = bands(page)
    assert sum(shown.values()) == len(dropped)
    same = {row for row in dropped if texts[row] == named[row]}
    assert shown.pop("1, the same text") == len(same)
    if not estimated:
        others = sum(value == 1 for value in similar.values()) - len(same)
        assert shown.pop("1, another text, same features", 0) == others
        for name, count in shown.items():
            low, _, high = name.partition(" to ")
            if name.startswith("below"):
                low, high = "-1", name.split()[1]
            assert count == sum(float(low) <= one < float(high) for one in similar.values()), name
    elsewhere = len(exact) - len(same - estimated)
    assert elsewhere >= 0
    if case.get("keep") != "none":
        told = re.search(r"(\d+) exact duplicates? (?:is|are) equal to a dropped", page.text)
        assert (int(told[1]) if told else 0) == elsewhere
    if case == CASES[1]:
        assert elsewhere  # the corpus has such copies

    # The pictures count clusters and pairs.
    charts = page.all("svg")
    hints = [hint.text for hint in charts[0].all("title")]
    assert sum(number(hint.split()[0]) for hint in hints) == len(sizes)
    for hint in hints:
        least, _, most = hint.split()[3].partition("–")
        inside = [size for size in sizes if int(least) <= size <= int(most or least)]
        assert number(hint.split()[0]) == len(inside)
    assert f"{len(sizes)} groups with {sum(sizes)} documents" in page.text
    counts = Counter(texts)
    if case.get("exact"):
        all_counts = Counter(texts + old_texts)
        twice = {text: Counter(old_texts)[text] for text in all_counts}
        equal = sum(
            n * (n - 1) // 2 - twice[text] * (twice[text] - 1) // 2
            for text, n in all_counts.items()
        )
        everything = [*old_texts, *texts]
        pairs = sum(
            jaccard(everything[a], everything[b]) >= threshold
            for b in range(len(old), len(everything))
            for a in range(b)
        )
        assert number(found["pairs"]) == pairs
        assert f"All {pairs} pairs of documents at or above the threshold" in page.text
    else:
        equal = sum(seen.values()) - len(seen) - (len(old_texts) - len(set(old_texts)))
    without = re.search(r"Without (\d+) pairs? of equal texts", page.text)
    assert (int(without[1]) if without else 0) == equal
    assert counts  # there are texts

    # The list of all clusters.
    (listed,) = page.all("table", "every")
    for line in listed.all("tr")[1:]:
        told_of = [cell.text for cell in line.all("td")]
        gone = [int(one.text[1:]) - len(old) for one in line.all("td")[3].all("bdi")]
        label = result.group_of[gone[0]]
        assert number(told_of[0]) == members[label]
        if not estimated:
            assert told_of[1] == shown_similarity(min(similar[one] for one in gone))

    # Each shown member says how similar it is, and shows what differs.
    for card in page.part("groups").all("div", "card"):
        assert number(card.all("h3")[0].text.split()[0]) in sizes
        for line in card.all("tr")[1:]:
            cells = line.all("td")
            at = int(cells[1].all("bdi")[0].text[1:]) - len(old)
            if keep[at]:
                assert cells[0].text == "kept"
                continue
            if at not in estimated:
                assert cells[0].text == shown_similarity(similar[at])
            assert cells[2].text == size_text(len(texts[at].encode()))
            alone = not any(
                keep[one] for one in np.flatnonzero(result.group_of == result.group_of[at])
            )
            if not alone:
                assert cells[3].all("ins") or cells[3].all("del") or cells[3].all("em")

    # So do pairs near the threshold.
    for kind in ("accepted", "rejected"):
        section = page.by_id(kind)
        for card in section.all("div", "card") if section else []:
            left, right = (int(one.text[1:]) for one in card.all("bdi")[:2])
            value = jaccard(rows[left]["text"], rows[right]["text"])
            if not estimated:
                assert card.all("h3")[0].text == shown_similarity(value)
                assert (value >= threshold) is (kind == "accepted")
            assert card.all("ins") or card.all("del") or "the same words" in card.text


def test_members_show_late_and_missing_words(tmp_path: Path) -> None:
    words = [f"word{at}" for at in range(400)]
    texts = [
        " ".join(words),
        " ".join([*words[:390], *words[392:]]),  # words are missing, late
        " ".join([*words[:200], "new", *words[200:]]),
        " ".join(words).replace(" ", "  "),
        " ".join([*words, *(f"more{at}" for at in range(3))]),
    ]
    page = page_of(la.dedup(texts, threshold=0.5), tmp_path)
    (card,) = page.part("groups").all("div", "card")
    shown = {row.all("bdi")[0].text: row.all("td")[3] for row in card.all("tr")[1:]}
    assert [one.text for one in shown["1"].all("del")] == ["word390 word391"]
    assert [one.text for one in shown["2"].all("ins")] == ["new"]
    assert "only the spaces between them differ" in shown["3"].text
    assert [one.text for one in shown["4"].all("ins")] == ["more0 more1 more2"]
    for row in ("1", "2", "4"):  # the difference is at the beginning of what is shown
        (mark,) = shown[row].all("ins") or shown[row].all("del")
        assert shown[row].text.index(mark.text) < 40


@pytest.mark.parametrize("keep", ["first", "last", "none", "max:size"])
@pytest.mark.parametrize("grouping", ["star", "components"])
def test_exact_duplicates_of_vectors_do_not_depend_on_the_threshold(
    keep: str, grouping: str
) -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(size=(20, 8)).astype(np.float32)
    near = base + rng.normal(scale=0.2, size=base.shape).astype(np.float32)
    rows = np.concatenate([base, near, base[:6], base[:3], near[:9]])
    rows = rows[rng.permutation(len(rows))]
    table = pa.table({"v": rows.tolist(), "size": rng.permutation(len(rows)).tolist()})
    classes = Counter(row.tobytes() for row in rows)
    expected = sum(n if keep == "none" else n - 1 for n in classes.values() if n > 1)
    for threshold in (0.3, 0.7, 0.9, 0.99, 1.0):
        result = la.dedup(
            table,
            kind="vectors",
            vectors="v",
            threshold=threshold,
            keep=keep,
            grouping=grouping,
            exact=True,
        )
        counts, keeps = result.counts, result.keep
        assert counts.exact_duplicates == expected, threshold
        dropped = int((~keeps).sum())
        assert (counts.kept, counts.near_duplicates) == (len(rows) - dropped, dropped - expected)
        assert counts.near_duplicates >= 0
        cosines = [
            float(rows[a] @ rows[b] / np.linalg.norm(rows[a]) / np.linalg.norm(rows[b]))
            for a, b in enumerate(result.duplicate_of.tolist())
            if b >= 0
        ]
        assert counts.lowest_similarity == pytest.approx(min(cosines), abs=1e-5)
        sizes = [size for size in Counter(result.group_of.tolist()).values() if size > 1]
        assert (counts.groups, counts.largest_group) == (len(sizes), max(sizes))
        lines = dict(re.findall(r"^  (\w[\w -]*?)  +([\d,.]+)  ", result.summary(), re.MULTILINE))
        assert number(lines["exact duplicates"]) == expected
        assert number(lines["near-duplicates"]) == dropped - expected


def test_figures_of_images(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for at in range(5):
        noise = np.random.default_rng(at).integers(0, 256, (9, 12), np.uint8)
        image = Image.fromarray(noise).resize((120, 90))
        image.save(folder / f"{at}.png")
        if at < 4:
            image.resize((60, 45)).save(folder / f"{at} small.png")
        for copy in range(at % 3):
            image.save(folder / f"{at} copy {copy}.png")
    (folder / "note.txt").write_text("no image")
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    result = la.dedup(folder)
    page = page_of(result, tmp_path)
    files = [path for path in sorted(folder.iterdir()) if path.suffix == ".png"]
    files.remove(folder / "broken.png")
    distinct = {path.read_bytes() for path in files}
    sizes = {path.name: path.stat().st_size for path in files}
    kept = {path.name for path in result.kept()}
    saved, whole = sum(sizes[name] for name in sizes.keys() - kept), sum(sizes.values())
    groups = Counter(result.group_of.tolist())
    found = tiles(page)
    assert found == {
        "images": f"{len(files)}",
        "exact duplicates": f"{len(files) - len(distinct)}",
        "near-duplicates": f"{len(distinct) - len(kept)}",
        "kept": f"{len(kept)}",
        "groups": f"{sum(size > 1 for size in groups.values())}",
        "saved": f"{saved / whole:.1%}",
        "left out": "1",
        "other files": "1",
    }
    gone = len(files) - len(kept)
    said = f"Of {len(files)} images, {len(kept)} are kept: {gone} images could be deleted"
    assert f"{said}, which saves {size_text(saved)} of {size_text(whole)}." in page.text
    signer = la.ImageHash(bits=256)
    bits = dict(zip(sizes, signer.sign([folder / name for name in sizes]), strict=True))
    for card in page.part("groups").all("div", "card"):
        parts = {one.all("bdi")[0].text: one for one in card.all("div", "file")}
        assert number(card.all("h3")[0].text.split()[0]) == len(parts)
        (stays,) = parts.keys() & kept
        for name, part in parts.items():
            badge = part.all("span", "badge")[0].text
            far = int(np.bitwise_count(bits[name] ^ bits[stays]).sum())
            if name == stays:
                assert badge == "kept"
            elif (folder / name).read_bytes() == (folder / stays).read_bytes():
                assert badge == "the same file"
            else:
                assert badge == f"{far} of 256 bits differ{'s' if far == 1 else ''}"
            assert size_text(sizes[name]) in part.text
