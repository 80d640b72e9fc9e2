"""`threads` limits all threads of clustering, those of NumPy's BLAS library included."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import lookalike as la
from lookalike.topics import blocks


def blas_threads() -> set[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture
def two_blas_threads() -> Any:
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("the BLAS library of NumPy cannot be told how many threads to use")
        yield


@pytest.mark.usefixtures("two_blas_threads")
def test_blas_has_one_thread_while_documents_are_clustered() -> None:
    chance = random.Random(0)
    texts = [" ".join(chance.choices([f"w{at}" for at in range(500)], k=20)) for _ in range(3000)]
    seen: set[int] = set()
    la.cluster_documents(texts, 10, threads=1, progress=lambda *_: seen.update(blas_threads()))
    assert seen == {1}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_the_last_of_several_restores_the_threads() -> None:
    first, second = blocks.one_blas_thread(), blocks.one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == {2}
    with pytest.raises(ValueError, match="inside"), blocks.one_blas_thread():
        raise ValueError("inside")
    assert blas_threads() == {2}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_blocks_are_computed_on_so_many_threads(threads: int) -> None:
    running, most, done, lock = 0, 0, [], threading.Lock()

    def compute(begin: int, end: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with lock:
            running -= 1
            done.append((begin, end))

    blocks.each_block(23, 2, threads, compute)
    assert sorted(done) == [(at, min(at + 2, 23)) for at in range(0, 23, 2)]
    assert most <= threads


def test_an_error_in_a_block_is_raised() -> None:
    def compute(begin: int, end: int) -> None:
        raise ValueError(f"{begin}")

    for threads in (1, 2):
        with pytest.raises(ValueError, match="0"):
            blocks.each_block(10, 2, threads, compute)
