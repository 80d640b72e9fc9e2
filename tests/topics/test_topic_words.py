"""Words of highest weight: what they weigh, in which order, and who has none."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.topics import words
from lookalike.topics.listed import Listed
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
    meaningless: Iterable[str] = (),
) -> list[list[tuple[str, float]]]:
    documents, given = _native.Documents.from_list(texts, 0), np.array(labels, np.int64)
    counts = WordCounts.of(kind or la.Words(), documents, given, count, threads)
    hashes = la.Words()._reader.extract(_native.Documents.from_list([*meaningless], 0))[1]
    return cluster_words(counts, documents, given, most, np.unique(hashes), threads)


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
    nothing = frozenset(data.draw(st.sets(st.sampled_from(LETTERS))))
    for cluster, told in enumerate(found(texts, labels, count, meaningless=nothing)):
        expected = oracle.weights(texts, labels, cluster, nothing)
        positive = {word: weight for word, weight in expected.items() if weight > 1e-9}
        assert {word for word, weight in told if weight > 1e-9} == positive.keys()
        assert all(weight == pytest.approx(expected[word], abs=1e-9) for word, weight in told)
        weights = [weight for _, weight in told]
        assert weights == sorted(weights, reverse=True)
        assert found(texts, labels, count, 2, meaningless=nothing)[cluster] == told[:2]


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


def test_function_words_are_left_out_in_any_language() -> None:
    """A word that all clusters have is not shown, however often one of them has it."""
    chance = random.Random(0)
    function = ["foo", "bar", "baz"]  # of a language that no list knows
    texts, labels = [], []
    for number in range(400):
        label = number % 4
        # The first cluster has function words twice as often as the others.
        many = 6 if label == 0 else 2
        own = chance.choices([f"{letter}{label}topic" for letter in "klm"], k=2)
        texts.append(" ".join(own + chance.choices([*function, "un", "de", "la"], k=many)))
        labels.append(label)
    for label, told in enumerate(found(texts, labels, 4)):
        assert {word[1:] for word, _ in told} == {f"{label}topic"}


def test_a_language_of_several_clusters_has_no_function_words() -> None:
    """Words that four clusters have about as often do not describe any of them."""
    texts, labels = [], []
    for label in range(10):
        language = "der die das" if label < 5 else "the of and"
        texts += [f"{language} w{label}x w{label}y"] * 5
        labels += [label] * 5
    for label, told in enumerate(found(texts, labels, 10)):
        assert {word for word, _ in told} == {f"w{label}x", f"w{label}y"}


def test_a_single_cluster_has_its_most_frequent_words() -> None:
    assert [word for word, _ in found(["it is", "it was", "it"], [0, 0, 0], 1)[0]] == ["it"]


def test_numbers_letters_and_other_forms_are_left_out() -> None:
    texts = ["galaxy galaxies 42 x stars"] * 4 + ["bread water 7 y"] * 4
    first, second = found(texts, [0] * 4 + [1] * 4, 2)
    told = {word for word, _ in first}
    assert "stars" in told and len(told & {"galaxy", "galaxies"}) == 1 and len(told) == 2
    assert {word for word, _ in second} == {"bread", "water"}
    assert [word for word, _ in found(["1 2", "1", "3", "3"], [0, 0, 1, 1], 2)[1]] == ["3"]
    chinese = found(["\u6587", "\u6587", "\u5b57", "\u5b57"], [0, 0, 1, 1], 2)
    assert [[word for word, _ in one] for one in chinese] == [["\u6587"], ["\u5b57"]]
    dump = found(["9a d3 a0 key"] * 3 + ["mp3 ipv6"] * 3, [0] * 3 + [1] * 3, 2)
    assert [{word for word, _ in one} for one in dump] == [{"key"}, {"mp3", "ipv6"}]


def test_names_in_few_documents_are_left_out() -> None:
    texts = ["topic smith"] * 2 + ["topic jones"] * 3 + ["topic"] * 55 + ["rest"] * 600
    first, _ = found(texts, [0] * 60 + [1] * 600, 2)
    assert [word for word, _ in first] == ["topic", "jones"]  # 2 of 60 are less than 5%


def test_a_cluster_with_few_words_has_rarer_ones_too() -> None:
    rarer = ["river", "stone", "cloud", "maple", "tiger", *["", "", ""] * 10]
    texts = [f"topic {rarer[at % 35]}" for at in range(175)] + ["rest"] * 200
    labels = [0] * 175 + [1] * 200
    first, second = found(texts, labels, 2)  # the rarer words are in 5 of 175 documents each
    assert [word for word, _ in second] == ["rest"]
    assert len(first) == 3 and first[0][0] == "topic"
    assert {word for word, _ in first[1:]} <= {*rarer}
    assert len(oracle.weights(texts, labels, 0)) == 3
    assert found(texts, labels, 2, 2)[0] == first[:2]


def test_words_that_may_be_chance_are_left_out() -> None:
    texts = ["topic x1y"] * 3 + ["topic"] * 6 + ["rest x1y"] + ["rest"] * 9
    first, second = found(texts, [0] * 9 + [1] * 10, 2)
    assert [[word for word, _ in one] for one in (first, second)] == [["topic"], ["rest"]]
    assert [word for word, _ in found(["ab", "ab", "cd"], [0, 0, 1], 2)[0]] == ["ab"]


def test_rare_and_meaningless_words_are_shown_if_there_are_no_others() -> None:
    texts = ["the one"] * 50 + ["the other"] * 50
    first, second = found(texts, [0] * 50 + [1] * 50, 2, meaningless=["the", "one"])
    assert [word for word, _ in first] == ["one"]
    assert [word for word, _ in second] == ["other"]
    rare = [f"word{at} of" for at in range(60)] + ["word1 of"] + ["rest"] * 60
    first, _ = found(rare, [0] * 61 + [1] * 60, 2, meaningless=["of"])
    assert [word for word, _ in first] == ["word1"]  # in 2 of 61


def test_a_word_counts_for_a_long_document_if_it_is_repeated() -> None:
    """References and credits name many persons once or twice."""
    long = " ".join(f"filler{at}" for at in range(600))
    texts = [f"{long} galaxy galaxy galaxy smith"] * 4 + [f"{long} protein protein protein"] * 4
    first, second = found(texts, [0] * 4 + [1] * 4, 2)
    assert [word for word, _ in first] == ["galaxy"]
    assert [word for word, _ in second] == ["protein"]
    short = ["galaxy smith"] * 4 + ["protein"] * 4
    assert {word for word, _ in found(short, [0] * 4 + [1] * 4, 2)[0]} == {"galaxy", "smith"}


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("galaxy", "galaxies", True),
        ("package", "packages", True),
        ("lsp", "lsps", True),
        ("urn", "urns", True),
        ("spiel", "strategiespiel", True),
        ("spielfeld", "spiel", True),
        ("net", "ethernet", False),
        ("data", "database", False),
        ("star", "start", True),  # as far as letters tell
        ("galaxy", "protein", False),
        ("ip", "ips", False),
    ],
)
def test_forms_and_parts_of_a_word(one: str, two: str, same: bool) -> None:
    assert words.same_word(one, two) is words.same_word(two, one) is same


@pytest.mark.parametrize("seed", [0, 1])
def test_what_long_documents_repeat_names_their_topic(seed: int) -> None:
    """All of them mention the subjects once; frequent words are not columns of the space."""
    rng = np.random.default_rng(seed)
    subjects = ["telnet", "routing", "mailbox"]
    rare = [f"rare{word}{'abcdefghij'[word % 10]}" for word in range(9000)]
    texts = []
    for number in range(60):
        own = number % 3
        detail = rng.choice(rare[3000 * own : 3000 * (own + 1)], 400).tolist()
        texts.append(" ".join([*subjects, *[subjects[own]] * 12, *detail]))
    found = la.cluster_documents(texts, 3, seed=seed)
    assert sorted(cluster.words[0][0] for cluster in found.clusters) == sorted(subjects)


def test_words_of_documents_that_were_read_are_counted_equally() -> None:
    texts = ["fox fox owl " * 200, "owl law", "law " * 900 + "fox", "", "fox owl law"]
    labels = np.array([0, 1, 0, -1, 1])
    kind, documents = la.Words(), _native.Documents.from_list(texts, 0)
    read = WordCounts.of(kind, documents, labels, 2, 1)
    again = WordCounts.of_listed(kind, Listed.of(kind, documents, 1), labels, 2)
    assert read.documents.tolist() == again.documents.tolist() == [2, 2]
    for one, two in zip(read.clusters, again.clusters, strict=True):
        assert [part.tolist() for part in one] == [part.tolist() for part in two]
