"""Where words are, and which shingles are shared: against the slow truth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from features.test_words import SAMPLES, same_unicode
from lookalike.compare.diff import LONGEST_TOKEN, token_spans, word_spans
from lookalike.compare.texts import shared_shingles
from lookalike.features import Words
from support.oracles import text as text_oracle

words = st.lists(st.sampled_from("a b c d. (e) the THE 漢字 x-y, né".split()), max_size=40)
texts = st.one_of(
    st.sampled_from(SAMPLES),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.text("aB1 é\u0301漢かไล์Σß_\n", max_size=60),
    words.map(" ".join),
)


@given(texts)
def test_spans_are_the_words_of_the_core(text: str) -> None:
    spans = word_spans(text)
    assert len(spans) == la.Words().counts([text])[0]
    # Each span alone is one word, and in sequence they have the same features as the text.
    again = " ".join(text[begin:end] for begin, end in spans)
    assert la.Words().counts([again])[0] == len(spans)
    for ngram in (1, 3):
        both = la.MinHash(8, la.Words(ngram=ngram)).sign([text, again])
        assert (both[0] == both[1]).all()


@pytest.mark.skipif(not same_unicode, reason="Python has another Unicode")
@given(texts)
def test_spans_are_those_of_the_oracle(text: str) -> None:
    found = [text[begin:end] for begin, end in word_spans(text)]
    assert found == text_oracle.words(text, lowercase=False)


@given(texts)
def test_tokens_are_the_words_and_what_is_between_them(text: str) -> None:
    tokens = token_spans(text)
    assert "".join(text[begin:end] for begin, end in tokens) == "".join(text.split())
    between, at = [], 0
    for begin, end in word_spans(text):
        assert end - begin > LONGEST_TOKEN or (begin, end) in tokens
        between += text[at:begin].split()
        at = end
    words = {(begin, end) for begin, end in word_spans(text)}
    if all(end - begin <= LONGEST_TOKEN for begin, end in words):
        signs = [text[begin:end] for begin, end in tokens if (begin, end) not in words]
        runs = between + text[at:].split()
        assert "".join(signs) == "".join(runs)
        assert len(signs) == sum(-(-len(run) // LONGEST_TOKEN) for run in runs)


@given(texts, st.integers(0, 100))
def test_tokens_are_the_same_from_the_begin_of_any_one(text: str, choice: int) -> None:
    tokens = token_spans(text * 3)
    if tokens:
        begin = tokens[choice % len(tokens)][0]
        rest = token_spans((text * 3)[begin:])
        assert [(begin + b, begin + e) for b, e in rest] == tokens[choice % len(tokens) :]
    assert all(0 < end - start <= LONGEST_TOKEN for start, end in token_spans(f"{text}{'x' * 200}"))


@given(texts, texts, st.integers(1, 5))
def test_shared_shingles_make_up_the_jaccard_similarity(a: str, b: str, ngram: int) -> None:
    found = shared_shingles(a, b, Words(ngram), examples=100)
    total = found.shared + found.only_a + found.only_b
    assert la.jaccard(a, b, la.Words(ngram=ngram)) == (found.shared / total if total else 0)
    kind = la.Words(ngram=ngram)
    for example in found.examples["shared"]:
        assert la.jaccard(example, a, kind) > 0
        assert la.jaccard(example, b, kind) > 0
    for example in found.examples["only_a"]:
        assert la.jaccard(example, a, kind) > 0
        assert la.jaccard(example, b, kind) == 0
    for example in found.examples["only_b"]:
        assert la.jaccard(example, b, kind) > 0
        assert la.jaccard(example, a, kind) == 0
    for kind_of, count in (("shared", found.shared), ("only_a", found.only_a)):
        assert bool(found.examples[kind_of]) == bool(count)


def test_examples_are_few_and_do_not_overlap() -> None:
    a = " ".join(f"w{number}" for number in range(20))
    found = shared_shingles(a, a, Words(5), examples=3)
    assert found.shared == 16
    assert found.examples["shared"] == [
        "w0 w1 w2 w3 w4",
        "w5 w6 w7 w8 w9",
        "w10 w11 w12 w13 w14",
    ]
    assert found.examples["only_a"] == []


def test_a_word_that_does_not_end_is_no_example() -> None:
    """Only the beginning of a long text is looked at, and the last word there may be cut."""
    found = shared_shingles("a" * 1_000_001, "b", Words(ngram=3))
    assert (found.shared, found.only_a, found.only_b) == (0, 1, 1)
    assert found.examples == {"shared": [], "only_a": [], "only_b": ["b"]}
