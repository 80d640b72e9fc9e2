"""Features of short texts, beside the oracle."""

from __future__ import annotations

import pickle
import sys
import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from features.test_words import same_unicode, texts
from lookalike import _native
from lookalike.features.short import _SPACES, _ZEROS
from support.oracles import text as text_oracle

numbered = st.one_of(
    texts,
    st.text("ab12 ٣４ivxIVX,-\n", max_size=40),
    st.lists(st.sampled_from(["12", "1", "2", "ii", "IV", "xii", "cable", "m", "٣٤", ""])).map(
        " ".join
    ),
)


def features_of(documents: list[str], kind: la.ShortText) -> list[dict[int, int]]:
    """Return the features of each document, with how often they occur."""
    found = []
    for text in documents:
        vocabulary = _native.Vocabulary(1 << 20)
        vocabulary.observe(kind.source([text]), 1)
        features, _, occurrences = vocabulary.arrays()
        found.append(dict(zip(features.tolist(), occurrences.tolist(), strict=True)))
    return found


@pytest.mark.skipif(not same_unicode, reason="characters are of another Unicode")
@given(documents=st.lists(numbered, max_size=8), ngram=st.sampled_from([1, 3, (2, 4)]))
def test_features_are_those_of_the_oracle(documents: list[str], ngram: Any) -> None:
    """Whatever documents they are in a batch with: a number never reaches into the next text."""
    kind = la.ShortText(ngram)
    counts = kind.counts(documents, threads=1).tolist()
    for text, found, count in zip(documents, features_of(documents, kind), counts, strict=True):
        expected = text_oracle.short_features(text, ngram)
        assert found == {one: expected.count(one) for one in expected}
        assert count == len(expected)
    alone = [la.MinHash(16, kind).sign([text], threads=1) for text in documents]
    together = la.MinHash(16, kind).sign(documents, threads=2)
    assert np.array_equal(together, np.concatenate([together[:0], *alone]))


@given(one=numbered, two=numbered)
def test_texts_with_different_numbers_have_nothing_in_common(one: str, two: str) -> None:
    similarity = la.jaccard(one, two, la.ShortText())
    plain_texts = (text_oracle.without_punctuation(text) for text in (one, two))
    first, second = (f" {text} " if text else "" for text in plain_texts)
    plain = la.jaccard(first, second, la.Chars(3, lowercase=True))
    same = text_oracle.numbers(one) == text_oracle.numbers(two)
    assert similarity == (plain if same else 0.0)


@pytest.mark.skipif(not same_unicode, reason="characters are of another Unicode")
def test_digits_are_those_of_every_script() -> None:
    digits = [code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Nd"]
    assert digits == [int(zero) + value for zero in _ZEROS for value in range(10)]


def test_punctuation_is_that_of_common_scripts() -> None:
    assert {chr(code) for code in _SPACES} == text_oracle.PUNCTUATION


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Smith, John A.", "smith john a"),
        ("Real-time strategy (data files)", "REAL TIME strategy: data files!"),
        ("吾輩は猫である。", "吾輩は猫である"),
        ("¿Qué hora es?", "qué hora es"),
        ("«Привет, мир»", "привет мир"),
        ("a  b\tc\n", "a b c"),
    ],
)
def test_case_and_punctuation_do_not_count(one: str, two: str) -> None:
    assert la.jaccard(one, two, la.ShortText()) == 1


def test_what_has_no_letters_has_no_features() -> None:
    assert la.ShortText().counts(["", "  ", "!?", "-", "...\n", "a"]).tolist() == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("USB cable 2 m", "USB cable 3 m", False),
        ("12 Oak Street", "14 Oak Street", False),
        ("Notes on graphs, Part I", "Notes on graphs, Part II", False),
        ("Notes on graphs, Part II", "notes on graphs, part ii", True),
        ("libssl 1.1", "libssl 1.2", False),
        ("libssl 1.1", "libssl 11", False),
        ("12 packs of 3", "3 packs of 12", True),
        ("pack of 3", "pack of 3 (3)", False),
        ("Vitamin C", "vitamin c", True),
        ("Vitamin C", "Vitamin D", False),
        ("Vitamin A", "Vitamin E", True),
        ("John K. Smith", "John L. Smith", False),
        ("rope, 10 m", "rope, 10 mm", False),
        ("T-shirt, XL", "T-shirt, L", False),
        ("it's here", "its here", True),
        ("GNU Go compiler", "GNU D compiler", False),
        ("C", "C++", False),
        ("٣ tickets", "٤ tickets", False),
        ("９０度", "９１度", False),
        ("agent 007", "agent 7", False),
    ],
)
def test_numbers_by_example(one: str, two: str, same: bool) -> None:
    assert (la.jaccard(one, two, la.ShortText()) > 0) == same


def test_long_numbers_that_differ_in_one_digit_differ() -> None:
    first = "9" * 300
    for place in (0, 63, 64, 299):
        other = first[:place] + "8" + first[place + 1 :]
        assert la.jaccard(f"order {first}", f"order {other}", la.ShortText()) == 0


def test_it_is_saved_and_pickled_like_others(tmp_path: Any) -> None:
    kind = la.ShortText((3, 4))
    assert pickle.loads(pickle.dumps(kind)) == kind != la.ShortText()
    assert la.features.feature_kind_from_dict(kind.to_dict()) == kind
    signer = la.SimHash(features=kind)
    la.save_signatures(tmp_path / "short.lookalike", signer.sign(["a 1", "b"]), signer)
    assert la.load_signer(tmp_path / "short.lookalike") == signer
    assert la.Combined(kind, la.Words()).kinds[0] == kind


@pytest.mark.parametrize("ngram", [0, "3", (1, "2"), 2.5])
def test_lengths_that_make_no_sense_are_refused(ngram: Any) -> None:
    with pytest.raises(la.LookalikeError, match="ngram"):
        la.ShortText(ngram)
