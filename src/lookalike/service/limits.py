"""What requests may take: memory and time.

Memory is what bodies, the values decoded from them, and answers take at once. Bytes are taken
before anything is expanded, and given back when the request has been answered and no thread works
for it any more. A request for which there is no room is refused.

Time limits are watched by one task. A timer for each of thousands of requests a second costs more
than what most of them ask for. So the times are written down, and looked at four times a second.
Requests that are still there when they are looked at for the second time are watched for the end of
their connection, too.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from typing import Any

from lookalike.service.problems import ClientGone, Problem

__all__ = ["HELD", "Held", "Limit", "Memory", "Watch", "return_freed_memory"]

_PER_ANSWERED = 4
"""Bytes of memory for each byte of a text or of metadata in an answer, until it is encoded."""


class Memory:
    """The bytes that requests hold, in total and for each key."""

    def __init__(self, most: int, most_per_key: int) -> None:
        self.most = most
        self.most_per_key = most_per_key
        self._lock = threading.Lock()
        self._taken = 0
        self._by_key: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """The bytes that are held now."""
        return self._taken

    def hold(self, key: str) -> Held:
        """Return a hold of 0 bytes for a request with this key."""
        return Held(self, key)

    def change(self, key: str, size: int, *, refuse: bool = True) -> None:
        """Take bytes for a key, or give them back; raise if there is no room for them.

        With `refuse=False`, they are taken even if there is no room.
        """
        with self._lock:
            if size > 0 and refuse:
                if self._taken + size > self.most:
                    raise _full("other requests fill the memory for requests")
                if self._by_key[key] + size > self.most_per_key:
                    raise _full("other requests with this key fill its share of the memory")
            self._taken += size
            self._by_key[key] += size
            if not self._by_key[key]:
                del self._by_key[key]


class Held:
    """What one request holds. Threads that work for it share the hold: the last one releases it."""

    __slots__ = ("_key", "_lock", "_memory", "_size", "_users")

    def __init__(self, memory: Memory, key: str) -> None:
        self._memory = memory
        self._key = key
        self._size = 0
        self._users = 1
        self._lock = threading.Lock()

    def need(self, size: int, *, refuse: bool = True) -> None:
        """Hold at least this many bytes in all, or raise `Problem`, except with `refuse=False`."""
        if size > self._memory.most_per_key and refuse:
            raise Problem(
                413, "body_too_large", f"the body takes {size} bytes of memory once it is decoded; "
                f"expected at most {self._memory.most_per_key}: send less at once, or start the "
                "service with a larger --max-memory",
            )  # fmt: skip
        with self._lock:
            if size > self._size:
                self._memory.change(self._key, size - self._size, refuse=refuse)
                self._size = size

    def need_for_answer(self, size: int, *, refuse: bool = True) -> None:
        """Hold at least this many bytes for an answer; see `need`."""
        if size > self._memory.most_per_key and refuse:
            raise self._answer_too_large()
        self.need(size, refuse=refuse)

    def add_answer(self, size: int) -> None:
        """Hold more bytes for an answer that grows, or raise `Problem`."""
        more = _PER_ANSWERED * size
        with self._lock:
            if self._size + more > self._memory.most_per_key:
                raise self._answer_too_large()
            self._memory.change(self._key, more)
            self._size += more

    def _answer_too_large(self) -> Problem:
        return Problem(
            422, "answer_too_large", "the answer takes more memory than "
            f"{self._memory.most_per_key} bytes; ask for less at once, or start the service with a "
            "larger --max-memory", kind="ResultTooLargeError",
        )  # fmt: skip

    def change(self, size: int) -> None:
        """Hold more bytes, or raise `Problem`; fewer where the size is negative."""
        with self._lock:
            self._memory.change(self._key, size)
            self._size += size

    def share(self) -> None:
        """Let one more user release it."""
        with self._lock:
            self._users += 1

    def release(self, *_: object) -> None:
        """Give the bytes back, if no other thread uses them."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            size, self._size = self._size, 0
        self._memory.change(self._key, -size)


_ALLOCATOR = ((-3, 256 << 10), (-1, 1 << 20), (-8, 4))
"""M_MMAP_THRESHOLD, M_TRIM_THRESHOLD and M_ARENA_MAX of malloc.h, and their values."""

HELD: ContextVar[Held | None] = ContextVar("held", default=None)
"""What the current request holds."""


def return_freed_memory() -> None:
    """Let the allocator of glibc give large blocks back when they are freed.

    It learns otherwise to keep blocks of up to 32 MiB, in an arena for each thread: after a few
    large bodies and answers, what is kept is several times as much as what is used.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another allocator
        return
    for option, value in _ALLOCATOR:
        mallopt(option, value)


def _full(reason: str) -> Problem:
    return Problem(
        429, "too_much_at_once", f"{reason}; try again in a second", retry_after=1,
        kind="CollectionBusyError",
    )  # fmt: skip


_LOOK = 0.25


class Limit:
    """How long something may take, as a context; beyond that it is ended by an exception.

    With `receive`, which gives the messages of a request whose body has been read, it also ends,
    with `ClientGone`, soon after the client has closed the connection.
    """

    __slots__ = (
        "_due", "_gone", "_late", "_listening", "_problem", "_receive", "_seen", "_task", "_watch",
    )  # fmt: skip

    def __init__(
        self,
        watch: Watch,
        seconds: float,
        problem: Callable[[], Exception],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]] | None = None,
    ) -> None:
        self._watch = watch
        self._receive = receive
        self._seen = False
        self._gone = False
        self._listening: asyncio.Task[None] | None = None
        self._due = watch.time() + seconds
        self._problem = problem
        self._late = False
        self._task: asyncio.Task[object] | None = None

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._watch.limits.add(self)
        self._watch.begin()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._watch.limits.discard(self)
        if self._listening is not None:
            self._listening.cancel()
        if (self._late or self._gone) and self._task is not None:
            self._task.uncancel()
            if kind is asyncio.CancelledError:
                raise (self._problem() if self._late else ClientGone()) from None

    def look(self, now: float) -> None:
        """End what takes too long; listen for the end of the connection if it takes a while."""
        if self._late or self._gone or self._task is None:
            return
        if now > self._due:
            self._late = True
            self._task.cancel()
        elif self._seen and self._receive is not None and self._listening is None:
            self._listening = asyncio.ensure_future(self._listen(self._receive, self._task))
        self._seen = True

    async def _listen(
        self,
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        task: asyncio.Task[object],
    ) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        if not self._late:
            self._gone = True
            task.cancel()


class Watch:
    """The limits of one event loop."""

    def __init__(self) -> None:
        self.limits: set[Limit] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next: asyncio.TimerHandle | None = None

    def time(self) -> float:
        """Return the time of the loop."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop.time()

    def begin(self) -> None:
        """Look at the limits from now on, as long as there are any."""
        if self._next is None and self._loop is not None:
            self._next = self._loop.call_later(_LOOK, self._look)

    def _look(self) -> None:
        self._next = None
        now = self.time()
        for limit in list(self.limits):
            limit.look(now)
        if self.limits:
            self.begin()
