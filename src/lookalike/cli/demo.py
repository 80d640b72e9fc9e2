"""`lookalike demo`: what the package can do, on generated data, in under a minute."""

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
from lookalike.features import Words, jaccard_pairs
from lookalike.indexes import ScanIndex, SliceIndex, load_index
from lookalike.signatures import SimHash, kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

Result = TypeVar("Result")

BITS = 1024
COPIES = 1000
MOST_FLIPS = 40
WORDS_PER_DOCUMENT = 120


def add(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "demo",
        help="show what lookalike can do, in under a minute",
        description="Find edited copies among generated documents, search a generated collection "
        "of 1024-bit signatures exhaustively and by slice lists, and compare time and answers with "
        "NumPy.",
    )
    parser.add_argument("--count", type=int, default=1_000_000, help="signatures (default 1000000)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Hide near-duplicates, and find them."""
    count = whole_number("--count", options.count, at_least=2 * COPIES)
    active = next(kernel.name for kernel in kernels() if kernel.active)
    print(f"\nKernel {active}, {thread_count(None)} threads.")
    rng = np.random.default_rng(0)
    _show_text(min(count // 10, 100_000), rng)
    _show_search(count, rng)


def _show_text(count: int, rng: np.random.Generator) -> None:
    """Documents with edited copies among them: sign, pair, verify."""
    words = rng.zipf(1.3, (count, WORDS_PER_DOCUMENT)) % 50_000
    copies = rng.permutation(count)[: 2 * (count // 20)].reshape(2, -1)
    words[copies[1]] = words[copies[0]]
    words[copies[1], :3] = rng.integers(50_000, 60_000, (copies.shape[1], 3))
    documents = [" ".join(f"w{word}" for word in row) for row in words.tolist()]
    size = sum(map(len, documents)) / 1e6
    print(f"\n{count:,} documents ({size:.0f} MB), {copies.shape[1]:,} of them copies of another")
    print("with three words changed.")
    signer = SimHash(bits=64, features=Words(ngram=2), weights="uniform")
    sign_time, signatures = _timed(lambda: signer.sign(documents), repeat=1)
    print(f"  Signed (64-bit SimHash of word pairs): {count / sign_time:,.0f} documents a second.")
    pair_time, pairs = _timed(lambda: SliceIndex(signatures).pairs(radius=14), repeat=1)
    same = jaccard_pairs(documents, pairs.left, pairs.right, signer.features) > 0.8
    hidden = set(zip(copies.min(axis=0).tolist(), copies.max(axis=0).tolist(), strict=True))
    found = set(zip(pairs.left[same].tolist(), pairs.right[same].tolist(), strict=True))
    print(f"  {len(pairs):,} pairs within 14 bits in {pair_time:.2f} s; exact Jaccard above 0.8:")
    print(f"  {len(found):,}, among them {len(found & hidden) / len(hidden):.1%} of the copies.")


def _show_search(count: int, rng: np.random.Generator) -> None:
    """Signatures with changed copies among them: scan, slices, pairs, files."""
    signatures = np.frombuffer(rng.bytes(count * BITS // 8), np.uint8).reshape(count, -1).copy()
    originals, copies = rng.permutation(count)[: 2 * COPIES].reshape(2, COPIES)
    flips = rng.integers(1, MOST_FLIPS + 1, COPIES)
    signatures[copies] = _edited(signatures[originals], flips, rng)
    print(f"\n{count:,} signatures of {BITS} bits, {COPIES:,} of them copies of another with 1 to")
    print(f"{MOST_FLIPS} bits changed.")

    index = ScanIndex(signatures)
    query, batch = signatures[copies[:1]], signatures[copies]
    ours, nearest = _timed(lambda: index.search(query, k=10))
    numpy_time, expected = _timed(lambda: _numpy_search(signatures, query[0], 10))
    read_time, _ = _timed(lambda: _native.read_all(signatures.reshape(-1), thread_count(None)))
    print(f"\n  One query, 10 nearest, every signature compared: {1e3 * ours:.1f} ms.")
    print(f"    NumPy takes {1e3 * numpy_time:.0f} ms, {numpy_time / ours:.0f} times as long;")
    print(f"    only reading the {signatures.nbytes / 1e6:.0f} MB takes {1e3 * read_time:.1f} ms.")
    print(f"    Same answer: {_yes(np.array_equal(nearest.distances[0], expected))}")

    batch_time, found = _timed(lambda: index.search(batch, k=2), repeat=1)
    print(f"\n  {COPIES:,} queries at once: {1e3 * batch_time / COPIES:.2f} ms each.")
    hit = np.mean(found.ids[:, 1] == originals)
    print(f"    Each copy's nearest other signature is its original: {hit:.1%}")

    build_time, sliced = _timed(lambda: SliceIndex(signatures), repeat=1)
    slice_time, near = _timed(lambda: sliced.search(batch, k=2, expand=0))
    print(f"\n  The same by slice lists, built in {build_time:.1f} s:")
    print(
        f"    {1e3 * slice_time / COPIES:.3f} ms each, {batch_time / slice_time:.1f} times as fast;"
    )
    print(f"    originals found: {np.mean(near.ids[:, 1] == originals):.1%}")

    pair_time, pairs = _timed(lambda: sliced.pairs(MOST_FLIPS), repeat=1)
    ends = np.sort(np.stack([originals, copies], axis=1), axis=1)
    hidden = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    same = np.array_equal(np.stack([pairs.left, pairs.right], axis=1), hidden)
    print(f"\n  All pairs of all signatures within {MOST_FLIPS} bits: {pair_time:.1f} s.")
    print(f"    Exactly the hidden copies: {_yes(same)}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.lookalike"
        index.save(path)
        load_time, loaded = _timed(lambda: load_index(path), repeat=1)
        same = np.array_equal(loaded.search(query, k=10).ids, nearest.ids)
        print(f"\n  Saved ({path.stat().st_size / 1e6:.0f} MB), opened in {1e3 * load_time:.1f} ms")
        print(f"    through a memory map; same answer from the file: {_yes(same)}\n")


def _yes(good: bool) -> str:
    return "yes" if good else "NO"


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
