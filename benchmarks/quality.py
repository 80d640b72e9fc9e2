"""Cases whose answers need not be equal: how good they are stands beside every time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import Nearest
from benchmarks.harness import Contender, Effort, Measurement, Result, Verdict, measure
from benchmarks.report import table
from lookalike.advice.measures import cumulative_distance_ratio, nearest_hit_rate

__all__ = [
    "Entry",
    "QualityResult",
    "at_least",
    "at_most",
    "nearest_quality",
    "quality_table",
    "ratio_informs",
    "ratio_verdict",
    "run_entries",
]

Quality = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Entry:
    """One contender: how it is asked, and what it took to build what is asked."""

    name: str
    run: Callable[[], Any]
    queries: int
    """How many it is asked; its time is scaled to those of the case."""
    judge: Callable[[Any], Quality]
    """Measures an answer, or raises `WrongAnswerError`."""
    build_seconds: float | None = None
    bytes_per_signature: float | None = None


@dataclass(frozen=True)
class QualityResult(Result):
    """What came out, with what a time means little without."""

    queries: int
    """What times are divided by."""
    build_seconds: Mapping[str, float | None]
    bytes_per_signature: Mapping[str, float | None]
    quality: Mapping[str, Quality]
    notes: Sequence[str] = ()
    unit: str = "query"

    def times(self) -> dict[str, Measurement]:
        """Return measurements by contender."""
        return {each.name: each for each in self.measurements}


def run_entries(
    name: str, title: str, entries: Sequence[Entry], queries: int, effort: Effort, **more: Any
) -> QualityResult:
    """Time all by turns, and judge the last answer of each; verdicts and notes come later."""
    answers: dict[str, Any] = {}

    def keeping(entry: Entry) -> Callable[[], None]:
        def run() -> None:
            answers[entry.name] = entry.run()

        return run

    contenders = [
        Contender(entry.name, keeping(entry), scale=queries / entry.queries) for entry in entries
    ]
    measured = measure(contenders, effort)
    return QualityResult(
        name,
        title,
        measured,
        [],
        queries,
        {entry.name: entry.build_seconds for entry in entries},
        {entry.name: entry.bytes_per_signature for entry in entries},
        {entry.name: entry.judge(answers[entry.name]) for entry in entries},
        **more,
    )


def nearest_quality(true_distances: NDArray[np.int32]) -> Callable[[Nearest], Quality]:
    """Return what measures answers that cover the first queries, or all."""

    def judge(answer: Nearest) -> Quality:
        truth = true_distances[: len(answer.distances)]
        return {
            f"CDR@{truth.shape[1]}": float(
                cumulative_distance_ratio(answer.distances, truth).mean()
            ),
            "hit rate": nearest_hit_rate(answer.distances, truth),
        }

    return judge


def ratio_verdict(
    title: str, times: Mapping[str, Measurement], slower: str, faster: str, target: float
) -> Verdict:
    """Judge how many times as long the slower one takes."""
    ratio = times[slower].times_as_long_as(times[faster])
    return at_least(title, ratio, target, " x", 1 if target > 1 else 2)


def ratio_informs(
    title: str, times: Mapping[str, Measurement], slower: str, faster: str
) -> Verdict:
    """Tell how many times as long a rival takes, where something else is judged."""
    ratio = times[slower].times_as_long_as(times[faster])
    return Verdict(title, "informs", f"{ratio:,.1f} x", None)


def at_least(title: str, value: float, target: float, unit: str = "", digits: int = 1) -> Verdict:
    """Judge a figure that has to be reached."""
    return Verdict(
        title, f">= {target:g}{unit}", f"{value:,.{digits}f}{unit}", bool(value >= target)
    )


def at_most(title: str, value: float, target: float, unit: str = "", digits: int = 1) -> Verdict:
    """Judge a figure that must not be exceeded."""
    return Verdict(
        title,
        f"<= {target:,.{digits}f}{unit}",
        f"{value:,.{digits}f}{unit}",
        bool(value <= target),
    )


COUNTED = ("kept", "pairs", "extra")
"""Qualities that are whole numbers."""


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:,.{1 if seconds >= 1e-5 else 3}f}"


def _digits(column: str) -> int:
    return 0 if column in COUNTED else 4


def quality_table(result: QualityResult) -> str:
    """Return times of one case beside cost and quality, ours first; notes below."""
    ours = result.measurements[0]
    columns = list(dict.fromkeys(name for each in result.quality.values() for name in each))
    costs = {"build s": (result.build_seconds, 2), "bytes/sig": (result.bytes_per_signature, 0)}
    costs = {
        name: cost for name, cost in costs.items() if any(v is not None for v in cost[0].values())
    }

    def plain(value: float | None, digits: int) -> str:
        return "-" if value is None else f"{value:,.{digits}f}"

    rows = [
        (
            f"  {each.name}" + (f" (time of 1/{each.scale:g})" if each.scale != 1 else ""),
            _microseconds(each.best / result.queries),
            _microseconds(each.median / result.queries),
            str(each.runs),
            f"{each.times_as_long_as(ours):.2f}",
            *(plain(values[each.name], digits) for values, digits in costs.values()),
            *(plain(result.quality[each.name].get(column), _digits(column)) for column in columns),
        )
        for each in result.measurements
    ]
    heading = (
        "  contender",
        f"µs a {result.unit}",
        "median",
        "runs",
        "x first",
        *costs,
        *columns,
    )
    lines = [f"{result.name}: {result.title}", table(heading, rows)]
    return "\n".join(lines + [f"  {note}" for note in result.notes])
