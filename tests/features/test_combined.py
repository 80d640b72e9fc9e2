"""Several kinds of features on one document: what they are, and that everybody agrees on them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.features import feature_kind_from_dict
from lookalike.features.choice import unit_text
from lookalike.features.weights import WEIGHT_KINDS
from support.oracles import text as text_oracle

VOCABULARY = "cat a the dog ca at cat's 漢字 x1".split()
documents = st.lists(
    st.lists(st.sampled_from(VOCABULARY), max_size=12).map(" ".join), min_size=2, max_size=6
)


def ends(text: str) -> Iterator[tuple[str, float]]:
    """Find the last letters of words, twice as heavy as others."""
    return ((word[-1], 2.0) for word in text.split())


UNTYPED: Any = la.Combined

ENDS = la.FeatureFunction(ends, name="ends of words")
KINDS: list[tuple[Any, Any]] = [
    (la.Words(), text_oracle.word_features),
    (la.Words((2, 3)), lambda text: text_oracle.word_features(text, (2, 3))),
    (la.Words(2), lambda text: text_oracle.word_features(text, 2)),
    (la.Chars(3), lambda text: text_oracle.char_features(text, 3)),
    (la.Chars((1, 4)), lambda text: text_oracle.char_features(text, (1, 4))),
    # A weight of 2 is as good as coming twice.
    (ENDS, lambda text: [text_oracle.xxh64(end) for end, _ in ends(text) for _ in range(2)]),
]
"""Kinds, and what they find."""

chosen = st.lists(st.sampled_from(range(len(KINDS))), min_size=2, max_size=4, unique=True)
factors = st.sampled_from([1, 1, 0.5, 2, 1 / 3, 7.25, 1e-3])


@st.composite
def combined(draw: st.DrawFn) -> tuple[la.Combined, Any]:
    """Draw kinds with weights, and a function to the features of a text with their weights."""
    which = draw(chosen)
    weights = draw(st.none() | st.lists(factors, min_size=len(which), max_size=len(which)))
    kinds = la.Combined(*(KINDS[at][0] for at in which), weights=weights)

    def found(text: str) -> dict[int, tuple[list[int], float]]:
        return {
            number: (text_oracle.of_kind(KINDS[at][1](text), number), kinds.weights[number])
            for number, at in enumerate(which)
        }

    return kinds, found


def bag(found: Any, text: str) -> list[int]:
    return [feature for features, _ in found(text).values() for feature in features]


def weighed(found: Any, text: str, kind: str, texts: list[str]) -> dict[int, float]:
    """Return what a weighting makes of each feature, times the weight of its kind."""
    plain = text_oracle.weigh(bag(found, text), kind, [bag(found, each) for each in texts])
    factor = {feature: own for features, own in found(text).values() for feature in features}
    return {feature: weight * factor[feature] for feature, weight in plain.items()}


@settings(deadline=None)
@given(combined(), documents, st.sampled_from([1, 3]))
def test_sets_of_combined_features_equal_the_oracle(
    drawn: tuple[la.Combined, Any], texts: list[str], threads: int
) -> None:
    kinds, found = drawn
    sets = [set(bag(found, text)) for text in texts]
    assert kinds.counts(texts, distinct=True).tolist() == [len(each) for each in sets]
    functions = text_oracle.permutations(3, 8)
    expected = [text_oracle.minhash((one >> 32 for one in each), functions) for each in sets]
    values = la.MinHash(8, kinds, seed=3).sign(texts, threads=threads)
    for row, each in zip(values.tolist(), expected, strict=True):
        assert row == [2**32 - 1 if value is None else value for value in each]
    pairs = list(combinations(range(len(texts)), 2))
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    common = [len(sets[a] & sets[b]) for a, b in pairs]
    smaller = [min(len(sets[a]), len(sets[b])) for a, b in pairs]
    union = [len(sets[a] | sets[b]) for a, b in pairs]
    assert la.features.similarity_pairs(
        "jaccard", texts, left, right, kinds, threads=threads
    ).tolist() == [each / size if size else 0.0 for each, size in zip(common, union, strict=True)]
    assert la.features.similarity_pairs("containment", texts, left, right, kinds).tolist() == [
        each / size if size else 0.0 for each, size in zip(common, smaller, strict=True)
    ]


@settings(deadline=None)
@given(combined(), documents, st.sampled_from(WEIGHT_KINDS), st.sampled_from([0, 5]))
def test_weights_of_combined_features_equal_the_oracle(
    drawn: tuple[la.Combined, Any], texts: list[str], kind: str, seed: int
) -> None:
    kinds, found = drawn
    vectors = [weighed(found, text, kind, texts) for text in texts]
    weights = la.Weights(kind)
    if weights.learns:
        weights.fit(texts, kinds)
    cosines = la.cosine(texts[:-1], texts[1:], kinds, weights)
    pairs = list(pairwise(vectors))
    assert cosines.tolist() == pytest.approx([text_oracle.cosine(a, b) for a, b in pairs])
    jaccards = []
    for a, b in pairs:
        lesser = sum(min(weight, b.get(each, 0.0)) for each, weight in a.items())
        greater = sum(a.values()) + sum(b.values()) - lesser
        jaccards.append(lesser / greater if greater else 0.0)
    assert la.weighted_jaccard(texts[:-1], texts[1:], kinds, weights).tolist() == pytest.approx(
        jaccards
    )
    signer = la.SimHash(72, kinds, weights, seed)
    signatures, sums = signer.sign_with_weights(texts)
    assert np.array_equal(signatures, signer.sign(texts))  # which counts in another way
    for row, vector in enumerate(vectors):
        expected = np.array(text_oracle.simhash(vector, 72, seed))
        assert sums[row] == pytest.approx(expected, abs=1e-5)
        clear = np.abs(expected) > 1e-5
        signs = np.array(text_oracle.unpacked(signatures[row].tolist(), 72))
        assert np.array_equal(signs[clear], expected[clear] >= 0)
    topsig = la.TopSig(64, 5, kinds, seed, weights)
    for row, vector in zip(topsig.sign(texts).tolist(), vectors, strict=True):
        expected = np.array(text_oracle.topsig(vector, 64, 5, seed))
        clear = np.abs(expected) > 1e-5 * max([1, *vector.values()])
        assert np.array_equal(np.array(text_oracle.unpacked(row, 64))[clear], expected[clear] > 0)


@settings(deadline=None, max_examples=40)
@given(combined(), documents, st.sampled_from(["jaccard", "cosine", "containment"]))
def test_the_exact_join_and_verification_agree_with_signing(
    drawn: tuple[la.Combined, Any], texts: list[str], measure: str
) -> None:
    kinds, found = drawn
    texts = list(dict.fromkeys(texts))  # equal texts are put together before
    threshold = 0.4
    for exact in (True, False):
        method = "simhash" if measure == "cosine" else "minhash"
        result = la.dedup(
            texts, features=kinds, measure=measure, exact=exact, threshold=threshold, method=method
        )
        pairs = zip(result.pairs.left.tolist(), result.pairs.right.tolist(), strict=True)
        similar = dict(zip(pairs, result.pairs.similarity.tolist(), strict=True))
        for a, b in combinations(range(len(texts)), 2):
            one, two = set(bag(found, texts[a])), set(bag(found, texts[b]))
            truth = text_oracle.jaccard(one, two)
            if measure == "cosine":
                truth = text_oracle.cosine(
                    *(weighed(found, texts[at], "count", texts) for at in (a, b))
                )
            elif measure == "containment":
                truth = len(one & two) / min(len(one), len(two)) if one and two else 0.0
            if (a, b) in similar:
                assert similar[a, b] == pytest.approx(truth) and truth >= threshold - 1e-9
            elif exact:
                assert truth < threshold + 1e-9


def test_a_kind_is_told_from_every_other() -> None:
    """The word "cat" and the characters "cat" have one hash alone, and two where they meet."""
    words, chars = la.Words(), la.Chars(3)
    alone = la.SimHash(64, words).sign(["cat"])
    assert np.array_equal(alone, la.SimHash(64, chars).sign(["cat"]))
    both = la.Combined(words, chars)
    assert both.counts(["cat"], distinct=True).tolist() == [2]
    # The first is as it is alone: with a weight beside which the other does not count.
    heavy = la.Combined(words, chars, weights=(1, 0.25))
    assert np.array_equal(la.SimHash(64, heavy).sign(["cat"]), alone)
    light = la.SimHash(64, la.Combined(words, chars, weights=(0.25, 1))).sign(["cat"])
    assert 16 <= la.hamming(alone, light)[0] <= 48  # unrelated
    other = la.Combined(chars, words)
    assert not np.array_equal(
        la.SimHash(64, both).sign(["dogs"]), la.SimHash(64, other).sign(["dogs"])
    )


def test_parts_of_long_documents_have_all_kinds_of_their_place() -> None:
    kinds = la.Combined(la.Words(), la.Chars(1))
    text = " ".join(f"w{at}" for at in range(40)) + " " + " ".join(f"v{at}" for at in range(40))
    signer = la.TopSig(1024, features=kinds)
    parts, of = signer.sign_parts([text, "short"], terms=100)
    total = int(kinds.counts([text])[0])
    assert of.tolist() == [0] * -(-total // 100) + [1]
    assert np.array_equal(parts[-1:], signer.sign(["short"]))
    # By hand: words and characters at their place of the document, in parts of equal length.
    found = [text_oracle.word_features(text), text_oracle.char_features(text, 1)]
    places = sorted(
        ((2 * at + 1) / len(features), kind, at)
        for kind, features in enumerate(found)
        for at in range(len(features))
    )
    count = len(parts) - 1
    for part in range(count):
        inside = places[total * part // count : total * (part + 1) // count]
        assert len(inside) <= 100 and {kind for _, kind, _ in inside} == {0, 1}
        features = [text_oracle.of_kind([found[kind][at]], kind)[0] for _, kind, at in inside]
        sums = text_oracle.topsig(text_oracle.weigh(features, "count"), 1024, 21)
        assert text_oracle.unpacked(parts[part].tolist(), 1024) == [one > 0 for one in sums]
    words = la.TopSig(1024, features=la.Words((1, 2))).sign_parts([text], terms=60)[0]
    first = la.TopSig(1024).sign([" ".join(f"w{at}" for at in range(40))])
    near, far = la.hamming(first, words[0])[0], la.hamming(first, words[-1])[0]
    assert near < far  # the beginning is in the first part, with its phrases


def test_they_are_found_again_wherever_they_are_kept(tmp_path: Path) -> None:
    kinds = la.Combined(la.Words((1, 2), stopwords="english"), la.Chars(4), ENDS, weights=(2, 1, 3))
    assert feature_kind_from_dict(kinds.to_dict()) == kinds
    assert pickle.loads(pickle.dumps(kinds)) == kinds and hash(kinds) == hash(kinds)
    texts = ["the cat sat on a mat", "a cat sat on the mats", "dogs bark"]
    for signer in (
        la.SimHash(64, kinds),
        la.BBitMinHash(64, features=kinds),
        la.TopSig(64, 3, kinds),
    ):
        again = pickle.loads(pickle.dumps(signer))
        assert again == signer and np.array_equal(again.sign(texts), signer.sign(texts))
        file = tmp_path / f"{type(signer).__name__}.lookalike"
        signer.save(file)
        assert la.load_signer(file) == signer == la.signatures.signer_from_dict(signer.to_dict())
    fitted = la.SimHash(64, kinds, "tfidf").fit(texts)
    assert pickle.loads(pickle.dumps(fitted)) == fitted
    with la.open_collection(tmp_path / "docs.db", signer=la.SimHash(64, kinds)) as docs:
        docs.add(["a", "b", "c"], texts)
    with la.open_collection(tmp_path / "docs.db") as docs:
        assert docs.signer == la.SimHash(64, kinds)
        assert docs.search(texts[1], k=1)[0].id == "b"
    index = la.ScanIndex(la.SimHash(64, kinds).sign(texts))
    index.signer = la.SimHash(64, kinds)
    index.save(tmp_path / "index.lookalike")
    assert la.load_index(tmp_path / "index.lookalike").signer == la.SimHash(64, kinds)
    minhash = la.MinHash(16, kinds)
    bands = la.BandIndex(0.5, signer=minhash)
    bands.insert_many(["a", "b", "c"], texts)
    assert "a" in [match.key for match in bands.query(texts[0])]


def test_a_function_without_a_name_is_refused_in_files(tmp_path: Path) -> None:
    kinds = la.Combined(la.Words(), str.split)
    assert kinds != la.Combined(la.Words(), str.upper) and kinds == la.Combined(
        la.Words(), str.split
    )
    with pytest.raises(
        la.errors.ArgumentError, match="the function that finds features has no name"
    ):
        la.SimHash(64, kinds).save(tmp_path / "signer")
    with pytest.raises(
        la.errors.ArgumentError, match="the function that finds features has no name"
    ):
        la.dedup(["a b"], features=kinds, work=tmp_path / "work")


def test_what_fails_is_told_with_its_place_among_all_documents() -> None:
    def failing(text: str) -> list[str]:
        return [text] if text != "bad" else [None]  # type: ignore[list-item]

    texts = [*(["good"] * 9_000), "bad"]
    with pytest.raises(la.errors.DocumentError, match="document 9000 has the feature None"):
        la.SimHash(64, la.Combined(la.Words(), failing)).sign(iter(texts))
    with pytest.raises(la.errors.DocumentError, match="document 1 is of type int"):
        la.SimHash(64, la.Combined(la.Words(), la.Chars())).sign(["a", 3])


def test_combined_kinds_within_combined_ones_are_taken_apart() -> None:
    inner = la.Combined(la.Words(), la.Chars(), weights=(1, 0.5))
    outer = la.Combined(inner, la.Words(2), weights=(4, 1))
    assert outer == la.Combined(la.Words(), la.Chars(), la.Words(2), weights=(4, 2, 1))
    assert unit_text(outer) == "words and character 5-grams and word 2-grams"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: la.Combined(), "there are no kinds of features to combine"),
        (lambda: la.Combined(la.Words()), "there is one kind of features to combine"),
        (lambda: la.Combined(la.Words(), la.features.Features()), "which take no texts"),
        (lambda: la.Combined(la.Words(), la.Words(1)), "once more; give them a higher weight"),
        (lambda: UNTYPED(la.Words(), 3), "or a function from a text to its features"),
        (lambda: la.Combined(la.Words(), la.Chars(), weights=(1,)), "expected 2 numbers"),
        (lambda: UNTYPED(la.Words(), la.Chars(), weights=5), "weights are 5; expected 2"),
        (lambda: UNTYPED(la.Words(), la.Chars(), weights="ab"), "expected 2 numbers"),
        (lambda: la.Combined(la.Words(), la.Chars(), weights=(1, 0)), "leave out a kind that"),
        (lambda: la.Combined(la.Words(), la.Chars(), weights=(1, -1)), "from 1e-06 to 1e.06"),
        (lambda: la.Combined(la.Words(), la.Chars(), weights=(1, np.nan)), "from 1e-06 to 1e.06"),
        (lambda: feature_kind_from_dict({"kind": "Combined"}), "kinds is None"),
        (lambda: feature_kind_from_dict({"kind": "Combined", "kinds": [3]}), "is 3 of type int"),
        (
            lambda: feature_kind_from_dict(
                {"kind": "Combined", "kinds": [{"kind": "Combined"}, {"kind": "Words"}]}
            ),
            "has Combined features within Combined ones",
        ),
        (
            lambda: feature_kind_from_dict({"kind": "Combined", "kinds": [], "more": 1}),
            "the description of Combined cannot be used",
        ),
        (lambda: feature_kind_from_dict({"kind": "TextKind"}), "expected one of: Chars, Combined"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        make()
