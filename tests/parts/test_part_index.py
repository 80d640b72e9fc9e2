"""PartIndex answers what comparing each part with each does, whatever came and went."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import tempfile
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
from lookalike.errors import ArgumentError, FormatError, NotFoundError, SignatureError
from support.oracles.parts import PartOracle

ITEMS: list[str | int] = [0, "0", 7, "seven", -1, 2**70, "ünï €", "\ud800"]


def some_rows(seed: int, count: int, bits: int) -> NDArray[np.uint8]:
    """Return signatures of few different bits, so that many are near each other, or equal."""
    random = np.random.default_rng(seed)
    rows = np.zeros((count, bits // 8), np.uint8)
    rows[:, 0] = random.integers(0, 64, count)
    rows[:, -1] ^= random.choice(np.array([0, 0, 255], np.uint8), count)
    return rows


def told(answer: la.results.PartAnswer) -> tuple[list[Any], int]:
    found = [(one.item, one.offset, one.votes, one.score, one.parts) for one in answer]
    return found, answer.left_out


def positions_of(seed: int, count: int) -> list[int]:
    kind = seed % 3
    if kind == 0:
        return list(range(count))
    random = np.random.default_rng(seed)
    if kind == 1:
        return [int(one) for one in np.cumsum(random.integers(0, 3, count))]
    return [int(one) for one in random.integers(-4, 5, count)]  # in any order, some equal


class PartMachine(RuleBasedStateMachine):
    """Items come and go, and are asked for."""

    @initialize(
        bits=st.sampled_from([8, 24, 32, 64]),
        index=st.sampled_from(["auto", "scan", "slices", la.ScanIndex, "clusters"]),
    )
    def begin(self, bits: int, index: Any) -> None:
        self.bits = bits
        self.parts = la.PartIndex(bits, index=index)
        self.oracle = PartOracle()
        self.index = index

    @rule(item=st.sampled_from(ITEMS), seed=st.integers(0, 99), count=st.integers(0, 9))
    def add(self, item: str | int, seed: int, count: int) -> None:
        rows, positions = some_rows(seed, count, self.bits), positions_of(seed, count)
        offsets = None if positions == list(range(count)) else positions
        if item in self.oracle.items:
            with pytest.raises(ArgumentError, match="in the index already"):
                self.parts.add(item, rows, offsets)
            self.parts.add(item, rows, offsets, replace=True)
            del self.oracle.items[item]
        else:
            self.parts.add(item, rows, offsets)
        self.oracle.items[item] = rows, positions
        rows[:] = 255  # the caller's array is the caller's
        self.oracle.items[item] = some_rows(seed, count, self.bits), positions

    @rule(item=st.sampled_from(ITEMS))
    def remove(self, item: str | int) -> None:
        if item in self.oracle.items:
            self.parts.remove(item)
            del self.oracle.items[item]
        else:
            with pytest.raises(NotFoundError, match="is not in the index"):
                self.parts.remove(item)

    @rule()
    def save_and_load(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "parts"
            self.parts.save(path)
            self.parts = la.PartIndex.load(path)

    @rule(how=st.sampled_from(["pickle", "copy", "compact"]))
    def make_anew(self, how: str) -> None:
        if how == "compact":
            self.parts.compact()
        else:
            twin = copy.deepcopy(self.parts) if how == "copy" else pickle.dumps(self.parts)
            self.parts = pickle.loads(twin) if isinstance(twin, bytes) else twin

    @rule(
        seed=st.integers(0, 99),
        count=st.integers(0, 9),
        radius=st.sampled_from([0, 1, 2, 6]),
        tolerance=st.sampled_from([0, 1, 3]),
        k=st.sampled_from([1, 2, 10]),
        min_votes=st.integers(1, 3),
        most_near=st.sampled_from([1, 5, 20, 10**6]),
        rarity=st.booleans(),
        nearness=st.booleans(),
        threads=st.sampled_from([1, 2]),
    )
    def search(self, seed: int, count: int, threads: int, **asked: Any) -> None:
        rows, positions = some_rows(seed, count, self.bits), positions_of(seed, count)
        answer = self.parts.search(rows, positions, threads=threads, **asked)
        assert told(answer) == self.oracle.search(rows, positions, **asked)
        assert (answer.query_parts, answer.exact) == (count, True)

    @rule(seed=st.integers(0, 99), count=st.integers(0, 9), neighbors=st.integers(1, 4))
    def search_nearest(self, seed: int, count: int, neighbors: int) -> None:
        if self.index == "clusters":
            return  # which finds most of the nearest, and says so
        rows, positions = some_rows(seed, count, self.bits), positions_of(seed, count)
        answer = self.parts.search(rows, positions, neighbors=neighbors, min_votes=1)
        expected = self.oracle.search(rows, positions, radius=None, neighbors=neighbors)
        if answer.exact:
            assert told(answer) == expected

    @invariant()
    def holds_what_was_added(self) -> None:
        if not hasattr(self, "oracle"):
            return
        assert self.parts.items() == list(self.oracle.items)
        assert len(self.parts) == len(self.oracle.items)
        assert all((item in self.parts) == (item in self.oracle.items) for item in ITEMS)
        assert self.parts.part_count == sum(len(one[1]) for one in self.oracle.items.values())


TestPartMachine = PartMachine.TestCase
TestPartMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def numbers(*values: int) -> NDArray[np.uint32]:
    return np.array(values, np.uint32)


def test_a_piece_is_found_where_it_is() -> None:
    random = np.random.default_rng(1)
    songs = {f"song {n}": random.integers(0, 2**32, 300, dtype=np.uint32) for n in range(50)}
    parts = la.PartIndex(32)
    parts.add_many(songs, songs.values())
    piece = songs["song 31"][120:200] ^ numbers(5)  # two bits of each differ
    (found,) = parts.search(piece, radius=3)
    assert (found.item, found.offset, found.votes, found.score) == ("song 31", 120, 80, 1.0)
    assert found.parts == [(n, 120 + n, 2) for n in range(80)]
    assert not parts.search(piece, radius=1)


def test_positions_are_those_that_were_given() -> None:
    parts = la.PartIndex(32)
    parts.add("a", numbers(1 << 8, 2 << 8, 4 << 8), [1000, 1010, 1021])
    (found,) = parts.search(numbers(1 << 8, 2 << 8, 4 << 8), [5, 15, 25], radius=0)
    assert (found.offset, found.votes, found.parts) == (995, 2, [(0, 0, 0), (1, 1, 0)])
    (found,) = parts.search(numbers(1 << 8, 2 << 8, 4 << 8), [5, 15, 25], radius=0, tolerance=1)
    assert (found.offset, found.votes) == (995, 3)


def test_what_everybody_has_is_left_out_and_counted() -> None:
    random = np.random.default_rng(2)
    parts = la.PartIndex(32)
    for n in range(30):
        silence = np.zeros(200, np.uint32)
        parts.add(n, np.concatenate([silence, random.integers(2**20, 2**32, 20, dtype=np.uint32)]))
    rows = parts.settled()[0].segment
    own = rows.words[rows.part_words[rows.begins[17] + 200 : rows.begins[18]]].view("<u4").ravel()
    query = np.concatenate([np.zeros(40, np.uint32), own])
    answer = parts.search(query, radius=0, most_near=5999)
    assert (answer.left_out, answer.query_parts) == (40, 60)
    assert [(one.item, one.offset, one.votes, one.score) for one in answer] == [(17, 160, 20, 1.0)]
    loud = parts.search(query, radius=0, most_near=30 * 200 * 40 + 20)
    assert (loud.left_out, loud[0].item, loud[0].votes) == (0, 17, 60)
    nothing = parts.search(query[:40], radius=0, most_near=5999)
    assert (len(nothing), nothing.left_out) == (0, 40)


def test_rare_parts_come_first_where_that_is_asked() -> None:
    parts = la.PartIndex(32)
    common, rare = numbers(*(one << 8 for one in (1, 2, 4))), numbers(8 << 8, 16 << 8)
    for n in range(64):
        parts.add(n, common)
    parts.add("rare", rare)
    query = np.concatenate([common, rare])
    assert [one.votes for one in parts.search(query, range(5), radius=0, k=2)] == [3, 3]
    found = parts.search(query, [0, 1, 2, 0, 1], radius=0, k=2, rarity=True)
    assert [(one.item, one.votes) for one in found] == [("rare", 2), (0, 3)]
    with pytest.raises(ArgumentError, match="rarity"):
        parts.search(query, rarity=1)  # type: ignore[arg-type]


def test_a_query_of_one_part_needs_one_vote_and_others_two() -> None:
    parts = la.PartIndex(32)
    parts.add("a", numbers(1 << 8))
    assert len(parts.search(numbers(1 << 8))) == 1
    assert len(parts.search(numbers(1 << 8, 1 << 20))) == 0
    assert len(parts.search(numbers(1 << 8, 1 << 20), min_votes=1)) == 1


def test_searches_see_a_whole_state_while_items_come_and_go() -> None:
    random = np.random.default_rng(3)
    pieces = [random.integers(0, 2**32, 40, dtype=np.uint32) for _ in range(20)]
    parts = la.PartIndex(32)
    parts.add("stays", pieces[0])
    wrong: list[Any] = []

    def ask() -> None:
        for _ in range(60):
            found = parts.search(pieces[0], radius=2)
            if [(one.item, one.votes) for one in found][:1] != [("stays", 40)]:
                wrong.append(found)

    askers = [threading.Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    for n in range(200):
        parts.add(n, pieces[1 + n % 19])
        if n >= 10:
            parts.remove(n - 10)
    for asker in askers:
        asker.join()
    assert not wrong
    assert len(parts) == 11


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_many_queries_are_each_answered_as_alone(data: st.DataObject) -> None:
    parts = la.PartIndex(24)
    for n in range(6):
        parts.add(n, some_rows(n, 8, 24))
    seeds = data.draw(st.lists(st.integers(0, 50), max_size=5))
    queries = [some_rows(seed, seed % 7, 24) for seed in seeds]
    together = parts.search_many(queries, radius=2, min_votes=1)
    assert [told(one) for one in together] == [
        told(parts.search(one, radius=2, min_votes=1)) for one in queries
    ]


def test_what_was_added_is_all_or_nothing() -> None:
    parts = la.PartIndex(32)
    parts.add("a", numbers(1))
    wrong: list[tuple[Any, ...]] = [
        (["b", "b"], [numbers(1), numbers(2)]),
        (["b", "a"], [numbers(1), numbers(2)]),
        (["b"], [numbers(1), numbers(2)]),
        (["b", "c"], [numbers(1), numbers(2)], [[1]]),
        (["b", "c"], [numbers(1), numbers(2)], [[1], [1, 2]]),
        (["b", "c"], [numbers(1), numbers(2)], [[1], [2**60]]),
        (["b", True], [numbers(1), numbers(2)]),
        (["b", 1.5], [numbers(1), numbers(2)]),
        ("bc", [numbers(1), numbers(2)]),
    ]
    for given_arguments in wrong:
        with pytest.raises(ArgumentError):
            parts.add_many(*given_arguments)
    with pytest.raises(SignatureError, match="signatures have 64 bits, the index has 32"):
        parts.add("b", np.zeros((2, 8), np.uint8))
    with pytest.raises(NotFoundError):
        parts.remove_many(["a", "b"])
    assert (parts.items(), parts.part_count) == (["a"], 1)


def test_an_index_of_the_callers_making_is_asked_as_it_can_be() -> None:
    class Nearest:
        def __init__(self, rows: NDArray[np.uint8]) -> None:
            self.scan = la.ScanIndex(rows)

        def search(self, queries: Any, k: int, **options: Any) -> Any:
            return self.scan.search(queries, k, **options)

    parts = la.PartIndex(32, index=Nearest)
    parts.add("a", numbers(1 << 8, 1 << 16))
    with pytest.raises(ArgumentError, match="has no method within; ask with neighbors"):
        parts.search(numbers(1 << 8), radius=1)
    assert parts.search(numbers(1 << 8, 1 << 16), neighbors=1)[0].votes == 2
    with pytest.raises(ArgumentError, match="expected one of auto, slices, blocks"):
        la.PartIndex(32, index="nothing")
    with pytest.raises(ArgumentError, match="something with the methods within or search"):
        bad = la.PartIndex(32, index=lambda rows: 3)
        bad.add("a", numbers(1))
        bad.search(numbers(1))
    assert la.PartIndex.from_bytes(parts.to_bytes()).search(numbers(1 << 8, 1 << 16))[0].votes == 2


def test_incomplete_indexes_say_so() -> None:
    class Doubtful(la.ScanIndex):
        def within(self, *given: Any, **options: Any) -> la.results.Matches:
            return dataclasses.replace(super().within(*given, **options), exact=False)

    parts = la.PartIndex(32, index=Doubtful)
    parts.add("a", numbers(1 << 8, 1 << 16))
    answer = parts.search(numbers(1 << 8, 1 << 16))
    assert (answer[0].votes, answer.exact) == (2, False)


def test_other_files_are_told_apart(tmp_path: Path) -> None:
    parts = la.PartIndex(32)
    parts.add("a", numbers(1))
    parts.signer = la.SimHash(bits=32)
    parts.save(tmp_path / "parts", notes={"made": "here"})
    for again in (la.PartIndex.load(tmp_path / "parts"), la.load_index(tmp_path / "parts")):
        assert (type(again), again.items()) == (la.PartIndex, ["a"])
        assert (again.signer, again.notes) == (parts.signer, {"made": "here"})
    la.ScanIndex(np.zeros((2, 4), np.uint8)).save(tmp_path / "scan")
    with pytest.raises(FormatError, match="expected a PartIndex"):
        la.PartIndex.load(tmp_path / "scan")


def test_parts_of_an_item_are_those_that_were_added(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    held = {
        name: (random.integers(0, 4, (count, 2), np.uint8), random.integers(-99, 99, count))
        for name, count in zip("abcdefg", (3, 0, 900, 1, 40, 7, 2000), strict=True)
    }
    index = la.PartIndex(16)
    for place, (name, (rows, offsets)) in enumerate(held.items()):
        index.add(name, rows, offsets)
        if place % 2:
            index.compact()
    index.remove("d")
    index.save(tmp_path / "saved.parts")
    for one in (index, la.PartIndex.load(tmp_path / "saved.parts")):
        for name in set(held) - {"d"}:
            signatures, offsets = one.parts_of(name)
            assert (signatures == held[name][0]).all() and (offsets == held[name][1]).all()
        for name in ("d", "none"):
            with pytest.raises(la.errors.NotFoundError, match="is not in the index"):
                one.parts_of(name)
