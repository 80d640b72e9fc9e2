"""Passages that documents have in common are all found, and are what they are said to be."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.common_passages.finding import piece_words
from lookalike.common_passages.results import word_places
from lookalike.compare.diff import word_spans
from lookalike.errors import ArgumentError
from support.oracles.passages import overlaps_of, runs_between, words_of

few_words = st.sampled_from(["a", "b", "c", "d"])
some_texts = st.lists(st.lists(few_words, max_size=25).map(" ".join), max_size=4)


def told(found: la.results.Overlaps) -> list[tuple[int, int, list[tuple[int, int, int]]]]:
    return [(one.left_row, one.right_row, one.runs) for one in found]


def in_order(found: Any) -> list[Any]:
    return sorted(found, key=lambda one: (one[0], one[1], one[2]))


@given(some_texts, st.integers(1, 12), st.integers(0, 4))
@settings(max_examples=120, deadline=None)
@example(["a b c d a b", "x a b c d a b c d y"], 5, 2)
def test_every_passage_is_found_and_no_other(texts: list[str], min_words: int, gap: int) -> None:
    """Of texts of four words, so that everything is everywhere."""
    found = la.overlaps(texts, min_words=min_words, gap=gap, common=10**6)
    piece = piece_words(min_words, gap)
    expected = overlaps_of(texts, piece=piece, gap=gap, min_words=min_words)
    assert in_order(told(found)) == in_order(expected)
    assert found.common_windows == 0


@given(some_texts, st.integers(1, 12), st.integers(0, 4))
@settings(max_examples=120, deadline=None)
@example(["a b c a b", "a b x a b", "a b"], 2, 0)  # a passage that is in several places
def test_pairs_count_each_word_once(texts: list[str], min_words: int, gap: int) -> None:
    found = la.overlaps(texts, min_words=min_words, gap=gap, common=10**6)
    piece = piece_words(min_words, gap)
    places: dict[tuple[int, int], tuple[set[int], set[int], list[Any]]] = {}
    for one, other, runs in overlaps_of(texts, piece=piece, gap=gap, min_words=min_words):
        left, right, passages = places.setdefault((one, other), (set(), set(), []))
        passages.append(runs)
        for a, b, length in runs:
            left.update(range(a, a + length))
            right.update(range(b, b + length))
    lengths = [len(words_of(text)) for text in texts]
    expected = [
        (one, other, min(len(left), len(right)), len(left) / lengths[one],
         len(right) / lengths[other], len(passages))
        for (one, other), (left, right, passages) in places.items()
    ]  # fmt: skip
    expected.sort(key=lambda row: (-max(row[3:5]), -row[2], row[:2]))
    pairs = found.by_pair()
    assert [
        (one.left_row, one.right_row, one.words, one.left_share, one.right_share, one.passages)
        for one in pairs
    ] == expected
    assert [(one.left, one.right) for one in pairs] == [(str(a), str(b)) for a, b, *_ in expected]
    assert len(pairs) == found.pairs == pairs.to_arrow().num_rows


def planted(seed: int) -> list[str]:
    """Return texts some of which have passages of others, exact or with changed words."""
    draw = random.Random(seed)
    texts = [[f"w{draw.randrange(5000)}" for _ in range(250)] for _ in range(5)]
    for copy in range(4):
        source, target = draw.sample(range(5), 2)
        length = draw.randrange(50, 120)
        begin, at = draw.randrange(250 - length), draw.randrange(250 - length)
        passage = texts[source][begin : begin + length]
        for change in range(2 if copy % 2 == 0 else 0):  # the last one is exact
            passage[20 * (change + 1)] = f"changed{change}"
        texts[target][at : at + length] = passage
    return [" ".join(text) for text in texts]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gap", [0, 4])
def test_planted_copies_are_what_brute_force_finds(seed: int, gap: int) -> None:
    texts = planted(seed)
    found = la.overlaps(texts, gap=gap, threads=2)
    piece = piece_words(50, gap)
    assert in_order(told(found)) == in_order(overlaps_of(texts, piece=piece, gap=gap, min_words=50))
    assert len(found)
    assert told(la.overlaps(texts, gap=gap, threads=1)) == told(found)


def test_places_are_those_of_the_words() -> None:
    passage = "Ünd so — it was: “the BEST of times”, 42 says; 中文 and e\u0301t\u0301 cetera"
    left = f"Something else.\n{passage}\nThe end"
    right = f"{passage.lower().replace(' ', '  ')} and nothing more"
    (found,) = la.overlaps([left, right], min_words=10)
    assert found.exact
    assert left[slice(*found.left_characters)] == passage == found.text
    assert words_of(found.right_text)[:3] == ["ünd", "so", "it"]
    assert found.left_words == (2, 2 + found.words)
    assert found.right_words == (0, found.words)
    assert la.Words().counts([passage])[0] == found.words
    assert found.to_dict(text=True)["text"] == passage


@given(st.text())
@settings(max_examples=300, deadline=None)
@example("e\u0301\u0301 \u0301x 中文字 a中b İ ǅ ﬁ \U0001f600 x")
def test_words_are_where_everybody_says(text: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in text):
        return
    places = word_places(text)
    spans = list(zip(places.begins.tolist(), places.ends.tolist(), strict=True))
    assert spans == word_spans(text)


def features_of(text: str) -> list[int]:
    """Return the hashes of a text's words, as signers have them."""
    documents = _native.Documents.from_list([text], 0)
    return list(la.Words()._reader.extract(documents)[1].tolist())


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.characters())
@settings(max_examples=60, deadline=None)
@example("Straße ǅ İstanbul", "x")
def test_words_are_equal_where_those_of_signers_are(one: str, other: str) -> None:
    wanted = features_of(one)
    for text in (one.upper(), one.swapcase(), one + other.encode("utf-8", "replace").decode()):
        if not wanted or len(features_of(text)) != len(wanted):
            continue
        found = la.overlaps([one, text], min_words=len(wanted), gap=0, common=10**6)
        assert len(found) == (features_of(text) == wanted)


def test_what_everybody_has_is_left_out_and_counted() -> None:
    draw = random.Random(3)
    license = " ".join(f"license{n}" for n in range(80))
    texts = [
        f"{' '.join(f'w{draw.randrange(10**9)}' for _ in range(60))} {license}" for _ in range(12)
    ]
    everything = la.overlaps(texts, common=12)
    assert len(everything) == everything.pairs == 66
    assert everything.common_windows == 0
    nothing = la.overlaps(texts, common=11)
    assert len(nothing) == 0
    assert nothing.common_windows > 0
    assert nothing.common_places == 12 * nothing.common_windows
    # What has words of its own beside the common ones is found, and whole.
    texts[3] = texts[7] = f"a few words of their own that nobody else has at all {license}"
    (found,) = la.overlaps(texts, common=11)
    assert (found.left_row, found.right_row, found.words) == (3, 7, 92)


def test_odd_documents_are_no_trouble() -> None:
    assert len(la.overlaps([])) == 0
    assert len(la.overlaps(["", " \n", "...", "one"])) == 0
    assert len(la.overlaps(["", "a", "a"], min_words=1)) == 1
    same = " ".join(["0"] * 3000)
    many = la.overlaps([same, same])
    assert (len(many), many.common_windows) == (0, 1)
    exact = la.overlaps(["one two " * 30, "one two " * 30], common=10**6, gap=0)
    assert max(one.words for one in exact) == 60
    assert np.all([one.words >= 50 for one in exact])


def test_arguments_are_checked() -> None:
    for wrong in ({"min_words": 0}, {"gap": -1}, {"common": 1}, {"threads": 0}, {"progress": 3}):
        with pytest.raises(ArgumentError):
            la.overlaps(["a", "b"], **wrong)  # type: ignore[arg-type]


@given(st.lists(st.sampled_from("abc"), max_size=24).map(" ".join), st.integers(2, 6))
def test_within_one_document(text: str, least: int) -> None:
    words = text.split()
    expected = {
        (a, b, min(length, b - a))
        for a, b, length in runs_between(words, words, 1)
        if a < b and min(length, b - a) >= least
    }
    found = la.overlaps([text], min_words=least, gap=0, within=True)
    assert {run for one in found for run in one.runs} == expected
    assert len(la.overlaps([text], min_words=least, gap=0)) == 0


def test_within_with_gaps_and_other_documents() -> None:
    run = "the early bird gets the worm every day of the week"
    texts = [f"{run} x {run.replace('worm', 'fish')}", run]
    found = la.overlaps(texts, min_words=10, within=True)
    assert [(one.left, one.right) for one in found] == [("0", "0"), ("0", "1"), ("0", "1")]
    assert found[0].left_words[1] <= found[0].right_words[0]
