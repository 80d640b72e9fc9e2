"""How the time of pairs within a wide radius grows with the number of signatures.

SimHash signatures of 128 bits of abstracts and pseudo-documents, and the radius that `lookalike
dedup --method simhash --threshold 0.8` takes. Time is that of the processor, with one thread: what
else the machine does counts little.
"""

from __future__ import annotations

import math
from pathlib import Path
from time import process_time

import numpy as np

import lookalike as la
from benchmarks.harness import Verdict
from benchmarks.quality import at_least, at_most
from benchmarks.report import table
from benchmarks.slices.enlarged import Signatures, enlarged_signatures
from lookalike.dedup.settings import DedupSettings
from lookalike.signatures.methods import Method

__all__ = ["NAME", "growth", "run_wide_pairs"]

NAME = "wide-pairs"
COUNT, HALVINGS = 1_000_000, 2
CHANCE = 0.99
ROUNDS = 3


def run_wide_pairs(folder: Path | None, cache: Path, *, part: int) -> tuple[str, list[Verdict]]:
    """Return a line for each size, and what has to be reached."""
    radius = DedupSettings(method="simhash", threshold=0.8).radius or 0
    signer = Method.of("simhash").signer
    rows = enlarged_signatures(signer, folder, cache, COUNT // part, part=part)
    sizes = [len(rows) >> halvings for halvings in range(HALVINGS, -1, -1)]
    lines, seconds = [], []
    for size in sizes:
        index = la.ScanIndex(rows[:size])
        took = []
        for _ in range(ROUNDS):
            began = process_time()
            pairs = index.pairs(radius, recall=CHANCE, threads=1)
            took.append(process_time() - began)
        seconds.append(min(took))
        steps = "" if len(seconds) == 1 else f"{growth(sizes[-2:], seconds[-2:]):.2f}"
        lines.append([f"{size:,}", f"{seconds[-1]:.2f}", f"{len(pairs):,}", steps])
        print(f"  {size:,}: done", flush=True)
    found = 100 * _share_found(rows[: sizes[0]], radius)
    whole = growth([sizes[0], sizes[-1]], [seconds[0], seconds[-1]])
    title = f"pairs within {radius} of 128 bits, a chance of {CHANCE:.0%} for each, one thread"
    heads = ["signatures", "processor s", "pairs", "grows with n^"]
    what = f"{sizes[0]:,} to {sizes[-1]:,} x 128 bits, radius {radius}"
    verdicts = [
        at_most(f"83a. {what}: time grows with n to the power of", whole, 1.5, digits=2),
        at_least(f"83b. {sizes[0]:,} x 128 bits, radius {radius}: found", found, 99, "%", 2),
    ]
    return f"{title}\n{table(heads, lines)}", verdicts


def growth(sizes: list[int], seconds: list[float]) -> float:
    """Return the power of n with which time grew from the first to the last."""
    return math.log(seconds[-1] / seconds[0]) / math.log(sizes[-1] / sizes[0])


def _share_found(rows: Signatures, radius: int) -> float:
    """Return which share of the pairs is found; those of equal signatures always are."""
    index = la.ScanIndex(np.unique(rows, axis=0))
    return len(index.pairs(radius, recall=CHANCE)) / len(index.pairs(radius))
