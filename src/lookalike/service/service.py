"""A running service: what its routes share."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lookalike.cancellation import Canceled, Cancellation
from lookalike.checks import thread_count
from lookalike.collection import Collection
from lookalike.collection.answers import Work
from lookalike.collection.search.answer import Budget
from lookalike.service.batching import Lanes
from lookalike.service.jobs import Jobs
from lookalike.service.library import Library
from lookalike.service.limits import HELD, Held, Memory, Watch
from lookalike.service.overviews import Kept, Overviews
from lookalike.service.problems import service_ending
from lookalike.service.settings import ServeSettings
from lookalike.service.telemetry import Log, Metrics
from lookalike.signatures import estimated_similarity

T = TypeVar("T")

_TOGETHER = " "
"""Stands for the key where queries of several keys are answered together; no key has this name."""


class Service:
    """Collections, the threads that work on them, and the settings.

    The event loop does no work on a collection, which may wait for a disk or another process. Work
    goes to threads by what it may cost, so that cheap work does not wait behind expensive work.
    Each collection has one thread for writes, since writers wait for each other anyway. Work that
    takes minutes in large collections is done in processes. Work whose request has ended, by its
    time limit or because the client has gone, is cancelled.
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
        self._working: set[Cancellation] = set()
        self.read = Threads(max(8, 2 * self.threads), "read", self._working)
        """For reading what takes milliseconds."""
        self.read_filtered = Threads(4, "filter", self._working)
        """For reading documents that meet a condition: in the worst case, all are read."""
        self.read_much = Threads(2, "much", self._working)
        """For what takes seconds, or whose answer may be large."""
        self.slowly = Threads(2, "slow", self._working)
        """For what may take long and is not a search."""
        self.probe = Threads(1, "probe", self._working)
        """For finding out how the service is, whatever else it does."""
        self._decode = Threads(1, "decode", self._working)
        self._rested = 0.0
        self._writers: dict[str, Threads] = {}
        self.jobs = Jobs(run / "jobs", settings.max_jobs, log)
        self.overviews = Overviews(settings.overview_limit, log)
        # A client is told to ask again before the time limit refuses its request.
        self.kept = Kept(settings.time_limit / 2)
        most = settings.max_memory
        # With keys, no single one can take all the memory from the others.
        self.memory = Memory(most, most * 3 // 4 if settings.keys else most)
        self.lanes: Lanes[Any, Any] = Lanes(self._answer_together, self.metrics.together.observe)
        self._similarities: weakref.WeakKeyDictionary[Collection, list[float]] = (
            weakref.WeakKeyDictionary()
        )

    async def decode(self, work: Callable[..., T], *arguments: Any) -> T:
        """Decode a large body in a thread of its own: searches do not wait behind it.

        A decoder holds the interpreter's lock. So the thread pauses between two bodies for as long
        as the first has taken: however many come, half of the time is left for others.
        """

        def paced() -> T:
            time.sleep(max(0.0, self._rested - time.monotonic()))
            begin = time.thread_time()
            try:
                return work(*arguments)
            finally:
                self._rested = time.monotonic() + time.thread_time() - begin

        return await self._decode(paced)

    async def write(self, name: str, work: Callable[[Collection], T]) -> T:
        """Do something that writes to a collection, one after the other."""
        writer = self._writers.get(name)
        if writer is None:
            await self.collection(name)  # only collections that exist get a thread
            new = Threads(1, f"write-{name}", self._working)
            writer = self._writers.setdefault(name, new)
        return await writer(self.library.use, name, work)

    def _answer_together(self, work: Callable[..., object], *arguments: Any) -> None:
        """Do work of several requests in a thread; the memory of its answers is counted, too."""
        held = Held(self.memory, _TOGETHER)
        future = self.read.pool.submit(_counted, held, work, *arguments)
        future.add_done_callback(held.release)

    def forget(self, name: str) -> None:
        """End the thread of a collection that was deleted."""
        writer = self._writers.pop(name, None)
        if writer is not None:
            writer.pool.shutdown(wait=False)

    async def use(self, name: str, work: Callable[[Collection], T]) -> T:
        """Do something that reads a collection, in milliseconds."""
        return await self.read(self.library.use, name, work)

    async def collection(self, name: str) -> Collection:
        """Return a collection, opened if it is not yet."""
        found = self.library.opened_now(name)
        return found if found is not None else await self.read(self.library.collection, name)

    def answering(self, beside: int = 0, work: list[Work] | None = None) -> Budget:
        """Return the limits of an answer: its bytes and matches, and the memory of all answers.

        `beside` are matches that are found and left out. `work` gets what the search did.
        """
        settings, held = self.settings, HELD.get()
        return Budget(
            settings.max_answer, matches=settings.max_results, beside=beside, work=work,
            count=None if held is None else held.add_answer,
            change=None if held is None else held.change,
        )  # fmt: skip

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
        """Cancel all work, and close the collections; commits that have begun are completed."""
        self.ending = True
        awaited = [self.read, self.read_filtered, self.read_much, self.probe]
        awaited += self._writers.values()
        for threads in (*awaited, self.slowly, self._decode):
            threads.pool.shutdown(wait=False, cancel_futures=True)
        for cancellation in list(self._working):
            cancellation.cancel(shielded_too=True)
        self.lanes.cancel()
        self.jobs.close()
        self.overviews.close()
        for threads in awaited:
            threads.pool.shutdown(wait=True)
        self.library.close()


class Threads:
    """Threads for one kind of work; called with a function, one of them calls it."""

    def __init__(self, count: int, name: str, working: set[Cancellation]) -> None:
        self.pool = ThreadPoolExecutor(count, name)
        self._working = working

    async def __call__(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something in a thread; it is cancelled when this is.

        What the request holds is held until the thread has done it: a request that is over its time
        is answered earlier, but its body is still in memory then.
        """
        cancellation, held = Cancellation(), HELD.get()
        # A queue keeps cancelled work until its turn comes, but its memory is no longer counted: so
        # the work is in a list, which is cleared.
        waiting: list[Callable[[], T]] = [
            partial(_counted, held, cancellation.run, work, *arguments)
        ]
        if held is not None:
            held.share()
        try:
            future: Future[T] = self.pool.submit(_begin, waiting)
        except RuntimeError:  # the threads have been shut down
            if held is not None:
                held.release()
            raise service_ending() from None
        future.add_done_callback(lambda _: waiting.clear())
        if held is not None:
            future.add_done_callback(held.release)
        self._working.add(cancellation)
        future.add_done_callback(lambda _: self._working.discard(cancellation))
        done = asyncio.wrap_future(future)
        # An error refers to this frame: if the frame referred to the error, by its future, both
        # would stay in memory, with all that they refer to, until the garbage collector finds them.
        del future, held
        try:
            return await done
        except asyncio.CancelledError:
            cancellation.cancel()
            raise
        except Canceled:
            raise service_ending() from None
        finally:
            del done


def _begin(waiting: list[Callable[[], T]]) -> T:
    return waiting.pop()()


def _counted(held: Held | None, work: Callable[..., T], *arguments: Any) -> T:
    before = HELD.set(held)
    try:
        return work(*arguments)
    finally:
        HELD.reset(before)
