"""A writer that gets killed, and the question what is left afterwards.

The writer notes in a file what it is about to do and what was acknowledged; both are plain appends,
which survive the death of a process. What it does is a function of a number, so the test can tell
what the collection must hold after any number of steps.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lookalike as la
from support.oracles import collections as model
from support.running.asking import BITS, Answered, Question

POINTS = (
    "lock", "find_documents", "insert_signatures", "insert_keys", "delete_documents",
    "insert_documents", "unused", "delete_keys", "delete_signatures", "log_removals", "save",
    "insert_entries", "delete_entries", "commit", "cache",
)  # fmt: skip
PART_POINTS = (
    "insert_parts",
    *(point for point in POINTS if not point.endswith(("_keys", "_entries"))),
)


@dataclass(frozen=True)
class Step:
    """One write: `upsert`, `delete`, or `add` of those that are not there."""

    what: str
    ids: list[str]
    rows: np.ndarray[Any, Any]
    metadata: list[dict[str, Any]]


def step(number: int) -> Step:
    """Return what step `number` does.

    Every third one deletes, and the next adds the same ids again, with the signatures that they
    always have then: ids and signatures go and come back, over and over.
    """
    turn = number % 3
    rng = np.random.default_rng([(number + 1) // 3, turn == 1])
    ids = [f"doc-{i}" for i in rng.integers(0, 40, rng.integers(1, 6)).tolist()]
    if turn != 1:
        ids = sorted(set(ids))
    rows = rng.integers(0, 256, (len(ids), BITS // 8), dtype=np.uint8)
    if turn == 0:
        rows = np.array([own_row(id) for id in ids])
    elif number % 5 == 0:
        rows[:] = np.frombuffer(number.to_bytes(8, "little"), np.uint8)  # one signature for all
    metadata = [{"step": number, "even": (number + place) % 2 == 0} for place in range(len(ids))]
    return Step(("add", "upsert", "delete")[turn], ids, rows, metadata)


def own_row(id: str) -> np.ndarray[Any, Any]:
    """Return the signature that a document has whenever it was added again."""
    return np.random.default_rng(list(id.encode())).integers(0, 256, BITS // 8, dtype=np.uint8)


def vector_of(id: str, number: int) -> np.ndarray[Any, Any] | None:
    """Return the vector that a document gets in step `number`; every third has none."""
    if (len(id) + number) % 3 == 0:
        return None
    return np.random.default_rng([number, *id.encode()]).normal(size=5).astype(np.float32)


def apply(known: dict[str, model.Entry], number: int) -> bool:
    """Do the step to a dictionary; return whether it changes anything."""
    todo = step(number)
    if todo.what == "delete":
        gone = [id for id in todo.ids if known.pop(id, None) is not None]
        return bool(gone)
    fresh = [id not in known for id in todo.ids]
    for id, row, described, new in zip(todo.ids, todo.rows, todo.metadata, fresh, strict=True):
        if new or todo.what == "upsert":
            known[id] = (row.tobytes(), described)
    return todo.what == "upsert" or any(fresh)


def open_for(url: str, parts: bool, **options: Any) -> la.Collection:
    """Open the collection: of signatures, or of parts, one for each byte of these."""
    words: Any = None if parts else "porter"
    return la.open_collection(url, bits=8 if parts else BITS, parts=parts, words=words, **options)


def as_given(rows: np.ndarray[Any, Any], parts: bool) -> Any:
    """Return signatures as they are written."""
    return [row[:, None] for row in rows] if parts else rows


def write_until_killed(
    url: str, cache: str, log: str, first: int, point: str, calls: int, parts: bool = False
) -> None:
    """Write steps from `first` on, and die at the named point, the so-manieth time it is reached.

    Without a point, go on until somebody else kills this process.
    """
    notes = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    if point:
        _die_at(url, point, calls)
    with open_for(url, parts, cache=cache) as docs:
        for number in range(first, first + 10_000):
            todo = step(number)
            rows = as_given(todo.rows, parts)
            texts = None if parts else [f"words of {id} in step {number}" for id in todo.ids]
            vectors = None if parts else [vector_of(id, number) for id in todo.ids]
            os.write(notes, f"try {number}\n".encode())
            if todo.what == "delete":
                docs.delete(todo.ids)
            elif todo.what == "upsert":
                docs.upsert(
                    todo.ids, texts, signatures=rows, metadata=todo.metadata, vectors=vectors
                )
            else:
                options: dict[str, Any] = {"metadata": todo.metadata, "on_error": "skip"}
                docs.add(todo.ids, texts, signatures=rows, vectors=vectors, **options)
            os.write(notes, f"ok {number}\n".encode())
            if number % 4 == 0:
                docs.search(rows[0], 1)  # so that the index is there, and must catch up
                if docs.dimensions:
                    docs.search(vector=np.ones(docs.dimensions), k=1)
            for cached in (docs._native, docs._vectors) if number % 16 == 0 else ():
                if cached._index is not None:
                    cached._changes = 10**9  # much has changed: write the file
                    cached.save()


def _die_at(url: str, point: str, calls: int) -> None:
    """Make this process kill itself before or after the named thing happens."""
    left = [calls]

    def perhaps() -> None:
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            perhaps()
            result = function(*arguments, **options)
            perhaps()
            return result

        return wrapped

    if point == "cache":
        Path.replace = around(Path.replace)  # type: ignore[method-assign]
        return
    if url.startswith("postgresql"):
        from lookalike.collection.stores import postgresql as store
        from lookalike.collection.stores.postgresql import (
            PostgresTransaction as Transaction,
        )

        owner = store.PostgresStore
    else:
        from lookalike.collection.stores import sqlite as sqlite_store
        from lookalike.collection.stores.sqlite import (  # type: ignore[assignment]
            SqliteTransaction as Transaction,
        )

        owner = sqlite_store.SqliteStore  # type: ignore[assignment]
    if point == "commit":
        # The transaction ends when the context does: die just before, or just after.
        original = owner.writing

        class Writing:
            def __init__(self, store: Any) -> None:
                self.inner = original(store)

            def __enter__(self) -> Any:
                return self.inner.__enter__()

            def __exit__(self, *error: Any) -> Any:
                perhaps()
                result = self.inner.__exit__(*error)
                perhaps()
                return result

        owner.writing = lambda store: Writing(store)  # type: ignore[method-assign,assignment]
        return
    setattr(Transaction, point, around(getattr(Transaction, point)))


class Ledger:
    """What has been tried and acknowledged so far, and what that means for the collection."""

    def __init__(self, log: Path, parts: bool = False) -> None:
        self.log = log
        self.parts = parts
        self.known: dict[str, model.Entry] = {}
        self.version = 0
        self.next = 0

    def settle(
        self, url: str, cache: str, rng: random.Random, answers: Iterable[Answered] = ()
    ) -> int:
        """Compare the collection with the notes, and return how many steps were acknowledged.

        `answers` are what a reader was told meanwhile, each compared with the version it names.
        """
        notes = self.log.read_text().split("\n") if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        tried = [int(line[4:]) for line in notes if line.startswith("try ")]
        acknowledged = [int(line[3:]) for line in notes if line.startswith("ok ")]
        past = {self.version: dict(self.known)}
        for number in acknowledged:
            self.version += apply(self.known, number)
            past[self.version] = dict(self.known)
        open_step = set(tried) - set(acknowledged)
        assert len(open_step) <= 1
        with open_for(url, self.parts, cache=cache) as docs:
            if docs.version != self.version:  # then the last step was written, though not said
                (number,) = open_step
                self.version += apply(self.known, number)
                past[self.version] = dict(self.known)
            self.next = max([self.next, *(number + 1 for number in tried)])
            self.compare(docs, rng)
        for answer in answers:
            answer.check(past[answer.version])
        return len(acknowledged)

    def compare(self, docs: la.Collection, rng: random.Random) -> None:
        """Everything is there, by `get` and by `search` in both ways, and nothing else is."""
        assert docs.version == self.version
        assert [document.id for document in docs] == sorted(self.known)
        for document in docs.get_many(sorted(self.known)):
            assert document is not None
            whole = docs.parts_of(document.id).signatures if self.parts else document.signature
            assert (whole.tobytes(), document.metadata) == self.known[document.id]
        if not self.parts:
            self.compare_vectors(docs)
        if self.known:
            wanted = sorted(self.known)
            rows = np.array([np.frombuffer(self.known[id][0], np.uint8) for id in wanted])
            for plan in () if self.parts else ("native", "sql"):
                answers = docs.within_many(rows, 0, plan=plan)
                for id, answer in zip(wanted, answers, strict=True):
                    assert id in answer.ids
            if not self.parts:
                assert sorted(docs.search("a word", len(wanted) + 1, by="words").ids) == wanted
            for _ in range(2):
                for near in (None, rows):
                    Question.any(rng, near, self.parts).ask(docs).check(self.known)
        report = docs.verify()
        assert report.ok, report.problems
        assert report.cache is None, report.cache

    def compare_vectors(self, docs: la.Collection) -> None:
        """Every document has the vector of the step that wrote it, and is found by it."""
        vectors = {id: vector_of(id, entry[1]["step"]) for id, entry in self.known.items()}
        for document in docs:
            expected = vectors[document.id]
            assert (document.vector is None) is (expected is None)
            if document.vector is not None and expected is not None:
                assert document.vector.tobytes() == expected.tobytes()
        having = sorted(id for id, vector in vectors.items() if vector is not None)
        if having:
            found = docs.search(vector=np.ones(5), k=len(having) + 1)
            assert sorted(found.ids) == having
            assert found.exact
