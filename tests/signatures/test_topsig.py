from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from support.oracles import text as text_oracle

texts = st.lists(st.sampled_from("alpha beta gamma delta epsilon zeta".split()), max_size=15)
documents = st.lists(texts.map(" ".join), min_size=1, max_size=4)


@given(
    documents,
    st.sampled_from([8, 64, 1024]),
    st.sampled_from([1, 3, 8]),
    st.booleans(),
    st.sampled_from([0, 9]),
)
def test_signatures_equal_the_oracle_with_every_kernel(
    kernel: str, texts: list[str], bits: int, density: int, fitted: bool, seed: int
) -> None:
    signer = la.TopSig(bits, density, seed=seed)
    collection = [text_oracle.word_features(text) for text in texts]
    if fitted:
        signer.fit(texts)
    signatures = signer.sign(texts)
    assert signatures.shape == (len(texts), bits // 8)
    for row, document in enumerate(collection):
        kind = "log-likelihood" if fitted else "count"
        weights = text_oracle.weigh(document, kind, collection)
        sums = np.array(text_oracle.topsig(weights, bits, density, seed))
        signs = np.array(text_oracle.unpacked(signatures[row].tolist(), bits))
        clear = np.abs(sums) > 1e-6 if fitted else np.full(bits, True)
        assert np.array_equal(signs[clear], sums[clear] > 0)


def test_one_value_in_density_is_set_half_of_each_sign() -> None:
    """The vectors themselves, seen through documents of one word and their complement."""
    density, bits = 21, 1024
    for feature in range(1, 200):
        vector = np.array(text_oracle.ternary(feature, bits, density))
        groups = np.split(vector[: bits // density * density], bits // density)
        assert all(np.count_nonzero(group) == 1 for group in groups)
        assert abs(int(vector.sum())) <= 1
    signer = la.TopSig(bits, density, features=la.features.Features(hashed=True))
    ones = np.unpackbits(signer.sign([[feature] for feature in range(2_000)]), axis=1)
    share = ones.mean()  # +1 alone is a bit
    assert abs(share - 0.5 / density) < 4 * (0.5 / density / ones.size) ** 0.5
    overlap = ones[:1000].astype(int) @ ones[1000:].T.astype(int)
    assert overlap.mean() == pytest.approx(bits * (0.5 / density) ** 2, rel=0.05)


def test_documents_without_features_have_no_bit_set() -> None:
    assert not la.TopSig().sign(["", "?!"]).any()


def test_near_documents_are_nearer_than_others() -> None:
    rng = np.random.default_rng(3)
    words = rng.integers(0, 5_000, (300, 80)).astype(str)
    edited = words.copy()
    edited[:, :4] = "x"
    signer = la.TopSig().fit(" ".join(row) for row in words)
    originals = signer.sign([" ".join(row) for row in words])
    copies = signer.sign([" ".join(row) for row in edited])
    assert la.ScanIndex(originals).search(copies, 1).ids[:, 0].tolist() == list(range(300))


def test_long_documents_are_split_by_terms() -> None:
    signer = la.TopSig(256)
    long = " ".join(f"w{i}" for i in range(95))
    parts, of = signer.sign_parts(["short text", long, "", "x"], terms=30)
    assert of.tolist() == [0, 1, 1, 1, 1, 2, 3]
    cuts = [" ".join(f"w{i}" for i in range(95 * p // 4, 95 * (p + 1) // 4)) for p in range(4)]
    assert np.array_equal(parts, signer.sign(["short text", *cuts, "", "x"]))
    with pytest.raises(la.errors.ArgumentError, match="terms is 0"):
        signer.sign_parts(["a"], terms=0)


def test_density_that_makes_no_sense_is_named() -> None:
    with pytest.raises(la.errors.ArgumentError, match="density is 0; expected .* from 1 to 1024"):
        la.TopSig(density=0)
