"""A slice index beside a plain dictionary, through every operation in any order."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import lookalike as la
from support import oracle
from support.strategies import collections

WIDTH = 3


class SliceIndexBesideDictionary(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.living: dict[int, oracle.Signatures] = {}
        self.index: Any = None

    @initialize(rows=collections(width=WIDTH, most=20), slice_bits=st.integers(1, 9))
    def build(self, rows: oracle.Signatures, slice_bits: int) -> None:
        self.index = la.SliceIndex(rows, slice_bits)
        self.living = dict(enumerate(rows))

    @rule(rows=collections(width=WIDTH, most=9))
    def add(self, rows: oracle.Signatures) -> None:
        ids = self.index.add(rows)
        self.living |= dict(zip(ids.tolist(), rows, strict=True))

    @rule(rows=collections(width=WIDTH, most=5), start=st.integers(1000, 10**9))
    def add_with_ids(self, rows: oracle.Signatures, start: int) -> None:
        ids = [start + 2 * i for i in range(len(rows))][::-1]
        if set(ids) & set(self.living):
            return
        self.index.add(rows, ids)
        self.living |= dict(zip(ids, rows, strict=True))

    @rule(rows=collections(width=WIDTH, least=2_100, most=2_400))
    def add_many(self, rows: oracle.Signatures) -> None:
        if len(self.living) < 5_000:
            self.add(rows)

    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        names = st.sampled_from(sorted(self.living))
        gone = data.draw(st.lists(names, min_size=1, max_size=9, unique=True))
        self.index.remove(gone)
        for name in gone:
            del self.living[name]

    @rule()
    def compact(self) -> None:
        self.index.compact()

    @rule(verify=st.booleans())
    def save_and_load(self, verify: bool) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.index.save(Path(folder) / "x")
            self.index = la.load_index(Path(folder) / "x", verify=verify)

    @rule(query=collections(width=WIDTH, least=1, most=1), k=st.integers(1, 9))
    def search(self, query: oracle.Signatures, k: int) -> None:
        result = self.index.search(query, k, exact=True)
        ids, distances = result[0]
        assert self._nearest(query)[:k] == list(zip(distances.tolist(), ids.tolist(), strict=True))

    @rule(query=collections(width=WIDTH, least=1, most=1), radius=st.integers(0, 8 * WIDTH))
    def within(self, query: oracle.Signatures, radius: int) -> None:
        ids, distances = self.index.within(query, radius)[0]
        expected = [pair for pair in self._nearest(query) if pair[0] <= radius]
        assert expected == list(zip(distances.tolist(), ids.tolist(), strict=True))

    def _nearest(self, query: oracle.Signatures) -> list[tuple[int, int]]:
        if not self.living:
            return []
        far = oracle.distances(query, np.array(list(self.living.values())))[0]
        return sorted(zip(far.tolist(), self.living, strict=True))

    @invariant()
    def same_size(self) -> None:
        if self.index is not None:
            assert len(self.index) == len(self.living)


SliceIndexBesideDictionary.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestSliceIndexBesideDictionary = SliceIndexBesideDictionary.TestCase
