"""Cases whose figure is a speed: so many documents, so many bytes, a second.

Signatures of different makers cannot be compared bit by bit, as search results can. What can be
compared is what they are for: how similar they say that documents are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter, process_time

from benchmarks.harness import (
    Contender,
    Effort,
    Gate,
    Measurement,
    Result,
    Verdict,
    WrongAnswerError,
    measure,
)
from benchmarks.report import table

__all__ = ["RateGate", "ThroughputCase", "ThroughputResult", "throughput_table"]

TOLERANCE = 0.05
"""How far mean similarities may be apart. 200 pairs make them exact to 0.003 for MinHash. With 64
bits of SimHash it is 0.01, and more pairs do not help: the hashes of a few frequent words have a
say in every document."""


@dataclass(frozen=True)
class RateGate:
    """A number of things a second that must be reached, by the best time."""

    title: str
    contender: str
    target: float

    def judge(self, measured: Mapping[str, Measurement], count: int) -> Verdict:
        """Compare the speed measured with the target."""
        rate = count / measured[self.contender].best
        return Verdict(
            self.title, f">= {self.target:,.0f} /s", f"{rate:,.0f} /s", rate >= self.target
        )


@dataclass(frozen=True)
class ThroughputResult(Result):
    """What came out, with what a speed is made from."""

    count: int
    size: int
    """Bytes."""
    floor: str | None
    """The contender that only reads, which nobody can be faster than."""
    cores: Mapping[str, float]
    """Processor time over time, of a run before the timed ones: whether one thread was one."""


@dataclass(frozen=True)
class ThroughputCase:
    """One way to sign one collection. The first contender is ours."""

    name: str
    title: str
    contenders: Sequence[Contender]
    effort: Effort
    count: int
    size: int
    floor: str | None = None
    rate_gates: Sequence[RateGate] = ()
    gates: Sequence[Gate] = ()
    similarities: Mapping[str, Callable[[], float]] = field(default_factory=dict)
    """By contender: the mean similarity that its signatures find; they must agree with ours."""

    def run(self) -> ThroughputResult:
        """Check what is found, then time all contenders and judge the gates."""
        self._check()
        cores = {contender.name: _cores_used(contender) for contender in self.contenders}
        measured = measure(self.contenders, self.effort)
        by_name = {each.name: each for each in measured}
        verdicts = [gate.judge(by_name, self.count) for gate in self.rate_gates]
        verdicts += [gate.judge(by_name) for gate in self.gates]
        return ThroughputResult(
            self.name, self.title, measured, verdicts, self.count, self.size, self.floor, cores
        )

    def _check(self) -> None:
        found = {name: similarity() for name, similarity in self.similarities.items()}
        if not found:
            return
        expected = next(iter(found.values()))
        for name, similarity in found.items():
            if not abs(similarity - expected) <= TOLERANCE:
                raise WrongAnswerError(
                    f"{self.name}: {name} finds a mean similarity of {similarity:.3f}; "
                    f"expected {expected:.3f}, within {TOLERANCE}"
                )


def throughput_table(result: ThroughputResult) -> str:
    """Return times and speeds of one case, ours first; a scaled time is marked."""
    ours = result.measurements[0]
    floor = next((each for each in result.measurements if each.name == result.floor), None)
    rows = [
        (
            f"  {each.name}" + (f" (time of 1/{each.scale:g})" if each.scale != 1 else ""),
            f"{1e3 * each.best:.1f}",
            f"{1e3 * each.median:.1f}",
            str(each.runs),
            f"{result.count / each.best:,.0f}",
            f"{result.size / each.best / 1e6:,.1f}",
            f"{each.times_as_long_as(floor):.2f}" if floor else "-",
            f"{each.times_as_long_as(ours):.2f}",
            f"{result.cores[each.name]:.2f}",
        )
        for each in result.measurements
    ]
    heading = (
        "  contender",
        "best ms",
        "median ms",
        "runs",
        "per second",
        "MB/s",
        "x reading",
        "x ours",
        "cores",
    )
    return f"{result.name}: {result.title}\n{table(heading, rows)}"


def _cores_used(contender: Contender) -> float:
    """Run once, which also warms up, and return how many cores were busy on average."""
    start, start_processor = perf_counter(), process_time()
    contender.run()
    return (process_time() - start_processor) / (perf_counter() - start)
