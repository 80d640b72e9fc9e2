"""A text is found in documents wherever enough of its words are, as brute force finds it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.common_passages.finding import PIECE
from lookalike.errors import ArgumentError
from support.oracles.passages import passages_between, words_of

few_words = st.sampled_from(["a", "b", "c"])
text = st.lists(few_words, max_size=25).map(" ".join)


@given(
    st.lists(text, max_size=4),
    st.lists(few_words, min_size=1, max_size=15).map(" ".join),
    st.sampled_from([0.1, 0.5, 0.8, 1.0]),
    st.integers(0, 4),
)
@settings(max_examples=120, deadline=None)
@example(["x a b c a b c y"], "a b c a b", 0.6, 2)
def test_every_passage_is_found_and_no_other(
    documents: list[str], query: str, least: float, gap: int
) -> None:
    asked = words_of(query)
    min_words = max(1, math.ceil(least * len(asked) - 1e-9))
    found = la.passages(documents, query, min_share=least, gap=gap, threads=2)
    expected = [
        (row, runs)
        for row, document in enumerate(documents)
        for runs in passages_between(
            asked,
            words_of(document),
            piece=min(PIECE, min_words),
            gap=gap,
            min_words=min_words,
        )
    ]
    assert sorted((one.row, one.runs) for one in found) == sorted(expected)
    words = [one.words for one in found]
    assert words == sorted(words, reverse=True)
    assert all(one.share == one.words / len(asked) >= least - 1e-9 for one in found)


def test_a_changed_passage_is_found_with_its_place() -> None:
    passage = "The tide in the affairs of men, taken at the flood, leads on to fortune."
    changed = passage.replace("flood", "turn").replace("leads", "surely leads")
    documents = [
        "Nothing of that kind is to be found in this one.",
        f"One line.\nAnother — with ünï.\n{changed}\nThe end.",
        f"{passage} And once more: {passage.upper()}",
    ]
    found = la.passages(documents, passage, min_share=0.6, context=5)
    assert [one.row for one in found] == [2, 2, 1]
    first, second, near = found
    assert (first.share, first.exact, first.lines) == (1.0, True, (1, 1))
    assert second.text == passage.upper().rstrip(".")
    assert (near.exact, near.words, near.lines) == (False, 14, (3, 3))
    assert documents[1][slice(*near.document_characters)] == near.text == changed.rstrip(".")
    assert (near.before, near.after) == ("ünï.\n", ".\nThe")
    assert passage[slice(*near.query_characters)] == passage.rstrip(".")
    assert near.to_dict()["document_words"] == (5, 21)
    assert (found.documents, found.query_words, found.repeated) == (3, 15, 0)


def test_a_text_that_is_everywhere_in_a_document_is_found_so_often() -> None:
    sentence = "These five words are repeated"
    document = ". ".join([sentence] * 150)
    found = la.passages([document, sentence], sentence, min_share=1.0)
    assert len(found) == 101
    assert {one.row for one in found} == {0, 1}
    assert found.repeated == 2  # windows of four words, the first hundred places of each
    noise = la.passages(["0 " * 100_000], "0 " * 60, min_share=0.5)
    assert noise[0].words == 60
    assert len(noise) < 200


def test_texts_without_words_are_refused_and_documents_without_are_not() -> None:
    with pytest.raises(ArgumentError, match="query is ' ...', which has no words to look for"):
        la.passages(["a"], " ...")
    assert len(la.passages(["", "?", "b"], "a")) == 0
    assert len(la.passages([], "a")) == 0
    wrong: list[dict[str, Any]] = [{"min_share": 0}, {"min_share": 2}, {"gap": -1}, {"context": -1}]
    for arguments in [*wrong, {"query": 3}, {"threads": 0}]:
        with pytest.raises(ArgumentError):
            la.passages(["a"], **{"query": "a", **arguments})


def test_signed_passages_are_parts() -> None:
    draw = np.random.default_rng(4)
    texts = [" ".join(f"w{n}" for n in draw.integers(0, 3000, 400)) for _ in range(8)]
    signer = la.SimHash(bits=64)
    parts = la.PartIndex(64)
    for number, signed in enumerate(la.sign_passages(signer, texts, words=40, step=8)):
        assert signed.offsets.tolist() == [*range(0, 360, 8), 360]
        parts.add(number, signed.signatures, signed.offsets)
    words = texts[5].split()[123:223]
    words[10] = words[50] = words[70] = "changed"
    (query,) = la.sign_passages(signer, [" ".join(words)], words=40, step=1)
    found = parts.search(query.signatures, query.offsets)  # within 6 of 64 bits
    assert (found[0].item, found[0].offset) == (5, 123)
    short, empty = la.sign_passages(signer, ["only three words", "..."], words=40)
    assert (short.signatures.shape, short.offsets.tolist()) == ((1, 8), [0])
    assert (empty.signatures.shape, empty.offsets.tolist()) == ((0, 8), [])
    whole = signer.sign(["only three words"])
    assert np.array_equal(short.signatures, whole)
    signatures, of = la.TopSig(256).sign_parts(texts, 50)
    topics = la.PartIndex(256)
    topics.add_many(range(8), [signatures[of == number] for number in range(8)])
    assert topics.search(signatures[of == 3], radius=0)[0].item == 3
    for arguments in ({"words": 0}, {"step": 0}, {"documents": [3]}, {"signer": la.MinHash()}):
        with pytest.raises(la.LookalikeError):
            la.sign_passages(**{"signer": signer, "documents": texts, **arguments})  # type: ignore[arg-type]
