"""An index of clusters beside a plain dictionary, through every operation in any order.

Ids come from a small pool, so that they are removed and given again many times.
"""

from __future__ import annotations

import copy
import pickle
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
from lookalike.indexes.clusters import groups
from support.cases.strategies import collections
from support.oracles import scan as oracle

WIDTH = 3
EXAMPLES = 40

names = st.lists(st.integers(0, 15), min_size=1, max_size=6, unique=True)
queries = collections(width=WIDTH, least=1, most=2)


def some_rows(data: st.DataObject, count: int) -> oracle.Signatures:
    rows: oracle.Signatures = data.draw(collections(width=WIDTH, least=count, most=count))
    return rows


class ClusterIndexBesideDictionary(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.index: Any = None
        self.living: dict[int, bytes] = {}
        self.next_id = 0
        self.patches = (
            mock.patch.object(groups, "BUFFER", 4),
            mock.patch.object(segments, "BUFFER", 4),
            mock.patch.multiple(groups, _LARGE=2, _LARGE_ROWS=4),  # groups grow past their split
        )
        for patch in self.patches:
            patch.start()

    def teardown(self) -> None:
        for patch in self.patches:
            patch.stop()

    @initialize(data=st.data(), count=st.integers(0, 20), clusters=st.integers(1, 4))
    def build(self, data: st.DataObject, count: int, clusters: int) -> None:
        rows = some_rows(data, count)
        self.index = la.ClusterIndex(rows, min(clusters, max(1, count)))
        self._take(range(count), rows)

    @rule(data=st.data(), count=st.integers(0, 7))
    def add(self, data: st.DataObject, count: int) -> None:
        rows = some_rows(data, count)
        found = self.index.add(rows).tolist()
        assert found == list(range(self.next_id, self.next_id + count))
        self._take(found, rows)

    @rule(data=st.data(), ids=names)
    def add_with_ids(self, data: st.DataObject, ids: list[int]) -> None:
        rows = some_rows(data, len(ids))
        if set(ids) & set(self.living):
            with pytest.raises(la.errors.ArgumentError, match="is in the index already"):
                self.index.add(rows, ids)
            return
        self.index.add(rows, ids)
        self._take(ids, rows)

    @rule(data=st.data(), most=st.integers(1, 12))
    def remove(self, data: st.DataObject, most: int) -> None:
        if not self.living:
            return
        ids = data.draw(st.lists(st.sampled_from(sorted(self.living)), max_size=most))
        self.index.remove(ids)
        for one in set(ids):
            del self.living[one]

    @rule(ids=names)
    def remove_what_is_not_there(self, ids: list[int]) -> None:
        if set(ids) - set(self.living):
            with pytest.raises(la.errors.ArgumentError, match="is not in the index"):
                self.index.remove(ids)

    @rule()
    def compact(self) -> None:
        self.index.compact()
        assert len(self.index._state.segments) == 1
        assert self.index.stats()["removed"] == 0

    @rule()
    def tune(self) -> None:
        if self.index._state.segments[0].alive > 1:
            assert self.index.tune_probes(2, 0.9).search_settings["probe"] >= 1

    @rule(way=st.sampled_from(["pickle", "copy", "deepcopy"]))
    def go_on_with_a_copy(self, way: str) -> None:
        """What is done to the original then must not be seen."""
        before = self.index
        if way == "pickle":
            self.index = pickle.loads(pickle.dumps(before))
        else:
            self.index = copy.copy(before) if way == "copy" else copy.deepcopy(before)
        before.add(np.zeros((2, WIDTH), np.uint8))
        before.remove(before.living()[1][:3])

    @rule(data=st.data(), count=st.integers(0, 6))
    def merge(self, data: st.DataObject, count: int) -> None:
        rows = some_rows(data, count)
        if self.index.own_ids:
            ids = list(range(self.next_id, self.next_id + count))
            other = la.ClusterIndex(rows, ids=ids)
        else:
            other = la.ClusterIndex(rows)
        self.index = la.ClusterIndex.merge([self.index, other])
        self._take(range(self.next_id, self.next_id + count), rows)

    @precondition(lambda self: self.living)
    @rule(asked=queries, k=st.integers(1, 6), radius=st.integers(0, 24), data=st.data())
    def search(self, asked: Any, k: int, radius: int, data: st.DataObject) -> None:
        chosen = sorted(self.living)
        among = None
        if data.draw(st.booleans()):
            among = chosen = data.draw(st.lists(st.sampled_from(chosen), unique=True))
        workers = data.draw(st.sampled_from([None, 1, 3]))
        found = self.index.search(asked, k, exact=True, among=among, threads=workers)
        near = self.index.within(asked, radius, among=among, threads=workers)
        some = self.index.search(asked, k, probe=1, among=among, explain=True, threads=workers)
        assert found.exact
        for query, row in enumerate(asked):
            every = sorted(
                (oracle.distance(np.frombuffer(self.living[one], np.uint8), row), one)
                for one in chosen
            )
            assert _pairs(found, query) == every[:k]
            assert _pairs(near, query) == [one for one in every if one[0] <= radius]
            assert set(_pairs(some, query)) <= set(every)
            if some.explanation.exact[query]:
                assert _pairs(some, query) == every[:k]

    @rule(radius=st.integers(0, 24), recall=st.sampled_from([None, 0.5]))
    def pairs(self, radius: int, recall: float | None) -> None:
        """All of them, for so few are compared each with each whatever the recall."""
        found = self.index.pairs(radius, recall=recall)
        ids = sorted(self.living)
        rows = np.frombuffer(b"".join(self.living[one] for one in ids), np.uint8)
        assert found.exact
        columns = (found.left.tolist(), found.right.tolist(), found.distances.tolist())
        expected = oracle.pairs(rows.reshape(-1, WIDTH), radius, ids)
        assert list(zip(*columns, strict=True)) == expected

    @invariant()
    def same(self) -> None:
        if self.index is None:
            return
        rows, ids = self.index.living()
        assert dict(zip(ids.tolist(), map(bytes, rows), strict=True)) == self.living
        assert (len(self.index), self.index.next_id) == (len(self.living), self.next_id)

    def _take(self, ids: Any, rows: oracle.Signatures) -> None:
        self.living |= {one: bytes(row) for one, row in zip(ids, rows, strict=True)}
        self.next_id = max([self.next_id, *(one + 1 for one in ids)])


def _pairs(found: Any, query: int) -> list[tuple[int, int]]:
    ids, far = found[query]
    return list(zip(far.tolist(), ids.tolist(), strict=True))


@pytest.mark.hypothesis
def test_a_cluster_index_beside_a_dictionary() -> None:
    run_state_machine_as_test(
        ClusterIndexBesideDictionary,
        settings=settings(max_examples=EXAMPLES, stateful_step_count=20, deadline=None),
    )
