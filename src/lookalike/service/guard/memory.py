"""Memory in flight: what bodies, the values decoded from them, and answers may take at once.

Bytes are taken before anything is expanded, and given back when the request has been answered and
no thread works for it any more. A request for which there is no room is refused.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from contextvars import ContextVar

from lookalike.service.problems import Problem

__all__ = ["HELD", "Held", "Memory", "return_freed_memory"]

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

    def add_answer(self, size: int) -> None:
        """Hold more bytes for an answer that grows, or raise `Problem`."""
        more = _PER_ANSWERED * size
        with self._lock:
            if self._size + more > self._memory.most_per_key:
                raise Problem(
                    422, "answer_too_large", "the answer takes more memory than "
                    f"{self._memory.most_per_key} bytes; ask for less at once, or start the "
                    "service with a larger --max-memory", kind="ResultTooLargeError",
                )  # fmt: skip
            self._memory.change(self._key, more)
            self._size += more

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
