"""Overviews of a collection: groups of near-duplicates, a map, distances.

Comparing a million documents takes minutes, so a worker process computes overviews, one after
the other. It is killed when no client waits any more, when it takes too long, or with the service.
Results are kept until the collection is written to. A client waits for a few seconds, and then asks
again.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike import _native
from lookalike.collection import Collection
from lookalike.collection.overview import distances, groups, map_of
from lookalike.features import Words
from lookalike.media import medium_of_signer
from lookalike.processes import Failure, Stop, Task, run
from lookalike.service.library import open_library
from lookalike.service.problems import Problem, problem_for_strangers
from lookalike.topics.words import WordCounts, cluster_words

if TYPE_CHECKING:  # workers start sooner without it
    from lookalike.service.telemetry import Log

TOO_MUCH = object()
"""Instead of a result: too much else is being computed."""
GONE = object()
"""Instead of a result: the client has closed the connection."""
_MOST = 32
_MOST_RUNNING = 8
_PATIENCE = 5.0
"""Seconds for which a client waits."""
_ABANDONED = 10.0
"""Seconds after which a computation ends that no client has asked for again."""


@dataclass(eq=False)
class _Running:
    task: asyncio.Task[Any]
    waiting: int = 0
    leaving: asyncio.TimerHandle | None = None


class Kept:
    """Results by what was asked, each of one version, for one event loop."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._known: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._running: dict[Hashable, _Running] = {}

    async def get(
        self,
        what: Hashable,
        version: int,
        compute: Callable[[], Coroutine[Any, Any, Any]],
        hung_up: Callable[[], Coroutine[Any, Any, None]],
    ) -> Any:
        """Return the result, None if it is still being computed, `TOO_MUCH` or `GONE`.

        `compute` is cancelled when all clients have hung up, or do not ask again. Its error is
        raised for the clients that wait; the next one that asks tries again.
        """
        known = self._known.get(what)
        if known is not None and known[0] == version:
            return known[1]
        running = self._running.get(what)
        if running is None:
            if len(self._running) >= _MOST_RUNNING:
                return TOO_MUCH
            running = _Running(asyncio.ensure_future(self._compute(what, version, compute)))
            self._running[what] = running
            running.task.add_done_callback(lambda task: self._ended(what, task))
        gone = asyncio.ensure_future(hung_up())
        try:
            return await self._wait(what, running, gone)
        finally:
            gone.cancel()

    async def _wait(self, what: Hashable, running: _Running, gone: asyncio.Future[None]) -> Any:
        task = running.task
        running.waiting += 1
        if running.leaving is not None:
            running.leaving.cancel()
            running.leaving = None
        try:
            await asyncio.wait(
                [task, gone], timeout=min(self._patience, _PATIENCE),
                return_when=asyncio.FIRST_COMPLETED,
            )  # fmt: skip
        finally:
            running.waiting -= 1
            if not running.waiting and not task.done():
                seconds = 0.0 if gone.done() else _ABANDONED
                loop = asyncio.get_running_loop()
                running.leaving = loop.call_later(seconds, self._abandon, what)
        if not task.done() or task.cancelled():
            return GONE if gone.done() else None
        return task.result()

    async def _compute(
        self, what: Hashable, version: int, compute: Callable[[], Coroutine[Any, Any, Any]]
    ) -> Any:
        value = await compute()
        # It may be of a later version, if the collection was written to; then it is computed again.
        self._known[what] = (version, value)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return value

    def _abandon(self, what: Hashable) -> None:
        running = self._running.pop(what, None)
        if running is not None:
            running.task.cancel()

    def _ended(self, what: Hashable, task: asyncio.Task[Any]) -> None:
        running = self._running.get(what)
        if running is not None and running.task is task:
            del self._running[what]
            if running.leaving is not None:
                running.leaving.cancel()
        if not task.cancelled():
            task.exception()  # read here, since perhaps no client waits for it


class Overviews:
    """Computes overviews, one after the other, for one event loop."""

    def __init__(self, seconds: float, log: Log) -> None:
        self._seconds = seconds
        self._log = log
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "overview")
        self._stop: Stop | None = None

    async def compute(self, order: dict[str, Any]) -> Any:
        """Return an overview; when this is cancelled, its worker is killed."""
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
                    408, "overview_limit", f"this takes more than {self._seconds:g} s and was "
                    "ended; ask with a smaller radius, begin a job for all pairs (POST .../pairs), "
                    "or start the service with a larger --overview-limit",
                ) from None  # fmt: skip
            finally:
                stop()
        if answer is None:
            raise Problem(
                503, "overview_failed", "the process that computed this has died, perhaps for want "
                "of memory; ask for less, or try again later", retry_after=5,
            )  # fmt: skip
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


def _computed(order: dict[str, Any], stop: Stop) -> dict[str, Any] | None:
    """Return the answer of a worker; None if it has ended."""
    for answer in run(_TASK, [order], stop):
        if not isinstance(answer, Failure):
            return dict(answer)
    return None


# In the worker

_LETTERS = 160
_WORDS = 5
_LONGEST = 10_000
"""Characters of a text in which words are looked for: a client waits for the map."""
Order = dict[str, Any]


def computer() -> Callable[[Order], dict[str, Any]]:
    """Return the function of a worker."""
    return _answer


def _answer(order: Order) -> dict[str, Any]:
    library = open_library(order["source"])
    compute = _KINDS[order["kind"]]
    try:
        return {"value": library.use(order["name"], lambda docs: compute(docs, order))}
    except Exception as error:
        problem = problem_for_strangers(error, library.shown)
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
    # The collection has another width, if it was created again meanwhile.
    radius = min(order["radius"], docs.bits)
    largest, version = groups(
        docs, radius, most=order["most"], members=order["members"], threads=order["threads"]
    )
    shown = [
        {
            "size": group.size,
            "largest_distance": group.largest_distance,
            "members": [{"id": id, "distance": far} for id, far in group.members],
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


def _distances(docs: Collection, order: Order) -> dict[str, Any]:
    return asdict(distances(docs, threads=order["threads"]))


_KINDS: dict[str, Callable[[Collection, Order], dict[str, Any]]] = {
    "groups": _groups,
    "map": _map,
    "distances": _distances,
}


def _words(docs: Collection, places: list[dict[str, Any]], regions: int) -> list[list[str]]:
    """Return the words that are typical of each region of the map; none without texts."""
    found = docs.get_many([place["id"] for place in places])
    texts = ["" if one is None or one.text is None else one.text[:_LONGEST] for one in found]
    if not any(texts) or medium_of_signer(docs.signer) is not None:
        return [[] for _ in range(regions)]
    labels = np.array([place["region"] for place in places], np.int64)
    documents, kind = _native.Documents.from_list(texts, 0), Words(stopwords="english")
    counts = WordCounts.of(kind, documents, labels, regions, 1)
    return [[word for word, _ in told] for told in cluster_words(counts, documents, labels, _WORDS)]
