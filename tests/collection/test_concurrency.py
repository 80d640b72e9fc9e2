"""Several writers and readers at once: every answer is right for one committed version."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.postgres_server import PostgresServer

import lookalike as la
from collection.conftest import new_database
from lookalike.collection.stores.base import StaleView
from support.oracles import collections as model

BITS = 32
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["lookalike", "collection.crashing", "sqlite3", "psycopg"])
WRITES, READS = 30, 40


def signature(rng: random.Random) -> np.ndarray[Any, Any]:
    row = np.zeros(BITS // 8, np.uint8)
    for bit in rng.sample(range(BITS), rng.randrange(6)):  # near each other, and some equal
        row[bit // 8] |= 1 << bit % 8
    return row


def note(log: str, entry: dict[str, Any]) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, json.dumps(entry).encode() + b"\n")
    os.close(descriptor)


def write(docs: la.Collection, log: str, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(WRITES):
        ids = [f"d{rng.randrange(30)}" for _ in range(rng.randrange(1, 4))]
        if rng.random() < 0.3:
            written = docs.delete(ids)
            if written.deleted:
                note(log, {"version": written.version, "delete": ids})
            continue
        rows = [signature(rng) for _ in ids]
        written = docs.upsert(ids, signatures=np.array(rows), metadata=[{"by": seed}] * len(ids))
        entries = [(id, row.tobytes().hex()) for id, row in zip(ids, rows, strict=True)]
        note(log, {"version": written.version, "upsert": entries, "by": seed})


def read(docs: la.Collection, log: str, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(READS):
        query = signature(rng)
        plan: Any = rng.choice(["native", "sql"])
        k, radius = rng.randrange(1, 12), rng.choice([None, 0, 3, 8])
        answer = docs.search(query, k, radius=radius, plan=plan)
        found = [[m.distance, m.id, m.metadata] for m in answer]
        entry = {"version": answer.version, "query": query.tobytes().hex(), "k": k}
        note(log, {**entry, "radius": radius, "found": found, "plan": plan})


def write_in_a_process(url: str, cache: str, log: str, seed: int) -> None:
    with la.open_collection(url, bits=BITS, cache=cache) as docs:
        write(docs, log, seed)


def read_in_a_process(url: str, cache: str, log: str, seed: int) -> None:
    with la.open_collection(url, bits=BITS, cache=cache) as docs:
        read(docs, log, seed)


def check(log: Path, last_version: int) -> int:
    """Replay the writes version by version, and compare each answer with brute force."""
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    writes = {entry["version"]: entry for entry in entries if "found" not in entry}
    assert sorted(writes) == list(range(1, last_version + 1)), "versions follow each other"
    states: list[dict[str, model.Entry]] = [{}]
    for version in range(1, last_version + 1):
        known = dict(states[-1])
        entry = writes[version]
        for id in entry.get("delete", ()):
            known.pop(id, None)
        for id, row in entry.get("upsert", ()):
            known[id] = (bytes.fromhex(row), {"by": entry["by"]})
        states.append(known)
    answers = [entry for entry in entries if "found" in entry]
    for answer in answers:
        known = states[answer["version"]]
        query = np.frombuffer(bytes.fromhex(answer["query"]), np.uint8)
        expected = model.nearest(known, query, radius=answer["radius"], k=answer["k"])
        assert [(far, id) for far, id, _ in answer["found"]] == expected, answer
        assert [m for _, _, m in answer["found"]] == [known[id][1] for _, id in expected]
    return len(answers)


def test_processes(url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    la.open_collection(url, bits=BITS).close()
    cache = str(tmp_path / "cache")
    targets = [write_in_a_process] * 3 + [read_in_a_process] * 3
    workers = [
        FORKS.Process(target=target, args=(url, cache, str(log), seed))
        for seed, target in enumerate(targets)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * len(workers)
    with la.open_collection(url, cache=cache) as docs:
        assert docs.verify().ok
        assert check(log, docs.version) == 3 * READS


def test_threads_of_one_collection(url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    failures: list[BaseException] = []

    def guarded(target: Any, seed: int) -> None:
        try:
            target(docs, str(log), seed)
        except BaseException as error:
            failures.append(error)

    with la.open_collection(url, bits=BITS, cache=tmp_path / "cache") as docs:
        targets = [write] * 2 + [read] * 4
        threads = [
            threading.Thread(target=guarded, args=(target, seed))
            for seed, target in enumerate(targets)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures
        assert docs.verify().ok
        assert check(log, docs.version) == 4 * READS


def test_two_that_create_at_once(url: str) -> None:
    made: list[str] = []

    def create(name: str) -> None:
        with la.open_collection(url, name, bits=BITS, cache=False) as docs:
            docs.add([threading.current_thread().name], signatures=np.zeros((1, 4), np.uint8))
            made.append(name)

    threads = [
        threading.Thread(target=create, args=(f"c{number % 2}",), name=f"t{number}")
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 6
    assert la.list_collections(url) == ["c0", "c1"]
    with la.open_collection(url, "c1", cache=False) as docs:
        assert [document.id for document in docs] == ["t1", "t3", "t5"]


def test_a_write_is_seen_by_the_next_search_of_everybody(url: str) -> None:
    with la.open_collection(url, bits=BITS) as one, la.open_collection(url) as two:
        for number in range(20):
            row = np.frombuffer(number.to_bytes(4, "little"), np.uint8)
            writer, reader = (one, two) if number % 2 else (two, one)
            written = writer.add([f"d{number}"], signatures=row)
            for docs in (writer, reader):
                assert docs.search(row, 1).ids == [f"d{number}"]
                assert docs.refresh() == written.version


def test_an_older_view_does_not_get_a_newer_index(postgres: PostgresServer) -> None:
    """Another thread has moved the index on: the search begins again, with a new view."""
    with la.open_collection(new_database(postgres), bits=BITS, cache=False) as docs:
        docs.add(["a"], signatures=np.zeros((1, 4), np.uint8))
        state = docs._state()
        with docs._store.reading() as old:
            assert old.find("documents") == state
            docs.add(["b"], signatures=np.ones((1, 4), np.uint8))
            docs.refresh()
            with pytest.raises(StaleView):
                docs._native.at(old.at(state))
            assert old.find("documents") == state, "a view stays what it is"
        assert docs.search(np.ones(4, np.uint8), 1).ids == ["b"]


def test_searches_go_on_while_the_collection_is_replaced(url: str, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).integers(0, 256, (50, 4), dtype=np.uint8)
    ids = [f"d{i}" for i in range(50)]
    stop = threading.Event()
    failures: list[BaseException] = []
    with la.open_collection(url, bits=BITS, cache=False) as docs:
        docs.add(ids, signatures=rows)
        docs.snapshot(tmp_path / "copy.db")

        def search(plan: Any) -> None:
            try:
                while not stop.is_set():
                    assert docs.search(rows[7], 1, plan=plan).distances == [0]
                    assert docs.get("d7") is not None
                    assert docs.count() == 50
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=search, args=(plan,)) for plan in ("native", "sql")]
        for thread in threads:
            thread.start()
        for _ in range(5):
            la.restore_collection(tmp_path / "copy.db", url, replace=True)
            docs.upsert(ids[:3], signatures=rows[:3])
        stop.set()
        for thread in threads:
            thread.join()
        assert not failures, failures
        assert docs.verify().ok
