"""The page of a job: well-formed, harmless, of bounded size, and its numbers are the result's."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.dedup.report import groups as samples
from lookalike.dedup.report.figures import (
    chance_of_bits,
    proposal_chance,
    similarity_bins,
    similarity_of_chance,
)
from lookalike.dedup.report.groups import (
    SCRIPT,
    largest_groups,
    least_similar,
    most_similar_rejected,
)
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import FileError
from lookalike.report.markup import compact, escape_html
from support.cases.report_pages import VOCABULARY, corpus, edited, page_of, text_of
from support.running.page_reader import Element


def tiles(page: Element) -> dict[str, str]:
    return {tile.all("span")[0].text: tile.all("b")[0].text for tile in page.all("div", "tile")}


def settings_of(page: Element) -> dict[str, str]:
    (listed,) = page.all("dl", "settings")
    names, values = listed.all("dt"), listed.all("dd")
    return {n.text: v.text for n, v in zip(names, values, strict=True)}


def test_numbers_are_those_of_the_result(tmp_path: Path) -> None:
    result = la.dedup(corpus(), threshold=0.7, permutations=256)
    counts = result.counts
    assert counts.exact_duplicates and counts.near_duplicates and len(result.rejected)
    assert counts.compared_pairs < counts.proposed_pairs
    page = page_of(result, tmp_path)
    assert tiles(page) == {
        "documents": f"{counts.documents:,}",
        "kept": f"{counts.kept:,}",
        "exact duplicates": f"{counts.exact_duplicates:,}",
        "near-duplicates": f"{counts.near_duplicates:,}",
        "lowest similarity": f"{int(10_000 * np.nanmin(result.similarity)) / 10_000:.4f}",
        "groups": f"{counts.groups:,}",
        "compared pairs": f"{counts.compared_pairs:,}",
        "saved": f"{(counts.bytes_saved or 0) / counts.bytes:.1%}",
    }
    assert f"Of {counts.documents:,} documents, {counts.kept:,} are kept" in page.text
    assert "Every dropped document was compared with a kept one, and is at least" in page.text
    assert settings_of(page) == {
        "purpose": "duplicates", "method": "minhash", "threshold": "0.7", "ngram": "5",
        "permutations": "256", "seed": "0",
        "verify": "yes", "min_features": "1", "grouping": "star",
        "keep": "first", "exact": "no", "features": "words", "measure": "jaccard",
        "features chosen because": "0% of the documents have at most 120 characters",
        "text column": "text", "ids": "id",
    }  # fmt: skip
    (timing,) = page.all("table", "timing")
    rows = [[cell.text for cell in row.all("td")] for row in timing.all("tr")[1:]]
    assert [row[0] for row in rows] == [*result.seconds, "all"]
    assert [row[1] for row in rows[:-1]] == [f"{value:.2f}" for value in result.seconds.values()]
    equal = counts.verified_pairs - len(result.different_pairs)
    assert (
        f"{counts.proposed_pairs:,} pairs of different texts proposed, {counts.compared_pairs:,} "
        f"compared, {len(result.different_pairs):,} accepted. Beside these: {equal:,} pairs of "
        "equal texts."
    ) in page.text
    assert not page.all("div", "warning")
    widths = [
        float((bar.attributes["style"] or "")[6:-1])
        for bar in page.all("div", "shares")[0].all("span")
    ]
    parts = [counts.kept, counts.near_duplicates, counts.exact_duplicates]
    assert sum(parts) == counts.documents
    assert widths == pytest.approx([100 * part / counts.documents for part in parts], abs=1e-3)


def test_settings_without_an_effect_are_not_listed(tmp_path: Path) -> None:
    grouped = settings_of(page_of(la.dedup(corpus(), grouping="components"), tmp_path))
    assert grouped["max_group"] == "1,000" and "direction" not in grouped
    within = settings_of(page_of(la.dedup(corpus(), measure="containment"), tmp_path))
    assert within["direction"] == "contained" and "max_group" not in within


def test_charts_count_every_group_and_every_pair(tmp_path: Path) -> None:
    result = la.dedup(corpus(1), threshold=0.7)
    page = page_of(result, tmp_path)
    sizes, similarities, _ = page.all("svg")
    hints = [title.text for title in sizes.all("title")]
    assert sum(int(hint.split()[0].replace(",", "")) for hint in hints) == result.counts.groups
    found = {"accepted": 0, "rejected": 0}
    for bar in similarities.all("rect"):
        count, kind = bar.all("title")[0].text.split()[:2]
        assert bar.classes == [kind]
        found[kind] += int(count.replace(",", ""))
    different = len(result.pairs) - result.counts.exact_duplicates
    assert found == {"accepted": different, "rejected": len(result.rejected)}
    assert f"{different:,} accepted pairs" in page.text
    assert f"Without {result.counts.exact_duplicates:,} pairs of equal texts" in page.text


@given(
    st.lists(st.floats(0, 1), max_size=30),
    st.one_of(st.sampled_from([0.5, 0.7, 0.8, 0.85, 1.0]), st.floats(0.01, 1)),
)
def test_bins_hold_what_lies_in_them(values: list[float], threshold: float) -> None:
    numbers = np.array(values)
    accepted, rejected = numbers[numbers >= threshold], numbers[numbers < threshold]
    bins = similarity_bins(accepted, rejected, threshold)
    assert bins.accepted.sum() == len(accepted)
    assert bins.rejected.sum() == len(rejected)
    assert len(bins.accepted) + len(bins.rejected) <= 53
    for place, count in enumerate(bins.accepted.tolist()):
        begin = threshold + place * bins.width
        inside = (accepted > begin - 1e-6) & (accepted < begin + bins.width + 1e-6)
        assert count <= inside.sum()
    for place, count in enumerate(bins.rejected.tolist()):
        end = threshold - place * bins.width
        inside = (rejected < end + 1e-6) & (rejected > end - bins.width - 1e-6)
        assert count <= inside.sum()


def test_marks_are_the_changed_words_of_the_pairs(tmp_path: Path) -> None:
    rng = random.Random(5)
    text = text_of(rng, 80)
    words = text.split()
    words[11], words[50] = "<first>", 'second"&'
    other = text_of(rng, 80).split()
    missed = other.copy()
    for place in (5, 35, 65):
        missed[place] = f"miss{place}"
    texts = [text, " ".join(words), " ".join(other), " ".join(missed)]
    page = page_of(la.dedup(texts, threshold=0.7, permutations=512), tmp_path)
    accepted, rejected = page.by_id("accepted"), page.by_id("rejected")
    assert accepted is not None and rejected is not None
    assert [mark.text for mark in accepted.all("ins")] == ["<first>", 'second"&']
    assert [mark.text for mark in accepted.all("del")] == [text.split()[11], text.split()[50]]
    assert [side.text for side in accepted.all("div", "side")] == [text, " ".join(words)]
    places = (5, 35, 65)
    assert [mark.text for mark in rejected.all("ins")] == [f"miss{place}" for place in places]
    assert [mark.text for mark in rejected.all("del")] == [other[place] for place in places]


def test_pairs_are_those_nearest_to_the_threshold(tmp_path: Path) -> None:
    result = la.dedup(corpus(2), threshold=0.6, permutations=256)
    assert isinstance(result, la.results.TextResult)
    accepted, rejected = least_similar(result, 1000), most_similar_rejected(result, 1000)
    assert [p.similarity for p in accepted] == sorted(p.similarity for p in accepted)
    assert [p.similarity for p in rejected] == sorted(p.similarity for p in rejected)[::-1]
    assert accepted[0].similarity == result.pairs.similarity.min() >= 0.6
    assert rejected[0].similarity == result.rejected.similarity.max() < 0.6
    groups = [int(result.group_of[pair.left]) for pair in accepted]
    assert max(groups.count(label) for label in groups) == 2
    page = page_of(result, tmp_path)
    for name, pairs in (("accepted", accepted), ("rejected", rejected)):
        section = page.by_id(name)
        assert section is not None
        heads = [title.text for title in section.all("h3")]
        assert heads == [f"{int(p.similarity * 10_000) / 10_000:.4f}" for p in pairs[:10]]
        ids = [one.text for one in section.all("bdi", "id")]
        assert ids == [str(result.id(row)) for p in pairs[:10] for row in (p.left, p.right)]


def test_the_choice_of_pairs_does_not_depend_on_how_many_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = la.dedup(corpus(3, originals=200), threshold=0.6)
    assert isinstance(result, la.results.TextResult)
    expected = least_similar(result, 5)
    monkeypatch.setattr(samples, "_CONSIDERED", 20)
    assert least_similar(result, 5) == expected


def test_largest_groups_show_who_stays_and_the_spread_of_the_others(tmp_path: Path) -> None:
    result = la.dedup(corpus(4), threshold=0.6, keep="last")
    assert isinstance(result, la.results.TextResult)
    groups = largest_groups(result)
    sizes = np.bincount(result.group_of)
    assert [group.size for group in groups] == sorted(sizes[sizes > 1].tolist())[::-1][:12]
    page = page_of(result, tmp_path)
    tables = page.all("table", "members")
    assert len(tables) == len(groups)
    for group, table in zip(groups, tables, strict=True):
        (stays,) = group.kept
        rows = [[cell.text for cell in row.all("td")] for row in table.all("tr")[1:]]
        assert [row[1] for row in rows] == [f"doc-{row}" for row in [stays, *group.others]]
        assert rows[0][0] == "kept"
        similarities = result.similarity[group.others]
        assert (np.diff(similarities) >= 0).all()
        members = np.flatnonzero((result.group_of == result.group_of[stays]) & ~result.keep)
        assert similarities[0] == result.similarity[members].min() == group.least
        for row, member in zip(rows[1:], group.others, strict=True):
            same = result.text(member) == result.text(stays)
            assert (row[3] == "the same text") == same


HOSTILE = [
    "<script>alert(1)</script>",
    "</style></title></div></table></svg></body>",
    "<!-- ",
    "]]>",
    "&lt;b&gt; &amp;",
    "\" onmouseover='x' '",
    "\x00\x01\x1b[31m\x7f\x85",
    "\u202eevil\u2066\u202a",
    "a" * 5000,
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "\U000e0041\ufeff\uffff",
    "e" + "\u0301" * 500,
]


def test_hostile_texts_and_ids_are_nothing_but_text(tmp_path: Path) -> None:
    common = " ".join(VOCABULARY[:60])
    rows = [
        {"id": f"{bad}{number}", "text": f"{bad} {common} {bad} {number}", "<i>": number}
        for bad in HOSTILE
        for number in range(3)
    ]
    result = la.dedup(rows, threshold=0.5, text="text", keep="max:<i>")
    result.warnings.append("<script>alert('warning')</script>")
    result.documents.examples.append("<b>broken</b> \x00")
    page = page_of(result, tmp_path)  # the reader refuses unknown elements and attributes
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count("<script") == 1 and "<img" not in text and "<!--" not in text
    assert [script.text for script in page.all("script")] == [SCRIPT]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\uffff]", text)
    assert "Warning: <script>alert('warning')</script>" in page.all("div", "warning")[0].text
    assert "<b>broken</b> \u2400" in page.text
    assert "<script>alert(1)</script>" in page.text
    assert settings_of(page)["keep"] == "max:<i>"
    assert len(text) < 400_000


@settings(max_examples=200)
@given(st.text(st.characters(blacklist_categories=())))
def test_shown_text_has_no_markup_and_can_be_written(text: str) -> None:
    found = escape_html(text)
    found.encode()
    assert not set("<>\"'\x00\r\u202e") & set(found)
    assert "&" not in re.sub(r"&(amp|lt|gt|quot|#x27);", "", found)


@pytest.mark.parametrize(
    "source, says",
    [
        ([], "There are no documents in it."),
        (["only one"], "The only document is kept."),
        ([""], "The only document is kept."),
        (["one text here", "and another there"], "All 2 documents are kept"),
        (["the same text for all"] * 3000, "Of 3,000 documents, 1 is kept ("),
        (["the same text"] * 2, "the other one is shown"),
    ],
)
def test_plain_corpora_give_plain_pages(source: list[str], says: str, tmp_path: Path) -> None:
    result = la.dedup(source)
    page = page_of(result, tmp_path)
    assert says in page.text
    assert page.by_id("accepted") is None and page.by_id("rejected") is None
    assert (page.by_id("groups") is None) == (result.counts.groups == 0)
    assert tiles(page)["documents"] == f"{len(source):,}"


def old_and_new() -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    rng = random.Random(9)
    old = [{"id": f"old<{row}>", "text": text_of(rng)} for row in range(30)]
    new = [
        {"id": f"new<{row}>", "text": edited(rng, old[row]["text"], row % 3)} for row in range(9)
    ]
    return old, new + [{"id": f"own{row}", "text": text_of(rng)} for row in range(5)]


def test_matches_with_an_old_corpus_are_shown(tmp_path: Path) -> None:
    old, new = old_and_new()
    result = la.dedup(new, against=old, threshold=0.6)
    assert result.counts.in_old == 9
    page = page_of(result, tmp_path)
    assert tiles(page)["in the old corpus"] == "9"
    assert settings_of(page)["old documents"] == "30"
    section = page.by_id("old")
    assert section is not None
    assert "9 documents dropped because of one of the 30 old ones" in section.text
    ids = [one.text for one in section.all("bdi", "id")]
    assert sorted(zip(ids[::2], ids[1::2], strict=True)) == [
        (f"old<{row}>", f"new<{row}>") for row in range(9)
    ]
    changed = [len(card.all("ins")) for card in section.all("div", "card")]
    assert changed == [2, 2, 2, 1, 1, 1, 0, 0, 0]


def test_of_old_documents_known_by_signature_that_is_said(tmp_path: Path) -> None:
    old, new = old_and_new()
    la.dedup(old, save_signatures=tmp_path / "old.lookalike")
    result = la.dedup(new, against=tmp_path / "old.lookalike", threshold=0.6)
    page = page_of(result, tmp_path)
    section = page.by_id("old")
    assert section is not None and result.counts.in_old == 9
    assert section.text.count("Only the signature of the old document is known") == 9
    assert all(title.text.startswith("≈ ") for title in section.all("h3"))
    assert not section.all("ins") and "old<3>" in section.text
    assert "9 pairs accepted by signatures alone" in page.all("div", "warning")[0].text
    found = tiles(page)
    assert (found["estimated"], found["near-duplicates"]) == ("9", "0")
    assert "lowest estimate" in found and "lowest similarity" not in found


def test_an_old_corpus_without_matches(tmp_path: Path) -> None:
    old, new = old_and_new()
    page = page_of(la.dedup(new[9:], against=old), tmp_path)
    section = page.by_id("old")
    assert section is not None and "No document is similar to one of the 30" in section.text


def test_without_verification_similarities_are_said_to_be_estimates(tmp_path: Path) -> None:
    result = la.dedup(corpus(5), threshold=0.7, verify=False)
    page = page_of(result, tmp_path)
    assert "Similarities are estimates" in page.all("div", "warning")[0].text
    section = page.by_id("accepted")
    assert section is not None
    assert all(title.text.startswith("≈ ") for title in section.all("h3"))


def test_chains_are_pointed_out(tmp_path: Path) -> None:
    chain = [" ".join(VOCABULARY[row * 3 : row * 3 + 60]) for row in range(20)]
    joined = la.dedup(chain, threshold=0.7, grouping="components")
    page = page_of(joined, tmp_path)
    groups = page.by_id("groups")
    assert groups is not None
    (head,) = groups.all("div", "head")
    assert "below the threshold: connected by others" in head.text
    assert tiles(page)["below threshold"] == str(int((joined.similarity < 0.7).sum()))
    assert "may not be similar to the kept one" in page.text
    assert "connected by pairs of exact jaccard" in page.text
    rejected = page.by_id("rejected")
    assert rejected is not None and "in the same group, connected by others" in rejected.text
    split = la.dedup(chain, threshold=0.7, grouping="components", max_group=5)
    assert split.warnings
    warning = page_of(split, tmp_path).all("div", "warning")
    assert split.warnings[0] in warning[0].text


@pytest.mark.parametrize("method", ["simhash", "topsig"])
def test_other_methods(method: str, tmp_path: Path) -> None:
    result = la.dedup(corpus(6), method=method)
    page = page_of(result, tmp_path)
    assert "permutations" not in settings_of(page)
    assert settings_of(page)["bits"] == f"{result.settings.bits:,}"
    assert "bits differ" in page.text and "cosine of word" in page.text


@pytest.mark.parametrize(
    "options, missed",
    [
        ({}, ""),
        ({"method": "simhash"}, ""),
        ({"method": "simhash", "radius": 10}, "a larger radius would find more"),
        ({"permutations": 2, "threshold": 0.3}, "more permutations would find more"),
    ],
)
def test_settings_that_miss_pairs_are_pointed_out(
    options: dict[str, Any], missed: str, tmp_path: Path
) -> None:
    page = page_of(la.dedup(["one", "two"], **options), tmp_path)
    found = page.by_id("found")
    assert found is not None
    assert missed in found.text
    assert ("often missed" in found.text) == bool(missed)


def test_same_result_same_page(tmp_path: Path) -> None:
    result = la.dedup(corpus(7))
    other = la.dedup(corpus(7), threads=1)
    other = replace(other, seconds=result.seconds, overlapped=result.overlapped, made=result.made)
    for number, one in enumerate([result, result, other]):
        one.report(tmp_path / f"{number}.html")
    pages = {(tmp_path / f"{number}.html").read_bytes() for number in range(3)}
    assert len(pages) == 1


def test_size_is_bounded(tmp_path: Path) -> None:
    rng = random.Random(8)
    texts = []
    for _ in range(40):
        text = text_of(rng, 20_000)
        texts += [edited(rng, text, 100 * part) for part in range(1, 12)]
    result = la.dedup(texts, threshold=0.8)
    assert result.counts.groups >= 12 and len(result.pairs) > 20
    result = replace(result, warnings=["much to warn of"] * 1000)
    page = page_of(result, tmp_path)
    assert (tmp_path / "report.html").stat().st_size < 600_000
    assert "950 more warnings" in page.text


def test_a_page_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = la.dedup(["one text", "another text"])
    target = tmp_path / "report.html"
    target.write_text("before")

    def full(*arguments: Any, **options: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(FileError, match="No space left"):
        result.report(target)
    assert target.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("bits, radius", [(64, 10), (64, 0), (8, 3), (1024, 150), (16, 16)])
@pytest.mark.parametrize("measure", ["cosine", "jaccard"])
def test_chance_of_bits_is_that_of_signatures(measure: str, bits: int, radius: int) -> None:
    """The chance follows the measure of the signer, whichever that is."""
    similarity = np.array([0.0, 0.3, 0.7, 0.9, 0.99, 1.0])
    signer: la.Signer = la.SimHash(bits)
    rate = np.arccos(similarity) / np.pi
    if measure == "jaccard":
        signer, rate = la.BBitMinHash(permutations=bits, b=1), (1 - similarity) / 2
    assert signer.measure == measure
    found = chance_of_bits(signer, radius, similarity)
    assert (np.diff(found) >= -1e-9).all() and found[-1] == 1
    rng = np.random.default_rng(0)
    differ = rng.binomial(bits, rate[:, None], (len(rate), 40_000))
    assert found == pytest.approx((differ <= radius).mean(axis=1), abs=0.015)


def test_the_curve_is_that_of_the_bands() -> None:
    chance, words = proposal_chance(la.dedup([]).settings, 0)
    bands, rows = map(int, re.findall(r"(\d+) (?:bands|MinHash)", words))
    assert chance(np.array([0.6]))[0] == pytest.approx(1 - (1 - 0.6**rows) ** bands)
    half = similarity_of_chance(chance, 0.5)
    assert chance(np.array([half]))[0] == pytest.approx(0.5)


def test_counts_in_little_room() -> None:
    numbers = [0, 9_999, 10_000, 12_345, 999_499, 1_000_000, 2_500_000, 3_000_000_000]
    assert [compact(number) for number in numbers] == [
        "0", "9,999", "10k", "12.3k", "999k", "1M", "2.5M", "3,000M",
    ]  # fmt: skip


def test_the_curve_of_containment_is_that_of_samples(tmp_path: Path) -> None:
    """As drawing with replacement has it; the real draws are surer."""
    settings = DedupSettings(measure="containment", threshold=0.5)
    chance, words = proposal_chance(settings, 10**9)
    at = np.array([0.0, 0.25, 0.5, 0.9, 1.0])
    least = next(int(word) for word in words.split("one that has ")[1].split())
    draws = np.random.default_rng(1).random((100_000, 64, 1)) < at
    assert chance(at) == pytest.approx((draws.sum(axis=1) >= least).mean(axis=0), abs=0.01)
    assert chance(at)[2] > 0.999
    result = la.dedup(["one two three", "zero one two three four"], measure="containment", ngram=1)
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "containment of words" in page and "features of each document are looked up" in page
