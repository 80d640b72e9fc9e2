"""A collection of parts answers what a fresh PartIndex over the same documents does, whatever was
written before, through which handle, and however often it was opened."""

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
from numpy.typing import NDArray
from tools.postgres_server import PostgresServer

import lookalike as la
from collection.conftest import new_database
from lookalike.collection.search import answer as gathering
from lookalike.collection.search import votes as vote_search
from support.oracles.part_collections import Entry, expected, told
from support.running.exploring import examples

BITS = 16
ids = st.integers(0, 11).map(lambda number: f"d'{number}")
metadata = st.fixed_dictionaries({"n": st.integers(0, 2)})
seeds = st.integers(0, 40)
"""Few of them, so that documents of equal parts are common."""


def some_parts(seed: int) -> tuple[NDArray[np.uint8], list[int]]:
    """Return up to nine parts of few different signatures, so that many are near each other."""
    random = np.random.default_rng(seed)
    count = int(random.integers(0, 10))
    rows = np.zeros((count, BITS // 8), np.uint8)
    rows[:, 0] = random.integers(0, 16, count)
    rows[:, 1] = random.choice(np.array([0, 0, 255], np.uint8), count)
    if seed % 3 == 0:
        return rows, list(range(count))
    if seed % 3 == 1:
        return rows, np.cumsum(random.integers(0, 3, count)).tolist()
    return rows, random.integers(-4, 5, count).tolist()  # in any order, some equal


class PartsBesideAnIndex(RuleBasedStateMachine):
    postgres: PostgresServer | None = None
    """Where to work; None: in SQLite files."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.known: dict[str, Entry] = {}
        self.version = 0
        self.handles: list[la.Collection] = []

    def open(self) -> la.Collection:
        return la.open_collection(self.url, "it's", bits=BITS, parts=True, cache=self.folder.name)

    @initialize(fine=st.booleans())
    def begin(self, fine: bool) -> None:
        gathering._FILTERED_CHUNK = 1 if fine else 512  # searches go on in the smallest steps
        vote_search._SPARE = 2 if fine else 8
        in_files = str(Path(self.folder.name) / "docs.db")
        self.url = new_database(self.postgres) if self.postgres else in_files
        self.handles = [self.open(), self.open()]  # as two processes would

    def teardown(self) -> None:
        gathering._FILTERED_CHUNK, vote_search._SPARE = 512, 8
        for handle in self.handles:
            handle.close()
        self.folder.cleanup()

    @rule(
        who=st.integers(0, 1), replace=st.booleans(),
        items=st.lists(st.tuples(ids, seeds, metadata), min_size=1, max_size=5),
    )  # fmt: skip
    def write(self, who: int, replace: bool, items: list[tuple[str, int, dict[str, Any]]]) -> None:
        names = [id for id, _, _ in items]
        old = set(names) & set(self.known)
        given: list[Any] = [some_parts(seed) for _, seed, _ in items]
        given = [rows if at == list(range(len(rows))) else (rows, at) for rows, at in given]
        described = [one for _, _, one in items]
        docs = self.handles[who]
        if replace:
            written = docs.upsert(names, signatures=given, metadata=described)
            assert (written.added, written.updated) == (len(set(names) - old), len(old))
        elif len(set(names)) < len(names) or old:
            with pytest.raises(la.errors.BatchError):
                docs.add(names, signatures=given, metadata=described)
            return
        else:
            written = docs.add(names, signatures=given, metadata=described)
            assert written.added == len(names)
        self.version += 1
        for id, seed, one in items:
            rows, at = some_parts(seed)
            self.known[id] = Entry(rows, tuple(at), one)

    @rule(names=st.lists(ids, max_size=4), who=st.integers(0, 1))
    def delete(self, names: list[str], who: int) -> None:
        gone = set(names) & set(self.known)
        assert self.handles[who].delete(names).deleted == len(gone)
        self.known = {id: entry for id, entry in self.known.items() if id not in gone}
        self.version += bool(gone)

    @rule(
        who=st.integers(0, 1), queries=st.lists(seeds, min_size=1, max_size=3),
        radius=st.sampled_from([None, 0, 1, 3]), tolerance=st.sampled_from([0, 1, 3]),
        k=st.sampled_from([1, 2, 3, 100]), min_votes=st.sampled_from([None, 1, 2, 3]),
        most=st.sampled_from([None, 0, 1]), exclude=st.lists(ids, max_size=3),
    )  # fmt: skip
    def search(
        self, who: int, queries: list[int], most: int | None, exclude: list[str], **asked: Any
    ) -> None:
        where = None if most is None else {"n": {"<=": most}}
        allowed = {
            id: entry
            for id, entry in self.known.items()
            if id not in exclude and (most is None or entry.metadata["n"] <= most)
        }
        answers = self.handles[who].search_many(
            [some_parts(seed) for seed in queries], where=where, exclude=exclude, explain=True,
            **asked,
        )  # fmt: skip
        for seed, answer in zip(queries, answers, strict=True):
            rows, at = some_parts(seed)
            assert told(answer) == expected(allowed, rows, at, BITS, **asked)
            assert (answer.version, answer.exact, answer.left_out) == (self.version, True, 0)
            assert all(match.metadata == self.known[match.id].metadata for match in answer)
        one = self.handles[who].search(
            some_parts(queries[0]), where=where, exclude=exclude, explain=True, **asked
        )
        assert one == answers[0]

    @rule(names=st.lists(ids, max_size=4), wanted=st.integers(0, 2))
    def read(self, names: list[str], wanted: int) -> None:
        docs = self.handles[1]
        for id, document in zip(names, docs.get_many(names), strict=True):
            assert (document is None) == (id not in self.known)
            if document is not None:
                assert document.metadata == self.known[id].metadata
                parts = docs.parts_of(id)
                assert (parts.signatures.tobytes(), tuple(parts.offsets.tolist())) == (
                    self.known[id].contents
                )
        found = [one.id for one in docs.scroll(limit=100, where={"n": wanted})]
        assert found == sorted(id for id, one in self.known.items() if one.metadata["n"] == wanted)
        assert docs.count({"n": wanted}) == len(found)

    @rule(who=st.integers(0, 1), written=st.booleans())
    def reopen(self, who: int, written: bool) -> None:
        self.handles[who].refresh()
        if written:
            self.handles[who]._native._changes = 10**9  # so that so small an index is written
        self.handles[who].close()
        self.handles[who] = self.open()

    @rule()
    def repair(self) -> None:
        assert self.handles[0].repair().ok
        self.version += 1

    @precondition(lambda self: not list(Path(self.folder.name).glob("snapshot.db")))
    @rule()
    def snapshot_and_restore(self) -> None:
        path = Path(self.folder.name) / "snapshot.db"
        self.handles[0].snapshot(path)
        self.handles[1].upsert(["passing"], signatures=[some_parts(7)])
        assert la.restore_collection(path, self.url, replace=True) == "it's"
        path.unlink()

    @invariant()
    def consistent(self) -> None:
        if self.handles:
            assert self.handles[0].count() == len(self.known)
            assert self.handles[0].version == self.version
            report = self.handles[1].verify()
            assert report.ok, report.problems
            assert report.cache is None, report.cache
            different = {entry.contents for entry in self.known.values()}
            assert (report.signatures, report.keys) == (len(different), 0)


@pytest.mark.hypothesis
def test_parts_on_sqlite_beside_an_index() -> None:
    run_state_machine_as_test(
        PartsBesideAnIndex, settings=settings(max_examples=examples(30), stateful_step_count=25)
    )


@pytest.mark.hypothesis
def test_parts_on_postgresql_beside_an_index(postgres: PostgresServer) -> None:
    machine = type("OnPostgres", (PartsBesideAnIndex,), {"postgres": postgres})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples(10), stateful_step_count=20)
    )
