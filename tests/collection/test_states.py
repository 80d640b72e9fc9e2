"""A collection beside a plain dictionary, through every operation in any order."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

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
from tools.postgres_server import PostgresServer

import lookalike as la
from collection.conftest import new_database
from support import collection_model as model
from support import oracle
from support.strategies import collections

WIDTH = 3
WAYS = ("native", "sql")
ids = st.integers(0, 25).map(lambda number: f"d'{number}")  # with a quote, as SQL likes them
metadata = st.fixed_dictionaries({"n": st.integers(0, 3)})


class CollectionBesideDictionary(RuleBasedStateMachine):
    postgres: PostgresServer | None = None
    """Where to work; None: in SQLite files."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.known: dict[str, model.Entry] = {}
        self.version = 0
        self.handles: list[la.Collection] = []

    def open(self) -> la.Collection:
        return la.open_collection(
            self.url, "it's", bits=8 * WIDTH, slice_bits=self.slice_bits, cache=self.folder.name
        )

    @initialize(slice_bits=st.integers(2, 9))
    def begin(self, slice_bits: int) -> None:
        self.slice_bits = slice_bits
        if self.postgres:
            self.url = new_database(self.postgres)
        else:
            self.url = str(Path(self.folder.name) / "docs.db")
        self.handles = [self.open(), self.open()]  # as two processes would

    def teardown(self) -> None:
        for handle in self.handles:
            handle.close()
        self.folder.cleanup()

    @rule(data=st.data(), who=st.integers(0, 1))
    def add(self, data: st.DataObject, who: int) -> None:
        names, rows, described = self._batch(data)
        fresh = len(set(names)) == len(names) and not set(names) & set(self.known)
        if fresh:
            written = self.handles[who].add(names, signatures=rows, metadata=described)
            self._take(names, rows, described)
            assert (written.added, written.updated) == (len(names), 0)
            return
        with pytest.raises(la.BatchError):
            self.handles[who].add(names, signatures=rows, metadata=described)

    @rule(data=st.data(), who=st.integers(0, 1))
    def upsert(self, data: st.DataObject, who: int) -> None:
        names, rows, described = self._batch(data)
        old = set(names) & set(self.known)
        written = self.handles[who].upsert(names, signatures=rows, metadata=described)
        self._take(names, rows, described)
        assert (written.added, written.updated) == (len(set(names) - old), len(old))

    @rule(names=st.lists(ids, max_size=6), who=st.integers(0, 1))
    def delete(self, names: list[str], who: int) -> None:
        gone = set(names) & set(self.known)
        assert self.handles[who].delete(names).deleted == len(gone)
        self.known = {id: entry for id, entry in self.known.items() if id not in gone}
        self.version += bool(gone)

    @rule(
        data=st.data(), k=st.integers(1, 8), who=st.integers(0, 1), way=st.sampled_from(WAYS),
        wanted=st.one_of(st.none(), st.integers(0, 3)), exclude=st.lists(ids, max_size=3),
        radius=st.one_of(st.none(), st.integers(0, 8 * WIDTH)),
    )  # fmt: skip
    def search(
        self, data: st.DataObject, k: int, who: int, way: Any, wanted: int | None,
        exclude: list[str], radius: int | None,
    ) -> None:  # fmt: skip
        query = self._query(data)
        where = None if wanted is None else {"n": {"<=": wanted}}
        answer = self.handles[who].search(
            query, k, radius=radius, where=where, exclude=exclude, way=way
        )
        self._same(
            answer,
            model.nearest(
                self.known, query, radius=radius, k=k, exclude=exclude,
                where=lambda metadata: wanted is None or metadata["n"] <= wanted,
            ),
        )  # fmt: skip

    @rule(
        data=st.data(), radius=st.integers(0, 12), who=st.integers(0, 1), way=st.sampled_from(WAYS)
    )
    def within(self, data: st.DataObject, radius: int, who: int, way: Any) -> None:
        query = self._query(data)
        answer = self.handles[who].within(query, radius, way=way, explain=True)
        self._same(answer, model.nearest(self.known, query, radius=radius))
        assert answer.complete
        for match in answer:
            assert match.differing_bits is not None
            assert match.slice_distances is not None
            assert len(match.differing_bits) == sum(match.slice_distances) == match.distance
            if answer.work is not None and answer.work.way == "sql":
                assert match.slices, "it was found, so a slice must have hit"

    @precondition(lambda self: self.known)
    @rule(data=st.data(), radius=st.integers(0, 9), way=st.sampled_from(WAYS))
    def duplicates(self, data: st.DataObject, radius: int, way: Any) -> None:
        id = data.draw(st.sampled_from(sorted(self.known)))
        query = np.frombuffer(self.known[id][0], np.uint8)
        answer = self.handles[0].duplicates_of(id, radius, way=way)
        self._same(answer, model.nearest(self.known, query, radius=radius, exclude=[id]))

    @rule(radius=st.integers(0, 6))
    def pairs(self, radius: int) -> None:
        found = [(p.left, p.right, p.distance) for p in self.handles[0].pairs(radius)]
        assert found == model.pairs(self.known, radius)

    @rule(limit=st.integers(1, 9), wanted=st.integers(0, 3))
    def scroll(self, limit: int, wanted: int) -> None:
        after, seen = "", []
        while page := self.handles[1].scroll(after, limit, where={"n": wanted}):
            seen += [document.id for document in page]
            after = seen[-1]
        assert seen == sorted(id for id, (_, m) in self.known.items() if m["n"] == wanted)
        assert self.handles[1].count({"n": wanted}) == len(seen)

    @rule(names=st.lists(ids, max_size=6))
    def get(self, names: list[str]) -> None:
        for id, document in zip(names, self.handles[1].get_many(names), strict=True):
            if id not in self.known:
                assert document is None
                continue
            assert document is not None
            assert document.id == id
            assert (document.signature.tobytes(), document.metadata) == self.known[id]

    @rule(who=st.integers(0, 1))
    def reopen(self, who: int) -> None:
        self.handles[who].refresh()
        self.handles[who].close()
        self.handles[who] = self.open()

    @rule()
    def repair(self) -> None:
        assert self.handles[0].repair().ok
        self.version += 1

    @rule(number=st.integers(0, 10**9))
    def snapshot_and_restore(self, number: int) -> None:
        path = Path(self.folder.name) / f"snapshot-{number}.db"
        if path.exists():
            return
        self.handles[0].snapshot(path)
        self.handles[1].upsert(["passing"], signatures=np.zeros((1, WIDTH), np.uint8))
        assert la.restore_collection(path, self.url, replace=True) == "it's"
        path.unlink()

    @invariant()
    def consistent(self) -> None:
        if self.handles:
            assert self.handles[0].count() == len(self.known)
            assert self.handles[0].version == self.version
            report = self.handles[1].verify()
            assert report.ok, report.problems
            assert report.documents == len(self.known)
            assert report.signatures == len({entry[0] for entry in self.known.values()})

    def _batch(
        self, data: st.DataObject
    ) -> tuple[list[str], oracle.Signatures, list[dict[str, Any]]]:
        rows = data.draw(collections(width=WIDTH, least=1, most=6))
        size = len(rows)
        names = data.draw(st.lists(ids, min_size=size, max_size=size))
        return names, rows, data.draw(st.lists(metadata, min_size=size, max_size=size))

    def _take(
        self, names: list[str], rows: oracle.Signatures, described: list[dict[str, Any]]
    ) -> None:
        for id, row, one in zip(names, rows, described, strict=True):
            self.known[id] = (row.tobytes(), one)
        self.version += 1

    def _query(self, data: st.DataObject) -> oracle.Signatures:
        query: oracle.Signatures = data.draw(collections(width=WIDTH, least=1, most=1))[0]
        if self.known and bool(data.draw(st.booleans())):
            id = data.draw(st.sampled_from(sorted(self.known)))
            query = np.array(np.frombuffer(self.known[id][0], np.uint8))
            query[0] ^= data.draw(st.integers(0, 3))
        return query

    def _same(self, answer: la.Answer, expected: list[tuple[int, str]]) -> None:
        assert list(zip(answer.distances, answer.ids, strict=True)) == expected
        assert [m.metadata for m in answer] == [self.known[id][1] for _, id in expected]
        assert answer.version == self.version


def test_sqlite_beside_a_dictionary() -> None:
    run_state_machine_as_test(
        CollectionBesideDictionary, settings=settings(max_examples=40, stateful_step_count=30)
    )


def test_postgresql_beside_a_dictionary(postgres: PostgresServer) -> None:
    machine = type("OnPostgres", (CollectionBesideDictionary,), {"postgres": postgres})
    run_state_machine_as_test(machine, settings=settings(max_examples=15, stateful_step_count=25))
