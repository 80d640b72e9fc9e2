"""One index over several services: merged as one, with copies, lost ones and slow ones."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.client.channel import Channel
from lookalike.errors import ArgumentError, UnavailableError
from support.oracles import scan as oracle
from support.services.running import process, running

DRAW = np.random.default_rng(9)
ROWS = DRAW.integers(0, 256, (1200, 8), np.uint8)
ROWS[600:640] = ROWS[0]
ROWS[640:900] = ROWS[:260] ^ (DRAW.random((260, 8)) < 0.1).astype(np.uint8)
QUERIES = np.concatenate([ROWS[::20], DRAW.integers(0, 256, (30, 8), np.uint8)])
ENDS = [0, 100, 350, 351, 700, 1000, 1200]
PARTS = [ROWS[begin:end] for begin, end in pairwise(ENDS)]
WHOLE = la.ScanIndex(ROWS)


def equal(found: Any, expected: Any) -> None:
    assert type(found) is type(expected) and found.exact == expected.exact
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.distances, expected.distances)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[la.Index]]]:
    """Parts of a collection behind services: as scans, as slices, and with ids of their own."""
    ids = DRAW.permutation(10 * len(ROWS))[: len(ROWS)]
    kinds: dict[str, Callable[[int], la.Index]] = {
        "scan": lambda at: la.ScanIndex(PARTS[at]),
        "slices": lambda at: la.SliceIndex(PARTS[at], 8),
        "own": lambda at: la.ScanIndex(PARTS[at], ids=ids[ENDS[at] : ENDS[at + 1]]),
        "same": lambda at: la.ScanIndex(PARTS[at], ids=np.arange(len(PARTS[at]))),
    }
    with ExitStack() as stack:
        found: dict[str, list[la.Index]] = {}
        for name, make in kinds.items():
            for at in range(len(PARTS) if name != "same" else 2):
                folder = tmp_path_factory.mktemp(f"{name}{at}")
                make(at).save(folder / "part.lookalike")
                asked = stack.enter_context(running(folder / "part.lookalike", folder))
                there = stack.enter_context(la.connect([asked.url]))
                found.setdefault(name, []).append(there)
        yield found


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    queries=st.integers(0, len(QUERIES)), k=st.integers(1, 1300), radius=st.integers(0, 40),
    among=st.booleans(), masked=st.booleans(), seed=st.integers(0, 99),
    local=st.sets(st.integers(0, 5)),
)  # fmt: skip
def test_shards_of_services_are_one_index(
    queries: int, k: int, radius: int, among: bool, masked: bool, seed: int, local: set[int],
    served: dict[str, list[la.Index]],
) -> None:  # fmt: skip
    """Some parts are here and some are behind services: the answers are those of one scan."""
    shards = [la.ScanIndex(PARTS[at]) if at in local else served["scan"][at] for at in range(6)]
    index, draw = la.ShardedIndex(shards), np.random.default_rng(seed)
    options: dict[str, Any] = {}
    if among:
        options["among"] = draw.permutation(len(ROWS))[: int(draw.integers(0, 900))]
    if masked:
        options["masks"] = draw.integers(0, 256, (queries, 8), np.uint8)
    rows = QUERIES[:queries]
    equal(index.search(rows, k, **options), WHOLE.search(rows, k, **options))
    equal(index.within(rows, radius, **options), WHOLE.within(rows, radius, **options))
    if not options and queries:
        ids, _ = oracle.search(ROWS, rows[:2], min(k, 20))
        assert index.search(rows[:2], min(k, 20)).ids.tolist() == ids


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(k=st.integers(1, 40), expand=st.integers(0, 3), by_score=st.booleans())
def test_slices_of_services_are_merged_by_score(
    k: int, expand: int, by_score: bool, served: dict[str, list[la.Index]]
) -> None:
    here = la.ShardedIndex([la.SliceIndex(part, 8) for part in PARTS])
    there = la.ShardedIndex(served["slices"])
    assert there.is_scored and there.slice_bits == 8
    rerank = 0 if by_score else 50
    found = there.search(QUERIES, k, expand=expand, rerank=rerank)
    expected = here.search(QUERIES, k, expand=expand, rerank=rerank)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.distances, expected.distances)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert not found.exact, "nothing is proven of candidates that services left out"
    proven = there.search(QUERIES, k, exact=True)
    assert proven.exact
    equal(proven, WHOLE.search(QUERIES, k))


def test_ids_of_the_caller(served: dict[str, list[la.Index]]) -> None:
    index = la.ShardedIndex(served["own"])
    assert index.own_ids
    found, expected = index.search(QUERIES, 1), WHOLE.search(QUERIES, 1)
    assert found.distances.tolist() == expected.distances.tolist() and found.exact
    repeated = la.ShardedIndex(served["same"])
    for call in (lambda: repeated.search(ROWS[:1], 1200), lambda: repeated.within(ROWS[:1], 64)):
        with pytest.raises(ArgumentError, match="is in more than one result"):
            call()
    with pytest.raises(ArgumentError, match="some shards were built with ids"):
        la.ShardedIndex([served["own"][0], served["scan"][1]])


class Lost(la.ScanIndex):
    """A shard that does not answer."""

    def search(self, *arguments: Any, **options: Any) -> Any:
        raise UnavailableError("no service of the index has answered (it is lost)")

    within = search


def test_a_lost_shard_is_missed_only_if_that_is_allowed() -> None:
    shards = [la.ScanIndex(PARTS[0]), Lost(PARTS[1]), la.ScanIndex(PARTS[2])]
    strict, tolerant = la.ShardedIndex(shards), la.ShardedIndex(shards, allow_missing=True)
    rest = np.concatenate([np.arange(100), np.arange(350, 351)])
    for ask in (partial(la.ShardedIndex.search, k=9), partial(la.ShardedIndex.within, radius=20)):
        with pytest.raises(UnavailableError, match="it is lost"):
            ask(strict, QUERIES)
        found: Any = ask(tolerant, QUERIES)
        assert not found.exact
        assert found.missing == {1: "no service of the index has answered (it is lost)"}
        assert repr(found).endswith("exact=False, missing=[1])")
    found, expected = tolerant.search(QUERIES, 9), WHOLE.search(QUERIES, 9, among=rest)
    np.testing.assert_array_equal(found.ids, expected.ids)  # ids do not move
    nested = la.ShardedIndex([tolerant, la.ScanIndex(PARTS[3])])
    found = nested.search(QUERIES, 9)
    assert not found.exact and list(found.missing) == [0] and "it is lost" in found.missing[0]
    with pytest.raises(UnavailableError, match="no shard answered"):
        la.ShardedIndex([Lost(PARTS[1])], allow_missing=True).search(QUERIES, 3)
    with pytest.raises(ArgumentError, match="allow_missing is 1; expected True or False"):
        la.ShardedIndex(shards, allow_missing=1)  # type: ignore[arg-type]


def test_services_are_asked_in_parallel(served: dict[str, list[la.Index]]) -> None:
    """All requests wait for each other: with one at a time they would wait for ever."""
    together = threading.Barrier(len(PARTS), timeout=60)
    index = la.ShardedIndex(served["scan"])
    with pytest.MonkeyPatch.context() as patched:
        once = Channel.once

        def all_at_once(channel: Channel, *given: Any) -> Any:
            together.wait()
            return once(channel, *given)

        patched.setattr(Channel, "once", all_at_once)
        equal(index.search(QUERIES[:3], 5, threads=1), WHOLE.search(QUERIES[:3], 5))


def test_a_service_that_serves_another_index_now(tmp_path: Path) -> None:
    la.ScanIndex(PARTS[0]).save(tmp_path / "part.lookalike")
    with running(tmp_path / "part.lookalike", tmp_path) as asked:
        there = la.connect(asked.url, retries=0)
        assert there.search(QUERIES, 1).exact
        assert asked.inside is not None
        other = la.ScanIndex(PARTS[1])
        other.save(tmp_path / "other.lookalike")
        asked.inside.library.digest = "another"  # type: ignore[attr-defined]
        with pytest.raises(UnavailableError, match="it serves another index now; connect again"):
            there.search(QUERIES, 1)
        there.close()


def test_a_request_that_takes_too_long_is_divided(tmp_path: Path) -> None:
    """A service that needs its whole time limit for more than three queries."""
    la.ScanIndex(PARTS[0]).save(tmp_path / "part.lookalike")
    with running(tmp_path / "part.lookalike", tmp_path, time_limit=0.6) as asked:
        assert asked.inside is not None
        index: Any = asked.inside.library.index  # type: ignore[attr-defined]
        search, sizes = index.search, []

        def slow(rows: Any, *given: Any, **options: Any) -> Any:
            sizes.append(len(rows))
            if len(rows) > 3:
                time.sleep(1.5)
            return search(rows, *given, **options)

        index.search = slow
        with la.connect(asked.url, retries=0) as there:
            found = there.search(QUERIES[:6], 4)
        equal(found, la.ScanIndex(PARTS[0]).search(QUERIES[:6], 4))
        assert sorted(sizes) == [3, 3, 6]


def started(stack: ExitStack, paths: list[Path]) -> list[Any]:
    """Return a process for each path, started at the same time."""
    with ThreadPoolExecutor(len(paths)) as pool:
        waiting = [process(str(path)) for path in paths]
        found = list(pool.map(lambda one: one.__enter__(), waiting))
    for one in waiting:
        stack.callback(one.__exit__, None, None, None)
    return found


def after(index: Any, requests: int, action: Callable[[], object]) -> None:
    """Call `action` when the services of an index were sent this number of requests.

    It is called just before the next request, whichever service is chosen for that one.
    """
    count = itertools.count()

    def counted(once: Callable[..., Any], *given: Any) -> Any:
        if next(count) == requests:
            action()
        return once(*given)

    for replica in index._replicas.all:
        replica.channel.once = partial(counted, replica.channel.once)


def test_eight_processes_one_killed_and_one_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six shards, two of them with a copy each: what is lost without a copy is missing."""
    monkeypatch.setattr("lookalike.client.index._TOGETHER", 10)
    paths = [tmp_path / f"part-{at}.lookalike" for at in range(6)]
    for path, part in zip(paths, PARTS, strict=True):
        la.ScanIndex(part).save(path)
    with ExitStack() as stack:
        processes = started(stack, [*paths, *paths[4:]])
        urls = [one.service.url for one in processes]
        copies = [[urls[0]], [urls[1]], [urls[2]], [urls[3]], [urls[4], urls[6]],
                  [urls[5], urls[7]]]  # fmt: skip
        shards = [stack.enter_context(la.connect(one, timeout=5, retries=1)) for one in copies]
        assert len({one.pid for one in processes}) == 8
        strict, tolerant = la.ShardedIndex(shards), la.ShardedIndex(shards, allow_missing=True)
        expected = WHOLE.search(QUERIES, 7)
        equal(strict.search(QUERIES, 7), expected)

        # A copy is killed in the middle of a batch, and one of another shard stands still.
        after(shards[4], 2, processes[4].kill)
        os.kill(processes[5].pid, signal.SIGSTOP)
        begin = time.monotonic()
        equal(strict.search(QUERIES, 7), expected)
        assert processes[4].wait(60) != 0
        assert time.monotonic() - begin > 4, "the slow one was waited for, up to its time limit"
        equal(strict.within(QUERIES, 12), WHOLE.within(QUERIES, 12))
        os.kill(processes[5].pid, signal.SIGCONT)

        # The only service of a shard is killed in the middle of a batch.
        after(shards[1], 2, processes[1].kill)
        found = tolerant.search(QUERIES, 7)
        assert not found.exact and list(found.missing) == [1]
        assert urls[1] in found.missing[1]
        rest = np.concatenate([np.arange(100), np.arange(350, len(ROWS))])
        others = WHOLE.search(QUERIES, 7, among=rest)
        np.testing.assert_array_equal(found.ids, others.ids)
        np.testing.assert_array_equal(found.distances, others.distances)
        matches = tolerant.within(QUERIES, 12)
        assert not matches.exact and list(matches.missing) == [1]
        np.testing.assert_array_equal(matches.ids, WHOLE.within(QUERIES, 12, among=rest).ids)
        for call in (lambda: strict.search(QUERIES, 7), lambda: strict.within(QUERIES, 12)):
            with pytest.raises(UnavailableError, match="no service of the index has answered"):
                call()
