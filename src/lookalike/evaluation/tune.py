"""tune: the quickest search that is good enough for this collection."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, SupportsFloat, SupportsIndex, TypedDict

from numpy.typing import ArrayLike

from lookalike.checks import callback, share, thread_count, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.evaluation.grid import Progress, setting_pairs
from lookalike.evaluation.measurement import (
    Measurement,
    measure_clusters,
    measure_scan,
    measure_slices,
)
from lookalike.evaluation.questions import Questions
from lookalike.evaluation.tables import measurement_table
from lookalike.indexes import ClusterIndex, ScanIndex, SliceIndex
from lookalike.indexes.clusters.groups import group_count
from lookalike.indexes.slices.lists import MOST_SLICE_BITS, list_bytes, slice_width
from lookalike.planning.clusters import cluster_bytes
from lookalike.signatures import as_signatures

__all__ = ["Tuning", "tune"]

WIDTHS_AROUND = 3
"""So many narrower and wider slices than the index's own choice are tried."""
MOST_EXPAND = 4
_NAMES = {"cdr": "CDR", "recall": "recall"}


class SearchSettings(TypedDict, total=False):
    """How far a search goes, by the names of its arguments."""

    expand: int
    admit: int
    probe: int


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was measured, and what came out best. `str` is a table, the choice marked, and why."""

    count: int
    bits: int
    k: int
    measure: Literal["cdr", "recall"]
    """What the target is for."""
    target: float
    queries: int
    """How many signatures were looked for."""
    error: float
    """How far the measure may be off for other queries of the same sort, 19 times out of 20."""
    chosen: Measurement
    """What `build` builds; slices or groups whose measure is at least the target and the error
    above it, or the scan, which is exact."""
    rows: tuple[Measurement, ...]
    """Everything measured; the first row is the exhaustive scan."""

    @property
    def slice_bits(self) -> int | None:
        """The chosen slice width; None if a scan or groups were chosen."""
        return self.chosen.slice_bits

    @property
    def clusters(self) -> int | None:
        """How many groups `build` asks for; None if a scan or slices were chosen."""
        return self.chosen.asked_clusters

    @property
    def search_settings(self) -> SearchSettings:
        """What to pass on when searching: `index.search(queries, k, **search_settings)`."""
        if self.chosen.probe is not None:
            return {"probe": self.chosen.probe}
        if self.chosen.expand is None or self.chosen.admit is None:
            return {}
        return {"expand": self.chosen.expand, "admit": self.chosen.admit}

    @property
    def reason(self) -> str:
        """Why this was chosen, in a few lines."""
        chosen, scan = self.chosen, self.rows[0]
        name, tried = f"{_NAMES[self.measure]}@{self.k}", len(self.rows) - 1
        if chosen is scan:
            good = [row for row in self.rows[1:] if _value(row, self.measure) >= self.target]
            why = f"None of {tried} settings reaches a {name} of {self.target:g}"
            if good:
                why = f"Nothing that surely reaches a {name} of {self.target:g} is quicker"
            return f"{why}: the scan is exact, in {scan.milliseconds:.3f} ms a query."
        times = scan.milliseconds / chosen.milliseconds
        what = f"{chosen.slice_bits}-bit slices, expand {chosen.expand}, admit {chosen.admit}"
        if chosen.clusters is not None:
            what = f"{chosen.clusters} groups, {chosen.probe} of them read"
        return (
            f"Chosen of {tried}, the quickest that reaches {self.target:g}:\n"
            f"{what}: {name} {_value(chosen, self.measure):.3f} ± {self.error:.3f} in "
            f"{chosen.milliseconds:.3f} ms a query.\nThe exhaustive scan takes "
            f"{scan.milliseconds:.3f} ms, {times:.1f} times as long."
        )

    def __str__(self) -> str:
        return f"{measurement_table(self.rows, self.k, marked=self.chosen)}\n\n{self.reason}"

    def build(
        self,
        signatures: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> SliceIndex | ClusterIndex | ScanIndex:
        """Build what was chosen."""
        if self.clusters is not None:
            rows = as_signatures(signatures)
            number = min(self.clusters, max(1, len(rows)))
            return ClusterIndex(rows, number, ids, threads=threads)
        if self.slice_bits is None:
            return ScanIndex(signatures, ids)
        return SliceIndex(signatures, self.slice_bits, ids, threads=threads)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain values, fit for JSON."""
        return {**asdict(self), "search_settings": self.search_settings, "reason": self.reason}


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
    progress: Progress | None = None,
) -> Tuning:
    """Find the quickest slices, or groups, and how many to read, to reach a CDR or a recall.

    A CDR of 0.95 unless told, or a recall. Builds a `SliceIndex` for each width within 3 bits of
    the index's own choice whose lists fit into `memory` bytes, and a `ClusterIndex` for half and
    twice its own choice of groups, and for that, if it fits. With each it reads more and more
    lists, `expand` up to 4, or groups, until the target is reached, and compares `sample`
    signatures' neighbours with those of an exhaustive scan. The choice is the one with the shortest
    time for a single query, of those that reach the target by more than the sample may be wrong; a
    scan is one of them. What is measured and how good it is depends on data and seed alone; times,
    and with them the choice, on the machine.

    Costs up to ten builds, three scans of the sample, and some dozens of searches of it.
    """
    rows = as_signatures(signatures)
    if target_cdr is not None and target_recall is not None:
        raise ArgumentError("target_cdr and target_recall: both given; expected one of them")
    measure: Literal["cdr", "recall"] = "cdr" if target_recall is None else "recall"
    if target_recall is not None:
        target = share("target_recall", target_recall)
    else:
        target = share("target_cdr", 0.95 if target_cdr is None else target_cdr)
    count, bits, workers = rows.shape[0], 8 * rows.shape[1], thread_count(threads)
    budget = None if memory is None else whole_number("memory", memory, at_least=0)
    hear = callback("progress", progress)
    questions = Questions.of(rows, queries, k=k, sample=sample, seed=seed, threads=workers)
    numbers = _cluster_numbers(count, bits, budget)
    widths = _widths(count, bits, budget, or_none=bool(numbers))
    measured: list[Measurement] = []
    for done, width in enumerate(widths):
        if hear:
            hear(done, len(widths) + len(numbers))
        settings = setting_pairs(range(min(MOST_EXPAND, width) + 1), "all")
        enough = MOST_EXPAND
        for row in measure_slices(questions, rows, width, settings):
            measured.append(row)
            if _surely(row, measure) >= target:
                enough = row.expand or 0
            if row.expand == row.admit == enough:  # a larger expand reads more, so takes longer
                break
    for done, number in enumerate(numbers, len(widths)):
        if hear:
            hear(done, len(widths) + len(numbers))
        for row in measure_clusters(questions, rows, number, (1 << power for power in range(64))):
            measured.append(row)
            if _surely(row, measure) >= target:
                break
    scan = measure_scan(questions, count, bits)
    good = [scan, *(row for row in measured if _surely(row, measure) >= target)]
    chosen = min(good, key=lambda row: row.milliseconds)
    return Tuning(
        count,
        bits,
        questions.k,
        measure,
        target,
        len(questions.queries),
        _error(chosen, measure),
        chosen,
        (scan, *measured),
    )


def _value(row: Measurement, measure: Literal["cdr", "recall"]) -> float:
    return row.cdr if measure == "cdr" else row.recall


def _error(row: Measurement, measure: Literal["cdr", "recall"]) -> float:
    return row.cdr_error if measure == "cdr" else row.recall_error


def _surely(row: Measurement, measure: Literal["cdr", "recall"]) -> float:
    """Return what is reached at least, whatever other queries there are."""
    return _value(row, measure) - _error(row, measure)


def _widths(count: int, bits: int, memory: int | None, *, or_none: bool) -> list[int]:
    """Return the slice widths to try: those around the index's own choice that fit in memory.

    If none of them does, the one that takes least; where that does not either, an error `or_none`.
    """
    widest = min(MOST_SLICE_BITS, bits)
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
            f" is {memory} bytes; the lists of {count} signatures of {bits} bits take at "
            f"least {least}, with slices of {smallest} bits: allow that, or use ",
            Said("ScanIndex", "an index of --kind scan"),
        )
    return [smallest]


def _cluster_numbers(count: int, bits: int, memory: int | None) -> list[int]:
    """Return the numbers of groups to try: the index's own choice, half and twice of it.

    Without those of an index that does not fit; it has copies of the signatures.
    """
    usual = group_count(count)
    if usual < 2:
        return []
    fits = (
        number
        for number in (usual // 2, usual, 2 * usual)
        if memory is None or cluster_bytes(count, bits // 8, number) <= memory
    )
    return list(fits)
