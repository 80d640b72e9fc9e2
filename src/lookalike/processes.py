"""Isolated worker processes: a file that crashes its parser crashes a worker, not the program.

Workers are started on demand and reused. They exchange plain values (those of `marshal`) with this
process through pipes, with one answer per item, so a crash can be attributed to an item.

The pools of the standard library and of pebble limit neither the memory nor the processor time of
an item, and in `concurrent.futures` a crash fails every waiting item. Both build on
`multiprocessing`, which imports the user's main module again.
"""

from __future__ import annotations

import atexit
import contextlib
import marshal
import os
import select
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Condition, Event, Lock, Thread
from typing import Any, BinaryIO, TypeVar, cast

from lookalike.errors import MissingDependencyError
from lookalike.operation import interruptible

_COMMAND = (
    "import sys; sys.path[:] = {path!r}; from lookalike.processes import main; main({setup!r})"
)
_LENGTH = 8
_AHEAD = 2  # batches per thread that are computed ahead

Batch = TypeVar("Batch")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Task:
    """A function that workers run on one item at a time, and the limits for each item."""

    setup: str
    """`"module:function"`: called once in each worker, it returns the function of an item and the
    `options`."""
    options: tuple[Any, ...] = ()
    seconds: float | None = None
    """Limit on the processor time of an item. The system ends a worker that takes more."""
    memory: int | None = None
    """Bytes that a worker may allocate after its setup; no limit on systems without /proc."""
    tries: int = 2
    """Crashes of a worker after which an item fails; the system may have killed the first one."""
    verb: str = "decode"  # the verb for the work in messages

    def reason(self, failure: Failure) -> str:
        """Return why an item has no answer; in messages, it follows the name of the item."""
        if failure.out_of_memory and self.memory is not None:
            return f"takes more than {self.memory >> 20:,} MiB of memory to be {self.verb}d"
        if failure.out_of_time:
            return f"takes more than {self.seconds:,} s to be {self.verb}d"
        killed = failure.status == -signal.SIGKILL
        why = "killed, perhaps out of memory" if killed else f"status {failure.status}"
        return f"crashes the process that {self.verb}s it ({why})"


@dataclass(frozen=True)
class Failure:
    """The result of an item that exceeded a limit or ended its worker."""

    status: int | None
    """Exit status, negative for a signal; None if only the item ran out of memory."""

    @property
    def out_of_memory(self) -> bool:
        """Whether the item exceeded its memory limit."""
        return self.status is None

    @property
    def out_of_time(self) -> bool:
        """Whether the item exceeded its time limit."""
        return self.status == -signal.SIGPROF


class Stop:
    """Ends runs from another thread by killing their workers."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._workers: set[_Worker] = set()
        self._stopped = False

    def __call__(self) -> None:
        """Kill the workers in use, and start no more work."""
        with self._lock:
            self._stopped = True
            for worker in self._workers:
                worker.process.kill()

    @contextlib.contextmanager
    def _using(self, setup: str) -> Iterator[_Worker | None]:
        """Yield a worker, or None if the work was stopped."""
        with self._lock:
            worker = None if self._stopped else _Worker.take(setup)
            if worker is not None:
                self._workers.add(worker)
        try:
            yield worker
        finally:
            with self._lock:
                self._workers -= {worker}


def run(task: Task, items: Sequence[Any], stop: Stop | None = None) -> Iterator[Any]:
    """Yield the answer for each item, or a `Failure`; fewer if the work is stopped.

    If the operation of this thread is canceled, the worker is killed, and `Canceled` is raised.
    """
    stop = stop or Stop()
    with interruptible(stop):
        yield from _answers(task, items, stop)


def _answers(task: Task, items: Sequence[Any], stop: Stop) -> Iterator[Any]:
    done = crashes = 0
    while done < len(items):
        with stop._using(task.setup) as worker:
            if worker is None:
                return
            try:
                for answer in worker.answers(task, items[done:]):
                    yield answer
                    done, crashes = done + 1, 0
            except BaseException:
                worker.end()
                raise
        if stop._stopped:
            worker.end()
            return
        if worker.status is None:
            with _LOCK:
                _IDLE.append(worker)
            continue
        failure = Failure(worker.status)
        crashes += 1
        if failure.out_of_time or crashes >= task.tries:
            yield failure
            done, crashes = done + 1, 0


def run_in_order(
    work: Callable[[Batch, Stop], Iterable[Result]], batches: Iterable[Batch], *, threads: int
) -> Iterator[Result]:
    """Yield the results of each batch, in order, computed by `threads` threads.

    `work` passes its `Stop` on to `run`: if the caller stops or is canceled, the work is killed.
    """
    stop = Stop()
    waiting: deque[Future[list[Result]]] = deque()

    def results(batch: Batch) -> list[Result]:
        return list(work(batch, stop))

    with interruptible(stop), ThreadPoolExecutor(threads) as pool:
        try:
            for batch in batches:
                waiting.append(pool.submit(results, batch))
                while len(waiting) > _AHEAD * threads:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            stop()


def in_groups(
    items: Iterable[Batch], size: Callable[[Batch], int], most_bytes: int, most: int
) -> Iterator[list[Batch]]:
    """Yield groups of items; a group ends once it has `most_bytes` bytes or `most` items."""
    group: list[Batch] = []
    held = 0
    for item in items:
        group.append(item)
        held += size(item)
        if held >= most_bytes or len(group) == most:
            yield group
            group, held = [], 0
    if group:
        yield group


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
        # Others wait behind the first in turn: small requests cannot keep a large one waiting.
        with self._turn, self._changed:
            self._changed.wait_for(lambda: self._used + amount <= self.total)
            self._used += amount
        try:
            yield
        finally:
            with self._changed:
                self._used -= amount
                self._changed.notify_all()


@dataclass(eq=False)
class _Worker:
    """A process that runs one function, again and again."""

    setup: str
    process: subprocess.Popen[bytes]
    owner: int
    status: int | None = None  # its exit status, once an item has ended it

    @classmethod
    def take(cls, setup: str) -> _Worker:
        """Return an idle worker with this setup, or a new one."""
        with _LOCK:
            for worker in [one for one in _IDLE if one.setup == setup]:
                _IDLE.remove(worker)
                # After a fork, the workers of the parent do not belong to the child.
                if worker.owner == os.getpid() and worker.process.poll() is None:
                    return worker
                worker.end()
        if not sys.executable:
            raise MissingDependencyError(
                "untrusted files are read in Python processes, but sys.executable is not set"
            )
        path = [path or str(Path.cwd()) for path in sys.path]
        process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND.format(path=path, setup=setup)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return cls(setup, process, os.getpid())

    def answers(self, task: Task, items: Sequence[Any]) -> Iterator[Any]:
        """Yield an answer for each item; end early, and set `status`, if the process ends."""
        try:
            stream = cast(BinaryIO, self.process.stdin)
            _write_frame(stream, (task.options, task.seconds, task.memory, list(items)))
            for _ in items:
                done, value = _read_frame(cast(BinaryIO, self.process.stdout))
                yield value if done else Failure(None)
        except (EOFError, BrokenPipeError):
            self.status = self.end()

    def end(self) -> int:
        """End the process, if it has not ended, and return its status."""
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                cast(BinaryIO, stream).close()
        if self.owner != os.getpid():
            return 0  # it belongs to the parent process
        if self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(0.5)
            self.process.kill()
        return self.process.wait()


_LOCK = Lock()
_IDLE: list[_Worker] = []


@atexit.register
def end_idle_workers() -> None:
    """End all idle workers before this process ends."""
    with _LOCK:
        idle, _IDLE[:] = list(_IDLE), []
    for worker in idle:
        if worker.owner == os.getpid():
            worker.process.kill()
            worker.end()


# Below: in a worker


def main(setup: str) -> None:
    """Answer requests until standard input ends with the parent process."""
    import resource  # only here: other processes do not need it

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process decides
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What a library prints must not be taken for an answer.
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    waits = Event()
    Thread(target=_end_with_parent, args=(waits,), daemon=True).start()
    module, _, name = setup.partition(":")
    work = getattr(import_module(module), name)()
    waits.wait()  # the memory of the thread counts as that of the setup
    reserved = _address_space()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            options, seconds, memory, items = _read_frame(sys.stdin.buffer)
            if memory is not None and reserved is not None:
                limits = reserved + memory, resource.RLIM_INFINITY
                resource.setrlimit(resource.RLIMIT_AS, limits)
            for item in items:
                signal.setitimer(signal.ITIMER_PROF, seconds or 0)
                try:
                    answer = True, work(item, *options)
                except MemoryError:
                    answer = False, None
                signal.setitimer(signal.ITIMER_PROF, 0)
                _write_frame(stream, answer)


def keep_freed_memory(most: int = 64 << 20) -> None:
    """Keep up to `most` bytes of freed memory in this process, for the next arrays.

    By default, glibc returns arrays of some megabytes to the system when they are freed. A function
    that makes such arrays again and again then spends half of its time on page faults.
    """
    import ctypes  # only here: other processes do not need it

    trim, mmap = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
    with contextlib.suppress(OSError, AttributeError):  # other C libraries
        set_option = ctypes.CDLL(None).mallopt
        set_option(mmap, most // 2)
        set_option(trim, most)


def _end_with_parent(waits: Event) -> None:
    """End this process when the one that started it has ended."""
    pipe = select.poll()
    pipe.register(0, 0)  # for nothing but its end
    waits.set()
    pipe.poll()
    os._exit(1)


def _address_space() -> int | None:
    """Return the size of the address space in use (not memory), None if the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        return None


def _write_frame(stream: BinaryIO, value: Any) -> None:
    """Write plain values, after their length in bytes."""
    data = marshal.dumps(value)
    stream.write(len(data).to_bytes(_LENGTH, "little"))
    stream.write(data)
    stream.flush()


def _read_frame(stream: BinaryIO) -> Any:
    """Return what was written; raise `EOFError` at the end, as `marshal` does for cut data."""
    length = int.from_bytes(stream.read(_LENGTH), "little")
    return marshal.loads(stream.read(length))
