"""A slice index beside a plain dictionary, through every operation in any order.

Ids come from a small pool, so that they are removed and given again many times. Copies are kept
and changed in turn with what they were copied from.
"""

from __future__ import annotations

import copy
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import lookalike as la
from lookalike.indexes import segments
from lookalike.indexes.slices import lists
from support.cases.strategies import collections
from support.oracles import scan as oracle

WIDTH = 3
EXAMPLES = int(os.environ.get("LOOKALIKE_STATES", "60"))
"""Sequences of steps for each machine; `make crash` asks for more."""

pool = st.integers(0, 12)
queries = collections(width=WIDTH, least=1, most=1)


def pickled(index: la.SliceIndex) -> la.SliceIndex:
    twin: la.SliceIndex = pickle.loads(pickle.dumps(index))
    return twin


class SliceIndexBesideDictionary(RuleBasedStateMachine):
    buffer = 8
    """So small that segments are full, get lists and are merged all the time."""
    many = (8, 20)

    def __init__(self) -> None:
        super().__init__()
        self.index: Any = None
        self.living: dict[int, bytes] = {}
        self.next_id = 0
        self.kept: tuple[Any, dict[int, bytes], int] | None = None
        """What the index was copied from, or the copy: goes its own way."""
        patches = (mock.patch.object(segments, "BUFFER", self.buffer),)
        for patch in patches:
            patch.start()
        self.patches = list(patches)

    def teardown(self) -> None:
        for patch in self.patches:
            patch.stop()

    @initialize(
        rows=collections(width=WIDTH, most=13),
        slice_bits=st.integers(1, 9),
        ids=st.none() | st.permutations(range(13)),
        free=st.sampled_from([0, lists._FREE_LIST_BYTES]),
    )
    def build(
        self, rows: oracle.Signatures, slice_bits: int, ids: list[int] | None, free: int
    ) -> None:
        patch = mock.patch.object(lists, "_FREE_LIST_BYTES", free)  # 0: lists seldom pay
        patch.start()
        self.patches.append(patch)
        names = None if ids is None else ids[: len(rows)]
        self.index = la.SliceIndex(rows, slice_bits, names)
        self._take(range(len(rows)) if names is None else names, rows)

    # Changing

    @rule(rows=collections(width=WIDTH, most=9))
    def add(self, rows: oracle.Signatures) -> None:
        ids = self.index.add(rows)
        assert ids.tolist() == list(range(self.next_id, self.next_id + len(rows)))
        self._take(ids.tolist(), rows)
        ids[:] = 0  # the caller's own: the index does not look at it again

    @rule(rows=collections(width=WIDTH, most=7), data=st.data())
    def add_with_ids(self, rows: oracle.Signatures, data: st.DataObject) -> None:
        free = sorted(set(range(13)) - set(self.living))
        ids = data.draw(st.permutations(free))[: len(rows)]
        assert self.index.add(rows[: len(ids)], ids).tolist() == ids
        self._take(ids, rows)

    @rule(data=st.data())
    def add_many(self, data: st.DataObject) -> None:
        least, most = self.many
        if len(self.living) < 2 * most:
            self.add(data.draw(collections(width=WIDTH, least=least, most=most)))

    @precondition(lambda self: self.living)
    @rule(data=st.data(), most=st.sampled_from([1, 9, 10**6]))
    def remove(self, data: st.DataObject, most: int) -> None:
        gone = sorted(self.living)
        if most < len(gone):
            gone = data.draw(st.lists(st.sampled_from(gone), min_size=1, max_size=most))
        self.index.remove(gone)
        for name in set(gone):
            del self.living[name]

    @rule(name=pool, rows=collections(width=WIDTH, least=3, most=3))
    def replace_again_and_again(self, name: int, rows: oracle.Signatures) -> None:
        for row in rows:
            if name in self.living:
                self.index.remove([name])
            self.index.add(row, [name])
            self._take([name], row[None])

    @rule(rows=collections(width=WIDTH, least=2, most=2), name=pool, new=st.integers(100, 110))
    def refused(self, rows: oracle.Signatures, name: int, new: int) -> None:
        if name in self.living:
            with pytest.raises(
                la.errors.ArgumentError, match=f"the id {name} is in the index already"
            ):
                self.index.add(rows, [10**9 + new, name])
        else:
            others = sorted(self.living)[:1]
            with pytest.raises(la.errors.ArgumentError, match=f"the id {name} is not in the index"):
                self.index.remove([*others, name])

    @rule()
    def compact(self) -> None:
        self.index.compact()

    @rule(verify=st.booleans())
    def save_and_load(self, verify: bool) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.index.save(Path(folder) / "x")
            self.index = la.load_index(Path(folder) / "x", verify=verify)

    @rule(rows=collections(width=WIDTH, most=9), data=st.data())
    def merge(self, rows: oracle.Signatures, data: st.DataObject) -> None:
        if not self.index.own_ids:
            ids = list(range(self.next_id, self.next_id + len(rows)))
            other = la.SliceIndex(rows, self.index.slice_bits)
        else:
            free = sorted(set(range(13)) - set(self.living))
            ids = data.draw(st.permutations(free))[: len(rows)]
            rows = rows[: len(ids)]
            other = la.SliceIndex(rows, self.index.slice_bits, ids)
            if self.living:
                with pytest.raises(la.errors.ArgumentError, match="given more than once"):
                    la.SliceIndex.merge([self.index, other, self.index])
        self.index = la.SliceIndex.merge([self.index, other])
        self._take(ids, rows)

    @rule(
        duplicate=st.sampled_from([copy.copy, copy.deepcopy, pickled]),
        rows=collections(width=WIDTH, least=2, most=2),
    )
    def copy_it(self, duplicate: Any, rows: oracle.Signatures) -> None:
        self.kept = duplicate(self.index), dict(self.living), self.next_id
        self.add(rows[:1])
        self.go_on_with_the_other()
        self.add(rows[1:])

    @precondition(lambda self: self.kept)
    @rule()
    def go_on_with_the_other(self) -> None:
        assert self.kept is not None
        other, self.kept = self.kept, (self.index, self.living, self.next_id)
        self.index, self.living, self.next_id = other

    # Asking

    @rule(query=queries, k=st.integers(1, 9))
    def search(self, query: oracle.Signatures, k: int) -> None:
        ids, distances = self.index.search(query, k, exact=True)[0]
        assert self._nearest(query)[:k] == list(zip(distances.tolist(), ids.tolist(), strict=True))

    @rule(query=queries, k=st.integers(1, 9), expand=st.integers(0, 3))
    def search_some(self, query: oracle.Signatures, k: int, expand: int) -> None:
        ids, distances = self.index.search(query, k, expand=expand)[0]
        found = list(zip(distances.tolist(), ids.tolist(), strict=True))
        assert found == sorted(set(found) & set(self._nearest(query)))

    @rule(query=queries, radius=st.integers(0, 8 * WIDTH))
    def within(self, query: oracle.Signatures, radius: int) -> None:
        ids, distances = self.index.within(query, radius)[0]
        expected = [pair for pair in self._nearest(query) if pair[0] <= radius]
        assert expected == list(zip(distances.tolist(), ids.tolist(), strict=True))

    @precondition(lambda self: len(self.living) <= 40)
    @rule(radius=st.integers(0, 8 * WIDTH))
    def pairs(self, radius: int) -> None:
        found = self.index.pairs(radius)
        listed = zip(found.left.tolist(), found.right.tolist(), found.distances, strict=True)
        assert list(listed) == oracle.pairs(self._rows(), radius, list(self.living))

    @invariant()
    def same(self) -> None:
        if self.index is None:
            return
        for index, living, next_id in filter(None, [(self.index, self.living, None), self.kept]):
            signatures, ids = index.living()
            assert len(index) == len(ids) == len(living)
            assert dict(zip(ids.tolist(), map(bytes, signatures), strict=True)) == living
            assert next_id in (None, index.next_id)
        assert self.index.next_id == self.next_id

    def _take(self, ids: Any, rows: oracle.Signatures) -> None:
        self.living |= dict(zip(ids, map(bytes, rows), strict=False))
        self.next_id = max([self.next_id, *(id + 1 for id in ids)])

    def _rows(self) -> oracle.Signatures:
        return np.frombuffer(b"".join(self.living.values()), np.uint8).reshape(-1, WIDTH)

    def _nearest(self, query: oracle.Signatures) -> list[tuple[int, int]]:
        far = oracle.distances(query, self._rows())[0]
        return sorted(zip(far.tolist(), self.living, strict=True))


class WithSegmentsAsTheyAre(SliceIndexBesideDictionary):
    buffer = segments.BUFFER
    many = (1_900, 2_400)


@pytest.mark.hypothesis
def test_a_slice_index_beside_a_dictionary() -> None:
    run_state_machine_as_test(
        SliceIndexBesideDictionary, settings=settings(max_examples=EXAMPLES, stateful_step_count=40)
    )


@pytest.mark.hypothesis
def test_a_slice_index_of_large_segments_beside_a_dictionary() -> None:
    run_state_machine_as_test(
        WithSegmentsAsTheyAre, settings=settings(max_examples=EXAMPLES // 3, stateful_step_count=30)
    )
