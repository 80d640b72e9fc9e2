"""A writer that gets killed, and the question what is left afterwards.

The writer notes in a file what it is about to do and what was acknowledged; both are plain appends,
which survive the death of a process. What it does is a function of a number, so the test can tell
what the collection must hold after any number of steps.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lookalike as la
from support import collection_model as model

BITS = 64
POINTS = (
    "lock", "find_documents", "insert_signatures", "insert_keys", "delete_documents",
    "insert_documents", "unused", "delete_keys", "delete_signatures", "log_removals", "save",
    "commit", "cache",
)  # fmt: skip


def step(number: int) -> tuple[str, list[str], np.ndarray[Any, Any]]:
    """Return what step `number` does: upsert or delete, ids, signatures."""
    rng = np.random.default_rng(number)
    ids = [f"doc-{i}" for i in rng.integers(0, 40, rng.integers(1, 6)).tolist()]
    rows = rng.integers(0, 256, (len(ids), BITS // 8), dtype=np.uint8)
    if number % 5 == 0:
        rows[:] = np.frombuffer(number.to_bytes(8, "little"), np.uint8)  # one signature for all
    return ("delete" if number % 3 == 2 else "upsert"), ids, rows


def apply(known: dict[str, model.Entry], number: int) -> bool:
    """Do the step to a dictionary; return whether it changes anything."""
    what, ids, rows = step(number)
    if what == "delete":
        gone = [id for id in set(ids) if known.pop(id, None) is not None]
        return bool(gone)
    for id, row in zip(ids, rows, strict=True):
        known[id] = (row.tobytes(), {"step": number})
    return True


def write_until_killed(url: str, cache: str, log: str, first: int, point: str, calls: int) -> None:
    """Write steps from `first` on, and die at the named point, the so-manieth time it is reached.

    Without a point, go on until somebody else kills this process.
    """
    notes = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    if point:
        _die_at(url, point, calls)
    with la.open_collection(url, bits=BITS, cache=cache) as docs:
        for number in range(first, first + 10_000):
            what, ids, rows = step(number)
            os.write(notes, f"try {number}\n".encode())
            if what == "delete":
                docs.delete(ids)
            else:
                docs.upsert(ids, signatures=rows, metadata=[{"step": number}] * len(ids))
            os.write(notes, f"ok {number}\n".encode())
            if number % 4 == 0:
                docs.search(rows[0], 1)  # so that the index is there, and must catch up
            if number % 16 == 0 and docs._native._index is not None:
                docs._native._changes = 10**9  # much has changed: write the file
                docs._native.save()


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
        from lookalike.collection.stores.postgresql_transaction import (
            PostgresTransaction as Transaction,
        )

        owner = store.PostgresStore
    else:
        from lookalike.collection.stores import sqlite as sqlite_store
        from lookalike.collection.stores.sqlite_transaction import (  # type: ignore[assignment]
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

        owner.writing = lambda store: Writing(store)  # type: ignore[method-assign,assignment,return-value]
        return
    setattr(Transaction, point, around(getattr(Transaction, point)))


class Ledger:
    """What has been tried and acknowledged so far, and what that means for the collection."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.known: dict[str, model.Entry] = {}
        self.version = 0
        self.next = 0

    def settle(self, url: str, cache: str, rng: random.Random) -> int:
        """Compare the collection with the notes, and return how many steps were acknowledged."""
        notes = self.log.read_text().split("\n") if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        tried = [int(line[4:]) for line in notes if line.startswith("try ")]
        acknowledged = [int(line[3:]) for line in notes if line.startswith("ok ")]
        for number in acknowledged:
            self.version += apply(self.known, number)
        open_step = set(tried) - set(acknowledged)
        assert len(open_step) <= 1
        with la.open_collection(url, bits=BITS, cache=cache) as docs:
            if docs.version != self.version:  # then the last step was written, though not said
                (number,) = open_step
                self.version += apply(self.known, number)
            self.next = max([self.next, *(number + 1 for number in tried)])
            self.compare(docs, rng)
        return len(acknowledged)

    def compare(self, docs: la.Collection, rng: random.Random) -> None:
        """Everything is there, by `get` and by `search` in both ways, and nothing else is."""
        assert docs.version == self.version
        assert [document.id for document in docs] == sorted(self.known)
        for document in docs.get_many(sorted(self.known)):
            assert document is not None
            entry = (document.signature.tobytes(), document.metadata)
            assert entry == self.known[document.id]
        if self.known:
            wanted = sorted(self.known)
            rows = np.array([np.frombuffer(self.known[id][0], np.uint8) for id in wanted])
            for way in ("native", "sql"):
                answers = docs.within_many(rows, 0, way=way)
                for id, answer in zip(wanted, answers, strict=True):
                    assert id in answer.ids
            query = rows[rng.randrange(len(rows))] ^ np.uint8(rng.randrange(256))
            expected = model.nearest(self.known, query, k=7)
            for way in ("native", "sql"):
                found = docs.search(query, 7, way=way)  # type: ignore[arg-type]
                assert list(zip(found.distances, found.ids, strict=True)) == expected
        report = docs.verify()
        assert report.ok, report.problems
        assert report.cache is None, report.cache
