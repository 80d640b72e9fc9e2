"""Signers in other processes: pickled, copied and as bytes they sign as they did."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.errors import BatchError, ItemError

TEXTS = [f"document {i} has the words {i * 7} and {i % 13} others, common ones" for i in range(60)]

texts = st.one_of(
    st.builds(
        la.Words,
        st.integers(1, 6),
        st.booleans(),
        st.sampled_from([None, "english", ["common", "the"]]),
        st.sampled_from([None, "english"]),
        st.integers(1, 4),
    ),
    st.builds(la.Chars, st.integers(1, 9), st.booleans()),
)
weights = st.sampled_from(["uniform", "count", "log-count", "tfidf", "log-likelihood"])
seeds = st.integers(0, 2**64 - 1)
signers = st.one_of(
    st.builds(la.SimHash, st.sampled_from([8, 64, 200]), texts, weights, seeds),
    st.builds(la.TopSig, st.sampled_from([64, 128]), st.integers(1, 21), texts, seeds, weights),
    st.builds(la.MinHash, st.integers(1, 40), texts, seeds),
    st.builds(la.BBitMinHash, st.sampled_from([8, 64]), st.integers(1, 16), texts, seeds),
    st.builds(la.WeightedMinHash, st.integers(1, 9), texts, weights, seeds),
)


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


COPIES: list[Callable[[Any], Any]] = [
    pickled,
    copy.copy,
    copy.deepcopy,
    lambda signer: type(signer).from_bytes(signer.to_bytes()),
]


def signed(signer: Any) -> Any:
    try:
        return signer.sign(TEXTS).tolist()
    except la.errors.NotFittedError as error:
        return str(error)


@given(signer=signers, fit=st.booleans(), duplicate=st.sampled_from(COPIES))
@settings(max_examples=100)
def test_a_twin_signs_alike(signer: Any, fit: bool, duplicate: Any) -> None:
    if fit and hasattr(signer, "fit"):
        signer.fit(TEXTS[:20], most_features=50)
    twin = duplicate(signer)
    assert (type(twin), twin, repr(twin)) == (type(signer), signer, repr(signer))
    assert signed(twin) == signed(signer)
    assert pickled(signer.features) == signer.features == copy.deepcopy(signer.features)


@pytest.mark.parametrize("duplicate", COPIES)
def test_projections_have_twins_too(duplicate: Any) -> None:
    signer = la.Projection(64, 5, seed=3)
    vectors = np.random.default_rng(0).normal(size=(20, 5))
    assert np.array_equal(duplicate(signer).sign(vectors), signer.sign(vectors))


@pytest.mark.parametrize("duplicate", COPIES)
def test_a_vocabulary_that_forgot_everything_is_no_lack_of_one(duplicate: Any) -> None:
    signer = la.TopSig(64).fit(["a b c d", "e f g h"], most_features=2)  # all are equally rare
    assert signer.weights.vocabulary is not None
    assert len(signer.weights.vocabulary) == 0
    twin = duplicate(signer)
    assert twin == signer
    assert signed(twin) == signed(signer) != signed(la.TopSig(64))


@pytest.mark.parametrize("duplicate", COPIES)
def test_what_a_twin_learns_is_its_own(duplicate: Any) -> None:
    signer = la.SimHash(weights="tfidf").fit(TEXTS[:10])
    twin = duplicate(signer)
    twin.fit(TEXTS[20:])
    assert signer.weights.vocabulary is not None
    assert (signer.weights.vocabulary.documents, twin.weights.vocabulary.documents) == (10, 40)


@pytest.mark.parametrize("way", multiprocessing.get_all_start_methods())
def test_workers_sign_what_they_are_sent(way: str) -> None:
    signer = la.SimHash(features=la.Words(ngram=2), weights="tfidf").fit(TEXTS)
    expected = signer.sign(TEXTS)  # threads and caches of the core are there before the fork
    parts = [TEXTS[start : start + 20] for start in range(0, 60, 20)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that there are threads is the point
        with multiprocessing.get_context(way).Pool(2) as pool:
            assert np.array_equal(np.concatenate(pool.map(signer.sign, parts)), expected)
            index = la.SliceIndex(expected, 8)
            found = pool.apply(index.search, (expected[:5], 3))
            assert np.array_equal(found.ids, index.search(expected[:5], 3).ids)
            with pytest.raises(la.errors.DocumentError, match="document 1 "):
                pool.apply(signer.sign, (["text", 5],))


def test_features_weights_names_and_errors_are_pickled(tmp_path: Path) -> None:
    fitted = la.Weights("tfidf").fit(TEXTS, la.Words())
    assert pickled(fitted).to_dict() == fitted.to_dict() == copy.deepcopy(fitted).to_dict()
    assert pickled(la.features.Features(hashed=True)) == la.features.Features(hashed=True)
    la.save_signatures(tmp_path / "x", la.SimHash().sign(TEXTS), la.SimHash(), TEXTS)
    saved = pickled(la.load_signatures(tmp_path / "x"))
    assert (saved.ids, saved.signer) == (TEXTS, la.SimHash())
    refused = pickled(BatchError([ItemError(3, "id", "is bad")], 9))
    assert refused.errors == [ItemError(3, "id", "is bad")]
    assert "1 of 9 items" in str(refused)


def test_every_error_reaches_another_process() -> None:
    for name in la.errors.__all__:
        kind = getattr(la.errors, name)
        if kind is not BatchError:
            twin = pickled(kind("what came", "more"))
            assert (type(twin), twin.args) == (kind, ("what came", "more"))


@pytest.mark.parametrize(
    "signer", [la.SimHash(weights="tfidf").fit(TEXTS), la.MinHash(9)], ids=repr
)
def test_damaged_bytes_are_refused(signer: Any) -> None:
    whole = signer.to_bytes()
    rng = np.random.default_rng(0)
    content = np.flatnonzero(np.frombuffer(whole, np.uint8))
    for place in rng.choice(content, 200):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(la.errors.FileError):
            la.Signer.from_bytes(damaged)
    with pytest.raises(la.errors.FormatError, match="expected a TopSig"):
        la.TopSig.from_bytes(whole)
    with pytest.raises(la.errors.FormatError, match="no signer"):
        la.Signer.from_bytes(la.ScanIndex(np.eye(8, 8, dtype=np.uint8)).to_bytes())
