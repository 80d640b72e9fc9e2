"""Overviews of a collection: groups of near-duplicates, a map, distances.

Comparing a million documents takes minutes, so a worker process computes overviews, one after the
other. It is killed when no client waits any more, when it takes too long, or on shutdown. Results
are cached until the next write to the collection. A client waits for a few seconds, and then asks
again.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike import _native
from lookalike.collection import Collection
from lookalike.collection.overview import distances, groups, map_of
from lookalike.features import Words
from lookalike.media import medium_of_signer
from lookalike.processes import Failure, Stop, Task, run
from lookalike.service.library import open_library
from lookalike.service.problems import Disconnected, Problem, problem_for_clients
from lookalike.topics.function_words import meaningless_words
from lookalike.topics.listed import Listed
from lookalike.topics.words import WordCounts, cluster_words

if TYPE_CHECKING:  # workers start sooner without it
    from lookalike.service.telemetry import Log

_MOST = 32
_MOST_RUNNING = 8
_PATIENCE = 5.0
"""Seconds that a client waits."""
_ABANDONED = 10.0
"""Seconds after which a computation is stopped if no client asks for it again."""


Order = dict[str, Any]


@dataclass(eq=False)
class _Running:
    task: asyncio.Task[Any]
    waiting: int = 0
    leaving: asyncio.TimerHandle | None = None


class Overviews:
    """Computes overviews, one after the other, and caches them, for one event loop."""

    def __init__(self, seconds: float, patience: float, log: Log) -> None:
        self._seconds = seconds
        self._patience = patience
        self._log = log
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "overview")
        self._stop: Stop | None = None
        self._known: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._running: dict[Hashable, _Running] = {}

    async def get(
        self,
        what: Hashable,
        version: int,
        order: Order,
        disconnected: Callable[[], Coroutine[Any, Any, None]],
    ) -> Any:
        """Return an overview, or None if it is still being computed.

        The computation is canceled when all clients have disconnected, or do not ask again. Its
        error is raised for the clients that wait; the next one that asks tries again.
        """
        known = self._known.get(what)
        if known is not None and known[0] == version:
            return known[1]
        running = self._running.get(what) or self._start(what, version, order)
        if running.leaving is not None:
            running.leaving.cancel()
            running.leaving = None
        running.waiting += 1
        task, gone = running.task, asyncio.ensure_future(disconnected())
        try:
            await asyncio.wait(
                [task, gone], timeout=min(self._patience, _PATIENCE),
                return_when=asyncio.FIRST_COMPLETED,
            )  # fmt: skip
        finally:
            gone.cancel()
            running.waiting -= 1
            if not running.waiting and not task.done():
                seconds = 0.0 if gone.done() else _ABANDONED
                loop = asyncio.get_running_loop()
                running.leaving = loop.call_later(seconds, self._abandon, what)
        if task.done() and not task.cancelled():
            return task.result()
        if gone.done():
            raise Disconnected
        return None

    def _start(self, what: Hashable, version: int, order: Order) -> _Running:
        if len(self._running) >= _MOST_RUNNING:
            message = f"{_MOST_RUNNING} other overviews are being computed; try again later"
            raise Problem(429, "too_many_overviews", message, retry_after=5)
        running = self._running[what] = _Running(asyncio.ensure_future(self._compute(order)))
        running.task.add_done_callback(partial(self._end, what, version))
        return running

    def _end(self, what: Hashable, version: int, task: asyncio.Task[Any]) -> None:
        running = self._running.get(what)
        if running is not None and running.task is task:
            del self._running[what]
            if running.leaving is not None:
                running.leaving.cancel()
        if task.cancelled() or task.exception() is not None:
            return
        # After a write it may be of a later version; then it is computed again.
        self._known[what] = (version, task.result())
        if len(self._known) > _MOST:
            self._known.popitem(last=False)

    def _abandon(self, what: Hashable) -> None:
        running = self._running.pop(what, None)
        if running is not None:
            running.task.cancel()

    async def _compute(self, order: Order) -> Any:
        """Return an overview; when this is canceled, its worker is killed."""
        async with self._turn:
            stop = self._stop = Stop()
            loop = asyncio.get_running_loop()
            waiting = loop.run_in_executor(self._thread, _computed, order, stop)
            try:
                async with asyncio.timeout(self._seconds):
                    answer = await waiting
            except TimeoutError:
                self._log.say("warning", "overview ended", kind=order["kind"], reason="time limit")
                raise Problem(
                    408, "overview_limit", f"the overview takes more than {self._seconds:g} s and "
                    "was stopped. Use a smaller radius, start a job for pairs (POST .../pairs), "
                    "or start the service with a larger --overview-limit",
                ) from None  # fmt: skip
            finally:
                stop()
        if answer is None:
            message = "the process that computes the overview has died, maybe out of memory"
            message += "; ask for less, or try again later"
            raise Problem(503, "overview_failed", message, retry_after=5)
        if "failed" in answer:
            self._log.say("error", "overview failed", order=order["kind"], **answer["failed"])
        if "problem" in answer:
            raise Problem(**answer["problem"])
        return answer["value"]

    def close(self) -> None:
        """Kill the worker."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._stop is not None:
            self._stop()
        self._thread.shutdown(wait=True)


_TASK = Task("lookalike.service.overviews:computer", tries=1, verb="compute")


def _computed(order: Order, stop: Stop) -> dict[str, Any] | None:
    """Return the answer of a worker, or None if it died."""
    for answer in run(_TASK, [order], stop):
        if not isinstance(answer, Failure):
            return dict(answer)
    return None


# In the worker

_LETTERS = 160
_WORDS = 5
_LONGEST = 10_000
"""Characters of a text that are searched for words."""


def computer() -> Callable[[Order], dict[str, Any]]:
    """Return the function of a worker."""
    return _answer


def _answer(order: Order) -> dict[str, Any]:
    library = open_library(order["source"])
    compute = _KINDS[order["kind"]]
    try:
        return {"value": library.use(order["name"], lambda docs: compute(docs, order))}
    except Exception as error:
        problem = problem_for_clients(error, library.shown)
        names = ("status", "code", "kind", "retry_after")
        told = {"message": str(problem), **{name: getattr(problem, name) for name in names}}
        answer: dict[str, Any] = {"problem": told}
        if problem.logged:
            trace = "".join(traceback.format_exception(error)[-4:])
            answer["failed"] = {"kind": type(error).__name__, "error": trace}
        return answer
    finally:
        library.close()


def _groups(docs: Collection, order: Order) -> dict[str, Any]:
    # A collection that was replaced meanwhile may have fewer bits.
    radius = min(order["radius"], docs.bits)
    largest, version = groups(
        docs, radius, most=order["most"], members=order["members"], threads=order["threads"]
    )
    shown = [
        {
            "size": group.size,
            "largest_distance": group.largest_distance,
            "least_similarity": round(group.least_similarity, 6),
            "members": [
                {"id": id, "distance": far, "similarity": round(similarity, 6)}
                for (id, far), similarity in zip(group.members, group.similarities, strict=True)
            ],
        }
        for group in largest
    ]
    return {"radius": radius, "version": version, "groups": shown}


def _map(docs: Collection, order: Order) -> dict[str, Any]:
    drawn = asdict(map_of(docs, most=order["most"], regions=order["regions"]))
    examples = docs.get_many([one["example"] for one in drawn["regions"]])
    words = _words(docs, drawn["places"], len(examples))
    for region, document, told in zip(drawn["regions"], examples, words, strict=True):
        text = None if document is None else document.text
        region["text"] = None if text is None else text[:_LETTERS]
        region["words"] = told
    return drawn


_KINDS: dict[str, Callable[[Collection, Order], dict[str, Any]]] = {
    "groups": _groups,
    "map": _map,
    "distances": lambda docs, order: asdict(distances(docs, threads=order["threads"])),
}


def _words(docs: Collection, places: list[dict[str, Any]], regions: int) -> list[list[str]]:
    """Return the typical words of each region of the map; none without texts."""
    found = docs.get_many([place["id"] for place in places])
    texts = ["" if one is None or one.text is None else one.text[:_LONGEST] for one in found]
    if not any(texts) or medium_of_signer(docs.signer) is not None:
        return [[] for _ in range(regions)]
    labels = np.array([place["region"] for place in places], np.int64)
    documents, kind = _native.Documents.from_list(texts, 0), Words()
    counts = WordCounts.of(kind, documents, labels, regions, 1)
    meaningless = meaningless_words(kind, Listed.of(kind, documents, 1))
    found_words = cluster_words(counts, documents, labels, _WORDS, meaningless, 1)
    return [[word for word, _ in told] for told in found_words]
