"""Processes that nobody misses: whatever a file from elsewhere does to its parser is done there.

A worker is a module whose `main` calls `serve`. It gets requests and writes answers through pipes,
as plain values, so that whoever reads these knows at which one it died. What a library prints goes
nowhere.
"""

from __future__ import annotations

import atexit
import contextlib
import marshal
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, cast

from lookalike.errors import MissingDependencyError

__all__ = ["Worker", "reserved_bytes", "serve", "time_limit"]

_COMMAND = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"
_LENGTH = 8


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


def reserved_bytes() -> int:
    """Return the addresses that are taken already.

    They are not memory: numerical libraries reserve gigabytes of them where there are many cores.
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
