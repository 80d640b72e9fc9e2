"""Memory and time limits of requests.

The memory limit covers bodies, the values decoded from them, and answers. A request reserves bytes
before it expands anything, and releases them when it was answered and no thread works for it any
more. A request for which there is no room is refused.

A timer for each of thousands of requests per second would cost more than most requests. So one
timer checks all time limits, four times a second. When it sees a request for the second time, it
also starts to watch whether the client disconnects.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from starlette.types import Receive

from lookalike.service.problems import Disconnected, Problem

_LOOK = 0.25
_PER_ANSWERED = 4
"""Bytes of memory per byte of text or metadata in an answer, until it is encoded."""


@dataclass(eq=False)
class Memory:
    """The bytes that requests hold, in total and for each key."""

    most: int
    most_per_key: int
    taken: int = 0
    _by_key: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def change(self, key: str, size: int, *, refuse: bool = True) -> None:
        """Reserve bytes for a key, or release them (`size < 0`); raise if there is no room."""
        with self._lock:
            if size > 0 and refuse:
                if self.taken + size > self.most:
                    raise _full("other requests use all the memory for requests")
                if self._by_key[key] + size > self.most_per_key:
                    raise _full("other requests with this key use its whole share of the memory")
            self.taken += size
            self._by_key[key] += size
            if not self._by_key[key]:
                del self._by_key[key]


def _full(reason: str) -> Problem:
    message = f"{reason}; try again in a second"
    return Problem(429, "too_much_at_once", message, retry_after=1)


@dataclass(eq=False, slots=True)
class Held:
    """The bytes that one request holds; the last thread that shares them releases them."""

    _memory: Memory
    _key: str
    _size: int = 0
    _users: int = 1
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def need(self, size: int) -> None:
        """Hold at least this many bytes in total, or raise `Problem`."""
        if size > self._memory.most_per_key:
            raise Problem(
                413, "body_too_large", f"the body takes {size} bytes of memory once it is decoded; "
                f"expected at most {self._memory.most_per_key}. Send less at once, or start the "
                "service with a larger --max-memory",
            )  # fmt: skip
        with self._lock:
            if size > self._size:
                self._memory.change(self._key, size - self._size)
                self._size = size

    def change(self, size: int) -> None:
        """Hold more bytes, or fewer if `size` is negative; raise `Problem` if there is no room."""
        with self._lock:
            self._memory.change(self._key, size)
            self._size += size

    def add_text(self, size: int) -> None:
        """Hold the memory of more bytes of text and metadata in an answer; see `add_answer`."""
        self.add_answer(_PER_ANSWERED * size)

    def add_answer(self, size: int, *, refuse: bool = True) -> None:
        """Hold more bytes for an answer; raise `Problem` unless `refuse=False`."""
        with self._lock:
            if refuse and self._size + size > self._memory.most_per_key:
                raise Problem(
                    422, "answer_too_large", "the answer takes more memory than "
                    f"{self._memory.most_per_key} bytes. Ask for less at once, or start the "
                    "service with a larger --max-memory",
                )  # fmt: skip
            self._memory.change(self._key, size, refuse=refuse)
            self._size += size

    def share(self) -> None:
        """Let one more user release the bytes."""
        with self._lock:
            self._users += 1

    def release(self, *_: object) -> None:
        """Release the bytes, if no other thread uses them."""
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
    """Make glibc return large blocks to the system when they are freed.

    By default it keeps blocks of up to 32 MiB in an arena per thread. After a few large bodies and
    answers, that is several times the memory in use.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another allocator
        return
    for option, value in _ALLOCATOR:
        mallopt(option, value)


async def disconnected(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


@dataclass(eq=False, slots=True)
class Limit:
    """A context with a time limit in seconds; after that it raises what `problem` returns.

    With `receive`, the channel of a request whose body was read, it also raises `Disconnected` soon
    after the client closes the connection.
    """

    _watch: Watch
    _seconds: float
    _problem: Callable[[float], Exception]
    _receive: Receive | None = None
    _due: float = 0.0
    _seen: bool = False
    _late: bool = False
    _gone: bool = False
    _listening: asyncio.Task[None] | None = None
    _task: asyncio.Task[object] | None = None

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._due = self._watch.time() + self._seconds
        self._watch.limits.add(self)
        self._watch.begin()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._watch.limits.discard(self)
        if self._listening is not None:
            self._listening.cancel()
        if (self._late or self._gone) and self._task is not None:
            self._task.uncancel()
            if kind is asyncio.CancelledError:
                raise (self._problem(self._seconds) if self._late else Disconnected()) from None

    def look(self, now: float) -> None:
        """Cancel the task if it is late; watch the connection if it takes a while."""
        if self._late or self._gone or self._task is None:
            return
        if now > self._due:
            self._late = True
            self._task.cancel()
        elif self._seen and self._receive is not None and self._listening is None:
            self._listening = asyncio.ensure_future(self._listen(self._receive, self._task))
        self._seen = True

    async def _listen(self, receive: Receive, task: asyncio.Task[object]) -> None:
        await disconnected(receive)
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
        """Check the limits from now on, while there are any."""
        if self._next is None and self._loop is not None:
            self._next = self._loop.call_later(_LOOK, self._look)

    def _look(self) -> None:
        self._next = None
        now = self.time()
        for limit in list(self.limits):
            limit.look(now)
        if self.limits:
            self.begin()
