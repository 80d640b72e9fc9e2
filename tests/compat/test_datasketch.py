"""What datasketch computes and stores, bit for bit; and its indexes against their definition.

The golden file was written by datasketch 1.10 and 2.0. Its own tests are run by
tools/run_peer_tests.py.
"""

from __future__ import annotations

import base64
import json
import pickle
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lookalike as la
from lookalike import compat
from lookalike.compat import datasketch as ds
from lookalike.compat.datasketch.lsh import best_params, best_params_for_containment
from lookalike.compat.datasketch.lshensemble import optimal_partitions

GOLDEN = json.loads((Path(__file__).parent.parent / "data/datasketch_golden.json").read_text())
TOKENS = [b"Hello", b"", b"\xff\x00", "Łódź".encode()]
STORED = [(version, scheme) for version in ("1", "2") for scheme in GOLDEN[version]]


def minhash(tokens: Any, num_perm: int = 16, **settings: Any) -> ds.MinHash:
    one = ds.MinHash(num_perm, **settings)
    one.update_batch([str(token).encode() for token in tokens])
    return one


@pytest.mark.parametrize(("version", "scheme"), STORED)
@pytest.mark.parametrize(("num_perm", "seed"), [(4, 1), (9, 77)])
def test_values_are_those_of_datasketch(
    version: str, scheme: str, num_perm: int, seed: int
) -> None:
    expected = GOLDEN[version][scheme][f"{num_perm} {seed}"]
    one = ds.MinHash(num_perm, seed, scheme=None if version == "1" else scheme)
    assert one.permutations[0].tolist() == expected["factors"]
    assert one.permutations[1].tolist() == expected["terms"]
    assert one.is_empty()
    one.update(TOKENS[0])
    assert one.hashvalues.tolist() == expected["one"]
    one.update_batch(TOKENS)
    assert one.hashvalues.tolist() == expected["all"]
    assert one.count() == expected["count"]
    assert ds.bBitMinHash(one, 5).hashvalues.tolist() == expected["5 bits"]
    lean = ds.LeanMinHash(one)
    buffer = bytearray(lean.bytesize("<"))
    lean.serialize(buffer, "<")
    assert base64.b64encode(buffer).decode() == expected["lean"]
    assert ds.LeanMinHash.deserialize(buffer, "<") == lean
    (bulk,) = ds.MinHash.bulk([TOKENS], num_perm=num_perm, seed=seed, scheme=scheme)
    assert bulk == one


def test_what_datasketch_pickled_can_be_read() -> None:
    """In a process where our module stands in for theirs."""
    code = (
        "import json, sys, base64, pickle, lookalike.compat\n"
        "lookalike.compat.install_as('datasketch')\n"
        "import datasketch; from datasketch.minhash import MinHash\n"
        "golden = json.load(open(sys.argv[1]))\n"
        "load = lambda text: pickle.loads(base64.b64decode(text))\n"
        "for version, scheme in json.loads(sys.argv[2]):\n"
        "    stored = golden[version][scheme]\n"
        "    for name in ('4 1', '9 77'):\n"
        "        one = load(stored[name]['pickle'])\n"
        "        assert type(one) is MinHash and one.hashvalues.tolist() == stored[name]['all']\n"
        "        assert load(stored[name]['pickled lean']) == datasketch.LeanMinHash(one)\n"
        "        assert load(stored[name]['pickled 5 bits']) == datasketch.bBitMinHash(one, 5)\n"
        "        one.update(b'more'); assert one.scheme == scheme\n"
        "    lsh, forest = load(stored['lsh']), load(stored['forest'])\n"
        "    for number, token in enumerate([b'Hello', b'', b'\\xff\\x00', 'Łódź'.encode()]):\n"
        "        one = MinHash(8, scheme=scheme)\n"
        "        one.update_batch([token, b'common', b'other', b'third'])\n"
        "        assert ('key', number) in lsh and ('key', number) in lsh.query(one)\n"
        "        assert number in forest.query(one, 4)\n"
        "        assert forest.get_minhash_hashvalues(number).tolist() == one.hashvalues.tolist()\n"
        "    lsh.remove(('key', 0)); assert ('key', 0) not in lsh.query(one)\n"
        "drawn = load(golden['weighted']['pickle'])\n"
        "assert drawn.hashvalues.tolist() == golden['weighted']['drawn']\n"
        "print('read')"
    )
    data = str(Path(__file__).parent.parent / "data/datasketch_golden.json")
    command = [sys.executable, "-c", code, data, json.dumps(STORED)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("read\n", "")


def test_weighted_draws_and_choices_are_those_of_datasketch() -> None:
    weighted = GOLDEN["weighted"]
    generator = ds.WeightedMinHashGenerator(5, 6, 3)
    assert generator.minhash(weighted["vector"]).hashvalues.tolist() == weighted["drawn"]
    for threshold, num_perm, weights, expected in GOLDEN["params"]:
        assert list(best_params(threshold, num_perm, *weights)) == expected
    for threshold, num_perm, most, ratio, expected in GOLDEN["containment"]:
        chosen = best_params_for_containment(threshold, num_perm, most, ratio, 0.5, 0.5)
        assert list(chosen) == expected


class Tables(RuleBasedStateMachine):
    """MinHashLSH beside its definition: keys whose bytes of some band are equal."""

    @initialize(prepickle=st.booleans(), hashed=st.booleans(), few=st.sampled_from([0, 3, 1024]))
    def begin(self, prepickle: bool, hashed: bool, few: int) -> None:
        ds.lsh._FEW = few
        shorten = (lambda data: data[:9]) if hashed else None  # bands that differ may agree
        self.lsh = ds.MinHashLSH(num_perm=16, params=(5, 3), prepickle=prepickle, hashfunc=shorten)
        self.shorten = shorten or bytes
        self.model: dict[Any, list[bytes]] = {}

    def bands(self, one: ds.MinHash) -> list[bytes]:
        parts = [one.hashvalues[3 * band : 3 * band + 3].byteswap() for band in range(5)]
        return [self.shorten(part.tobytes()) for part in parts]

    keys = st.sampled_from([0, "0", b"0", (0, "x"), 1, 2, 3])
    tokens = st.lists(st.integers(0, 4), max_size=4)

    @rule(key=keys, tokens=tokens)
    def insert(self, key: Any, tokens: list[int]) -> None:
        one = minhash(tokens)
        if key in self.model:
            with pytest.raises(ValueError, match="already exists"):
                self.lsh.insert(key, one)
        else:
            with self.lsh.insertion_session() as session:
                session.insert(key, one)
            self.model[key] = self.bands(one)

    @rule(key=keys)
    def remove(self, key: Any) -> None:
        if key in self.model:
            self.lsh.remove(key)
            del self.model[key]
        else:
            with pytest.raises(ValueError, match="does not exist"):
                self.lsh.remove(key)

    @rule()
    def copied(self) -> None:
        if self.lsh.hashfunc is None:
            self.lsh = pickle.loads(pickle.dumps(self.lsh))
        other = ds.MinHashLSH(num_perm=16, params=(5, 3), prepickle=self.lsh.prepickle,
                              hashfunc=self.lsh.hashfunc)  # fmt: skip
        other.merge(self.lsh, check_overlap=True)
        self.lsh = other

    def teardown(self) -> None:
        ds.lsh._FEW = 1024

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "lsh"):
            return
        stored = pickle.dumps if self.lsh.prepickle else (lambda key: key)
        assert self.lsh.is_empty() == (not self.model)
        assert set(self.lsh.keys) == {stored(key) for key in self.model}
        for band, table in enumerate(self.lsh.hashtables):
            expected: dict[bytes, set[Any]] = {}
            for key, bands in self.model.items():
                expected.setdefault(bands[band], set()).add(stored(key))
            assert {values: table[values] for values in table} == expected
            assert self.lsh.get_counts()[band] == {v: len(k) for v, k in expected.items()}
        for tokens in ([], [0], [1, 2], [0, 1, 2, 3]):
            query = self.bands(minhash(tokens))
            shared = [
                {key for key, bands in self.model.items() if bands[band] == query[band]}
                for band in range(5)
            ]
            found = self.lsh.query(minhash(tokens))
            assert len(found) == len(set(found))
            assert set(found) == set().union(*shared)
            assert self.lsh._query_b(minhash(tokens), 2) == shared[0] | shared[1]
            self.lsh.add_to_query_buffer(minhash(tokens))
            assert set(self.lsh.collect_query_buffer()) == set(found)


Tables.TestCase.settings = settings(max_examples=20, stateful_step_count=20)
test_tables = Tables.TestCase


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=9, unique=True), st.integers(1, 9), st.data()
)
@settings(max_examples=60)
def test_partitions_have_the_least_cost(given_sizes: set[int], parts: int, data: Any) -> None:
    sizes = sorted(given_sizes)
    counts: list[int] = data.draw(
        st.lists(st.integers(1, 9), min_size=len(sizes), max_size=len(sizes)), label="counts"
    )

    def cost(bounds: list[tuple[int, int]]) -> float:
        return sum(
            count * (upper - size) / upper
            for lower, upper in bounds
            for size, count in zip(sizes, counts, strict=True)
            if lower <= size <= upper
        )

    chosen = optimal_partitions(sizes, counts, parts)
    assert [size for low, up in chosen for size in sizes if low <= size <= up] == sizes
    cuts = combinations(range(1, len(sizes)), min(parts, len(sizes)) - 1)
    best = min(
        cost([(sizes[a], sizes[b - 1]) for a, b in zip((0, *cut), (*cut, len(sizes)), strict=True)])
        for cut in cuts
    )
    assert cost(chosen) == pytest.approx(best, abs=1e-9)


def test_forest_returns_those_that_share_most() -> None:
    forest = ds.MinHashLSHForest(num_perm=32, l=4)
    for key in range(30):
        forest.add(key, minhash(range(key, key + 10), 32))
    forest.index()
    for key in range(30):
        query = minhash(range(key, key + 10), 32)
        trees = np.array([forest.get_minhash_hashvalues(other) for other in range(30)])
        equal = (trees == query.hashvalues).reshape(30, 4, 8)
        depths = np.minimum.accumulate(equal, axis=2).sum(axis=2).max(axis=1)
        for wanted in (1, 2, 5, 30):
            found = forest.query(query, wanted)
            assert len(found) == len(set(found)) == min(wanted, (depths > 0).sum())
            least = depths[found].min()
            assert set(np.flatnonzero(depths > least)) <= set(found)  # nobody better is left out
            assert least > 0


def test_ensemble_finds_sets_that_contain_the_query() -> None:
    ensemble = ds.MinHashLSHEnsemble(threshold=0.6, num_perm=64, num_part=4)
    sets = {key: range(key % 7, key % 7 + 5 + 3 * key) for key in range(40)}
    ensemble.index((key, minhash(tokens, 64), len(tokens)) for key, tokens in sets.items())
    again = pickle.loads(pickle.dumps(ensemble))
    for key, tokens in sets.items():
        assert key in set(ensemble.query(minhash(tokens, 64), len(tokens)))
        assert key in again
    with pytest.raises(ValueError, match="again on a non-empty index"):
        ensemble.index([])


def test_mistakes_are_the_errors_of_datasketch_and_say_what_to_do() -> None:
    for storage in ("redis", "cassandra"):
        with pytest.raises(ValueError, match="leave it out.*la.open_collection"):
            ds.MinHashLSH(storage_config={"type": storage})
        with pytest.raises(la.errors.ArgumentError, match="in memory"):
            ds.MinHashLSHEnsemble(storage_config={"type": storage})
    with pytest.raises(ValueError, match="3 bands of 8 values, 24 in all; expected no more"):
        ds.MinHashLSH(num_perm=16, params=(3, 8))
    for weights in ((0.5, 0.6), (1.5, -0.5)):
        with pytest.raises(ValueError, match="weights are"):
            ds.MinHashLSH(weights=weights)
    one, other = minhash([1], seed=1), minhash([1], seed=2)
    affine = minhash([1], scheme="affine32")
    for call in (one.jaccard, one.merge, lambda second: ds.MinHash.union(one, second)):
        with pytest.raises(ValueError, match="seeds 1 and 2 differ"):
            call(other)
        with pytest.raises(ValueError, match="scheme"):
            call(affine)
    lsh = ds.MinHashLSH(num_perm=16, params=(4, 4))
    lsh.insert("a", one)
    with pytest.raises(ValueError, match="'affine32', those before it 'legacy'"):
        lsh.query(affine)
    with pytest.raises(TypeError, match="takes no more values"):
        ds.LeanMinHash(one).update(b"x")
    with pytest.raises(la.errors.MissingDependencyError, match="no HyperLogLog: .* pip install"):
        ds.HyperLogLog  # noqa: B018
    with pytest.raises(AttributeError):
        ds.nothing  # noqa: B018
    with pytest.raises(
        la.errors.ArgumentError, match="name is 'numpy'; expected one of: datasketch"
    ):
        compat.install_as("numpy")
