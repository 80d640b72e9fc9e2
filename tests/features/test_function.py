"""Features that a function of the caller's finds, and choosing features by a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.dedup.settings import DedupSettings
from lookalike.features.choice import chosen_features, unit_text

texts = st.lists(st.text("ab \n", max_size=12), min_size=1, max_size=8)
TEXTS = ["one two three four", "one two three five", "six seven eight nine", "one two three four!"]


def pairs_of_letters(text: str) -> Iterator[str]:
    return (text[at : at + 2] for at in range(len(text) - 1))


@given(texts)
def test_a_function_gives_what_its_features_give(documents: list[str]) -> None:
    function = la.FeatureFunction(pairs_of_letters)
    ready = [list(pairs_of_letters(text)) for text in documents]
    for signer in (la.SimHash, la.MinHash, la.TopSig):
        made = signer(features=function).sign(documents)
        assert np.array_equal(made, signer(features=la.features.Features()).sign(ready))
    assert function.counts(documents).tolist() == [len(each) for each in ready]
    distinct = function.counts(documents, distinct=True)
    assert distinct.tolist() == [len(Counter(each)) for each in ready]


def test_any_callable_is_taken_for_features_of_a_text() -> None:
    assert la.jaccard("a b c", "b c d", str.split) == 0.5  # type: ignore[arg-type]
    weighed = la.MinHash(features=lambda text: [(word, 2.0) for word in text.split()])  # type: ignore[arg-type]
    assert np.array_equal(
        weighed.sign(["a b"]), la.MinHash(features=la.features.Features()).sign([["a", "b"]])
    )
    numbers = la.FeatureFunction(lambda text: {len(word) for word in text.split()})
    assert la.containment("a bb ccc", "dd e", numbers) == 1.0


def test_what_goes_wrong_in_a_function_is_told_with_the_document() -> None:
    def failing(text: str) -> list[str]:
        raise ZeroDivisionError(text)

    with pytest.raises(ZeroDivisionError) as raised:
        la.MinHash(features=la.FeatureFunction(failing)).sign(["a"])
    assert "of text 0" in raised.value.__notes__[0]
    with pytest.raises(la.errors.DocumentError, match="document 1 is of type int"):
        la.FeatureFunction(lambda text: 3 if text == "b" else []).counts(["a", "b"])
    with pytest.raises(la.errors.ArgumentError, match="or a function from a text to its features"):
        la.MinHash(features=la.Words)  # type: ignore[arg-type]


def test_only_a_named_function_is_kept_in_files(tmp_path: Path) -> None:
    unnamed = la.SimHash(features=la.FeatureFunction(str.split))
    file, work = tmp_path / "signatures.lookalike", tmp_path / "work"
    for keep in (
        lambda: unnamed.save(tmp_path / "signer"),
        lambda: la.save_signatures(file, unnamed.sign(TEXTS), unnamed),
        lambda: la.open_collection(tmp_path / "docs.db", signer=unnamed),
        lambda: la.dedup(TEXTS, features=str.split, work=work),
        lambda: la.dedup(TEXTS, features=str.split, save_signatures=file),
    ):
        with pytest.raises(la.errors.ArgumentError, match="Give it one: la.FeatureFunction"):
            keep()
    assert list(tmp_path.glob("signatures*")) == [] and not work.exists()
    named = la.FeatureFunction(str.split, name="by spaces")
    la.dedup(TEXTS, features=named, save_signatures=file)
    assert la.load_signatures(file).signer == DedupSettings(features=named).signer()
    assert not la.dedup(TEXTS, features=named, against=file).keep.any()
    del la.FeatureFunction._named["by spaces"]  # as in a new program
    with pytest.raises(la.errors.ArgumentError, match="the feature function"):
        la.load_signatures(file)


def test_a_named_function_is_what_a_work_folder_goes_by(tmp_path: Path) -> None:
    corpus, work = tmp_path / "corpus.txt", tmp_path / "work"
    corpus.write_text("\n".join(TEXTS))

    def dedup(name: str, function: Any) -> la.results.TextResult:
        features = la.FeatureFunction(function, name=name)
        return la.dedup(corpus, features=features, threshold=0.6, work=work)

    assert dedup("words", str.split).reused == ()
    assert "sign" in dedup("words", str.split).reused
    other = dedup("letters", pairs_of_letters)
    assert "sign" not in other.reused
    assert other.settings.to_dict()["features"] == {"kind": "FeatureFunction", "name": "letters"}


@pytest.mark.parametrize(
    ("given", "expected", "words"),
    [
        ({}, la.Words(5), "word 5-grams"),
        ({"ngram": 1}, la.Words(1), "words"),
        ({"features": "chars"}, la.Chars(5), "character 5-grams"),
        ({"features": "chars", "ngram": 1}, la.Chars(1), "characters"),
        ({"stop_words": "english"}, la.Words(5, stopwords="english"), "without stop words"),
        ({"stop_words": iter(["a", "b"])}, la.Words(5, stopwords=["a", "b"]), "word 5-grams wi"),
        ({"stem": "english", "ngram": 2}, la.Words(2, stem="english"), "stemmed word 2-grams"),
        ({"features": la.Words(3, lowercase=False)}, la.Words(3, lowercase=False), "word 3-grams"),
        ({"ngram": (1, 2)}, la.Words((1, 2)), "words and word 2-grams"),
        ({"features": "words,chars"}, la.Combined(la.Words(5), la.Chars()), "and character 5-gra"),
        ({"features": "words,chars", "ngram": 2, "stop_words": iter("ab")},
         la.Combined(la.Words(2, stopwords=["a", "b"]), la.Chars()), "word 2-grams without stop"),
        ({"features": la.FeatureFunction(len, "n")}, la.FeatureFunction(len, "n"), "features 'n'"),
    ],
)  # fmt: skip
def test_features_are_those_that_were_chosen(
    given: dict[str, Any], expected: Any, words: str
) -> None:
    settings = DedupSettings(**given)
    for _ in range(2):
        assert settings.feature_kind() == expected == settings.signer().features
    assert words in unit_text(expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"features": "lines"}, "expected one of: words, chars"),
        ({"features": "chars", "stop_words": "english"}, "stop_words does not go with characters"),
        ({"features": "chars", "stem": "english"}, "stem does not go with characters"),
        ({"features": la.Words(), "ngram": 2}, "ngram does not go with features that are made"),
        ({"features": str.split, "stem": "english"}, "stem does not go with features that are"),
        ({"features": la.features.Features()}, "take no texts"),
        ({"features": 3}, "or a function from a text to its features"),
        ({"stop_words": "klingon"}, r"expected a language \(english, german, "),
        ({"ngram": 0}, "ngram is 0"),
    ],
)  # fmt: skip
def test_what_would_change_nothing_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        DedupSettings(**given)


def test_stop_words_and_stems_change_what_is_found() -> None:
    rows = ["the cats and the dogs", "cat or dog", "cats, dogs", "birds"]
    plain = chosen_features("words", ngram=1, words_ngram=5, stop_words=None, stem=None)
    assert la.jaccard(rows[0], rows[1], plain) == 0
    result = la.dedup(rows, ngram=1, stop_words="english", stem="english", threshold=1.0)
    assert result.keep.tolist() == [True, False, False, True]
    assert la.dedup(rows, ngram=1, stop_words=["THE", "and"], threshold=1.0).keep.sum() == 3
