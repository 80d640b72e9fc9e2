from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lookalike as la

TEXTS = ["the first text", "", "zweiter Text, länger als zwölf Bytes", "漢字", "x" * 50]
SIGNER = la.SimHash()
EXPECTED = SIGNER.sign(TEXTS)


@pytest.mark.parametrize(
    "documents",
    [
        tuple(TEXTS),
        (text for text in TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, object),
        dict.fromkeys(TEXTS),
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.chunked_array([TEXTS[:2], [], TEXTS[2:]]),
        pa.array(["no", *TEXTS, "no"])[1:-1],
        pa.array(["no", *TEXTS], pa.string_view())[1:],
        pa.array([None, *TEXTS])[1:],
        pa.table({"text": TEXTS})["text"],
        pd.Series(TEXTS),
        pd.Series(TEXTS, dtype=object),
        pd.Series(TEXTS, dtype="string"),
        pl.Series(TEXTS),
        pl.DataFrame({"text": TEXTS})["text"],
    ],
    ids=lambda documents: type(documents).__module__ + "." + type(documents).__name__,
)
def test_documents_of_any_sort_have_the_same_signatures(documents: Any) -> None:
    assert np.array_equal(SIGNER.sign(documents), EXPECTED)


@pytest.mark.parametrize("empty", [[], pa.array([], pa.string()), pd.Series([], dtype=str), ()])
def test_no_documents_give_no_signatures(empty: Any) -> None:
    assert SIGNER.sign(empty).shape == (0, 8)
    assert la.MinHash(16).sign(empty).shape == (0, 16)
    assert la.TopSig().sign(empty).shape == (0, 128)
    assert la.BBitMinHash(16).sign(empty).shape == (0, 2)
    assert SIGNER.feature_counts(empty).shape == (0,)
    assert la.jaccard(empty, empty).shape == (0,)


def failing() -> Iterator[str]:
    yield from ["fine"] * 10_000
    raise OSError("the disk is gone")


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ("a text", r"documents are one str; .*pass \[text\]"),
        (b"bytes", "documents are one bytes"),
        (None, "documents are of type NoneType; expected a list of str"),
        (7, "documents are of type int"),
        (["a", None], "document 1 is of type NoneType; expected str"),
        (["a", b"b"], "document 1 is of type bytes; expected str"),
        ([3.5], "document 0 is of type float; expected str"),
        (["x"] * 9000 + [None], "document 9000 is of type NoneType"),
        (["fine", "lone \ud800 surrogate"], "document 1 cannot be encoded as UTF-8 .*surrogates"),
        (pa.array(["a", None, "b"]), "document 1 is null; fill or drop nulls"),
        (pa.chunked_array([["a"], ["b", None]]), "document 2 is null"),
        (pa.array([1, 2]), "Arrow column of type 'l'; expected strings"),
        (pa.array(["a", "b"]).dictionary_encode(), "type 'a dictionary'; .*cast"),
        (pa.array([b"a"]), "Arrow column of type 'z'"),
        (pd.Series(["a", None]), "document 1 is"),
        (pl.Series(["a", None]), "document 1 is null"),
    ],
)
def test_what_is_no_document_is_named_with_its_position(documents: Any, message: str) -> None:
    for act in (
        SIGNER.sign,
        la.MinHash(8).sign,
        la.TopSig(bits=64).sign,
        la.SimHash(weights="tfidf").fit,
        SIGNER.feature_counts,
    ):
        with pytest.raises(la.errors.DocumentError, match=message):
            act(documents)


def test_an_iterator_that_fails_leaves_nothing_half_done() -> None:
    signer = la.SimHash(weights="tfidf").fit(["one text", "another text"])
    before = signer.to_dict()
    with pytest.raises(OSError, match="the disk is gone"):
        signer.fit(failing())
    assert signer.to_dict() == before
    with pytest.raises(OSError, match="the disk is gone") as raised:
        signer.sign(failing())
    assert raised.value.__notes__ == ["raised where document 10000 was to come"]


def test_an_iterable_is_held_a_batch_at_a_time() -> None:
    class Text(str):
        alive = 0
        most = 0

        def __init__(self, _: str) -> None:
            Text.alive += 1
            Text.most = max(Text.most, Text.alive)

        def __del__(self) -> None:
            Text.alive -= 1

    count = 40_000
    assert len(SIGNER.sign(Text("some words") for _ in range(count))) == count
    assert Text.most < 20_000


def test_ready_made_features() -> None:
    kind = la.features.Features()
    signer = la.SimHash(features=kind, weights="count")
    documents: list[Any] = [
        {"link": 2.0, "anchor": 0.5},
        [("link", 2.0), ("anchor", 0.5)],
        [("anchor", 0.5), ("link", 1.5), ("link", 0.5)],
        [(b"link", 2), (np.uint64(la.SimHash().seed), 0), ("anchor", np.float32(0.5))],
    ]
    signatures, weights = signer.sign_with_weights(documents)
    assert (signatures == signatures[0]).all()
    assert np.allclose(weights, weights[0])
    assert kind.counts(documents).tolist() == [2, 2, 3, 3]
    numbers = la.MinHash(64, kind)
    assert numbers.similarity(*numbers.sign([[1, 2, 3], [4, 5, 6]])[:, None])[0] < 0.2
    assert la.jaccard([1, 2], [2, 3], kind) == pytest.approx(1 / 3)
    plain = signer.sign([["a", "b", "b"]])
    assert np.array_equal(plain, la.SimHash().sign(["a b b"]))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("text", "document 1 is of type str; expected a list of features"),
        (5, "document 1 is of type int"),
        (
            [("a", -2e15)],
            "weight -2000000000000000.0; expected a number from -1e15",
        ),
        ([("a", float("nan"))], "document 1 has the weight nan"),
        ([("a", float("inf"))], "document 1 has the weight inf"),
        ([("a", "b")], "document 1 has the weight 'b'"),
        ([None], "document 1 has the feature None of type NoneType"),
        ([-1], "document 1 has the feature -1"),
        ([2**64], "document 1 has the feature 18446744073709551616"),
        (["\ud800"], "document 1 .*surrogates"),
    ],
)
def test_ready_made_features_that_are_none(document: Any, message: str) -> None:
    with pytest.raises(la.errors.DocumentError, match=message):
        la.SimHash(features=la.features.Features()).sign([["fine"], document])
