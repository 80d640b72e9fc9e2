"""A grid of settings, each measured against the exhaustive scan on the user's own signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, SupportsIndex

from numpy.typing import ArrayLike

from lookalike.checks import callback, thread_count, whole_number, whole_numbers
from lookalike.errors import ArgumentError, Said
from lookalike.evaluation.measurement import (
    Measurement,
    measure_clusters,
    measure_prefixes,
    measure_scan,
    measure_slices,
    near_radius,
)
from lookalike.evaluation.questions import Questions
from lookalike.evaluation.tables import measurement_table
from lookalike.indexes.slices.lists import MOST_SLICE_BITS, slice_width
from lookalike.indexes.slices.search import rerank_count
from lookalike.indexes.tables.prefixes import MOST_ORDERS
from lookalike.shown import brief
from lookalike.signatures import as_signatures

__all__ = ["Evaluation", "Progress", "evaluate", "setting_pairs"]

Progress = Callable[[int, int], None]
"""Is told how many of how many steps are done."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Measurements of one collection; the first row is the exhaustive scan. `str` is a table."""

    count: int
    """Signatures in the collection."""
    bits: int
    queries: int
    k: int
    radius: int
    """Up to how many differing bits a signature counts as a near-duplicate."""
    threads: int
    rows: tuple[Measurement, ...]

    @property
    def scan(self) -> Measurement:
        """The exhaustive scan."""
        return self.rows[0]

    def __str__(self) -> str:
        return measurement_table(self.rows, self.k)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain values, fit for JSON."""
        return asdict(self)


def evaluate(
    signatures: ArrayLike,
    queries: ArrayLike | None = None,
    *,
    k: SupportsIndex = 10,
    sample: SupportsIndex = 200,
    slice_bits: Iterable[SupportsIndex] | None = None,
    expand: Iterable[SupportsIndex] = (0, 1, 2, 3),
    admit: Iterable[SupportsIndex] | Literal["all"] | None = None,
    seed: SupportsIndex = 0,
    threads: SupportsIndex | None = 1,
    progress: Progress | None = None,
    rerank: Iterable[SupportsIndex] | None = None,
    orders: Iterable[SupportsIndex] | None = None,
    clusters: Iterable[SupportsIndex] | None = None,
    probe: Iterable[SupportsIndex] | None = None,
) -> Evaluation:
    """Measure `SliceIndex` with every combination of settings against `ScanIndex`.

    Without `queries`, `sample` signatures of the collection are looked for among the others.
    `slice_bits` are the widths to build, the index's own choice unless told. `admit` is `expand`
    unless told; "all" tries each from 0 to `expand`, and larger values than `expand` mean it.
    `rerank` are numbers of candidates that get their true distance, each at least k, or 0 for the
    best by score alone. For each number of `orders` a `PrefixIndex` is measured, too, and for each
    number of `clusters` a `ClusterIndex`, with each number of groups to `probe`.

    Costs three scans of all queries, one build for each width, and two searches of all queries
    for each setting: all at once, and one by one. One thread unless told; None means all cores.
    """
    rows = as_signatures(signatures)
    count, bits = rows.shape[0], 8 * rows.shape[1]
    pairs = setting_pairs(expand, admit)
    hear = callback("progress", progress)
    workers = thread_count(threads)
    chosen = [slice_width(count, bits)] if slice_bits is None else slice_bits
    widths = whole_numbers("slice_bits", chosen, at_least=1, at_most=MOST_SLICE_BITS)
    wanted = whole_number("k", k, at_least=1)
    best: list[int | None] = [None]
    if rerank is not None:
        numbers = whole_numbers("rerank", rerank, at_least=0)
        best = [rerank_count(number, wanted) for number in numbers]
    permuted: Sequence[int] = ()
    if orders is not None:
        permuted = whole_numbers("orders", orders, at_least=1, at_most=MOST_ORDERS)
    grouped: Sequence[int] = ()
    if clusters is not None:
        grouped = whole_numbers("clusters", clusters, at_least=1, at_most=max(1, count))
    read: list[int | None] = [None]
    if probe is not None:
        if not grouped:
            raise ArgumentError(
                Said("probe"), " goes with ", Said("clusters"), ", how many groups to make"
            )
        read = [*whole_numbers("probe", probe, at_least=1)]
    questions = Questions.of(rows, queries, k=wanted, sample=sample, seed=seed, threads=workers)
    measured = [measure_scan(questions, count, bits)]
    total = len(widths) * len(pairs) * len(best) + len(permuted) + len(grouped) * len(read)

    def one_after_the_other() -> Iterator[Measurement]:
        for width in widths:
            yield from measure_slices(questions, rows, width, pairs, best)
        for number in permuted:
            yield measure_prefixes(questions, rows, number)
        for number in grouped:
            yield from measure_clusters(questions, rows, number, read)

    for measurement in one_after_the_other():
        measured.append(measurement)
        if hear:
            hear(len(measured) - 1, total)
    return Evaluation(
        count,
        bits,
        len(questions.queries),
        questions.k,
        near_radius(bits),
        workers,
        tuple(measured),
    )


def setting_pairs(
    expand: Iterable[SupportsIndex], admit: Iterable[SupportsIndex] | Literal["all"] | None
) -> Sequence[tuple[int, int]]:
    """Return every (expand, admit) with admit at most expand, in order, each once."""
    wide = whole_numbers("expand", expand, at_least=0, at_most=MOST_SLICE_BITS)
    if admit is None:
        return [(most, most) for most in wide]
    if isinstance(admit, str):
        if admit != "all":
            raise ArgumentError(
                Said("admit"), f" is {brief(admit)}; expected numbers, 'all' or None"
            )
        return [(most, narrow) for most in wide for narrow in range(most + 1)]
    narrow_ones = whole_numbers("admit", admit, at_least=0)
    return [(most, n) for most in wide for n in sorted({min(one, most) for one in narrow_ones})]
