"""MinHash by functions that the caller gives."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from support.oracles import text as text_oracle

EMPTY = 2**32 - 1
UNTYPED: Any = la.MinHash

numbers = st.integers(0, 40) | st.integers(0, 2**64 - 1)
linear = st.tuples(
    st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(1, 60) | st.just(2**32 - 1)
)


def function_of(given: Any) -> Callable[[int], int]:
    if isinstance(given, dict):
        return given.__getitem__
    a, c, m = given
    return lambda x: (a * x + c) % m


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[int]], list[Any]]:
    """Draw sets of numbers, and functions of which some are tables of all of them."""
    sets = draw(st.lists(st.lists(numbers, max_size=8), max_size=6))
    universe = sorted({each for members in sets for each in members} | {3})
    values = st.integers(0, 2**32 - 2) | st.integers(0, 9)
    table = st.lists(values, min_size=len(universe), max_size=len(universe)).map(
        lambda drawn: dict(zip(universe, drawn, strict=True))
    )
    return sets, draw(st.lists(linear | table, min_size=1, max_size=9))


@given(cases(), st.sampled_from([1, 3]))
def test_values_equal_the_oracle(case: tuple[list[list[int]], list[Any]], threads: int) -> None:
    sets, hashes = case
    signer = la.MinHash(hashes=hashes, features=la.features.Features(hashed=True))
    values = signer.sign(sets, threads=threads)
    functions = [function_of(one) for one in hashes]
    expected = [text_oracle.minhash(members, functions) for members in sets]
    assert values.tolist() == [[EMPTY if one is None else one for one in row] for row in expected]
    assert signer.permutations == len(hashes)
    halves = signer.union(
        signer.sign([members[::2] for members in sets]),
        signer.sign([members[1::2] for members in sets]),
    )
    assert np.array_equal(halves, values)
    again = la.signatures.signer_from_dict(json.loads(json.dumps(signer.to_dict())))
    assert again == signer and np.array_equal(again.sign(sets), values)


@given(st.lists(st.lists(numbers, max_size=8), max_size=5), st.sampled_from([1, 2, 4, 16]))
def test_packed_bits_are_the_lowest_of_the_values(sets: list[list[int]], b: int) -> None:
    hashes = [(k, k * k, 2**31 - 1) for k in range(1, 9)]
    packed = la.BBitMinHash(hashes=hashes, b=b, features=la.features.Features(hashed=True))
    signatures = packed.sign(sets)
    for row, members in zip(signatures.tolist(), sets, strict=True):
        least = text_oracle.minhash(members, [function_of(one) for one in hashes])
        bits = text_oracle.unpacked(row, 8 * b)
        for place, value in enumerate(EMPTY if one is None else one for one in least):
            low = sum(bit << at for at, bit in enumerate(bits[place * b : (place + 1) * b]))
            assert low == value % 2**b
    again = pickle.loads(pickle.dumps(packed))
    assert again == packed and np.array_equal(again.sign(sets), signatures)


def test_tables_speak_of_features_as_documents_do(tmp_path: Path) -> None:
    words = {"cat": 5, "dog": 3, "owl": 4}
    for features, documents in [
        (la.Words(), ["cat owl", "dog"]),
        (la.features.Features(), [["cat", b"owl"], {"dog": 2.0}]),
        (la.Chars(3), ["cat", "dog"]),
    ]:
        signer = la.MinHash(hashes=[words, (1, 0, 2)], features=features)
        assert signer.sign(documents)[:, 0].tolist() == [4 + isinstance(features, la.Chars), 3]
        signer.save(tmp_path / "signer.lookalike")
        assert la.load_signer(tmp_path / "signer.lookalike") == signer
    numbered = la.MinHash(hashes=[{7: 1, 9: 0}], features=la.features.Features())
    assert numbered.sign([[7], [9, 7]]).tolist() == [[1], [0]]
    assert "a table of 3 features, (1, 0, 2)" in repr(signer)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_feature_that_a_table_does_not_have_is_told(threads: int) -> None:
    signer = la.MinHash(hashes=[(1, 1, 7), {"a": 1}, {"b": 1}], features=la.Words())
    documents = ["a"] * 3
    with pytest.raises(
        la.errors.DocumentError, match=r"document 0 has a feature that .*hashes\[2\]"
    ):
        signer.sign(documents, threads=threads)
    both = la.MinHash(hashes=[{"a": 1, "b": 2}], features=la.Words())
    texts = iter([*(["a b"] * 9_000), "c", "a", "d"])  # more than are read at a time
    with pytest.raises(la.errors.DocumentError, match=r"document 9000 has a feature"):
        both.sign(texts, threads=threads)


def test_rows_of_other_functions_are_not_compared() -> None:
    features = la.features.Features(hashed=True)
    one = la.MinHash(hashes=[(1, 1, 7)], features=features)
    other = la.MinHash(hashes=[(3, 1, 7)], features=features)
    random = la.MinHash(1, features)
    assert one != other != random and "hashes" not in random.to_dict()
    for signer in (other, random):
        with pytest.raises(la.errors.SignatureError, match="sign both with the same signer"):
            one.similarity(one.sign([[1]]), signer.sign([[1]]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UNTYPED(hashes=[]), r"hashes are \[\]; expected a list, each of them \(a, c, m\)"),
        (lambda: UNTYPED(hashes=3), "hashes are 3"),
        (lambda: UNTYPED(hashes=(1, 1, 7)), r"hashes\[0\] is 1; expected \(a, c, m\)"),
        (lambda: UNTYPED(hashes={"a": 1}), "expected a list"),
        (lambda: UNTYPED(hashes=[lambda x: x]), r"or a table \{feature: value\}"),
        (lambda: UNTYPED(hashes=[(1, 1, 0)]), r"the modulus of hashes\[0\] is 0"),
        (lambda: UNTYPED(hashes=[(1, 1, 2**32)]), "whole number from 1 to 4294967295"),
        (lambda: UNTYPED(hashes=[(-1, 1, 7)]), r"hashes\[0\] is -1"),
        (lambda: UNTYPED(hashes=[(1, 1)]), r"hashes\[0\] is \(1, 1\)"),
        (lambda: UNTYPED(hashes=[{}]), r"hashes\[0\] is \{\}"),
        (lambda: UNTYPED(hashes=[{"a": -1}]), r"a value of hashes\[0\] is -1"),
        (lambda: UNTYPED(hashes=[{"a": 2**32 - 1}]), "a whole number from 0 to 4294967294"),
        (lambda: UNTYPED(hashes=[{1.5: 1}]), r"hashes\[0\] has the feature 1.5"),
        (lambda: UNTYPED(hashes=[{"a": 1, b"a": 2}]), "has a feature twice"),
        (lambda: UNTYPED(hashes=[dict.fromkeys(range(10**5 + 1), 1)]), "at most 100000"),
        (lambda: UNTYPED(2, hashes=[(1, 1, 7)]), "there is 1 function in hashes; leave it out"),
        (lambda: UNTYPED(hashes=[(1, 1, 7)], seed=3), "seed is 3, and does nothing with hashes"),
        (lambda: la.BBitMinHash(hashes=[(1, 1, 7)]), "1 bits; expected a multiple of 8"),
        (lambda: UNTYPED(hashes=[(1, 1, 7)]).count(np.zeros((1, 1), np.uint32)), "count.. needs"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        make()
