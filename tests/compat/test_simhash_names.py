"""`lookalike.compat.simhash`: the values of 1e0ng's and seomoz's packages, and their answers."""

from __future__ import annotations

import hashlib
import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.compat import simhash
from lookalike.compat.simhash import Corpus, Simhash, SimhashIndex
from support.oracles import scan as oracle

TEXT = "How are you? I AM fine. Thanks. And you?"

# What simhash 2.1.2 gives.
VALUES: list[tuple[Any, dict[str, Any], int]] = [
    (["aaa", "bbb"], {}, 57087923692560392),
    ([str(number) for number in range(500)], {}, 7984652473404407437),
    ([(str(number), 50 * number) for number in range(500)], {}, 3372825719632739723),
    ("", {}, 16825458760271544958),
    ([], {}, 0),
    (TEXT, {}, 13831624873712969754),
    (TEXT, {"f": 128}, 291933601756665082964221794515865724954),
    (TEXT, {"f": 8}, 26),
    (TEXT, {"reg": r"\w"}, 13831624873712969754),
    (TEXT, {"hashfunc": lambda data: hashlib.sha256(data).digest()}, 5479327596744958025),
    (TEXT, {"hashfunc": lambda data: int(hashlib.md5(data).hexdigest(), 16)}, 13831624873712969754),
    ({"one": 0.1, "two": 0.2, "three": 0.3}, {}, 16419212760396736608),
    ([("one", 3), "two", "three", ("four", -2), "five"], {}, 17293540887691197435),
]


@pytest.mark.parametrize(("features", "options", "value"), VALUES)
def test_values_are_theirs(features: Any, options: dict[str, Any], value: int) -> None:
    made = Simhash(features, **options)
    assert made.value == value
    assert Simhash(made).value == Simhash(value).value == value
    assert pickle.loads(pickle.dumps(Simhash(value))) == Simhash(value)


hashes = st.lists(st.integers(0, 2**64 - 1), max_size=9)


@given(hashes)
def test_ours_of_the_complements_are_the_complement_of_theirs(given: list[int]) -> None:
    turned = [[each ^ 2**64 - 1 for each in given]]
    ours = la.SimHash(64, la.features.Features(hashed=True)).sign(turned)
    more = [2 * sum(each >> bit & 1 for each in given) > len(given) for bit in range(64)]
    expected = sum(1 << bit for bit in range(64) if more[bit])
    assert simhash.to_values(~ours) == [simhash.compute(given)] == [expected]
    tokens = [str(each) for each in given]
    numbers = [int(hashlib.md5(token.encode()).hexdigest(), 16) & 2**64 - 1 for token in tokens]
    assert Simhash(tokens).value == simhash.compute(numbers)


@given(
    st.lists(st.integers(0, 2**16 - 1), max_size=40),
    st.integers(0, 15),
    st.lists(st.integers(0, 39), max_size=20),
)
@settings(max_examples=60)
def test_the_index_finds_what_is_within_k_bits(stored: list[int], k: int, gone: list[int]) -> None:
    index = SimhashIndex(
        [(number, Simhash(value, 16)) for number, value in enumerate(stored[::2])], f=16, k=k
    )
    living = dict(enumerate(stored[::2]))
    for number, value in enumerate(stored[1::2], 100):
        index.add(f"{number}", Simhash(value, 16))
        index.add(f"{number}", Simhash(value, 16))
        living[number] = value
    for number in gone:
        index.delete(number, Simhash(stored[number] if number < len(stored) else 0, 16))
        if living.get(number) == (stored[number] if number < len(stored) else 0):
            del living[number]
    for query in [*stored[:3], 0]:
        found = index.get_near_dups(Simhash(query, 16))
        near = sorted((query ^ value).bit_count() for value in living.values())
        distances = [(query ^ living[int(name)]).bit_count() for name in found]
        assert distances == [far for far in near if far <= k]
    parts = {key for value in living.values() for key in index.get_keys(Simhash(value, 16))}
    assert index.bucket_size() == len(parts)
    assert set(index.bucket) == parts


def test_an_index_can_be_sent_to_another_process() -> None:
    index = SimhashIndex([("a,b", Simhash("some text")), ("c", Simhash(5))], k=3)
    twin = pickle.loads(pickle.dumps(index))
    assert twin.get_near_dups(Simhash("some text")) == ["a,b"]
    assert twin.offsets == [0, 16, 32, 48]
    assert sorted(twin.get_keys(Simhash(5))) == ["0:1", "0:2", "0:3", "5:0"]


ABSENT = 1 << 32
"""A value with a bit that the values below never have."""


@given(st.lists(st.integers(0, 2**64 - 1).map(lambda value: value & 0xFF000000000000FF)))
@example([0, 2**63])
@settings(max_examples=60)
def test_pairs_and_a_corpus(values: list[int]) -> None:
    distinct = sorted(set(values))
    expected = [
        (low, high) for low, high in combinations(distinct, 2) if (low ^ high).bit_count() <= 3
    ]
    assert simhash.find_all(values, 5, 3) == expected
    corpus = Corpus(6, 3)
    corpus.insert_bulk(values)
    assert corpus.hashes() == distinct
    corpus.remove_bulk([*distinct[::2], ABSENT])
    for query in distinct[:5]:
        near = sorted((query ^ each).bit_count() for each in distinct[1::2])
        found = corpus.find_all(query)
        assert [(query ^ each).bit_count() for each in found] == [far for far in near if far <= 3]
        assert corpus.find_first(query) == (found[0] if found else 0)
        assert corpus.find_first_bulk([query]) == [corpus.find_first(query)]


def test_what_seomoz_promises() -> None:
    assert simhash.unsigned_hash(b"text") == int(hashlib.md5(b"text").hexdigest()[:16], 16)
    assert simhash.num_differing_bits(0xDEADBEEF, 0xDEADBEAD) == 2
    assert simhash.num_differing_bits(0, 2**64 - 1) == 64
    assert simhash.compute([0xABCD, 0xBCDE, 0xCDEF]) == 0xADCF
    assert list(simhash.shingle("abcde", 3)) == [["a", "b", "c"], ["b", "c", "d"], ["c", "d", "e"]]
    assert Corpus(4, 3).distance(1, 2) == 2
    assert simhash.find_all([], 4, 3) == []


def test_numbers_and_signatures_are_the_same_bits() -> None:
    rows = oracle.collection(20, 16, "uniform", 0)
    assert np.array_equal(simhash.to_signatures(simhash.to_values(rows), 128), rows)
    values = [Simhash(text).value for text in ("one", "two")]
    far = la.hamming(*simhash.to_signatures(values))
    assert far.tolist() == [Simhash("one").distance(Simhash("two"))]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Simhash("text", f=12), "multiple of 8"),
        (lambda: Simhash(1.5), "expected a text, features"),
        (lambda: Simhash("text", f=256), "hashfunc gave 16 bytes; expected 32"),
        (lambda: Simhash("text").distance(Simhash("text", f=128)), "expected 64"),
        (lambda: SimhashIndex([("1", Simhash("text", 128))]), "has 128 bits; expected 64"),
        (lambda: SimhashIndex([], k=-1), "k is -1"),
        (lambda: list(simhash.shingle("abc", 0)), "window is 0"),
        (lambda: simhash.find_all([1], 3, 3), "more blocks than"),
        (lambda: simhash.compute(["a"]), "expected a whole"),  # type: ignore[list-item]
        (lambda: simhash.to_signatures(5), "expected whole numbers"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        call()
