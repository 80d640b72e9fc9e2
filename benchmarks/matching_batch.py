"""A batch against a collection on disk: flips beside blocks, the file read from the page cache."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import lookalike as la
from benchmarks.harness import Effort, WrongAnswerError
from benchmarks.quality import Entry, Quality, QualityResult, ratio_verdict, run_entries
from lookalike.evaluation.generated import generate_fingerprints
from lookalike.indexes.sorted_table import header_width
from lookalike.storage import SignatureFile

__all__ = ["batch"]

RADIUS = 3
RECALL = 0.95
SAMPLE = 40_000
EFFORT = Effort(rounds=3, seconds=8.0)


def batch(name: str, count: int, asked: int) -> QualityResult:
    """Match `asked` queries with a file of `count`: of runs as long as the batch, and of one run.

    Blocks make tables of the batch and look the file up in them, so they do not mind the runs.
    """
    made = generate_fingerprints(count, asked)
    # A header as long as that of a run, or of the whole file, over all that is in the file.
    flips = {
        (label, first): la.FlipIndex(made.signatures, header_width(size))
        .tune_flips(made.queries, made.weights, RADIUS, recall=RECALL, first=first, sample=SAMPLE)
        .flips
        for label, size in (("runs", asked), ("one run", count))
        for first in (False, True)
    }
    with tempfile.TemporaryDirectory() as folder:
        files = {
            "runs": _file(Path(folder) / "runs", made.signatures, asked),
            "one run": _file(Path(folder) / "one", made.signatures, count),
        }
        truth = la.match_batch(
            files["one run"], made.queries, RADIUS, method="blocks", tables=4, append=False
        )
        entries = []
        for label, path in files.items():
            for only in (False, True):
                ask = partial(
                    la.match_batch,
                    path,
                    made.queries,
                    RADIUS,
                    weights=made.weights,
                    flips=flips[label, only],
                    first=only,
                    append=False,
                    threads=1,
                )
                entries.append(
                    Entry(_label("flips", only, label), ask, asked, partial(_recall, truth, only))
                )
        for only in (False, True):
            ask = partial(
                la.match_batch,
                files["runs"],
                made.queries,
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


def _recall(truth: la.Matches, first: bool, answer: la.Matches) -> Quality:
    expected = truth.columns()["query"] << 32 | truth.ids
    found = answer.columns()["query"] << 32 | answer.ids
    if not np.isin(found, expected).all():
        raise WrongAnswerError("a match was found that is none")
    if first:
        return {"recall": len(found) / len(np.unique(expected >> 32))}
    return {"recall": len(found) / len(expected)}
