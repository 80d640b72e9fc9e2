"""BandIndex answers what comparing every row with every query answers, whatever came and went."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from numpy.typing import NDArray

import lookalike as la
from lookalike.errors import ArgumentError, SignatureError
from lookalike.indexes import band_index
from lookalike.indexes.bands import RECALL, bands_for, choose_bands, least_equal
from support.oracles.bands import EMPTY, BandOracle

PERMUTATIONS = 24
KEYS: list[Any] = [0, "0", b"0", (0,), 7, "seven", b"\xff", ("a", (1, b"x")), None, 2**70, 0.5]


def rows_of(seed: int, count: int, values: int = 3) -> NDArray[np.uint32]:
    """Return rows of few different values, so that bands are shared by chance; some are empty."""
    random = np.random.default_rng(seed)
    rows = random.integers(0, values, (count, PERMUTATIONS), dtype=np.uint32)
    rows[random.random(rows.shape) < 0.02] = EMPTY
    rows[random.random(count) < 0.05] = EMPTY
    return rows


def answers(index: la.BandIndex, row: NDArray[np.uint32]) -> list[tuple[Any, int]]:
    return [(key, round(share * PERMUTATIONS)) for key, share in index.query(row)]


class Living(RuleBasedStateMachine):
    """The index beside a dictionary; after each step every kind of question is compared."""

    @initialize(
        threshold=st.sampled_from([0.3, 0.5, 0.8, 1.0]),
        few=st.sampled_from([0, 5, 1024]),
        seed=st.integers(0, 2**32),
    )
    def begin(self, threshold: float, few: int, seed: int) -> None:
        band_index._FEW = few  # removed rows that do not make the table be made anew
        self.index = la.BandIndex(threshold, PERMUTATIONS, recall=0.9)
        self.oracle = BandOracle(self.index.layout.bands, self.index.layout.rows)
        self.random = np.random.default_rng(seed)

    def row(self) -> NDArray[np.uint32]:
        living = list(self.oracle.values.values())
        if not living or self.random.random() < 0.3:
            new: NDArray[np.uint32] = rows_of(int(self.random.integers(2**32)), 1, 9)[0]
            return new
        row = living[self.random.integers(len(living))].copy()
        changed = self.random.random(PERMUTATIONS) < self.random.choice([0, 0.1, 0.4])
        row[changed] = rows_of(int(self.random.integers(2**32)), 1)[0][changed]
        return row

    @rule(key=st.sampled_from(KEYS), replace=st.booleans())
    def insert(self, key: Any, replace: bool) -> None:
        row = self.row()
        if key in self.oracle.values and not replace:
            with pytest.raises(la.errors.ArgumentError, match="in the index already"):
                self.index.insert(key, row)
            return
        self.index.insert(key, row, replace=replace)
        self.oracle.insert(key, row)

    @rule(count=st.integers(0, 40), share=st.sampled_from([0.0, 0.5, 1.0]))
    def insert_many(self, count: int, share: float) -> None:
        first = len(self.oracle.values) * 100 + int(self.random.integers(50))
        keys = [("many", first + place) for place in range(count)]
        hub = self.row()
        rows = np.array([hub if self.random.random() < share else self.row() for _ in keys])
        rows = rows.reshape(count, PERMUTATIONS).astype(np.uint32)
        self.index.insert_many(keys, rows, replace=True)
        for key, row in zip(keys, rows, strict=True):
            self.oracle.insert(key, row)

    @rule(share=st.sampled_from([0.1, 0.9]))
    def remove_many(self, share: float) -> None:
        keys = [key for key in self.oracle.values if self.random.random() < share]
        self.index.remove_many(keys)
        for key in keys:
            del self.oracle.values[key]

    @rule(key=st.sampled_from(KEYS))
    def remove(self, key: Any) -> None:
        if key in self.oracle.values:
            self.index.remove(key)
            del self.oracle.values[key]
        else:
            with pytest.raises(la.errors.ArgumentError, match="not in the index"):
                self.index.remove(key)

    @rule()
    def copied(self) -> None:
        self.index = pickle.loads(pickle.dumps(copy.deepcopy(self.index)))

    def teardown(self) -> None:
        band_index._FEW = 1024

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "index"):
            return
        assert self.index.keys() == list(self.oracle.values) == list(self.index)
        assert len(self.index) == len(self.oracle.values)
        least = round(self.index.least_similarity * PERMUTATIONS)
        queries = np.array([self.row() for _ in range(3)])
        for row, found in zip(queries, self.index.query_many(queries, threads=2), strict=True):
            expected = self.oracle.query(row, least)
            assert [(key, round(s * PERMUTATIONS)) for key, s in found] == expected
            assert answers(self.index, row) == expected
        for key, row in list(self.oracle.values.items())[:2]:
            assert key in self.index
            assert np.array_equal(self.index[key], row)


Living.TestCase.settings = settings(
    max_examples=int(os.environ.get("LOOKALIKE_STATES", "25")), stateful_step_count=25
)
test_living = Living.TestCase


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 5, 400]))
@settings(max_examples=20)
def test_rows_that_share_a_band_with_thousands(seed: int, values: int) -> None:
    """Hubs: few values make lists of all lengths, across growth of lists and of tables."""
    index = la.BandIndex(0.5, PERMUTATIONS, recall=0.9)
    oracle = BandOracle(index.layout.bands, index.layout.rows)
    rows = rows_of(seed, 1500, values)
    for begin, end in ((0, 1), (1, 700), (700, 1500)):
        index.insert_many(range(begin, end), rows[begin:end])
    gone = list(range(3, 1500, 7))
    index.remove_many(gone)
    oracle.values = {key: rows[key] for key in range(1500) if key not in set(gone)}
    least = round(index.least_similarity * PERMUTATIONS)
    for at in (0, 3, 1499):
        assert answers(index, rows[at]) == oracle.query(rows[at], least)


def test_removing_a_hub_does_not_take_time_in_proportion_to_its_square() -> None:
    """Removed rows are left behind, and what is left is found."""
    index = la.BandIndex(0.8, 128)
    row = np.arange(128, dtype=np.uint32)
    index.insert_many(range(20_000), np.tile(row, (20_000, 1)))
    before = index.memory_bytes
    for key in range(19_990):
        index.remove(key)
    assert [match.key for match in index.query(row)] == list(range(19_990, 20_000))
    assert index.memory_bytes < before / 4
    index.insert_many(range(19_990), np.tile(row, (19_990, 1)))
    assert len(index.query(row)) == 20_000
    assert index.query(row)[0] == la.results.KeyMatch(19_990, 1.0)  # the longest there


@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.95])
def test_recall_of_pairs_at_the_threshold(threshold: float) -> None:
    """Of pairs exactly at the threshold at least the promised share is found; values that agree
    with the chance J are what MinHash gives."""
    random = np.random.default_rng(int(1000 * threshold))
    index = la.BandIndex(threshold, 128)
    count = 20_000
    rows = random.integers(0, 2**32 - 1, (count, 128), dtype=np.uint32)
    index.insert_many(range(count), rows)
    queries = rows.copy()
    other = random.random(rows.shape) >= threshold
    queries[other] = random.integers(0, 2**32 - 1, int(other.sum()), dtype=np.uint32)
    found = index.query_many(queries)
    hits = sum(query in {key for key, _ in matches} for query, matches in enumerate(found))
    sigma = (0.99 * 0.01 / count) ** 0.5
    assert hits / count >= 0.99 - 4 * sigma
    assert len(found.rows) < 1.01 * count  # others share nothing


def test_recall_and_verification_on_texts() -> None:
    """From documents to answers: exact similarities, nothing below, nearly everything above."""
    random = np.random.default_rng(5)
    words = [f"w{number}" for number in range(3000)]
    texts: dict[str, str] = {}
    for template in range(60):
        base = random.choice(words, 60)
        for variant in range(8):
            chosen = base.copy()
            changed = random.random(60) < random.choice([0.02, 0.05, 0.1, 0.3])
            chosen[changed] = random.choice(words, int(changed.sum()))
            texts[f"{template}-{variant}"] = " ".join(chosen)
    signer = la.MinHash(256, la.Words())
    index = la.BandIndex(0.7, signer=signer)
    index.insert_many(texts, list(texts.values()))
    found = index.query_many(list(texts.values()), text_of=texts)
    assert found.verified and not found.exact
    near = total = 0
    for (name, text), matches in zip(texts.items(), found, strict=True):
        group = [other for other in texts if other.split("-")[0] == name.split("-")[0]]
        exact = la.jaccard([text] * len(group), [texts[other] for other in group], la.Words())
        truth = {other: share for other, share in zip(group, exact, strict=True) if share >= 0.7}
        assert all(share >= 0.7 for _, share in matches)
        assert {key: share for key, share in matches if key in truth}.items() <= truth.items()
        shares = [share for _, share in matches]
        assert shares == sorted(shares, reverse=True)
        near += len(truth.keys() & {key for key, _ in matches})
        total += len(truth)
    assert total > 1000
    assert near / total >= 0.99
    by_function = index.query(texts["3-0"], text_of=texts.__getitem__, at_least=0.9)
    assert by_function == [match for match in index.query(texts["3-0"], text_of=texts)
                           if match.similarity >= 0.9]  # fmt: skip


def test_weighted_rows_are_verified_by_weights() -> None:
    texts = {1: "a a a b c d d e f g", 2: "a a b c d d e f g g", 3: "z z z z y y x"}
    signer = la.WeightedMinHash(256)
    index = la.BandIndex(0.6, signer=signer)
    index.insert_many(texts, list(texts.values()))
    found = index.query(texts[1], text_of=texts)
    assert [key for key, _ in found] == [1, 2]
    assert found[1].similarity == la.weighted_jaccard(texts[1], texts[2])


def test_rows_of_another_signer_are_refused() -> None:
    texts = ["one two three four five six seven", "eight nine ten eleven twelve thirteen"]
    index = la.BandIndex(0.8, 64)
    index.insert_many("ab", la.MinHash(64, seed=3).sign(texts))
    assert index.signer == la.MinHash(64, seed=3)
    for other in (
        la.MinHash(64, seed=4),
        la.MinHash(64, la.Words(ngram=4), seed=3),
        la.WeightedMinHash(64, la.Words(ngram=5), seed=3),
    ):
        with pytest.raises(la.errors.SignatureError, match="cannot be compared"):
            index.query(other.sign(texts)[0])
        with pytest.raises(la.errors.SignatureError, match="cannot be compared"):
            index.insert("c", other.sign(texts)[0])
        mine = la.BandIndex(0.8, signer=other)
        mine.insert("c", texts[0])
        with pytest.raises(la.errors.SignatureError, match="cannot be compared"):
            index.merge(mine)
    with pytest.raises(la.errors.SignatureError, match="32.*expected uint32 with 64 columns"):
        index.query(la.MinHash(32, seed=3).sign(texts)[0])
    assert index.keys() == ["a", "b"]
    plain = np.asarray(la.MinHash(64, seed=3).sign(texts))  # taken at its word
    assert [key for key, _ in index.query(plain[1])] == ["b"]
    assert [key for key, _ in index.query(texts[1])] == ["b"]


def test_rows_signed_with_other_weights_are_refused() -> None:
    texts = ["one two three four", "three four five", "five six"]
    learned = la.WeightedMinHash(32, weights="tfidf").fit(texts)
    index = la.BandIndex(0.8, 32)
    index.insert_many(range(3), learned.sign(texts))
    assert index.signer is None  # what it has learned is not in its rows
    again = pickle.loads(pickle.dumps(index))
    for one in (index, again):
        with pytest.raises(la.errors.SignatureError, match="cannot be compared"):
            one.query(la.WeightedMinHash(32, weights="tfidf").fit(texts[:2]).sign(texts)[0])
        assert one.query(learned.sign(texts)[0])[0].key == 0
    with pytest.raises(la.errors.SignatureError, match="not an array of rows"):
        index.query(texts[0])


def test_the_bands_are_those_that_dedup_chooses() -> None:
    for threshold in (0.3, 0.5, 0.7, 0.8, 0.9, 1.0):
        index = la.BandIndex(threshold, 128)
        assert index.layout == choose_bands(128, threshold, RECALL)
        assert index.layout.chance(threshold) >= 0.995
    with pytest.raises(
        la.errors.ArgumentError, match="use more permutations, or a larger threshold"
    ):
        la.BandIndex(0.02, 128)


@given(st.integers(1, 300), st.floats(0.05, 1), st.floats(0.5, 0.9999))
@settings(max_examples=60)
def test_the_cut_is_the_largest_that_keeps_the_promise(
    permutations: int, threshold: float, recall: float
) -> None:
    from math import comb

    least = least_equal(permutations, threshold, recall)
    chances = [
        comb(permutations, equal) * threshold**equal * (1 - threshold) ** (permutations - equal)
        for equal in range(permutations + 1)
    ]
    missed = (1 - recall) / 2
    assert sum(chances[:least]) <= missed * (1 + 1e-9) + 1e-12
    assert least == permutations or sum(chances[: least + 1]) >= missed * (1 - 1e-9) - 1e-12
    try:
        layout = bands_for(permutations, threshold, recall)
    except la.errors.ArgumentError:
        return
    assert layout.chance(threshold) >= 1 - missed


def test_searching_while_rows_come_and_go() -> None:
    """What stays is found by every search, also while the table is made anew."""
    index = la.BandIndex(0.8, 64)
    random = np.random.default_rng(8)
    stays = random.integers(0, 2**32 - 1, (50, 64), dtype=np.uint32)
    index.insert_many([("stays", place) for place in range(50)], stays)
    wrong: list[Any] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            for place, found in enumerate(index.query_many(stays, threads=1)):
                if ("stays", place) not in [key for key, _ in found] or any(
                    key[0] == "comes" and share != 1 for key, share in found
                ):
                    wrong.append((place, found))

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(12):
        keys = [("comes", turn, place) for place in range(500)]
        index.insert_many(keys, np.tile(stays, (10, 1)))
        index.remove_many(keys)
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(index) == 50


def test_bad_input_is_named(tmp_path: Path) -> None:
    index = la.BandIndex(0.8, 16)
    row = np.zeros(16, np.uint32)
    with pytest.raises(la.errors.ArgumentError, match="threshold is 0; expected a number above 0"):
        la.BandIndex(0)
    with pytest.raises(la.errors.ArgumentError, match="permutations=32, but the signer has 64"):
        la.BandIndex(0.8, 32, signer=la.MinHash(64))
    with pytest.raises(
        la.errors.ArgumentError, match=r"the key \[1\] of type list is not hashable"
    ):
        index.insert([1], row)  # type: ignore[arg-type]
    with pytest.raises(la.errors.ArgumentError, match="a key is given more than once"):
        index.insert_many([1, 1], np.zeros((2, 16), np.uint32))
    with pytest.raises(la.errors.ArgumentError, match="3 keys and 2 rows"):
        index.insert_many([1, 2, 3], np.zeros((2, 16), np.uint32))
    with pytest.raises(la.errors.SignatureError, match="insert_many and query_many take several"):
        index.insert(1, np.zeros((1, 16), np.uint32))
    with pytest.raises(la.errors.SignatureError, match="rows are uint64"):
        index.insert(1, row.astype(np.uint64))
    with pytest.raises(la.errors.SignatureError, match="the index with a signer"):
        index.insert(1, "a text")
    with pytest.raises(la.errors.ArgumentError, match="text_of compares documents"):
        index.query(row, text_of={})
    assert len(index) == 0
    index.insert_many(range(9), np.ones((9, 16), np.uint32))
    with pytest.raises(la.errors.ArgumentError, match="more than once; nothing was removed"):
        index.remove_many([1, 2, 1])
    with pytest.raises(
        la.errors.ResultTooLargeError, match="more than limit=8 matches of 1 queries"
    ):
        index.query_many(np.ones((1, 16), np.uint32), limit=8)
    assert len(index.query_many(np.ones((1, 16), np.uint32), limit=9)[0]) == 9
    texts = la.BandIndex(0.5, signer=la.MinHash(16, la.Words()))
    texts.insert("k", "a b c")
    with pytest.raises(la.errors.ArgumentError, match="no document for a key that was found"):
        texts.query("a b c", text_of={})
    with pytest.raises(
        la.errors.ArgumentError, match="text_of is 3 of type int; expected a mapping"
    ):
        texts.query("a b c", text_of=3)  # type: ignore[arg-type]
    index.insert(object(), row)
    with pytest.raises(la.errors.ArgumentError, match="of type object; files hold keys"):
        index.save(tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_only_what_is_inserted_says_what_is_taken() -> None:
    """A question, or an insert that was refused, does not bind the index to its signer."""
    first, other = la.MinHash(64, seed=1), la.MinHash(64, seed=2)
    index = la.BandIndex(0.5, 64)
    text = "one two three four five six"
    plain = np.array(first.sign([text]).view(np.ndarray))
    index.insert("plain", plain[0])
    index.query(other.sign([text])[0])
    with pytest.raises(ArgumentError, match="already"):
        index.insert("plain", other.sign([text])[0])
    with pytest.raises(ArgumentError, match="more than once"):
        index.insert_many([1, 1], other.sign([text, text]))
    assert index.signer is None
    index.insert("marked", first.sign([text])[0])
    assert index.signer == first
    assert [match.key for match in index.query(text)] == ["plain", "marked"]
    with pytest.raises(SignatureError, match="seed=2"):
        index.query(other.sign([text])[0])
