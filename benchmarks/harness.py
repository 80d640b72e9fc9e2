"""Timing rivals fairly on a machine that may have other work to do."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time

from benchmarks.answers import difference

__all__ = [
    "Case",
    "Contender",
    "Effort",
    "Gate",
    "Measurement",
    "Result",
    "Verdict",
    "WrongAnswerError",
    "measure",
    "processor_time",
]

SLICE_SECONDS = 0.02


class WrongAnswerError(Exception):
    """A rival and lookalike disagree: whatever was timed, it was not the same work."""


@dataclass(frozen=True)
class Contender:
    """Something to time."""

    name: str
    run: Callable[[], object]
    scale: float = 1.0
    """What to multiply the time with, if only a part of the work is done."""
    is_rival: bool = True
    """Whether it does the same work and must give the same answer; else it is a yardstick."""


@dataclass(frozen=True)
class Effort:
    """How long to time: rounds at most, and seconds per contender after which it drops out.

    Every contender runs in the first two rounds, however slow it is.
    """

    rounds: int
    seconds: float


@dataclass(frozen=True)
class Measurement:
    """How long one contender took, in seconds, scaled to the whole work."""

    name: str
    best: float
    median: float
    runs: int
    turns: Sequence[float]
    """The best time of each round that it took part in, which are always the first ones."""
    scale: float
    is_rival: bool

    def times_as_long_as(self, other: Measurement) -> float:
        """Return the ratio of the best times, of the rounds that both took part in.

        A slow contender drops out early. If the other could choose its best time from more rounds,
        it would win whenever the machine gets quieter later.
        """
        common = min(len(self.turns), len(other.turns))
        return min(self.turns[:common]) / min(other.turns[:common])


@dataclass(frozen=True)
class Gate:
    """A ratio of two best times of one case that must reach a target."""

    title: str
    slower: str
    faster: str
    target: float | None
    """None if it only informs."""

    def judge(self, measured: Mapping[str, Measurement]) -> Verdict:
        """Compare the ratio measured with the target."""
        ratio = measured[self.slower].times_as_long_as(measured[self.faster])
        found = f"{ratio:.2f} x"
        if self.target is None:
            return Verdict(self.title, "informs", found, None)
        return Verdict(self.title, f">= {self.target:g} x", found, ratio >= self.target)


@dataclass(frozen=True)
class Verdict:
    """What came out at a gate, in words."""

    title: str
    target: str
    measured: str
    passed: bool | None
    """None if it was not measured at the size that the target is for."""


@dataclass(frozen=True)
class Result:
    """What came out of a case, without the collection and the indexes it was measured on."""

    name: str
    title: str
    measurements: Sequence[Measurement]
    """Ours first."""
    verdicts: Sequence[Verdict]


@dataclass(frozen=True)
class Case:
    """One search of one collection. The first contender is ours, the others are its rivals."""

    name: str
    title: str
    contenders: Sequence[Contender]
    effort: Effort
    gates: Sequence[Gate] = ()

    def run(self) -> Result:
        """Check all answers, then time all contenders and judge the gates."""
        self._check()
        measured = measure(self.contenders, self.effort)
        by_name = {each.name: each for each in measured}
        return Result(self.name, self.title, measured, [gate.judge(by_name) for gate in self.gates])

    def _check(self) -> None:
        """Raise `WrongAnswerError` unless all agree. This also warms everything up."""
        expected = self.contenders[0].run()
        for contender in self.contenders[1:]:
            found = contender.run()
            problem = difference(expected, found) if contender.is_rival else None
            if problem:
                raise WrongAnswerError(f"{self.name}: {contender.name} disagrees: {problem}")


def measure(contenders: Sequence[Contender], effort: Effort) -> list[Measurement]:
    """Time contenders by turns, so that a disturbance meets all of them and not one.

    The direction changes every round, so that nobody always follows the same rival. A turn lasts
    at least 20 ms, many runs if they are short. Best times are what the code can do; medians tell
    how much the machine was disturbed.
    """
    turns: dict[str, list[list[float]]] = {contender.name: [] for contender in contenders}
    for number in range(effort.rounds):
        for contender in contenders if number % 2 == 0 else reversed(contenders):
            so_far = turns[contender.name]
            if number < 2 or sum(map(sum, so_far)) < effort.seconds:
                so_far.append(_one_turn(contender.run))
    return [_summarise(contender, turns[contender.name]) for contender in contenders]


def processor_time(run: Callable[[], object], runs: int = 4) -> float:
    """Return the least of some runs, in seconds of all threads: little disturbed by others on the
    machine.
    """
    times = []
    for _ in range(runs):
        start = process_time()
        run()
        times.append(process_time() - start)
    return min(times)


def _one_turn(run: Callable[[], object]) -> list[float]:
    times: list[float] = []
    while sum(times) < SLICE_SECONDS:
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return times


def _summarise(contender: Contender, turns: Sequence[Sequence[float]]) -> Measurement:
    times = [contender.scale * time for turn in turns for time in turn]
    return Measurement(
        name=contender.name,
        best=min(times),
        median=statistics.median(times),
        runs=len(times),
        turns=[contender.scale * min(turn) for turn in turns],
        scale=contender.scale,
        is_rival=contender.is_rival,
    )
