"""A running service: what its routes share."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lookalike.cancellation import Cancellation, Cancelled
from lookalike.checks import thread_count
from lookalike.collection import Collection
from lookalike.collection.search.bounds import answer_limit
from lookalike.service.guard.watch import Watch
from lookalike.service.library import Library
from lookalike.service.logs import Log
from lookalike.service.metrics import Metrics
from lookalike.service.problems import Problem, service_ending
from lookalike.service.settings import ServeSettings
from lookalike.service.work.jobs import Jobs
from lookalike.service.work.kept import Kept
from lookalike.service.work.lanes import Lanes
from lookalike.service.work.overviews import Overviews
from lookalike.signatures import estimated_similarity

__all__ = ["Service", "no_room"]

T = TypeVar("T")

_BODIES_AT_ONCE = 8
"""Largest bodies that may be in memory at once; beyond that requests are told to come again."""
_ANSWERS_AT_ONCE = 8
"""The same for answers, from when they are written until they are sent."""
_ANSWERS_AT_WORK = 320 << 20
"""Bytes of memory that all answers together may take while they are computed."""


def no_room() -> Problem:
    """Return the answer for whose own there is no room in memory."""
    return Problem(
        429, "too_much_at_once", "the answers to other requests fill the room there is; try again "
        "in a second", retry_after=1,
    )  # fmt: skip


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
        self._writers: dict[str, ThreadPoolExecutor] = {}
        self.lanes: Lanes[Any, Any] = Lanes(self._readers, self.metrics.together.observe)
        self.jobs = Jobs(run / "jobs", settings.max_jobs, log)
        self.overviews = Overviews(settings.overview_limit, log)
        # Who gets no answer in time is told to ask again before the time limit refuses it.
        self.kept = Kept(settings.time_limit / 2)
        self._buffered = 0
        self._answering = 0
        self._memory = 0
        self._memory_lock = threading.Lock()
        self._working: set[Cancellation] = set()
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
        """Do something in a thread; it is cancelled when this is."""
        cancellation = Cancellation()
        try:
            future = threads.submit(cancellation.run, work, *arguments)
        except RuntimeError:  # the threads have been shut down
            raise service_ending() from None
        self._working.add(cancellation)
        future.add_done_callback(lambda _: self._working.discard(cancellation))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            cancellation.cancel()
            raise
        except Cancelled:
            raise service_ending() from None

    async def collection(self, name: str) -> Collection:
        """Return a collection, opened if it is not yet."""
        found = self.library.opened_now(name)
        return found if found is not None else await self.read(self.library.collection, name)

    def buffer(self, size: int) -> None:
        """Take in so many bytes of a body, or say that there is no room for them now."""
        self._buffered += size
        if self._buffered > _BODIES_AT_ONCE * self.settings.max_body:
            raise Problem(
                429, "too_much_at_once", "the bodies of other requests fill the room there is; "
                "try again in a second", retry_after=1,
            )  # fmt: skip

    def release(self, size: int) -> None:
        """Let go of so many bytes."""
        self._buffered -= size

    def answering(self, beside: int = 0) -> AbstractContextManager[None]:
        """Bound an answer while it is computed: its bytes and matches, and the memory of all.

        `beside` are matches that are found and left out.
        """
        settings = self.settings
        return answer_limit(settings.max_answer, self._change_memory, settings.max_results, beside)

    def _change_memory(self, size: int) -> None:
        with self._memory_lock:
            if size > 0 and self._memory + size > _ANSWERS_AT_WORK:
                raise no_room()
            self._memory += size

    def hold(self, size: int) -> None:
        """Keep so many bytes of an answer until they are sent, or say that there is no room."""
        if self._answering + size > _ANSWERS_AT_ONCE * self.settings.max_answer:
            raise no_room()
        self._answering += size

    def sent(self, size: int) -> None:
        """Let go of so many bytes of an answer."""
        self._answering -= size

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
            self._readers, self._filtering, self._much, self._slow, self._probes,
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
            if pool is not self._slow:
                pool.shutdown(wait=True)
        self.library.close()
