from __future__ import annotations

import math
import time
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from support.oracles import text as text_oracle

KINDS = ["uniform", "count", "log-count", "tfidf", "log-likelihood", "idf"]
documents_of_words = st.lists(
    st.lists(st.sampled_from("a b c d e f g h".split()), max_size=12).map(" ".join),
    min_size=2,
    max_size=8,
)


@pytest.mark.parametrize("kind", KINDS)
@given(documents_of_words)
def test_cosine_with_every_weighting_equals_the_oracle(kind: str, documents: list[str]) -> None:
    weights = la.Weights(kind).fit(documents, la.Words())
    features = [text_oracle.word_features(text) for text in documents]
    vectors = [text_oracle.weigh(document, kind, features) for document in features]
    found = la.cosine(documents[:-1], documents[1:], la.Words(), weights)
    expected = [text_oracle.cosine(a, b) for a, b in pairwise(vectors)]
    assert np.allclose(found, expected, atol=1e-12)


def test_features_that_were_never_seen_count_as_seen_once() -> None:
    weights = la.Weights("tfidf").fit(["a b", "a c", "a d"], la.Words())
    # a: 1 + log(4/4); b and zebra: 1 + log(4/2)
    found = la.cosine("a zebra", "zebra", la.Words(), weights)
    rare = 1 + math.log(2)
    assert found == pytest.approx(rare / math.hypot(1, rare))


def test_learning_does_not_depend_on_threads() -> None:
    documents = [f"common word{i % 700} rare{i}" for i in range(20_000)]
    learned = [
        la.SimHash(weights="tfidf").fit(documents, threads=threads).to_dict()
        for threads in (1, 2, 5)
    ]
    assert learned[0] == learned[1] == learned[2]


def test_parts_that_are_merged_equal_the_whole() -> None:
    documents = [f"common word{i % 70} rare{i}" for i in range(3_000)]
    parts = [la.Weights("tfidf").fit(documents[i::3], la.Words()).vocabulary for i in range(3)]
    whole = la.Weights("tfidf").fit(documents, la.Words()).vocabulary
    assert whole is not None
    merged = la.Vocabulary.merge(part for part in parts if part)
    assert merged.to_dict() == whole.to_dict()
    assert repr(merged) == "Vocabulary(3,071 features of 3,000 documents)"
    with pytest.raises(la.errors.ArgumentError, match="no vocabularies to merge"):
        la.Vocabulary.merge([])


def test_a_full_vocabulary_forgets_the_rarest_and_says_what_they_count_as() -> None:
    documents = [f"common half{i % 2} some{i % 50} rare{i}" for i in range(20_000)]
    signer = la.SimHash(weights="tfidf").fit(documents, most_features=200)
    vocabulary = signer.weights.vocabulary
    assert vocabulary is not None
    assert len(vocabulary) == 53  # rare ones are gone, all others are kept
    again = la.Vocabulary.from_dict(vocabulary.to_dict())
    assert again.to_dict() == vocabulary.to_dict()
    assert vocabulary.to_dict()["totals"] == [20_000, 80_000, 1, 1]
    tiny = la.Weights("tfidf").fit(documents, la.Words(), most_features=2).vocabulary
    assert tiny is not None
    assert len(tiny) <= 2


def test_learned_weights_have_to_be_learned() -> None:
    for kind in ("tfidf", "log-likelihood", "idf"):
        with pytest.raises(la.errors.NotFittedError, match=f"{kind}.* call fit"):
            la.SimHash(weights=kind).sign(["a"])
        with pytest.raises(la.errors.NotFittedError):
            la.cosine("a", "b", weights=kind)
    with pytest.raises(
        la.errors.ArgumentError,
        match="the kind of weights is 'bm25'; expected one of: uniform, count",
    ):
        la.SimHash(weights="bm25")


@pytest.mark.parametrize("kind", KINDS)
@given(documents_of_words, st.integers(2, 8))
def test_common_features_weigh_nothing(kind: str, documents: list[str], common: int) -> None:
    weights = la.Weights(kind, common=common).fit(documents, la.Words())
    features = [text_oracle.word_features(text) for text in documents]
    having = Counter(feature for document in features for feature in set(document))
    vectors = [
        {
            feature: weight
            for feature, weight in text_oracle.weigh(document, kind, features).items()
            if having[feature] <= common
        }
        for document in features
    ]
    again = la.Weights.from_dict(weights.to_dict())
    assert again.common == common == weights.common
    for learned in (weights, again):
        found = la.cosine(documents[:-1], documents[1:], la.Words(), learned)
        expected = [text_oracle.cosine(a, b) for a, b in pairwise(vectors)]
        assert np.allclose(found, expected, atol=1e-12)


def test_what_is_common_is_learned_and_said_once() -> None:
    documents = ["a b", "a c", "a d"]
    weights = la.Weights("count", common=2)
    with pytest.raises(la.errors.NotFittedError):
        la.cosine("a", "b", weights=weights)
    vocabulary = weights.fit(documents, la.Words()).vocabulary
    assert vocabulary is not None and vocabulary.common == 2
    assert repr(weights) == "Weights('count', Vocabulary(4 features of 3 documents), common=2)"
    assert la.Weights("count", vocabulary).common == 2
    assert la.Vocabulary.merge([vocabulary, vocabulary]).common == 2
    with pytest.raises(la.errors.ArgumentError, match="common is 3, and that of the vocabulary"):
        la.Weights("count", vocabulary, common=3)
    with pytest.raises(la.errors.ArgumentError, match="different values of common"):
        la.Vocabulary.merge([vocabulary, la.Vocabulary()])
    with pytest.raises(la.errors.ArgumentError, match="common is 1; expected a whole number"):
        la.Weights("count", common=1)


@pytest.mark.parametrize(
    "description",
    [
        {},
        {"most": 5},
        {"most": 0, "totals": [0] * 4, "features": "", "documents": "", "occurrences": ""},
        {"most": 9, "totals": [0] * 4, "features": "!", "documents": "", "occurrences": ""},
        {"most": 9, "totals": [0] * 3, "features": "", "documents": "", "occurrences": ""},
        {"most": 9, "totals": [-1] * 4, "features": "", "documents": "", "occurrences": ""},
        {
            "most": 9,
            "totals": [0] * 4,
            "features": "AAAAAAAAAAA=",
            "documents": "",
            "occurrences": "",
        },
    ],
)
def test_a_damaged_description_is_refused(description: dict[str, object]) -> None:
    with pytest.raises(la.errors.ArgumentError):
        la.Vocabulary.from_dict(description)


def test_time_grows_with_the_words_of_a_document_and_not_with_their_square() -> None:
    """Counts of one table are put into another in the order of its places; 300,000 took 15 s."""
    text = " ".join(f"w{number}" for number in range(150_000))
    start = time.process_time()
    vocabulary = la.Weights("tfidf").fit([text], la.Words(), threads=1).vocabulary
    assert vocabulary is not None
    vocabulary = la.Vocabulary.merge([vocabulary])
    taken = time.process_time() - start
    assert len(vocabulary) == 150_000
    assert taken < 1.5
