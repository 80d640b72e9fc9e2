"""Whether `la.plan` predicts what searching really takes: every case, predicted and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from benchmarks.harness import Measurement, Result, Verdict
from benchmarks.report import table
from benchmarks.scan.signatures import uniform
from lookalike.advice.machine import MachineCosts, machine_costs
from lookalike.advice.planner import TOGETHER as BATCH
from lookalike.advice.planner import Prediction as Option
from lookalike.advice.planner import Question
from lookalike.advice.predictions import block_options, flip_options, scan_options, slice_options
from lookalike.indexes.tuning import build_option

__all__ = ["CASES", "build_verdict", "prediction_table", "run_planning"]

SEED = 60
FACTOR = 2.0
"""A prediction is good if it is not further off than so many times."""
BUILD_FACTOR, LEAST_BUILD = 3.0, 0.1
"""The same of building, which is judged if it takes at least this many seconds."""
ROUNDS = 5
SECONDS = 0.4


@dataclass(frozen=True)
class Case:
    """One index, as it would be planned, and what it is asked."""

    count: int
    bits: int
    index: str
    radius: int | None = None
    k: int | None = None
    recall: float = 1.0
    parameters: tuple[tuple[str, int], ...] = ()
    """Settings to take in place of the best, so that the model is tried away from it too."""

    @property
    def name(self) -> str:
        """What the case is called on the command line."""
        what = f"within-{self.radius}" if self.k is None else f"nearest-{self.k}"
        size = f"{self.count // 1000}k"
        more = "".join(f"-{name}-{value}" for name, value in self.parameters)
        more += "" if self.recall in (1.0, 0.95) else f"-recall-{self.recall:g}"
        return f"plan-{self.index}-{self.bits}-{what}-{size}{more}"

    @property
    def question(self) -> Question:
        """What would be planned for."""
        return Question(self.count, self.bits, self.radius, self.k, self.recall)


def _width(bits: int) -> tuple[tuple[str, int], ...]:
    return (("slice_bits", bits),)


PLANNED = (
    Case(10_000, 64, "scan", radius=3),
    Case(1_000_000, 64, "scan", radius=3),
    Case(1_000_000, 256, "scan", radius=16),
    Case(1_000_000, 64, "scan", k=10),
    Case(200_000, 1024, "scan", k=10),
    Case(100_000, 64, "slices", radius=3),
    Case(1_000_000, 64, "slices", radius=3),
    Case(1_000_000, 64, "slices", radius=3, parameters=_width(13)),
    Case(1_000_000, 64, "slices", radius=6),
    Case(5_000_000, 64, "slices", radius=3),
    Case(1_000_000, 128, "slices", radius=9),
    Case(200_000, 1024, "slices", radius=50),
    Case(100_000, 1024, "slices", k=10, recall=0.9),
    Case(200_000, 1024, "slices", k=10, recall=0.999, parameters=_width(14)),
    Case(1_000_000, 256, "slices", k=10, recall=0.9),
    Case(100_000, 64, "blocks", radius=3),
    Case(1_000_000, 64, "blocks", radius=3),
    Case(10_000_000, 64, "blocks", radius=3, parameters=(("lead", 1),)),
    Case(10_000_000, 64, "blocks", radius=3, parameters=(("lead", 2),)),
    Case(10_000_000, 64, "blocks", radius=3, parameters=(("lead", 2), ("compressed", 1))),
    Case(1_000_000, 64, "blocks", radius=6),
    Case(1_000_000, 128, "blocks", radius=9),
    Case(100_000, 64, "flips", radius=3),
    Case(1_000_000, 64, "flips", radius=3),
    Case(10_000_000, 64, "flips", radius=3),
    Case(10_000_000, 64, "flips", radius=3, parameters=(("header_bits", 19),)),
    Case(1_000_000, 64, "flips", radius=6),
)

MAKERS: dict[str, Callable[[Question, MachineCosts], Iterator[Option]]] = {
    "slices": slice_options,
    "blocks": block_options,
    "flips": flip_options,
}

CASES = tuple(case.name for case in PLANNED)


@dataclass(frozen=True)
class Prediction(Result):
    """Predicted and measured microseconds a query, and seconds of building."""

    predicted: float
    measured: float
    predicted_build: float
    measured_build: float
    settings: str


def run_planning(names: Sequence[str], *, part: int) -> Iterator[Prediction]:
    """Run cases one after the other, on collections of which only a `part`-th is made."""
    costs = machine_costs(refresh=True)
    for case in PLANNED:
        if case.name in names:
            yield _run(case, case.count // part, costs)


def _run(case: Case, count: int, costs: MachineCosts) -> Prediction:
    question = Question(count, case.bits, case.radius, case.k, case.recall)
    option = _option(case, question, costs)
    generator = np.random.default_rng(SEED)
    rows = uniform(count, case.bits, generator)
    start = process_time()
    index = build_option(option, rows, threads=1)
    built = process_time() - start
    ask = _asker(index, case, option)

    def batch() -> float:
        """Ask queries that no cache has met."""
        queries = uniform(BATCH, case.bits, generator)
        start = process_time()
        ask(queries)
        return process_time() - start

    batch()
    turns = []
    for _ in range(ROUNDS):
        times: list[float] = []
        while sum(times) < SECONDS / ROUNDS:
            times.append(batch())
        turns.append(sum(times) / len(times))
    seconds = median(turns) / BATCH
    predicted = option.microseconds
    factor = max(predicted / (1e6 * seconds), 1e6 * seconds / predicted)
    verdict = Verdict(
        f"{case.name}: predicted / measured, or the inverse",
        f"<= {FACTOR:g} x",
        f"{factor:.2f} x",
        factor <= FACTOR,
    )
    return Prediction(
        case.name,
        f"{count:,} x {case.bits} bits",
        [Measurement(case.index, min(turns) / BATCH, seconds, ROUNDS, turns, 1.0, True)],
        [verdict, build_verdict(case.name, option.build_seconds, built)],
        predicted,
        1e6 * seconds,
        option.build_seconds,
        built,
        ", ".join(f"{n}={v:g}" for n, v in {**option.parameters, **option.settings}.items()),
    )


def _option(case: Case, question: Question, costs: MachineCosts) -> Option:
    """Return the option of this sort that a plan would take, or the one with given settings."""
    if case.index == "scan":
        return next(scan_options(question, costs))
    options: list[Option] = [
        option
        for option in MAKERS[case.index](question, costs)
        if (option.expected if option.recall is None else option.recall) >= question.recall
        and all(option.parameters.get(name) == value for name, value in case.parameters)
    ]
    return min(options, key=lambda option: option.microseconds)


def _asker(index: Any, case: Case, option: Option) -> Callable[[Any], Any]:
    """Return what asks a batch of queries, with the settings that the prediction is for."""
    if case.k is not None:
        return partial(index.search, k=case.k, threads=1, **option.settings)
    return partial(index.within, radius=case.radius, threads=1)


def build_verdict(name: str, predicted: float, measured: float) -> Verdict:
    """Return whether building took what was predicted; shorter ones only inform."""
    factor = max(predicted / measured, measured / predicted) if predicted and measured else 1.0
    return Verdict(
        f"{name}: building, predicted / measured, or the inverse",
        f"<= {BUILD_FACTOR:g} x",
        f"{factor:.2f} x",
        factor <= BUILD_FACTOR if max(predicted, measured) >= LEAST_BUILD else None,
    )


def prediction_table(results: Sequence[Prediction]) -> str:
    """Return a line for each case."""
    rows = [
        (
            each.name,
            each.settings,
            f"{each.predicted:,.2f}",
            f"{each.measured:,.2f}",
            f"{each.predicted / each.measured:.2f}",
            f"{each.predicted_build:.2f}",
            f"{each.measured_build:.2f}",
        )
        for each in results
    ]
    heading = ("case", "settings", "µs predicted", "measured", "ratio", "build predicted", "s")
    return table(heading, rows)
