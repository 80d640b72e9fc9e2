"""Words of highest weight: what they weigh, in which order, and who has none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.topics import words
from lookalike.topics.words import WordCounts, cluster_words
from support.oracles import topics as oracle

LETTERS = list("abcdefgh")
TEXTS = st.lists(st.lists(st.sampled_from(LETTERS), max_size=6), min_size=1, max_size=14)


def found(
    texts: list[str],
    labels: list[int],
    count: int,
    most: int = 100,
    kind: la.Words | None = None,
    threads: int = 1,
) -> list[list[tuple[str, float]]]:
    documents, given = _native.Documents.from_list(texts, 0), np.array(labels, np.int64)
    counts = WordCounts.of(kind or la.Words(), documents, given, count, threads)
    return cluster_words(counts, documents, given, most)


@settings(max_examples=150, deadline=None)
@given(drawn=TEXTS, data=st.data())
def test_words_and_weights_are_those_of_the_oracle(
    drawn: list[list[str]], data: st.DataObject
) -> None:
    texts = [" ".join(letters) for letters in drawn]
    count = data.draw(st.integers(1, 3))
    labels = data.draw(
        st.lists(st.integers(-1, count - 1), min_size=len(texts), max_size=len(texts))
    )
    for cluster, told in enumerate(found(texts, labels, count)):
        expected = oracle.weights(texts, labels, cluster)
        positive = {word: weight for word, weight in expected.items() if weight > 1e-9}
        assert {word for word, weight in told if weight > 1e-9} == positive.keys()
        assert all(weight == pytest.approx(expected[word], abs=1e-9) for word, weight in told)
        weights = [weight for _, weight in told]
        assert weights == sorted(weights, reverse=True)
        assert found(texts, labels, count, most=2)[cluster] == told[:2]


def test_repeating_a_word_does_not_make_it_the_cluster_s() -> None:
    texts = ["spam " * 1000 + "apple", "apple pear", "apple pear", "stone", "stone", "rock stone"]
    first, second = found(texts, [0, 0, 0, 1, 1, 1], 2)
    assert [word for word, _ in first] == ["apple", "pear"]
    assert [word for word, _ in second] == ["stone"]


def test_batches_threads_and_cases_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = oracle.scattered(3)
    labels = [number % 4 for number in range(len(texts))]
    whole = found(texts, labels, 4)
    assert all(whole)
    monkeypatch.setattr(words, "_AT_A_TIME", 7)
    assert found(texts, labels, 4, threads=3) == whole
    assert found([text.upper() for text in texts], labels, 4) == whole


def test_stems_are_counted_together_and_shown_as_words() -> None:
    texts = ["galaxies moves", "galaxy moved", "galaxy moving", "cats", "cat", "a cat cats", "cat"]
    kind = la.Words(stem="english")
    first, second = found(texts, [0, 0, 0, 1, 1, 1, 1], 2, kind=kind)
    assert {word for word, _ in first} == {"galaxy", "moved"}  # of equally many, by the alphabet
    assert [word for word, _ in second] == ["cat"]
    assert second[0][1] == pytest.approx(
        oracle.weights(["x"] * 3 + ["cat"] * 4, [0] * 3 + [1] * 4, 1)["cat"]
    )


def test_stop_words_are_no_words_of_a_cluster() -> None:
    texts = ["the fox", "the fox", "an owl", "an owl"]
    kind = la.Words(stopwords=["the", "an"])
    assert [[word for word, _ in one] for one in found(texts, [0, 0, 1, 1], 2, kind=kind)] == [
        ["fox"],
        ["owl"],
    ]


def test_words_that_are_too_long_to_be_shown_are_left_out() -> None:
    long = "x" * 500
    texts = [f"{long} fox", f"{long} fox", "owl", "owl"]
    assert [word for word, _ in found(texts, [0, 0, 1, 1], 2)[0]] == ["fox"]
