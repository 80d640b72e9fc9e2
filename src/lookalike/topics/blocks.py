"""Matrix products on a given number of threads.

NumPy's BLAS library would use threads of its own, as many as there are cores. While documents are
clustered it uses one, and blocks of rows are computed on our threads. Blocks do not depend on the
number of threads, so that results do not, either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any

from lookalike.lazy import LazyModule

_pools = LazyModule("threadpoolctl", "clustering documents", extra="")

_lock = Lock()
_limits: list[Any] = []
"""What restores the threads of BLAS, and None for each caller after the first."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread; the last caller that leaves restores what was there before."""
    with _lock:
        _limits.append(None if _limits else _pools.threadpool_limits(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            restoring = _limits[0]
            _limits.pop()
            if not _limits:
                restoring.restore_original_limits()


def each_block(count: int, step: int, threads: int, compute: Callable[[int, int], object]) -> None:
    """Call `compute(begin, end)` for blocks of at most `step` of `count` rows."""
    begins = range(0, count, step)
    if threads == 1 or len(begins) < 2:
        for begin in begins:
            compute(begin, min(begin + step, count))
        return
    with ThreadPoolExecutor(min(threads, len(begins))) as pool:
        # Errors are raised when results are read.
        for _ in pool.map(lambda begin: compute(begin, min(begin + step, count)), begins):
            pass
