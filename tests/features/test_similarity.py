from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.features import similarity, similarity_pairs
from support.oracles import dedup as dedup_oracle
from support.oracles import text as text_oracle

texts = st.lists(st.sampled_from("a b c d e f".split()), max_size=9).map(" ".join)


@given(st.lists(st.tuples(texts, texts), max_size=8), st.integers(1, 3), st.sampled_from([1, 3]))
def test_jaccard_equals_the_oracle(pairs: list[tuple[str, str]], ngram: int, threads: int) -> None:
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    kind = la.Words(ngram)
    expected = [
        text_oracle.jaccard(
            text_oracle.word_features(a, ngram), text_oracle.word_features(b, ngram)
        )
        for a, b in pairs
    ]
    assert la.jaccard(left, right, kind, threads=threads).tolist() == expected
    both = left + right
    positions = np.arange(len(pairs))
    found = la.features.similarity_pairs(
        "jaccard", both, positions, positions + len(pairs), kind, threads=threads
    )
    assert found.tolist() == expected


@given(
    st.lists(st.tuples(texts, texts), max_size=8),
    st.lists(st.integers(0, 400), max_size=200),
    st.integers(1, 3),
)
def test_every_measure_is_that_of_python_sets_and_counters(
    pairs: list[tuple[str, str]], numbers: list[int], ngram: int
) -> None:
    """Of texts alike in length, and of short ones beside a long one, in either order."""
    long = " ".join("abcdef"[number % 6] + str(number // 6) for number in numbers)
    few = " ".join(long.split()[::29])
    pairs = [*pairs, (long, few), (few, long), (few, "a"), *((text, long) for text, _ in pairs)]
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    kind = la.Words(ngram)
    for measure, oracle in dedup_oracle.MEASURES.items():
        expected = [oracle(a, b, ngram) for a, b in pairs]
        assert similarity(measure, left, right, kind).tolist() == pytest.approx(expected)
        positions = np.arange(len(pairs))
        found = similarity_pairs(measure, left + right, positions, positions + len(pairs), kind)
        assert found.tolist() == pytest.approx(expected)
        assert (found <= 1).all()
    assert la.containment(left, right, kind).tolist() == pytest.approx(
        [dedup_oracle.containment(a, b, ngram) for a, b in pairs]
    )


def test_a_measure_that_there_is_not_is_named() -> None:
    with pytest.raises(
        la.errors.ArgumentError, match="measure is 'dice'; expected one of: jaccard"
    ):
        similarity("dice", "a", "b")


def test_two_documents_give_a_number() -> None:
    assert la.jaccard("a b c", "b c d") == 0.5
    assert la.cosine("a a", "a b") == pytest.approx(2**-0.5)
    assert la.jaccard("abcd", "bcde", la.Chars(2)) == 0.5
    assert la.containment("a b", "a c d e f b") == la.containment("b c a x y z", "a b") == 1.0
    assert la.containment("", "a") == la.containment("a", "") == 0.0
    assert la.jaccard({"x": 1, "y": 2}, ["y", "z"], la.features.Features()) == pytest.approx(1 / 3)
    assert la.cosine({"x": 3, "y": 4}, {"x": 1}, la.features.Features()) == pytest.approx(0.6)
    assert la.jaccard("same words", "Same, words!", la.Words(ngram=5)) == 1.0


def test_empty_documents_are_similar_to_nothing() -> None:
    assert la.jaccard("", "") == 0.0
    assert la.cosine("...", "!") == 0.0
    assert la.jaccard("", "a") == 0.0


def test_many_pairs_read_each_document_once_and_any_order() -> None:
    documents = [f"word{i} word{i + 1} word{i + 2}" for i in range(10_000)]
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, len(documents), (2, 5_000))
    found = la.features.similarity_pairs("jaccard", documents, left, right, threads=2)
    shared = np.maximum(0, 3 - np.abs(left - right))
    assert np.allclose(found, shared / (6 - shared))
    assert np.allclose(
        la.features.similarity_pairs("cosine", documents, left, right, threads=2), shared / 3
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: la.jaccard(["a"], ["a", "b"]), la.errors.DocumentError, "equal numbers"),
        (lambda: la.jaccard(["a"] * 9000, ["a"]), la.errors.DocumentError, "equal numbers"),
        (lambda: la.jaccard("a", ["a"]), la.errors.DocumentError, "documents are one str"),
        (
            lambda: la.features.similarity_pairs("jaccard", ["a"], [0], [1]),
            la.errors.ArgumentError,
            "right names documents 1 to 1",
        ),
        (
            lambda: la.features.similarity_pairs("jaccard", ["a"], [-1], [0]),
            la.errors.ArgumentError,
            "left names documents -1",
        ),
        (
            lambda: la.features.similarity_pairs("jaccard", ["a"], [0, 0], [0]),
            la.errors.ArgumentError,
            "2 positions and right 1",
        ),
        (
            lambda: la.features.similarity_pairs("jaccard", ["a"], [0.5], [0]),
            la.errors.ArgumentError,
            "expected a list of pos",
        ),
        (
            lambda: la.features.similarity_pairs("jaccard", ["a", None], [0], [1]),
            la.errors.DocumentError,
            "document 1 is of type",
        ),
    ],
)
def test_bad_input_is_named(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
