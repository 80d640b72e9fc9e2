"""Isolated worker processes: a file that crashes its parser crashes a worker, not the program.

A worker is a module whose `main` calls `serve`. It reads requests and writes answers through pipes,
as plain values, one answer per item, so the reader knows which item ended the worker. Output that
a library prints is discarded.
"""

from __future__ import annotations

import atexit
import contextlib
import marshal
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Lock
from typing import Any, BinaryIO, TypeVar, cast

from lookalike.errors import MissingDependencyError

__all__ = [
    "Death",
    "MemoryBudget",
    "Worker",
    "answers_or_deaths",
    "reserved_bytes",
    "serve",
    "set_memory_limit",
    "time_limit",
]

_COMMAND = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"
_LENGTH = 8

Item = TypeVar("Item")


@dataclass(eq=False)
class Worker:
    """A process, which is used again and again."""

    module: str
    process: subprocess.Popen[bytes]
    owner: int
    death: int | None = None
    """Its exit status, once a request has ended it."""

    @classmethod
    def take(cls, module: str) -> Worker:
        """Return one of that module that has nothing to do, or a new one."""
        with _LOCK:
            for worker in [one for one in _IDLE if one.module == module]:
                _IDLE.remove(worker)
                # After a fork, a parent's workers are not the child's.
                if worker.owner == os.getpid() and worker.process.poll() is None:
                    return worker
                worker.end()
        path = [path or str(Path.cwd()) for path in sys.path]
        if not sys.executable:
            raise MissingDependencyError(
                "reading files from elsewhere needs a Python program to start, and sys.executable "
                "names none"
            )
        process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND.format(path=path, module=module)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            close_fds=True,
        )
        return cls(module, process, os.getpid())

    def answers(self, request: Any, count: int) -> Iterator[Any]:
        """Yield so many answers, and end early, with `death`, where the process did."""
        try:
            stream = cast(BinaryIO, self.process.stdin)
            _write_frame(stream, request)
            stream.flush()
            for _ in range(count):
                yield _read_frame(cast(BinaryIO, self.process.stdout))
        except (EOFError, BrokenPipeError):
            self.death = self.end()

    def give_back(self) -> None:
        """Let others have it."""
        with _LOCK:
            _IDLE.append(self)

    def end(self) -> int:
        """End it, unless it has; return its status."""
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                cast(BinaryIO, stream).close()
        if self.owner != os.getpid():
            return 0  # it is the parent's, and goes on
        if self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(0.5)
            self.process.kill()
        return self.process.wait()


@dataclass(frozen=True)
class Death:
    """What stands in place of an answer where an item ended its worker."""

    status: int
    """The exit status of the process; negative: the signal that ended it."""

    @property
    def out_of_time(self) -> bool:
        """Whether the item exceeded its time limit."""
        return self.status == -signal.SIGPROF


def answers_or_deaths(
    module: str, items: Sequence[Item], request: Callable[[Sequence[Item]], Any]
) -> Iterator[Any]:
    """Yield an answer for each item, or a `Death` for an item that ends its worker.

    `request` makes the request for the items that are left. After a death, a new worker continues.
    An item that ended a worker is tried once more, as another program may have killed the first
    worker; an item that ran out of time is not.
    """
    done, suspected = 0, -1
    while done < len(items):
        worker = Worker.take(module)
        rest = items[done:]
        try:
            for answer in worker.answers(request(rest), len(rest)):
                yield answer
                done += 1
        except BaseException:
            worker.end()
            raise
        if worker.death is None:
            worker.give_back()
            continue
        death = Death(worker.death)
        if death.out_of_time or suspected == done:
            yield death
            done += 1
        else:
            suspected = done


class MemoryBudget:
    """Bytes of memory that concurrent work may take together; work that does not fit waits."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._used = 0
        self._turn = Lock()
        self._changed = Condition()

    @contextlib.contextmanager
    def taken(self, amount: int) -> Iterator[None]:
        """Wait until `amount` bytes are free, at most `total`, and hold them."""
        # The first in turn waits for room and the others wait behind it, so that small requests
        # cannot keep a large one waiting.
        with self._turn, self._changed:
            self._changed.wait_for(lambda: self._used + amount <= self.total)
            self._used += amount
        try:
            yield
        finally:
            with self._changed:
                self._used -= amount
                self._changed.notify_all()


_LOCK = Lock()
_IDLE: list[Worker] = []


@atexit.register
def _end_all() -> None:
    """End all workers that wait: they would end by themselves when this process has."""
    with _LOCK:
        idle, _IDLE[:] = list(_IDLE), []
    for worker in idle:
        if worker.owner == os.getpid():
            worker.process.kill()
            worker.end()


def serve(answers_to: Callable[[Any], Iterable[Any]]) -> None:
    """Answer until standard input ends, which it does when the process that began this does."""
    import resource  # here, since whoever asks does without

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever began this says when it ends
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What a library prints must not be taken for an answer.
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            for answer in answers_to(_read_frame(sys.stdin.buffer)):
                _write_frame(stream, answer)
                stream.flush()


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Let the system end this process, by SIGPROF, if it takes more time of a processor."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def set_memory_limit(reserved: int, memory: int) -> None:
    """Let this process allocate at most `memory` bytes beside the `reserved_bytes` at its start."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (reserved + memory, resource.RLIM_INFINITY))


def reserved_bytes() -> int:
    """Return the size of the address space in use.

    It is not memory: numerical libraries reserve gigabytes of it where there are many cores.
    """
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _write_frame(stream: BinaryIO, value: Any) -> None:
    """Write plain values, and how many bytes they are."""
    data = marshal.dumps(value)
    stream.write(len(data).to_bytes(_LENGTH, "little"))
    stream.write(data)


def _read_frame(stream: BinaryIO) -> Any:
    """Return what was written; raise `EOFError` at the end."""
    length = stream.read(_LENGTH)
    if len(length) < _LENGTH:
        raise EOFError
    size = int.from_bytes(length, "little")
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return marshal.loads(data)
