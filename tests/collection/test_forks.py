"""Processes that fork while threads read and write."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.collection.stores import pool
from support.running.forked import in_a_fork

BITS = 64
ROW = np.zeros((1, BITS // 8), np.uint8)


def rows(count: int, seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 256, (count, BITS // 8), dtype=np.uint8)


@contextmanager
def meanwhile(work: Callable[[int], object]) -> Iterator[None]:
    """Do something again and again in another thread, leaving room for others."""
    done = threading.Event()

    def repeat() -> None:
        number = 0
        while not done.is_set():
            work(number)
            number += 1
            time.sleep(0.002)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_child_opens_again_while_a_thread_of_its_parent_adds(url: str) -> None:
    docs = la.open_collection(url, bits=BITS)
    signatures = rows(200, 0)

    def add(number: int) -> None:
        docs.upsert([f"{number % 7}-{i}" for i in range(200)], signatures=signatures)

    def open_and_add(name: str) -> int:
        with la.open_collection(url) as own:
            return own.upsert([name], signatures=ROW).added + len(own.within(ROW, 0))

    with meanwhile(add):
        told = [in_a_fork(lambda number=number: open_and_add(f"c{number}")) for number in range(8)]  # type: ignore[misc]
    assert told == [str(2 + number) for number in range(8)]
    assert docs.within(ROW, 0).ids == sorted(f"c{number}" for number in range(8))
    assert docs.verify().ok
    docs.close()


def test_a_child_that_goes_on_with_what_its_parent_opened_is_told(tmp_path: Path) -> None:
    docs = la.open_collection(tmp_path / "docs.db", bits=BITS)
    docs.add([str(i) for i in range(2000)], signatures=rows(2000, 1))
    docs.refresh()
    uses: list[Callable[[], object]] = [
        lambda: docs.add(["a"], signatures=ROW),
        lambda: docs.search(ROW[0], 1),
        docs.repair,
        docs.verify,
        docs.refresh,
    ]
    with docs._native._lock, docs._store._pool._lock:  # as if threads
        for use in uses:
            assert "open it again after the fork" in in_a_fork(use)
        assert in_a_fork(docs.close) == "None", "which does nothing there, and does not wait"
    assert docs.count() == 2000
    docs.close()


def test_a_fork_in_the_middle_of_its_own_transaction(url: str, tmp_path: Path) -> None:
    told: list[str] = []

    def open_other() -> object:
        return la.open_collection(tmp_path / "other.db", bits=BITS)

    def fork_once(metadata: dict[str, Any]) -> bool:
        if not told:
            told.append(in_a_fork(open_other))
        return True

    with la.open_collection(url, bits=BITS) as docs:
        docs.add(["a", "b"], signatures=np.repeat(ROW, 2, axis=0), metadata=[{}, {}])
        assert docs.search(ROW[0], 2, where=fork_once).ids == ["a", "b"]
        assert "forked during a transaction" in told[0]
        assert docs.verify().ok
        assert in_a_fork(lambda: la.open_collection(url).count()) == "2", "later forks are fine"


def test_a_child_that_returns_from_its_parents_transaction_leaves_it_alone(url: str) -> None:
    parent = os.getpid()
    children: list[int] = []

    def fork_once(metadata: dict[str, Any]) -> bool:
        if not children:
            children.append(os.fork())
            if not children[0]:
                signal.alarm(120)
        return True

    with la.open_collection(url, bits=BITS) as docs:
        docs.add(["a", "b"], signatures=np.repeat(ROW, 2, axis=0), metadata=[{}, {}])
        try:
            found = docs.search(ROW[0], 2, where=fork_once).ids
        except la.errors.CollectionError as error:
            if os.getpid() != parent:
                os._exit(0 if "open it again after the fork" in str(error) else 1)
            raise
        finally:
            if os.getpid() != parent:
                os._exit(2)
        assert os.waitpid(children[0], 0)[1] == 0
        assert found == ["a", "b"]
        assert docs.count() == 2


def test_a_fork_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_PATIENCE", 0.2)
    inside, leave = threading.Event(), threading.Event()

    def linger(metadata: dict[str, Any]) -> bool:
        inside.set()
        return leave.wait(30)

    with la.open_collection(tmp_path / "docs.db", bits=BITS) as docs:
        docs.add(["a"], signatures=ROW)
        thread = threading.Thread(target=docs.search, args=(ROW[0],), kwargs={"where": linger})
        thread.start()
        assert inside.wait(30)
        begin = time.monotonic()
        told = in_a_fork(lambda: la.open_collection(tmp_path / "docs.db").count())
        assert time.monotonic() - begin >= 0.2
        assert "forked during a transaction" in told
        leave.set()
        thread.join()
        assert docs.count() == 1
        assert in_a_fork(lambda: la.open_collection(tmp_path / "docs.db").count()) == "1"


def test_a_child_searches_while_threads_of_its_parent_do() -> None:
    """What the core keeps from one search to the next belongs to nobody at the moment of a fork."""
    signatures = rows(300, 2)
    index = la.SliceIndex(signatures)

    def search(number: int = 0) -> int:
        for _ in range(20):
            index.search(signatures[:1], 3, threads=1)
        return int(index.search(signatures[:1], 3, threads=1).ids[0, 0])

    with meanwhile(search), meanwhile(search):
        assert [in_a_fork(search) for _ in range(30)] == ["0"] * 30
