"""Searches that are canceled end early, and leave the index as it was."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.operation import Canceled, Operation, shielded, stop_if_canceled
from support.cases.index_kinds import KINDS, made

_RNG = np.random.default_rng(5)
_ROWS = _RNG.integers(0, 256, (400, 8), dtype=np.uint8)
_ROWS[200:300] = _ROWS[7]
_QUERIES = _ROWS[::5]
_INDEXES: dict[str, Any] = {}


def _index(kind: str) -> Any:
    if kind not in _INDEXES:
        _INDEXES[kind] = made(kind, _ROWS, None)
    return _INDEXES[kind]


def _searches(index: Any, threads: int) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {
        "within": lambda: index.within(_QUERIES, 3, threads=threads),
        "pairs": lambda: index.pairs(3, threads=threads),
    }
    if hasattr(index, "search"):
        found["search"] = lambda: index.search(_QUERIES, 3, threads=threads)
    return found


def _plain(answer: Any) -> list[Any]:
    names = ("offsets", "ids", "left", "right", "distances")
    return [getattr(answer, name).tolist() for name in names if hasattr(answer, name)]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(threads=st.integers(1, 4), name=st.sampled_from(["within", "pairs", "search"]))
def test_a_canceled_search_raises_and_the_index_still_answers(
    kind: str, threads: int, name: str
) -> None:
    index = _index(kind)
    search = _searches(index, threads).get(name)
    if search is None:
        return
    expected = _plain(search())
    operation = Operation()
    operation.cancel()
    with pytest.raises(Canceled):
        operation.run(search)
    assert _plain(search()) == expected
    # At any other moment: the whole answer, or none.
    operation = Operation()
    timer = threading.Thread(target=operation.cancel)
    timer.start()
    with suppress(Canceled):
        assert _plain(operation.run(search)) == expected
    timer.join()
    assert _plain(search()) == expected


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["scan", "slices", "clusters", "prefix"])
def test_a_search_of_minutes_ends_while_it_runs(kind: str, threads: int) -> None:
    rows = _RNG.integers(0, 256, (60_000, 128), dtype=np.uint8)
    index = made(kind, rows, None)
    operation = Operation()
    begun = threading.Event()

    def search() -> Any:
        begun.set()
        while True:  # however quick the machine is
            index.search(np.tile(rows[:10_000], (4, 1)), 10, threads=threads)

    def cancel() -> None:
        begun.wait()
        operation.cancel()

    threading.Thread(target=cancel).start()
    with pytest.raises(Canceled):
        operation.run(search)
    assert index.search(rows[:2], 1).ids[:, 0].tolist() == [0, 1]


@pytest.mark.parametrize("threads", [1, 3])
def test_other_work_of_the_core(threads: int) -> None:
    texts = [f"some words of document {number}" for number in range(500)]
    vectors = _RNG.standard_normal((300, 16)).astype(np.float32)
    signer = la.MinHash(128)
    rows = signer.sign(texts)
    bands = la.BandIndex(0.8, 128)
    bands.insert_many(range(500), rows)
    index = la.VectorIndex(vectors)
    works: list[Callable[[], Any]] = [
        lambda: la.SimHash(64).sign(texts, threads=threads),
        lambda: la.TopSig(64).sign(texts, threads=threads),
        lambda: signer.sign(texts, threads=threads),
        lambda: la.SliceIndex(_ROWS, 7),
        lambda: la.BlockIndex(_ROWS, 3),
        lambda: la.ClusterIndex(_ROWS, 5),
        lambda: index.search(vectors[:20], 3, threads=threads),
        lambda: bands.query_many(rows, threads=threads),
    ]
    for work in works:
        work()
        operation = Operation()
        operation.cancel()
        with pytest.raises(Canceled):
            operation.run(work)
        work()


def test_other_threads_go_on() -> None:
    operation = Operation()
    operation.cancel()
    index = _index("scan")
    found: list[Any] = []

    def work() -> None:
        thread = threading.Thread(target=lambda: found.append(index.search(_ROWS, 1)))
        thread.start()
        thread.join()

    with pytest.raises(Canceled):
        operation.run(work)
    assert not found  # canceled before it began
    operation = Operation()

    def canceled_work() -> None:
        operation.cancel()
        work()

    operation.run(canceled_work)
    assert len(found) == 1
    stop_if_canceled()  # nothing is left behind in this thread


def test_what_is_shielded_goes_on_to_its_end() -> None:
    index = _index("slices")
    operation = Operation()
    steps: list[str] = []

    def work() -> None:
        with shielded():
            operation.cancel()
            index.search(_ROWS, 1)
            steps.append("complete")
        stop_if_canceled()
        steps.append("too far")

    with pytest.raises(Canceled):
        operation.run(work)
    assert steps == ["complete"]

    def end() -> None:
        with shielded():
            ending.cancel(shielded_too=True)
            index.search(_ROWS, 1)

    ending = Operation()
    with pytest.raises(Canceled):
        ending.run(end)
