"""How search time grows with the collection (the paper's Figure 3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from lookalike.checks import callback, seed_number, thread_count, whole_number, whole_numbers
from lookalike.errors import ArgumentError
from lookalike.evaluation.grid import Progress
from lookalike.evaluation.measurement import Measurement, measure_scan, measure_slices
from lookalike.evaluation.questions import Questions
from lookalike.indexes.slices.lists import slice_width
from lookalike.signatures import as_signatures

__all__ = ["growth"]

SMALLEST = 1000


def growth(
    signatures: ArrayLike,
    *,
    sizes: Iterable[SupportsIndex] | None = None,
    slice_bits: SupportsIndex | None = None,
    k: SupportsIndex = 10,
    expand: SupportsIndex = 3,
    admit: SupportsIndex | None = None,
    sample: SupportsIndex = 100,
    seed: SupportsIndex = 0,
    threads: SupportsIndex | None = 1,
    progress: Progress | None = None,
) -> list[Measurement]:
    """Measure the scan and `SliceIndex` on parts of the collection, each twice the one before.

    Sizes are 1000, 2000, ... unless told. Parts are drawn at random, each holding the smaller
    ones; the queries, at most a tenth of the collection, are in none of them. The slice width is
    the index's own choice, one bit more with each doubling; `slice_bits` keeps it at one value
    instead. Returns two rows for each size, the scan first. Copies each part.
    """
    rows = as_signatures(signatures)
    if len(rows) < 2:
        raise ArgumentError(f"the collection has {len(rows)} signatures; expected at least 2")
    held_out = min(whole_number("sample", sample, at_least=1), max(1, len(rows) // 10))
    left = len(rows) - held_out
    counts = _doublings(left) if sizes is None else _chosen(sizes, left)
    hear = callback("progress", progress)
    wide = whole_number("expand", expand, at_least=0)
    narrow = wide if admit is None else whole_number("admit", admit, at_least=0)
    workers, bits = thread_count(threads), 8 * rows.shape[1]
    order = np.random.default_rng(seed_number(seed)).permutation(len(rows))
    queries, pool = rows[np.sort(order[:held_out])], order[held_out:]
    measured: list[Measurement] = []
    for count in counts:
        part = rows[np.sort(pool[:count])]
        questions = Questions.of(part, queries, k=k, sample=1, seed=0, threads=workers)
        measured.append(measure_scan(questions, count, bits))
        width = slice_width(count, bits)
        if slice_bits is not None:
            width = whole_number("slice_bits", slice_bits, at_least=1)
        measured += measure_slices(questions, part, width, [(wide, min(narrow, wide))])
        if hear:
            hear(len(measured) // 2, len(counts))
    return measured


def _doublings(most: int) -> list[int]:
    """Return 1000, 2000, ... up to `most`; for a smaller collection, all of it."""
    counts = []
    count = SMALLEST
    while count <= most:
        counts.append(count)
        count *= 2
    return counts or [most]


def _chosen(sizes: Iterable[SupportsIndex], most: int) -> list[int]:
    counts = whole_numbers("sizes", sizes, at_least=1)
    if counts[-1] > most:
        raise ArgumentError(
            f"sizes are {counts}; expected whole numbers up to {most}, which is the collection "
            "without the queries"
        )
    return counts
