"""tune: find the fastest search that is good enough for a collection."""

from __future__ import annotations

from typing import SupportsFloat, SupportsIndex

from numpy.typing import ArrayLike

from lookalike.advice.evaluation import (
    Measurement,
    Questions,
    measure_index,
    measure_scan,
    setting_pairs,
)
from lookalike.advice.predictions import cluster_bytes
from lookalike.checks import share, thread_count, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.clusters.groups import group_count
from lookalike.indexes.slices.lists import MOST_CHOSEN_BITS, list_bytes, slice_width
from lookalike.indexes.tuning import Measure, Tuning
from lookalike.progress import Progress, listener, shows_progress
from lookalike.signatures import as_signatures

WIDTHS_AROUND = 3  # number of narrower and wider slice widths to try
MOST_EXPAND = 4


@shows_progress
def tune(
    signatures: ArrayLike,
    k: SupportsIndex = 10,
    target_cdr: SupportsFloat | None = None,
    *,
    target_recall: SupportsFloat | None = None,
    queries: ArrayLike | None = None,
    sample: SupportsIndex = 100,
    threads: SupportsIndex | None = 1,
    memory: SupportsIndex | None = None,
    seed: SupportsIndex = 0,
    progress: Progress | bool | None = None,
) -> Tuning[Measurement]:
    """Find the fastest slice or cluster index that reaches a CDR or a recall.

    Builds a `SliceIndex` for each width within 3 bits of the default, and a `ClusterIndex` with the
    default number of groups, half and twice as many. Each reads more lists or groups until it
    reaches the target. The choice is the fastest single query that reaches the target by more than
    the sampling error. Times, and so the choice, depend on the machine.

    Args:
        signatures: The collection.
        k: Number of neighbors (default: 10).
        target_cdr: Cumulative distance ratio to reach (default: 0.95).
        target_recall: Recall to reach, in place of a CDR.
        queries: Signatures to search for (default: `sample` signatures, each among the others).
        sample: Number of sampled queries (default: 100).
        threads: Number of threads (default: 1); None means all cores.
        memory: Maximum size of the index in bytes (default: no limit).
        seed: Random seed for the sample (default: 0).
        progress: Called with "tune" and the share of indexes measured; True shows a bar.

    Returns:
        All options and the choice. `build` builds it.
    """
    rows = as_signatures(signatures)
    if target_cdr is not None and target_recall is not None:
        raise ArgumentError("target_cdr and target_recall: both given; expected one of them")
    measure: Measure = "cdr" if target_recall is None else "recall"
    if target_recall is not None:
        target = share("target_recall", target_recall)
    else:
        target = share("target_cdr", 0.95 if target_cdr is None else target_cdr)
    count, bits, workers = rows.shape[0], 8 * rows.shape[1], thread_count(threads)
    budget = None if memory is None else whole_number("memory", memory, at_least=0)
    tell = listener(progress)
    questions = Questions.of(rows, queries, k=k, sample=sample, seed=seed, threads=workers)
    numbers = _cluster_numbers(count, bits, budget)
    widths = _widths(count, bits, budget, or_none=bool(numbers))
    measured: list[Measurement] = []
    for done, width in enumerate(widths):
        tell("tune", done / (len(widths) + len(numbers)))
        pairs = setting_pairs(range(min(MOST_EXPAND, width) + 1), "all")
        lists = [{"expand": expand, "admit": admit} for expand, admit in pairs]
        enough = MOST_EXPAND
        for row in measure_index(questions, rows, "slices", {"slice_bits": width}, lists):
            measured.append(row)
            if row.surely(measure) >= target:
                enough = row.settings["expand"]
            if row.settings["expand"] == row.settings["admit"] == enough:
                break  # a larger expand reads more, so takes longer
    for done, number in enumerate(numbers, len(widths)):
        tell("tune", done / (len(widths) + len(numbers)))
        groups = ({"probe": 1 << power} for power in range(64))
        for row in measure_index(questions, rows, "clusters", {"clusters": number}, groups):
            measured.append(row)
            if row.surely(measure) >= target:
                break
    scan = measure_scan(questions)
    good = [scan, *(row for row in measured if row.surely(measure) >= target)]
    chosen = min(good, key=lambda row: row.milliseconds)
    return Tuning(
        target=target,
        measure=measure,
        k=questions.k,
        count=count,
        bits=bits,
        memory=budget,
        threads=workers,
        sampled=count,
        tried_rows=count,
        queries=len(questions.queries),
        chosen=chosen,
        options=(scan, *measured),
    )


def _widths(count: int, bits: int, memory: int | None, *, or_none: bool) -> list[int]:
    """Return slice widths around the default that fit in memory, or else the smallest.

    If that does not fit: an empty list with `or_none`, or an error.
    """
    widest = min(MOST_CHOSEN_BITS, bits)
    usual = slice_width(count, bits)
    around = range(max(2, usual - WIDTHS_AROUND), min(widest, usual + WIDTHS_AROUND) + 1)
    if memory is None:
        return list(around)
    fitting = [width for width in around if list_bytes(count, bits, width) <= memory]
    if fitting:
        return fitting
    smallest = min(range(1, widest + 1), key=lambda width: list_bytes(count, bits, width))
    least = list_bytes(count, bits, smallest)
    if least > memory and or_none:
        return []
    if least > memory:
        raise ArgumentError(
            Said("memory"),
            f" is {memory} bytes; the lists of {count} signatures of {bits} bits take at least "
            f"{least}. Allow that, or use ",
            Said("ScanIndex", "an index of --type scan"),
        )
    return [smallest]


def _cluster_numbers(count: int, bits: int, memory: int | None) -> list[int]:
    """Return numbers of groups that fit: the default, half and twice of it."""
    usual = group_count(count)
    if usual < 2:
        return []
    fits = (
        number
        for number in (usual // 2, usual, 2 * usual)
        if memory is None or cluster_bytes(count, bits // 8, number) <= memory
    )
    return list(fits)
