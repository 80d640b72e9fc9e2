from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from support.oracles import text as text_oracle

texts = st.lists(st.sampled_from("alpha beta gamma delta epsilon zeta".split()), max_size=15)
documents = st.lists(texts.map(" ".join), min_size=1, max_size=4)


@given(
    documents, st.sampled_from([8, 64, 1024]), st.sampled_from([1, 3, 8]), st.sampled_from([0, 9])
)
def test_topsig_masks_the_bits_that_no_word_decides(
    texts: list[str], bits: int, density: int, seed: int
) -> None:
    signer = la.TopSig(bits, density, seed=seed)
    collection = [text_oracle.word_features(text) for text in texts]
    signatures, masks = signer.sign(texts, mask=True)
    assert np.array_equal(signatures, signer.sign(texts))
    assert masks.dtype == np.uint8
    for row, document in enumerate(collection):
        weights = text_oracle.weigh(document, "count", collection)
        sums = np.array(text_oracle.topsig(weights, bits, density, seed))
        counted = np.array(text_oracle.unpacked(masks[row].tolist(), bits), bool)
        assert np.array_equal(counted, sums != 0)
    assert not (signatures & ~masks).any()  # a bit that is set was decided


def test_a_word_touches_one_bit_in_density() -> None:
    _, masks = la.TopSig(1024, 21).sign(["word", ""], mask=True)
    assert np.bitwise_count(masks).sum(axis=1).tolist()[1] == 0
    assert 48 <= np.bitwise_count(masks[0]).sum() <= 49


@given(documents, st.sampled_from([8, 64, 136]), st.sampled_from([0, 0.5, 1, 1.5, 100]))
def test_simhash_masks_the_bits_of_little_weight(texts: list[str], bits: int, least: float) -> None:
    signer = la.SimHash(bits)
    signatures, masks = signer.sign(texts, mask=True, least_weight=least)
    same, weights = signer.sign_with_weights(texts)
    assert np.array_equal(signatures, same)
    counted = np.unpackbits(masks, axis=1, bitorder="little").astype(bool)
    assert np.array_equal(counted, np.abs(weights) > least)
    assert np.array_equal(
        signer.sign(texts, mask=True)[1], signer.sign(texts, mask=True, least_weight=0.5)[1]
    )


def test_documents_of_several_batches_have_their_masks_in_order() -> None:
    texts = [f"word{number} and word{number + 1}" for number in range(40_000)]
    for signer in (la.TopSig(64, 8), la.SimHash(64)):
        _, masks = signer.sign(iter(texts), mask=True)
        assert len(masks) == len(texts)
        assert np.array_equal(masks[-3:], signer.sign(texts[-3:], mask=True)[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mask": "yes"}, "mask is 'yes'; expected True or False"),
        ({"mask": True, "least_weight": -1}, "least_weight are -1; expected 0"),
        ({"mask": True, "least_weight": [1, 2]}, r"least_weight is \[1, 2\]; expected one number"),
    ],
)
def test_arguments_that_make_no_sense_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        la.SimHash().sign(["text"], **arguments)


def test_a_few_words_find_the_document_that_has_them() -> None:
    rng = np.random.default_rng(5)
    words = np.array([f"w{number}" for number in range(3_000)])
    documents = [" ".join(rng.choice(words, rng.integers(20, 200))) for _ in range(1_000)]
    titles = [" ".join(document.split()[:8]) for document in documents[:200]]
    signer = la.TopSig().fit(documents)
    index = la.SliceIndex(signer.sign(documents))
    signatures, masks = signer.sign(titles, mask=True)
    right = np.arange(200)
    masked = index.search(signatures, 1, masks=masks).ids[:, 0]
    plain = index.search(signatures, 1).ids[:, 0]
    assert (masked == right).mean() > 0.8
    assert (plain == right).mean() < 0.3
