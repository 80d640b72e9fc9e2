"""A running service: collections, threads, limits and metrics of all routes."""

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

from lookalike.checks import thread_count
from lookalike.collection import Collection
from lookalike.collection.answers import Answer, Work
from lookalike.collection.search.answer import Budget
from lookalike.operation import Canceled, Operation
from lookalike.service.batching import Lanes
from lookalike.service.jobs import Jobs
from lookalike.service.library import Library
from lookalike.service.limits import HELD, Held, Memory, Watch
from lookalike.service.overviews import Overviews
from lookalike.service.problems import service_ending
from lookalike.service.settings import ServeSettings
from lookalike.service.telemetry import Log, Metrics
from lookalike.signatures import estimated_similarity
from lookalike.signatures.estimates import estimated_pairs

T = TypeVar("T")

_TOGETHER = " "
"""Key of queries of several keys that are answered together; no key has this name."""


class Service:
    """Collections, the threads that work on them, and the settings.

    The event loop never works on a collection, which may wait for a disk or another process. Work
    goes to threads by its cost, so that cheap work does not wait for expensive work. Each
    collection has one thread for writes, since writers wait for each other anyway. Work that takes
    minutes in large collections runs in processes. When a request reaches its time limit or its
    client disconnects, its work is canceled.
    """

    def __init__(self, settings: ServeSettings, library: Library, run: Path, log: Log) -> None:
        self.settings = settings
        self.library = library
        self.run = run
        """Temporary folder of this run, for jobs and uploads."""
        self.log = log
        self.metrics = Metrics()
        self.threads = settings.threads or thread_count(None)
        self.ending = False
        self.watch = Watch()
        self._working: set[Operation] = set()
        self.read = Threads(max(8, 2 * self.threads), "read", self._working)
        """For reads that take milliseconds."""
        self.read_filtered = Threads(4, "filter", self._working)
        """For reads with conditions, which may read all documents."""
        self.read_much = Threads(2, "much", self._working)
        """For reads that take seconds, or have large answers."""
        self.slowly = Threads(2, "slow", self._working)
        """For slow work that is not a search."""
        self.probe = Threads(1, "probe", self._working)
        """For health checks, whatever else the service does."""
        self.files = Threads(settings.max_decodes, "files", self._working)
        """For images, recordings and videos, which worker processes decode."""
        self.files_waiting = 0
        """Number of these that are decoded or wait for it."""
        self.uploaded_bytes = 0
        """Bytes of these on the disk."""
        self._decode = Threads(1, "decode", self._working)
        self._rested = 0.0
        self._writers: dict[str, Threads] = {}
        self.jobs = Jobs(run / "jobs", settings.max_jobs, log)
        # Clients are told to ask again before the time limit ends their request.
        self.overviews = Overviews(settings.overview_limit, settings.time_limit / 2, log)
        most = settings.max_memory
        # With keys, no single key can use all the memory.
        self.memory = Memory(most, most * 3 // 4 if settings.keys else most)
        self.lanes: Lanes[Any, Any] = Lanes(self._answer_together, self.metrics.together.observe)
        self._similarities: weakref.WeakKeyDictionary[Collection, list[float]] = (
            weakref.WeakKeyDictionary()
        )

    async def decode(self, work: Callable[..., T], *arguments: Any) -> T:
        """Decode a large body in a separate thread.

        A decoder holds the interpreter lock. So the thread pauses after each body for as long as
        that took: half of the time is left for other requests.
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
        """Call `work`, which writes to a collection; writes run one after the other."""
        writer = self._writers.get(name)
        if writer is None:
            await self.collection(name)  # only collections that exist get a thread
            new = Threads(1, f"write-{name}", self._working)
            writer = self._writers.setdefault(name, new)
        return await writer(self.library.use, name, work)

    def _answer_together(self, work: Callable[..., object], *arguments: Any) -> None:
        """Do the work of several requests in a thread, and count the memory of its answers."""
        held = Held(self.memory, _TOGETHER)
        future = self.read.pool.submit(_counted, held, work, *arguments)
        future.add_done_callback(held.release)

    def forget(self, name: str) -> None:
        """Stop the thread of a deleted collection."""
        writer = self._writers.pop(name, None)
        if writer is not None:
            writer.pool.shutdown(wait=False)

    async def use(self, name: str, work: Callable[[Collection], T]) -> T:
        """Call `work`, which reads a collection in milliseconds."""
        return await self.read(self.library.use, name, work)

    async def collection(self, name: str) -> Collection:
        """Return a collection, and open it if necessary."""
        found = self.library.opened_now(name)
        return found if found is not None else await self.read(self.library.collection, name)

    def answering(self, beside: int = 0, work: list[Work] | None = None) -> Budget:
        """Return the limits of an answer: its bytes, its matches and the memory of all answers.

        `beside` matches are found and then dropped. `work` collects what the search did.
        """
        settings, held = self.settings, HELD.get()
        return Budget(
            settings.max_answer, matches=settings.max_results, beside=beside, work=work,
            count=None if held is None else held.add_text,
            change=None if held is None else held.change,
        )  # fmt: skip

    def similarities(self, docs: Collection, answer: Answer) -> list[float]:
        """Return the estimated similarity of each match."""
        if answer.by != "similar" or not len(answer):
            return []
        if docs.parts:
            return [one.score or 0.0 for one in answer]
        far = [one.distance if one.unmasked is None else one.unmasked for one in answer]
        signer = docs.signer
        if signer is None or not signer.sparse:
            known = self._by_distance(docs)
            return [known[distance] for distance in far]
        estimated = estimated_pairs(signer, far, docs.bits, [one.ones for one in answer])
        return [round(value, 4) for value in estimated.tolist()]

    def _by_distance(self, docs: Collection) -> list[float]:
        """Return the estimated similarity for each distance."""
        found = self._similarities.get(docs)
        if found is None:
            distances = np.arange(docs.bits + 1)
            values = 1 - distances / docs.bits
            if docs.signer is not None:
                values = estimated_similarity(docs.signer, distances, docs.bits)
            found = self._similarities[docs] = [round(value, 4) for value in values.tolist()]
        return found

    def close(self) -> None:
        """Cancel all work and close the collections; running commits are completed."""
        self.ending = True
        awaited = [self.read, self.read_filtered, self.read_much, self.probe, self.files]
        awaited += self._writers.values()
        for threads in (*awaited, self.slowly, self._decode):
            threads.pool.shutdown(wait=False, cancel_futures=True)
        for operation in list(self._working):
            operation.cancel(shielded_too=True)
        self.lanes.cancel()
        self.jobs.close()
        self.overviews.close()
        for threads in awaited:
            threads.pool.shutdown(wait=True)
        self.library.close()


class Threads:
    """Threads for one kind of work; call it with a function to run."""

    def __init__(self, count: int, name: str, working: set[Operation]) -> None:
        self.pool = ThreadPoolExecutor(count, name)
        self._working = working

    async def __call__(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run a function in a thread; it is canceled when this call is.

        The memory of the request is held until the thread is done. A request that exceeds its time
        limit is answered earlier, but its body is still in memory then.
        """
        operation, held = Operation(), HELD.get()
        # A queue keeps canceled work until its turn comes, but its memory is no longer counted. So
        # the work is in a list, which is cleared.
        waiting: list[Callable[[], T]] = [partial(_counted, held, operation.run, work, *arguments)]
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
        self._working.add(operation)
        future.add_done_callback(lambda _: self._working.discard(operation))
        done = asyncio.wrap_future(future)
        # An error refers to this frame. If the frame referred to the error, by its future, both
        # would stay in memory until the garbage collector finds them.
        del future, held
        try:
            return await done
        except asyncio.CancelledError:
            operation.cancel()
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
