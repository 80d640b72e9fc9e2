"""Every pair of texts like licenses: `lookalike dedup --exact` beside what signatures propose.

Truth is brute force: the overlap of every document with every other, by products of a matrix whose
features were read in Python. Copies are pairs like all others.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.dedup.large import command
from benchmarks.dedup.licenses import write_licenses
from benchmarks.dedup.truth import feature_matrix
from benchmarks.harness import Effort, Verdict
from benchmarks.importing import compiled_environment
from benchmarks.quality import Entry, QualityResult, at_least, at_most, run_entries
from benchmarks.signing.peers import word_shingles

__all__ = ["NAME", "every_pair", "exact"]

NAME = "dedup-exact"
COUNT = 8_000
THRESHOLDS = (0.5, 0.7, 0.8)
SLOWER = 3.0
_ROWS_AT_A_TIME = 256


def exact(name: str, *, cache: Path, part: int) -> QualityResult:
    """Time whole programs with and without `--exact`; compare their pairs with all there are."""
    count = COUNT // part
    source = write_licenses(cache / f"licenses-{count}.jsonl", count)
    truth = every_pair([json.loads(line)["text"] for line in source.read_text().splitlines()])
    with tempfile.TemporaryDirectory(dir=cache) as place:
        environment = compiled_environment(place)
        target = Path(place) / "unique.jsonl"
        entries = [
            Entry(
                _contender(every, threshold),
                partial(_run, source, target, environment, threshold, every),
                count,
                partial(_judge, source, truth, threshold, every),
            )
            for threshold in THRESHOLDS
            for every in (True, False)
        ]
        result = run_entries(
            name,
            f"{count:,} texts like licenses, "
            + ", ".join(f"{len(truth(each)):,} pairs >= {each}" for each in THRESHOLDS),
            entries,
            count,
            Effort(rounds=3, seconds=30.0),
            unit="document",
        )
    return replace(result, verdicts=_verdicts(result))


def every_pair(texts: list[str], measure: str = "jaccard") -> Callable[[float], NDArray[np.int64]]:
    """Return what gives the pairs at a threshold, as left * count + right, ascending; by Jaccard
    similarity or containment.
    """
    shingles = [np.fromiter(map(hash, word_shingles(text)), np.int64) for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in shingles])])
    matrix = feature_matrix(offsets, np.concatenate(shingles).view(np.uint64), "jaccard")
    columns = import_module("scipy.sparse").csc_matrix(matrix.T)
    sizes, count = np.diff(matrix.indptr).astype(np.float64), len(texts)
    keys, similarities = [], []
    for begin in range(0, count, _ROWS_AT_A_TIME):
        common = (matrix[begin : begin + _ROWS_AT_A_TIME] @ columns).toarray()
        rows = sizes[begin : begin + len(common), None]
        whole = rows + sizes - common if measure == "jaccard" else np.minimum(rows, sizes)
        similarity = common / np.maximum(1, whole)
        left, right = np.nonzero(similarity >= min(THRESHOLDS))
        above = left + begin < right
        keys.append((left[above] + begin) * count + right[above])
        similarities.append(similarity[left[above], right[above]])
    key, similarity = np.concatenate(keys), np.concatenate(similarities)
    return lambda threshold: key[similarity >= threshold]


def _contender(every: bool, threshold: float) -> str:
    return f"lookalike dedup --threshold {threshold}" + (" --exact" if every else "")


def _run(
    source: Path, target: Path, environment: dict[str, str], threshold: float, every: bool
) -> Any:
    more = ["--threshold", str(threshold), *(["--exact"] if every else [])]
    done = subprocess.run(
        command(source, target, *more),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        check=True,
    )
    return json.loads(done.stdout)


def _judge(
    source: Path,
    truth: Callable[[float], NDArray[np.int64]],
    threshold: float,
    every: bool,
    summary: Any,
) -> dict[str, float]:
    result = la.dedup(source, threshold=threshold, exact=every, threads=2)
    count = len(result.keep)
    found, true = result.pairs.left * count + result.pairs.right, truth(threshold)
    right = int(np.isin(found, true).sum())
    return {
        "pairs": len(found),
        "precision": right / max(1, len(found)),
        "recall": right / max(1, len(true)),
        "kept": summary["counts"]["kept"],
    }


def _verdicts(result: QualityResult) -> list[Verdict]:
    times, quality = result.times(), result.quality
    names = {each: (_contender(True, each), _contender(False, each)) for each in THRESHOLDS}
    ratios = [times[every].times_as_long_as(times[some]) for every, some in names.values()]
    found = [quality[every] for every, _ in names.values()]
    return [
        at_least(f"37a. {NAME}: precision", min(each["precision"] for each in found), 1.0, "", 4),
        at_least(f"37b. {NAME}: recall", min(each["recall"] for each in found), 1.0, "", 4),
        at_most(f"37c. {NAME}: --exact / without it", max(ratios), SLOWER, " x", 2),
    ]
