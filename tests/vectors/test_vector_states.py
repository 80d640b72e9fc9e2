"""An index of vectors beside a plain dictionary, through every operation in any order."""

from __future__ import annotations

import copy
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
from lookalike.indexes.clusters import groups
from lookalike.vectors import index, search, sketches
from support.oracles.vectors import check_nearest, check_within, cosines

EXAMPLES = 30
WIDTH = 5

names = st.lists(st.integers(0, 15), min_size=1, max_size=5, unique=True)


def some_vectors(data: st.DataObject, count: int) -> Any:
    """Return vectors of which many are equal, multiples of each other, or zero."""
    seed = data.draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (count, WIDTH)) * rng.choice([1, 0.5, 3], (count, 1))
    return rows + rng.normal(size=(count, WIDTH)) * rng.choice([0, 0, 0.1], (count, 1))


class VectorIndexBesideDictionary(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.index: Any = None
        self.living: dict[int, Any] = {}
        self.next_id = 0
        self.patches = (
            mock.patch.object(groups, "BUFFER", 4),
            mock.patch.object(segments, "BUFFER", 4),
            mock.patch.object(search, "_LEAST_ROOM", 2),
            mock.patch.object(index, "_FEW", 2),
            mock.patch.object(sketches, "_LEAST_ADDED", 3),
        )
        for patch in self.patches:
            patch.start()

    def teardown(self) -> None:
        for patch in self.patches:
            patch.stop()

    @initialize(
        data=st.data(),
        count=st.integers(0, 20),
        dtype=st.sampled_from(["f2", "f4"]),
        bits=st.sampled_from([8, 64]),
    )
    def build(self, data: st.DataObject, count: int, dtype: str, bits: int) -> None:
        rows = some_vectors(data, count).astype(dtype)
        self.index = la.VectorIndex(rows, bits=bits)
        self._take(range(count), rows)

    @rule(data=st.data(), count=st.integers(0, 7))
    def add(self, data: st.DataObject, count: int) -> None:
        rows = some_vectors(data, count)
        found = self.index.add(rows).tolist()
        assert found == list(range(self.next_id, self.next_id + count))
        self._take(found, rows)

    @rule(data=st.data(), ids=names)
    def add_with_ids(self, data: st.DataObject, ids: list[int]) -> None:
        rows = some_vectors(data, len(ids))
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
        assert self.index.stats()["removed"] == 0

    @rule()
    def tune(self) -> None:
        if len(self.living) > 1:
            tuning = self.index.tune(2, 0.9)
            assert tuning in self.index.tunings
            assert tuning.search_settings["candidates"] >= 1

    @rule(way=st.sampled_from(["pickle", "copy", "deepcopy", "file"]))
    def go_on_with_a_copy(self, way: str) -> None:
        """What is done to the original then must not be seen."""
        before = self.index
        if way == "pickle":
            self.index = pickle.loads(pickle.dumps(before))
        elif way == "file":
            with tempfile.TemporaryDirectory() as folder:
                before.save(Path(folder) / "vectors")
                self.index = la.VectorIndex.load(Path(folder) / "vectors")
        else:
            self.index = copy.copy(before) if way == "copy" else copy.deepcopy(before)
        before.add(np.ones((2, WIDTH)))
        before.remove(before.living()[1][:3])

    @precondition(lambda self: self.living)
    @rule(
        data=st.data(),
        k=st.integers(1, 6),
        least=st.sampled_from([-1.0, 0.0, 0.5, 0.9, 1.0]),
        threads=st.integers(1, 3),
    )
    def search(self, data: st.DataObject, k: int, least: float, threads: int) -> None:
        asked = some_vectors(data, data.draw(st.sampled_from([1, 2, 6])))
        chosen = sorted(self.living)
        among: Any = None
        if data.draw(st.booleans()):
            among = chosen = data.draw(st.lists(st.sampled_from(chosen), unique=True))
            if data.draw(st.booleans()):
                among = np.isin(np.arange(self.index.next_id), chosen)
        options: Any = {"among": among, "threads": threads}
        found = self.index.search(asked, k, exact=True, **options)
        few = self.index.search(asked, k, candidates=k, probe=1, explain=True, **options)
        every = self.index.search(asked, k, candidates=max(k, len(chosen)), **options)
        near = self.index.within(asked, least, **options)
        likely = self.index.within(asked, least, recall=0.9, **options)
        assert found.exact
        assert every.exact
        assert near.exact
        rows = np.array([self.living[one] for one in chosen]).reshape(-1, WIDTH)
        truth = cosines(asked.astype(np.float32), rows)
        for query, line in enumerate(truth.tolist()):
            cosine_of = dict(zip(chosen, line, strict=True))
            check_nearest(found[query], cosine_of, k, exact=True)
            check_nearest(every[query], cosine_of, k, exact=True)
            check_nearest(few[query], cosine_of, k, exact=few.exact)
            check_within(near[query], cosine_of, least, exact=True)
            check_within(likely[query], cosine_of, least, exact=False)
        for answer in (few, every, near):
            again = {**options, "threads": 1}
            same = (
                self.index.within(asked, least, **again)
                if answer is near
                else self.index.search(asked, k, candidates=k, probe=1, **again)
                if answer is few
                else self.index.search(asked, k, exact=True, **again)
            )
            assert np.array_equal(same.ids, answer.ids)
            assert np.array_equal(same.similarities, answer.similarities, equal_nan=True)

    @precondition(lambda self: self.living)
    @rule(least=st.sampled_from([0.0, 0.5, 0.99]), threads=st.integers(1, 2))
    def pairs(self, least: float, threads: int) -> None:
        ids = sorted(self.living)
        rows = np.array([self.living[one] for one in ids]).reshape(-1, WIDTH)
        truth = cosines(rows, rows)
        every = self.index.pairs(least, threads=threads)
        likely = self.index.pairs(least, recall=0.9, threads=threads)
        found = list(zip(every.left.tolist(), every.right.tolist(), strict=True))
        assert every.exact
        assert found == sorted(set(found))
        assert all(a < b for a, b in found)
        assert set(zip(likely.left.tolist(), likely.right.tolist(), strict=True)) <= set(found)
        for at, one in enumerate(ids):
            for other in range(at + 1, len(ids)):
                cosine = truth[at, other]
                if abs(cosine - least) > 1e-12:
                    assert ((one, ids[other]) in found) == (cosine >= least)

    @invariant()
    def same(self) -> None:
        if self.index is None:
            return
        rows, ids = self.index.living()
        assert sorted(ids.tolist()) == sorted(self.living)
        for row, one in zip(rows, ids.tolist(), strict=True):
            assert np.array_equal(row, self.living[one])
        assert (len(self.index), self.index.next_id) == (len(self.living), self.next_id)

    def _take(self, ids: Any, rows: Any) -> None:
        held = rows.astype(self.index.dtype)
        self.living |= dict(zip(ids, held, strict=True))
        self.next_id = max([self.next_id, *(one + 1 for one in ids)])


@pytest.mark.hypothesis
def test_a_vector_index_beside_a_dictionary() -> None:
    run_state_machine_as_test(
        VectorIndexBesideDictionary,
        settings=settings(max_examples=EXAMPLES, stateful_step_count=15, deadline=None),
    )
