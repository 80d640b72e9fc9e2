"""Precision and recall of signers, beside every pair looked at."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lookalike as la
from lookalike.advice import evaluate_signers, plot_signers, signers, suggested_signers
from lookalike.errors import ArgumentError
from support.oracles import signers as signer_oracle

words = st.sampled_from("ant bee cat dog elk fox gnu hen".split())
texts_of_words = st.lists(
    st.lists(words, min_size=1, max_size=12).map(" ".join), min_size=2, max_size=25, unique=True
)


@given(texts_of_words, st.sampled_from([0.5, 0.8, 0.9]), st.sampled_from([8, 64]), st.booleans())
def test_curves_equal_the_definition(
    texts: list[str], threshold: float, bits: int, screened: bool
) -> None:
    rows = la.SimHash(bits).sign(texts)
    close = [signer_oracle.cosine(a, b) for at, a in enumerate(texts) for b in texts[at + 1 :]]
    assume(any(one >= threshold - 1e-9 for one in close))
    assume(all(abs(one - threshold) > 1e-6 for one in close))
    with patch.object(signers, "_ALL_COMPARED", 0 if screened else 1500):
        found = evaluate_signers(texts, [la.SimHash(bits)], threshold=threshold, threads=1)
    chosen = found.chosen
    expected = signer_oracle.curves(texts, rows, threshold, len(chosen.pairs) - 1)
    assert chosen.similar == sum(one >= threshold for one in close)
    for measured, true in zip(
        zip(chosen.pairs, chosen.precisions, chosen.recalls, strict=True), expected, strict=True
    ):
        assert measured == pytest.approx(true)
    crossings = [at for at, (_, p, r) in enumerate(expected) if p is not None and r >= p]
    assert chosen.crossing == (crossings[0] if crossings else None)
    assert chosen.balance == max(min(p, r) for _, p, r in expected if p is not None)


def _texts(count: int) -> list[str]:
    """Texts of which some are edited copies of others."""
    generator = np.random.default_rng(7)
    vocabulary = [f"word{number}" for number in range(400)]
    texts: list[list[str]] = []
    for _ in range(count):
        if texts and generator.random() < 0.3:
            text = list(texts[generator.integers(len(texts))])
            text[generator.integers(len(text))] = str(generator.choice(vocabulary))
        else:
            text = [str(word) for word in generator.choice(vocabulary, 30)]
        texts.append(["the", "of", *text])
    return [" ".join(text) for text in texts]


def test_more_bits_are_better_and_the_choice_is_the_best() -> None:
    found = evaluate_signers(_texts(600), [la.SimHash(32), la.SimHash(512)], threshold=0.85)
    narrow, wide = found.options
    assert found.chosen is wide
    assert wide.balance > narrow.balance
    assert found.matches == wide.similar == narrow.similar
    assert found.to_dict()["chosen"]["crossing"] == wide.crossing
    assert "SimHash 512 count" in str(found)


def test_what_is_left_out_is_measured_against_the_same_pairs() -> None:
    found = evaluate_signers(
        _texts(400), [la.SimHash(64, weights="tfidf")], threshold=0.85, leave_out=True
    )
    labels = [option.label for option in found.options]
    assert any("more than 200 texts" in label for label in labels)
    assert any("english stop words" in label for label in labels)
    assert any("fewer than 3 characters" in label for label in labels)
    assert len({option.similar for option in found.options}) == 1


def test_a_sample_is_of_distinct_texts_in_their_order() -> None:
    texts = [f"text {number % 50:02}" for number in range(500)]
    some = signers.sample_texts(texts, 20, 3)
    assert len(set(some)) == len(some) == 20
    assert some == sorted(some)
    assert some == signers.sample_texts(texts, 20, 3)
    assert signers.sample_texts(texts, 100, 3) == texts[:50]


def test_suggestions_can_be_measured_and_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = evaluate_signers(_texts(200), threshold=0.8)
    assert len(found.options) == len(suggested_signers())
    plot_signers(found, tmp_path / "signers.png")
    assert (tmp_path / "signers.png").stat().st_size > 1000


def test_impossible_questions_are_refused() -> None:
    with pytest.raises(ArgumentError, match="1 distinct texts; expected at least 2"):
        evaluate_signers(["one", "one"])
    with pytest.raises(ArgumentError, match="no two of 2 texts have a similarity of 0.9"):
        evaluate_signers(["one two", "three four"])
    with pytest.raises(ArgumentError, match="signers is empty"):
        evaluate_signers(["one two", "three four"], [])
