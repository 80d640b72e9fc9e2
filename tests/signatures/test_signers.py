"""What all signers promise: the same bits everywhere, and a description that brings them back."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la

TEXTS = [f"document {i} has words {i * 7} and {i % 13} others, common ones" for i in range(9_000)]
SIGNERS: list[Any] = [
    la.SimHash(),
    la.SimHash(1000, la.Words(ngram=2, stopwords="english", stem="english"), seed=5),
    la.SimHash(weights="tfidf").fit(TEXTS[:100]),
    la.SimHash(weights=la.Weights("log-likelihood")).fit(TEXTS[:100], most_features=50),
    la.TopSig().fit(TEXTS[:100]),
    la.TopSig(64, density=7, features=la.Chars(3), seed=1),
    la.MinHash(),
    la.MinHash(33, la.Words(stopwords=["common", "ones"], lowercase=False), seed=9),
    la.BBitMinHash(64, 3),
]


@pytest.mark.parametrize("signer", SIGNERS, ids=repr)
def test_threads_batches_and_order_do_not_matter(signer: Any) -> None:
    expected = signer.sign(TEXTS, threads=1)
    for threads in (2, 5):
        assert np.array_equal(signer.sign(TEXTS, threads=threads), expected)
    assert np.array_equal(signer.sign(TEXTS[::-1]), expected[::-1])
    assert np.array_equal(np.concatenate([signer.sign([t]) for t in TEXTS[:5]]), expected[:5])
    assert expected.nbytes == signer.bits // 8 * len(TEXTS)


@pytest.mark.parametrize("signer", SIGNERS, ids=repr)
def test_a_described_signer_signs_alike(signer: Any, tmp_path: Path) -> None:
    expected = signer.sign(TEXTS[:50])
    again = type(signer).from_dict(json.loads(json.dumps(signer.to_dict())))
    assert again == signer
    assert repr(again) == repr(signer)
    assert np.array_equal(again.sign(TEXTS[:50]), expected)
    signer.save(tmp_path / "signer.lookalike")
    loaded = la.load_signer(tmp_path / "signer.lookalike")
    assert loaded == signer
    assert np.array_equal(loaded.sign(TEXTS[:50]), expected)


def test_projections_are_described_too(tmp_path: Path) -> None:
    signer = la.Projection(64, 5, seed=3)
    signer.save(tmp_path / "x")
    assert la.load_signer(tmp_path / "x") == la.Projection.from_dict(signer.to_dict()) == signer
    assert repr(signer) == "Projection(bits=64, dimensions=5, seed=3)"


def test_different_seeds_and_settings_give_different_bits() -> None:
    assert not np.array_equal(la.SimHash(seed=1).sign(TEXTS[:9]), la.SimHash().sign(TEXTS[:9]))
    assert not np.array_equal(la.TopSig(seed=1).sign(TEXTS[:9]), la.TopSig().sign(TEXTS[:9]))
    assert not np.array_equal(la.MinHash(seed=1).sign(TEXTS[:9]), la.MinHash().sign(TEXTS[:9]))
    assert la.SimHash(seed=1) != la.SimHash()
    # Narrower signatures are the beginning of wider ones.
    assert np.array_equal(la.SimHash(128).sign(TEXTS)[:, :8], la.SimHash(64).sign(TEXTS))
    assert np.array_equal(la.MinHash(64).sign(TEXTS)[:, :8], la.MinHash(8).sign(TEXTS))


def test_many_python_threads_on_one_signer() -> None:
    signer = la.SimHash(features=la.Words(stem="english"))
    expected = signer.sign(TEXTS)
    fresh = la.SimHash(features=la.Words(stem="english"))
    with ThreadPoolExecutor(8) as pool:
        parts = pool.map(lambda i: fresh.sign(TEXTS[i * 300 : (i + 1) * 300]), range(30))
        assert np.array_equal(np.concatenate(list(parts)), expected)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"signer": "Guess"}, la.errors.ArgumentError, "signer is 'Guess'; expected one of"),
        ({"version": 2}, la.errors.FormatError, "version 2; this lookalike has version 1"),
        ({"features": {"kind": "Guess"}}, la.errors.ArgumentError, "kind of features is 'Guess'"),
        ({"features": {"kind": "Words", "x": 1}}, la.errors.ArgumentError, "Words cannot be used"),
        ({"features": 3}, la.errors.ArgumentError, "features is 3 of type int"),
        ({"bits": 7}, la.errors.ArgumentError, "bits is 7"),
        ({"surprise": 7}, la.errors.ArgumentError, "cannot be used"),
        ({"weights": {"kind": "x"}}, la.errors.ArgumentError, "weights is 'x'"),
    ],
)
def test_descriptions_that_make_no_sense_are_refused(
    change: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        la.signatures.signer_from_dict({**la.SimHash().to_dict(), **change})


def test_a_signer_of_another_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(la.errors.ArgumentError, match="describes a SimHash; expected a TopSig"):
        la.TopSig.from_dict(la.SimHash().to_dict())
    la.ScanIndex(np.zeros((1, 8), np.uint8)).save(tmp_path / "index")
    with pytest.raises(la.errors.FormatError, match="holds no signer"):
        la.load_signer(tmp_path / "index")
    la.SimHash().save(tmp_path / "signer")
    with pytest.raises(la.errors.FormatError, match="kind None"):
        la.load_index(tmp_path / "signer")
    la.SimHash(weights="tfidf").fit(TEXTS).save(tmp_path / "learned")
    data = bytearray((tmp_path / "learned").read_bytes())
    data[-1] ^= 1
    (tmp_path / "learned").write_bytes(data)
    with pytest.raises(la.errors.CorruptIndexError, match="checksum"):
        la.load_signer(tmp_path / "learned")
