"""A running service: what its routes share."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lookalike.cancellation import Cancellation, Cancelled
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

__all__ = ["Service"]

T = TypeVar("T")

_TOGETHER = " "
"""Stands for the key where queries of several keys are answered together; no key has this name."""


class Service:
    """Collections, the threads that work on them, and what was set.

    Nothing of a collection is done in the event loop: it may wait for a disk or another process.
    Work goes to threads by what it may cost, so that cheap work does not wait behind expensive
    work: `read`, `read_filtered`, `read_much`, `slowly`, `probe`; writes have one thread for each
    collection, since writers wait for each other anyway. What takes minutes in large collections is
    done in processes. Work whose request has ended, by its time limit or because the client has
    gone, is cancelled.
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
        self._filtering = ThreadPoolExecutor(4, "filter")
        self._much = ThreadPoolExecutor(2, "much")
        self._slow = ThreadPoolExecutor(2, "slow")
        self._probes = ThreadPoolExecutor(1, "probe")
        self._decoders = ThreadPoolExecutor(1, "decode")
        self._rested = 0.0
        self._writers: dict[str, ThreadPoolExecutor] = {}
        self.jobs = Jobs(run / "jobs", settings.max_jobs, log)
        self.overviews = Overviews(settings.overview_limit, log)
        # Who gets no answer in time is told to ask again before the time limit refuses it.
        self.kept = Kept(settings.time_limit / 2)
        self._working: set[Cancellation] = set()
        most = settings.max_memory
        # With keys, no single one can take all the memory from the others.
        self.memory = Memory(most, most * 3 // 4 if settings.keys else most)
        counted = _CountedReaders(self._readers, self.memory)
        self.lanes: Lanes[Any, Any] = Lanes(counted, self.metrics.together.observe)
        self._similarities: weakref.WeakKeyDictionary[Collection, list[float]] = (
            weakref.WeakKeyDictionary()
        )

    async def read(self, work: Callable[..., T], *arguments: Any) -> T:
        """Read something that takes milliseconds."""
        return await self._in_thread(self._readers, work, *arguments)

    async def read_filtered(self, work: Callable[..., T], *arguments: Any) -> T:
        """Read documents that meet a condition: in the worst case, all are read."""
        return await self._in_thread(self._filtering, work, *arguments)

    async def read_much(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something that takes seconds, or whose answer may be large: two at once."""
        return await self._in_thread(self._much, work, *arguments)

    async def slowly(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something that may take long and is not a search."""
        return await self._in_thread(self._slow, work, *arguments)

    async def probe(self, work: Callable[..., T], *arguments: Any) -> T:
        """Find out how the service is, whatever else it does."""
        return await self._in_thread(self._probes, work, *arguments)

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

        return await self._in_thread(self._decoders, paced)

    async def write(self, name: str, work: Callable[[Collection], T]) -> T:
        """Do something that writes to a collection, one after the other."""
        writer = self._writers.get(name)
        if writer is None:
            await self.collection(name)  # a name that is not there gets no thread
            writer = self._writers.setdefault(name, ThreadPoolExecutor(1, f"write-{name}"))
        return await self._in_thread(writer, self.library.use, name, work)

    def forget(self, name: str) -> None:
        """Let the thread of a collection go that is no more."""
        writer = self._writers.pop(name, None)
        if writer is not None:
            writer.shutdown(wait=False)

    async def use(self, name: str, work: Callable[[Collection], T]) -> T:
        """Do something that reads a collection, in milliseconds."""
        return await self.read(self.library.use, name, work)

    async def _in_thread(self, threads: Executor, work: Callable[..., T], *arguments: Any) -> T:
        """Do something in a thread; it is cancelled when this is.

        What the request holds is held until the thread has done it: a request that is over its time
        is answered earlier, but its body is still in memory then.
        """
        cancellation, held = Cancellation(), HELD.get()
        begin = _Work(cancellation, held, work, arguments)
        if held is not None:
            held.share()
        try:
            future: Future[T] = threads.submit(begin)
        except RuntimeError:  # the threads have been shut down
            if held is not None:
                held.release()
            raise service_ending() from None
        future.add_done_callback(begin.drop)
        if held is not None:
            future.add_done_callback(held.release)
        self._working.add(cancellation)
        future.add_done_callback(lambda _: self._working.discard(cancellation))
        done = asyncio.wrap_future(future)
        # An error refers to this frame: if the frame referred to the error, by its future, both
        # would stay in memory, with all that they refer to, until the garbage collector finds them.
        del future, held, begin
        try:
            return await done
        except asyncio.CancelledError:
            cancellation.cancel()
            raise
        except Cancelled:
            raise service_ending() from None
        finally:
            del done

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
        pools = (
            self._readers, self._filtering, self._much, self._slow, self._probes, self._decoders,
            *self._writers.values(),
        )  # fmt: skip
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for cancellation in list(self._working):
            cancellation.cancel(shielded_too=True)
        self.lanes.cancel()
        self.jobs.close()
        self.overviews.close()
        for pool in pools:
            if pool not in (self._slow, self._decoders):
                pool.shutdown(wait=True)
        self.library.close()


class _Work:
    """Work for a thread. If it is cancelled before it begins, it drops all that it refers to.

    Threads keep cancelled work in their queue until its turn comes, but its memory is no longer
    counted then.
    """

    __slots__ = ("_begin",)

    def __init__(
        self,
        cancellation: Cancellation,
        held: Held | None,
        work: Callable[..., Any],
        arguments: tuple[Any, ...],
    ) -> None:
        begin = partial(cancellation.run, work, *arguments)
        self._begin: Callable[[], Any] | None = (
            begin if held is None else partial(_counted, held, begin)
        )

    def __call__(self) -> Any:
        """Do it."""
        begin, self._begin = self._begin, None
        return None if begin is None else begin()

    def drop(self, *_: object) -> None:
        """Forget what was to be done."""
        self._begin = None


def _counted(held: Held, work: Callable[..., T], *arguments: Any) -> T:
    before = HELD.set(held)
    try:
        return work(*arguments)
    finally:
        HELD.reset(before)


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
