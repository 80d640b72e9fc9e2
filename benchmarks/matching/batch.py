"""A batch against a collection on disk: flips beside blocks, the file read from the page cache, and
once from the disk itself.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from papers.generated import GeneratedFingerprints, generate_fingerprints

import lookalike as la
from benchmarks.harness import Effort, WrongAnswerError
from benchmarks.quality import Entry, Quality, QualityResult, ratio_verdict, run_entries
from lookalike import SignatureFile
from lookalike.indexes.batch.match import batch_header_bits

__all__ = ["batch"]

RADIUS = 3
RECALL = 0.95
EFFORT = Effort(rounds=3, seconds=8.0)
_PARTS = 8


def batch(name: str, count: int, asked: int) -> QualityResult:
    """Match `asked` queries with a file of `count`: of runs as long as the batch, and of one run.

    Blocks make tables of the batch and look the file up in them, so they do not mind the runs.
    """
    made = generate_fingerprints(count, 2 * asked)
    flips = _tuned(made, asked)
    queries, weights = made.queries[:asked], made.weights[:asked]
    with tempfile.TemporaryDirectory() as folder:
        files = {
            "runs": _file(Path(folder) / "runs", made.signatures, asked),
            "one run": _file(Path(folder) / "one", made.signatures, count),
        }
        truth = la.match_batch(
            files["one run"], queries, RADIUS, method="blocks", tables=4, append=False
        )
        entries = []
        for label, path in files.items():
            for only in (False, True):
                ask: Callable[[], la.results.Matches] = partial(
                    la.match_batch,
                    path,
                    queries,
                    RADIUS,
                    weights=weights,
                    flips=flips[only],
                    first=only,
                    append=False,
                    threads=1,
                )
                entries.append(
                    Entry(_label("flips", only, label), ask, asked, partial(_recall, truth, only))
                )
        for label, ready in (("in parts", _keep), ("in parts, from the disk", _drop)):
            ask = partial(_in_parts, files["one run"], queries, weights, flips[False], ready)
            judge = partial(_recall, truth, False)
            entries.append(Entry(_label("flips", False, f"one run {label}"), ask, asked, judge))
        for only in (False, True):
            ask = partial(
                la.match_batch,
                files["runs"],
                queries,
                RADIUS,
                method="blocks",
                tables=4,
                first=only,
                append=False,
                threads=1,
            )
            entries.append(
                Entry(_label("blocks", only, "runs"), ask, asked, partial(_recall, truth, only))
            )
        title = (
            f"{asked:,} queries with a file of {count:,} generated fingerprints, 64 bits, within "
            f"{RADIUS}, 1 thread; flips: {', '.join(map(str, flips.values()))}"
        )
        result = run_entries(name, title, entries, asked, EFFORT)
    times = result.times()
    verdicts = [
        ratio_verdict(
            f"22{letter}. batch of {asked:,} and {count:,} in the file, {what}: blocks / flips",
            times,
            _label("blocks", only, "runs"),
            _label("flips", only, "one run"),
            target,
        )
        for letter, what, only, target in (("a", "all", False, 7), ("b", "first", True, 14))
    ]
    return replace(result, verdicts=verdicts, notes=[f"{len(truth.ids):,} matches"])


def _tuned(made: GeneratedFingerprints, asked: int) -> dict[bool, int]:
    """Return the flips for all matches and for the first, learned from queries that are not timed.

    Only those with a match tell, so only these are tried with all flips. Runs as long as the batch
    are put together, so that there is one chunk and one header either way.
    """
    exact = la.BlockIndex(made.signatures, RADIUS, 4).within(made.queries[asked:], RADIUS)
    matched = asked + np.flatnonzero(np.diff(exact.offsets))
    header = batch_header_bits([len(made.signatures)], asked, 64, RADIUS, RECALL)
    index = la.FlipIndex(made.signatures, header)
    return {
        first: index.tune_flips(
            made.queries[matched],
            made.weights[matched],
            RADIUS,
            recall=RECALL,
            first=first,
            sample=len(matched),
        ).search_settings["flips"]
        for first in (False, True)
    }


def _label(method: str, first: bool, file: str) -> str:
    return f"{method} {'first' if first else 'all'}, {file}"


def _file(path: Path, signatures: np.ndarray[tuple[int], np.dtype[np.uint64]], size: int) -> Path:
    """Write signatures as sorted runs of so many."""
    store = SignatureFile.create(path, 64)
    for begin in range(0, len(signatures), size):
        part = signatures[begin : begin + size]
        order = np.argsort(part)
        store.append(part[order].view(np.uint8).reshape(-1, 8), begin + order)
    return path


def _in_parts(
    path: Path,
    queries: ArrayLike,
    weights: ArrayLike,
    flips: int,
    ready: Callable[[Path], None],
) -> la.results.Matches:
    """Match with a file in eight chunks, the next of which is read while one is matched."""
    ready(path)
    chunk = -(-len(SignatureFile(path)) // _PARTS)
    return la.match_batch(
        path, queries, RADIUS, weights=weights, flips=flips, append=False, chunk=chunk, threads=1
    )


def _keep(path: Path) -> None:
    """Leave the file where it is, in memory."""


def _drop(path: Path) -> None:
    """Let the system forget what it has read of a file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # what was not written yet cannot be forgotten
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _recall(truth: la.results.Matches, first: bool, answer: la.results.Matches) -> Quality:
    expected = truth.query << 32 | truth.ids
    found = answer.query << 32 | answer.ids
    if not np.isin(found, expected).all():
        raise WrongAnswerError("a match was found that is none")
    if first:
        return {"recall": len(found) / len(np.unique(expected >> 32))}
    return {"recall": len(found) / len(expected)}
