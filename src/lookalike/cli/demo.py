"""`lookalike demo`: what the package can do, on generated signatures, in under a minute."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from lookalike import _native
from lookalike.checks import thread_count, whole_number
from lookalike.indexes import ScanIndex, load_index
from lookalike.signatures import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

Result = TypeVar("Result")

BITS = 1024
COPIES = 1000
MOST_FLIPS = 40


def add(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "demo",
        help="show what lookalike can do, in under a minute",
        description="Search a generated collection of 1024-bit signatures exhaustively, compare "
        "time and answers with NumPy, and find the near-duplicates hidden in it.",
    )
    parser.add_argument("--count", type=int, default=1_000_000, help="signatures (default 1000000)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Make a collection with hidden near-duplicates, and find them."""
    count = whole_number("--count", options.count, at_least=2 * COPIES)
    active = next(kernel.name for kernel in kernels() if kernel.active)
    print(f"\n{count:,} signatures of {BITS} bits; kernel {active}, {thread_count(None)} threads\n")

    rng = np.random.default_rng(0)
    signatures = np.frombuffer(rng.bytes(count * BITS // 8), np.uint8).reshape(count, -1).copy()
    originals, copies = rng.permutation(count)[: 2 * COPIES].reshape(2, COPIES)
    flips = rng.integers(1, MOST_FLIPS + 1, COPIES)
    signatures[copies] = _edited(signatures[originals], flips, rng)
    print(f"Hidden among them: {COPIES:,} copies with 1 to {MOST_FLIPS} bits changed.")

    index = ScanIndex(signatures)
    query, batch = signatures[copies[:1]], signatures[copies]
    ours, nearest = _timed(lambda: index.search(query, k=10))
    numpy_time, expected = _timed(lambda: _numpy_search(signatures, query[0], 10))
    read_time, _ = _timed(lambda: _native.read_all(signatures.reshape(-1), thread_count(None)))
    print(f"\nOne query, 10 nearest, every signature compared: {1e3 * ours:.1f} ms")
    print(f"  NumPy takes {1e3 * numpy_time:.0f} ms, {numpy_time / ours:.0f} times as long;")
    print(f"  only reading the {signatures.nbytes / 1e6:.0f} MB takes {1e3 * read_time:.1f} ms.")
    print(f"  Same answer: {'yes' if np.array_equal(nearest.distances[0], expected) else 'NO'}")

    batch_time, found = _timed(lambda: index.search(batch, k=2), repeat=1)
    hit = np.mean(found.ids[:, 1] == originals)
    print(f"\n{COPIES:,} queries at once: {1e3 * batch_time / COPIES:.2f} ms each.")
    print(f"  Each copy's nearest other signature is its original: {hit:.1%}")

    rows = np.unique(np.concatenate([originals, copies, np.arange(20_000) % count]))
    sample = ScanIndex(signatures[rows], ids=rows)
    pair_time, pairs = _timed(lambda: sample.pairs(MOST_FLIPS), repeat=1)
    compared = len(sample) * (len(sample) - 1) // 2
    print(f"\nAll pairs of {len(sample):,} signatures within {MOST_FLIPS} bits:")
    print(f"  {compared / 1e6:.0f} million comparisons in {pair_time:.2f} s, {len(pairs):,} pairs.")
    hidden = np.sort(np.sort(np.stack([originals, copies], axis=1), axis=1), axis=0)
    same = np.array_equal(np.sort(np.stack([pairs.left, pairs.right], axis=1), axis=0), hidden)
    print(f"  Exactly the hidden copies: {'yes' if same else 'NO'}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.lookalike"
        index.save(path)
        load_time, loaded = _timed(lambda: load_index(path), repeat=1)
        same = np.array_equal(loaded.search(query, k=10).ids, nearest.ids)
        print(f"\nSaved ({path.stat().st_size / 1e6:.0f} MB), opened in {1e3 * load_time:.1f} ms")
        print(f"  through a memory map; same answer from the file: {'yes' if same else 'NO'}\n")


def _edited(
    signatures: NDArray[np.uint8], flips: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return copies of signatures with that many bits of each inverted."""
    order = rng.random((len(signatures), 8 * signatures.shape[1])).argsort(axis=1)
    mask = np.packbits(order < flips[:, None], axis=1, bitorder="little")
    return signatures ^ mask


def _numpy_search(
    signatures: NDArray[np.uint8], query: NDArray[np.uint8], k: int
) -> NDArray[np.uint16]:
    """Return the distances of the k nearest, the usual way."""
    words = signatures.view(np.uint64) ^ query.view(np.uint64)
    distances = np.bitwise_count(words).sum(axis=1, dtype=np.uint16)
    return np.sort(np.partition(distances, k)[:k])


def _timed(action: Callable[[], Result], repeat: int = 3) -> tuple[float, Result]:
    """Return the shortest time of some runs, and the result."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        result = action()
        best = min(best, time.perf_counter() - start)
    return best, result
