"""tune: the cheapest slices that are good enough for this collection."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, SupportsFloat, SupportsIndex, TypedDict

from numpy.typing import ArrayLike

from lookalike.checks import callback, share, thread_count, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.evaluation.grid import Progress, setting_pairs
from lookalike.evaluation.measurement import Measurement, measure_scan, measure_slices
from lookalike.evaluation.questions import Questions
from lookalike.evaluation.tables import measurement_table
from lookalike.indexes import SliceIndex
from lookalike.indexes.slices.width import MOST_SLICE_BITS, list_bytes, slice_width
from lookalike.signatures import as_signatures

__all__ = ["Tuning", "tune"]

WIDTHS_AROUND = 3
"""So many narrower and wider slices than the index's own choice are tried."""
MOST_EXPAND = 4


class SearchSettings(TypedDict):
    """How far a search goes, by the names of its arguments."""

    expand: int
    admit: int


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was measured, and what came out best. `str` is a table, the choice marked, and why."""

    count: int
    bits: int
    k: int
    target_cdr: float
    queries: int
    """How many signatures were looked for."""
    reached: bool
    """Whether `chosen` reaches the target; if not, it is the best there was."""
    chosen: Measurement
    rows: tuple[Measurement, ...]
    """Everything measured; the first row is the exhaustive scan."""

    @property
    def slice_bits(self) -> int:
        """The chosen slice width."""
        return self.chosen.slice_bits or 1

    @property
    def search_settings(self) -> SearchSettings:
        """What to pass to `SliceIndex.search`: `index.search(queries, k, **search_settings)`."""
        return {"expand": self.chosen.expand or 0, "admit": self.chosen.admit or 0}

    @property
    def reason(self) -> str:
        """Why this was chosen, in a few lines."""
        chosen, scan = self.chosen, self.rows[0]
        name = (
            f"{chosen.slice_bits}-bit slices, expand {chosen.expand}, admit {chosen.admit}: "
            f"CDR@{self.k} {chosen.cdr:.3f} in {chosen.milliseconds:.3f} ms a query"
        )
        if not self.reached:
            return (
                f"Nothing that was tried reaches a CDR@{self.k} of {self.target_cdr:g}. Best:\n"
                f"{name}.\nA search that is to be exact proves every answer; an exhaustive scan "
                f"needs {scan.milliseconds:.3f} ms a query and is always exact."
            )
        tried = len(self.rows) - 1
        why = f"Chosen of {tried}, the quickest that reaches {self.target_cdr:g}:\n{name}.\n"
        if scan.milliseconds <= chosen.milliseconds:
            return (
                f"{why}But the exhaustive scan takes {scan.milliseconds:.3f} ms and is exact: "
                "use it for this collection."
            )
        times = scan.milliseconds / chosen.milliseconds
        return (
            f"{why}The exhaustive scan takes {scan.milliseconds:.3f} ms, {times:.1f} times as long."
        )

    def __str__(self) -> str:
        return f"{measurement_table(self.rows, self.k, marked=self.chosen)}\n\n{self.reason}"

    def build(
        self,
        signatures: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> SliceIndex:
        """Build the index with the chosen slice width."""
        return SliceIndex(signatures, self.slice_bits, ids, threads=threads)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain values, fit for JSON."""
        return {**asdict(self), "search_settings": self.search_settings, "reason": self.reason}


def tune(
    signatures: ArrayLike,
    k: SupportsIndex = 10,
    target_cdr: SupportsFloat = 0.95,
    *,
    queries: ArrayLike | None = None,
    sample: SupportsIndex = 100,
    threads: SupportsIndex | None = 1,
    memory: SupportsIndex | None = None,
    seed: SupportsIndex = 0,
    progress: Progress | None = None,
) -> Tuning:
    """Find the quickest slice width, `expand` and `admit` whose CDR reaches the target.

    Builds an index for each width within 3 bits of the index's own choice whose lists fit into
    `memory` bytes. With each it reads more and more lists, `expand` up to 4, until the target is
    reached, and compares `sample` signatures' neighbours with those of an exhaustive scan. The
    choice is the one with the shortest time for a single query. What is measured and how good it
    is depends on data and seed alone; times, and with them the choice, on the machine.

    Costs up to seven builds, three scans of the sample, and some dozens of searches of it.
    """
    rows = as_signatures(signatures)
    target = share("target_cdr", target_cdr)
    count, bits, workers = rows.shape[0], 8 * rows.shape[1], thread_count(threads)
    budget = None if memory is None else whole_number("memory", memory, at_least=0)
    hear = callback("progress", progress)
    questions = Questions.of(rows, queries, k=k, sample=sample, seed=seed, threads=workers)
    widths = _widths(count, bits, budget)
    measured: list[Measurement] = []
    for done, width in enumerate(widths):
        if hear:
            hear(done, len(widths))
        settings = setting_pairs(range(min(MOST_EXPAND, width) + 1), "all")
        enough = MOST_EXPAND
        for row in measure_slices(questions, rows, width, settings):
            measured.append(row)
            if row.cdr >= target:
                enough = row.expand or 0
            if row.expand == row.admit == enough:  # a larger expand reads more, so takes longer
                break
    good = [row for row in measured if row.cdr >= target]
    if good:
        chosen = min(good, key=lambda row: row.milliseconds)
    else:
        chosen = max(measured, key=lambda row: (row.cdr, -row.milliseconds))
    scan = measure_scan(questions, count, bits)
    return Tuning(
        count,
        bits,
        questions.k,
        target,
        len(questions.queries),
        bool(good),
        chosen,
        (scan, *measured),
    )


def _widths(count: int, bits: int, memory: int | None) -> list[int]:
    """Return the slice widths to try: those around the index's own choice that fit in memory.

    If none of them does, the one that takes least.
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
    if least > memory:
        raise ArgumentError(
            Said("memory"),
            f" is {memory} bytes; the lists of {count} signatures of {bits} bits take at "
            f"least {least}, with slices of {smallest} bits: allow that, or use ",
            Said("ScanIndex", "an index of --kind scan"),
        )
    return [smallest]
