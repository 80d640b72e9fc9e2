"""A running service: what its routes share."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lookalike.checks import thread_count
from lookalike.collection import Collection
from lookalike.collection.search.bounds import answers_counted_by
from lookalike.service.guard.memory import HELD, Held, Memory
from lookalike.service.guard.watch import Watch
from lookalike.service.library import Library
from lookalike.service.logs import Log
from lookalike.service.metrics import Metrics
from lookalike.service.settings import ServeSettings
from lookalike.service.work.jobs import Jobs
from lookalike.service.work.kept import Kept
from lookalike.service.work.lanes import Lanes
from lookalike.service.work.overviews import Overviews
from lookalike.signatures import estimated_similarity

__all__ = ["Service"]

T = TypeVar("T")

_TOGETHER = " "
"""Stands for the key where queries of several keys are answered together; no key has this name."""


class _Over(Exception):
    """Nobody waits for it any more."""


class Service:
    """Collections, the threads that work on them, and what was set.

    Nothing of a collection is done in the event loop: it may wait for a disk or another process.
    Reads have threads of their own, writes one for each collection, since writers wait for each
    other anyway; what takes seconds has another, so that searches do not wait behind it. What takes
    minutes in large collections is done in processes.
    """

    def __init__(self, settings: ServeSettings, library: Library, run: Path, log: Log) -> None:
        self.settings = settings
        self.library = library
        self.run = run
        """A folder for what belongs to this run: jobs, files that are being uploaded."""
        self.log = log
        self.metrics = Metrics()
        self.threads = settings.threads or thread_count(None)
        self.ending = False
        self.watch = Watch()
        self._readers = ThreadPoolExecutor(max(8, 2 * self.threads), "read")
        self._slow = ThreadPoolExecutor(2, "slow")
        self._texts = ThreadPoolExecutor(2, "texts")
        self._decoders = ThreadPoolExecutor(1, "decode")
        self._rested = 0.0
        self._writers: dict[str, ThreadPoolExecutor] = {}
        self.jobs = Jobs(run / "jobs", settings.max_jobs, log)
        self.overviews = Overviews(settings.overview_limit, log)
        # Who gets no answer in time is told to ask again before the time limit refuses it.
        self.kept = Kept(settings.time_limit / 2)
        most = settings.max_memory
        # With keys, no single one can take all the memory from the others.
        self.memory = Memory(most, most * 3 // 4 if settings.keys else most)
        counted = _CountedReaders(self._readers, self.memory)
        self.lanes: Lanes[Any, Any] = Lanes(counted, self.metrics.together.observe)
        self._similarities: weakref.WeakKeyDictionary[Collection, list[float]] = (
            weakref.WeakKeyDictionary()
        )

    async def read(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something that reads, in a thread."""
        return await _in_thread(self._readers, work, *arguments)

    async def decode(self, work: Callable[..., T], *arguments: Any) -> T:
        """Decode a large body in the one thread that does so: searches do not wait behind it.

        A decoder keeps the interpreter to itself. So the thread pauses between two bodies for as
        long as the first has taken: however many come, half of the time is left for others.
        """

        def paced() -> T:
            time.sleep(max(0.0, self._rested - time.monotonic()))
            begin = time.thread_time()
            try:
                return work(*arguments)
            finally:
                self._rested = time.monotonic() + time.thread_time() - begin

        return await _in_thread(self._decoders, paced)

    async def slowly(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something that may take long, in a thread."""
        return await _in_thread(self._slow, work, *arguments)

    async def with_texts(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something whose answer may be large, in a thread: of those, two are in memory."""
        return await _in_thread(self._texts, work, *arguments)

    async def write(self, name: str, work: Callable[[Collection], T]) -> T:
        """Do something that writes to a collection, one after the other."""
        writer = self._writers.get(name)
        if writer is None:
            await self.collection(name)  # a name that is not there gets no thread
            writer = self._writers.setdefault(name, ThreadPoolExecutor(1, f"write-{name}"))
        return await _in_thread(writer, self.library.use, name, work)

    def forget(self, name: str) -> None:
        """Let the thread of a collection go that is no more."""
        writer = self._writers.pop(name, None)
        if writer is not None:
            writer.shutdown(wait=False)

    async def use(self, name: str, work: Callable[[Collection], T]) -> T:
        """Do something that reads a collection."""
        return await self.read(self.library.use, name, work)

    async def look_through(
        self, name: str, work: Callable[[Collection, Callable[[], None]], T]
    ) -> T:
        """Do something that may read all of a collection.

        What `work` gets raises when the time is over and whoever asked was told so: it ends then.
        """
        over = threading.Event()

        def check() -> None:
            if over.is_set():
                raise _Over

        try:
            return await self.use(name, lambda docs: work(docs, check))
        finally:
            over.set()

    async def collection(self, name: str) -> Collection:
        """Return a collection, opened if it is not yet."""
        found = self.library.opened_now(name)
        return found if found is not None else await self.read(self.library.collection, name)

    def similarities(self, docs: Collection) -> list[float]:
        """Return the similarity that each distance suggests."""
        found = self._similarities.get(docs)
        if found is None:
            distances = np.arange(docs.bits + 1)
            values = 1 - distances / docs.bits
            if docs.signer is not None:
                values = estimated_similarity(docs.signer, distances, docs.bits)
            found = self._similarities[docs] = [round(value, 4) for value in values.tolist()]
        return found

    def close(self) -> None:
        """End what is going on: writes that have begun are completed."""
        self.ending = True
        self.jobs.close()
        self.overviews.close()
        self._decoders.shutdown(wait=False, cancel_futures=True)
        for pool in (self._readers, self._slow, self._texts, *self._writers.values()):
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in (self._readers, self._texts, *self._writers.values()):
            pool.shutdown(wait=True)
        self.library.close()


def _counted(held: Held, work: Callable[..., T], *arguments: Any) -> T:
    with answers_counted_by(held.add_answer):
        return work(*arguments)


class _CountedReaders(Executor):
    """Threads for work of several requests together: what its answers take is counted, too."""

    def __init__(self, threads: Executor, memory: Memory) -> None:
        self._threads = threads
        self._memory = memory

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Do something in a thread."""
        held = self._memory.hold(_TOGETHER)
        future = self._threads.submit(_counted, held, fn, *args, **kwargs)
        future.add_done_callback(held.release)
        return future


async def _in_thread(threads: Executor, work: Callable[..., T], *arguments: Any) -> T:
    """Do something in a thread; what the request holds is held until the thread has done it.

    A request that is over its time is answered earlier, but its body is still in memory then.
    """
    held = HELD.get()
    if held is None:
        future = threads.submit(work, *arguments)
    else:
        held.share()
        future = threads.submit(_counted, held, work, *arguments)
        future.add_done_callback(held.release)
    done = asyncio.wrap_future(future)
    # An error refers to this frame: if the frame referred to the error, by its future, both would
    # stay in memory, with all that they refer to, until the garbage collector finds them.
    del future, held
    try:
        return await done
    finally:
        del done
