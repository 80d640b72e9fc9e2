"""plan: which index suits a collection and a question, by what each is expected to cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from lookalike.advice.machine import MachineCosts, machine_costs
from lookalike.checks import instance, one_of, share, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.kinds import KINDS
from lookalike.indexes.tables.sorted_table import MOST_ROWS
from lookalike.indexes.tuning import Option, Tuning, keywords
from lookalike.signatures import as_queries, as_signatures
from lookalike.signatures.arrays import MAX_BITS

if TYPE_CHECKING:
    from lookalike.advice.sample import Sample


TOGETHER = 1024
"""Queries that are asked at once, unless there are fewer in all."""
_MOST_COUNT = 2**40
_ABOUT = 1.1  # times that differ by less are the same, and less memory is better
_OFF = 0.1  # how far the recall expected of an option may be off: with less, it is not tried
_MOST_TRIED = 6  # options of one kind that are tried


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be searched for, and in what."""

    count: int
    bits: int
    radius: int | None
    k: int | None
    recall: float
    memory: int | None = None
    queries: int | None = None
    sample: Sample | None = None
    """What signatures are like; None: as if their bits were fair and independent."""
    batch: int | None = None
    """Queries that are matched at a time with a collection on disk."""
    device: str = "cpu"

    @property
    def width(self) -> int:
        """Bytes of a signature."""
        return self.bits // 8

    @property
    def lines(self) -> int:
        """Lines of the cache that a signature takes."""
        return -(-self.width // 64)

    @property
    def signature_bytes(self) -> int:
        """Bytes of all signatures."""
        return self.count * self.width

    @property
    def together(self) -> int:
        """Queries that are asked at once."""
        return min(TOGETHER, self.queries or TOGETHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction(Option):
    """An option, and what it is expected to cost."""

    microseconds: float = 0.0
    """For one query, on one thread."""
    build_seconds: float = 0.0
    memory_bytes: int = 0
    """Signatures included."""
    remark: str = ""
    """What else there is to know."""
    obstacle: str | None = None
    """Why it cannot be chosen."""
    expected: float = 1.0
    """Share that is expected to be found by steps counted in a sample; it decides what is tried."""

    @property
    def exact(self) -> bool:
        """Whether everything is found, and known to be."""
        return self.recall == 1.0 and not self.error

    def total_seconds(self, queries: int | None) -> float:
        """Return what counts in the choice: building and all queries, or one if there is no end."""
        if queries is None:
            return 1e-6 * self.microseconds
        return self.build_seconds + 1e-6 * self.microseconds * queries

    def table(self, tuning: Tuning[Any]) -> str:
        """Return the question and a table of all options."""
        return _options_table(tuning, PYTHON)

    def reason(self, tuning: Tuning[Any]) -> str:
        """Return why this was chosen, and what the figures rest on."""
        return _reason(tuning, PYTHON)


def plan(
    *,
    count: SupportsIndex | None = None,
    bits: SupportsIndex | None = None,
    radius: SupportsIndex | None = None,
    k: SupportsIndex | None = None,
    recall: SupportsFloat = 1.0,
    memory: SupportsIndex | None = None,
    queries: SupportsIndex | ArrayLike | None = None,
    signatures: ArrayLike | None = None,
    batch: SupportsIndex | None = None,
    device: str = "cpu",
    costs: MachineCosts | None = None,
) -> Tuning[Prediction]:
    """Weigh every kind of index for a collection and choose the quickest that will do.

    Without `signatures`, nothing is known of the data: times assume fair and independent bits, and
    only exact indexes are recommended, whatever the `recall`. With them, times are predicted by
    steps counted on them, and an index that is not exact is tried: built over up to some hundred
    thousand of them and searched for 512 others. It is recommended only if the recall measured,
    less its sampling error, is at least the one asked for.

    With `batch`, the collection is a signature file of one run (`la.SignatureFile.compact`), and
    the two methods of `la.match_batch` are weighed, after Sood and Loguinov, for n signatures of
    b bits and batches of m queries:

        disk     n (b / 8 + 8) d                                      (16), ids included
        blocks   m T sort + n (query + T bucket + T m / 2^t row)      (17), T tables over the batch
        flips    m (sort + choose) + c 2^t + m (1 + k) (c bucket + n / 2^t row)     (23), c chunks
        seconds  max(disk, processor); with one chunk their sum       (18)

    d is the time to read a byte from disk, t the bits of a header, and k the flips of a query: all
    sets of up to `radius` bits, or as many as near-duplicates of texts took to reach the `recall`.

    Args:
        count: Number of signatures in the collection (default: as many as are given).
        bits: Bits of a signature (default: as those given have).
        radius: Find every signature within this distance. Give this or `k`.
        k: Find this many nearest neighbors.
        recall: Least share of them that has to be found (default: 1, all of them).
        memory: Most bytes the index may take, signatures included (default: no limit).
        queries: Number of queries, so that the time to build counts; or signatures to search for
            (default: some of the collection, each searched for among the others).
        signatures: All signatures of the collection, or some drawn at random.
        batch: Number of queries that are matched at a time with a collection on disk.
        device: "gpu" weighs the first CUDA card, too, by what a search on it takes now.
        costs: What `machine_costs` returned (default: measured the first time, in about a second,
            and kept).

    Returns:
        The options, one of each kind, and the choice. `chosen.obstacle` is None; that of the others
        says why they could not be chosen.

    Raises:
        ArgumentError: If no index fits into `memory`, or arguments contradict each other.
    """
    rows = None if signatures is None else as_signatures(signatures)
    given = isinstance(queries, np.ndarray | list | tuple)
    if rows is not None:
        count = len(rows) if count is None else count
        bits = 8 * rows.shape[1] if bits is None else bits
    if count is None or bits is None:
        raise ArgumentError(
            "count and bits are needed, or signatures that tell them: plan(count=1_000_000, "
            "bits=64, radius=3), or plan(signatures=rows, radius=3)"
        )
    wide = whole_number("bits", bits, at_least=8, at_most=MAX_BITS)
    if wide % 8:
        raise ArgumentError(Said("bits"), f" is {wide}; expected a multiple of 8")
    if (radius is None) == (k is None):
        raise ArgumentError(
            f"radius and k: {'neither' if k is None else 'both'} given; expected one of them: "
            "radius for everything within a number of bits, k for a number of nearest neighbors"
        )
    if batch is not None and radius is None:
        raise ArgumentError(
            Said("batch"), " goes with ", Said("radius"), ": match_batch finds everything within it"
        )
    number: Any = None if given else queries
    question = Question(
        whole_number("count", count, at_least=1, at_most=_MOST_COUNT),
        wide,
        None if radius is None else whole_number("radius", radius, at_least=0, at_most=wide),
        None if k is None else whole_number("k", k, at_least=1),
        share("recall", recall),
        None if memory is None else whole_number("memory", memory, at_least=0),
        None if number is None else whole_number("queries", number, at_least=1),
        None,
        None if batch is None else whole_number("batch", batch, at_least=1, at_most=MOST_ROWS),
        one_of("device", device, ("cpu", "gpu")),
    )
    if rows is not None or given:
        question = replace(question, sample=_sample(rows, queries if given else None, question))
    if costs is not None:
        instance("costs", costs, MachineCosts, "what machine_costs() returned, or None")
    prices = machine_costs() if costs is None else costs
    made = list(filter(None, _predictions(question, prices)))
    sure = [_best(kind, question) for kind in made if kind[0].exact]
    exact = min(
        (option for option in sure if option.obstacle is None),
        key=lambda option: option.total_seconds(question.queries),
        default=None,
    )
    options = [sure.pop(0) if kind[0].exact else _best(kind, question, exact) for kind in made]
    possible = [option for option in options if option.obstacle is None]
    if not possible:
        raise ArgumentError(*_does_not_fit(options, question))
    chosen = min(possible, key=lambda option: option.total_seconds(question.queries))
    asked, tried = _trial_size(options, question)
    return Tuning(
        target=question.recall,
        k=question.k,
        radius=question.radius,
        count=question.count,
        bits=question.bits,
        memory=question.memory,
        expected_queries=question.queries,
        batch=question.batch,
        sampled=None if rows is None else len(rows),
        tried_rows=tried,
        queries=asked,
        chosen=chosen,
        options=tuple(options),
    )


def _predictions(question: Question, costs: MachineCosts) -> list[list[Prediction]]:
    """Return the options of each kind of index, the scan first, or of batches."""
    if question.batch is None:
        kinds = sorted(KINDS.all(), key=lambda kind: kind.name != "scan")
        return [kind.predictions(question, costs) for kind in kinds]
    from lookalike.advice.predictions import batch_options  # which imports this module

    return batch_options(question, costs)


def _does_not_fit(options: Sequence[Prediction], question: Question) -> tuple[str | Said, ...]:
    if question.batch is not None:
        least = min((option.memory_bytes for option in options), default=0)
        return (
            Said("memory"),
            f" is {question.memory} bytes; matching batches of {question.batch} queries takes at "
            f"least {least}: allow that, or match fewer at a time",
        )
    return (
        Said("memory"),
        f" is {question.memory} bytes; {question.count} signatures of {question.bits} bits take "
        f"{question.signature_bytes} by themselves: allow that, or keep them in a file and match "
        "batches with it (",
        Said("batch"),
        ")",
    )


def _trial_size(options: Sequence[Prediction], question: Question) -> tuple[int, int]:
    """Return the queries and signatures of the trial, if any option was tried."""
    if question.sample is None or all(each.exact or each.recall is None for each in options):
        return 0, 0
    trial = question.sample.trial(question)
    return len(trial.queries), len(trial)


def _sample(rows: Any, queries: Any, question: Question) -> Sample:
    """Return what is measured on, or say what does not fit."""
    from lookalike.advice.sample import Sample

    if rows is None:
        raise ArgumentError(
            "queries are signatures, and there are no others to measure on: give signatures, too, "
            "or the number of queries"
        )
    if 8 * rows.shape[1] != question.bits:
        raise ArgumentError(
            f"bits is {question.bits} and signatures have {8 * rows.shape[1]}: leave bits out"
        )
    asked = None if queries is None else as_queries(queries, question.bits)
    if len(rows) < (2 if asked is None else 1) or (asked is not None and not len(asked)):
        raise ArgumentError(
            f"there are {len(rows)} signatures to measure on"
            + ("" if asked is None else f" and {len(asked)} queries")
            + "; expected some thousands, drawn at random, and a query at least"
        )
    if len(rows) > question.count:
        raise ArgumentError(
            f"count is {question.count} and {len(rows)} signatures were given; expected no more "
            "than count: leave it out, or give some of them"
        )
    return Sample(rows, asked)


# Choosing


def _best(
    every: Sequence[Prediction], question: Question, exact: Prediction | None = None
) -> Prediction:
    """Return the quickest of one kind that will do, or the nearest to it and what it lacks.

    What is not exact has to be quicker than the best of what is, `exact`, and is tried.
    """
    every = [option for option in every if option.obstacle is None] or every
    if every[0].obstacle is not None:
        return every[0]
    fitting = [
        option
        for option in every
        if question.memory is None or option.memory_bytes <= question.memory
    ]
    if not every[0].exact and question.recall == 1:
        return replace(max(every, key=_expected), obstacle="cannot promise that")
    if not fitting:
        return replace(
            min(every, key=lambda option: option.memory_bytes), obstacle="takes too much memory"
        )
    if not every[0].exact:
        return _tried(fitting, question, exact)
    least = min(option.total_seconds(question.queries) for option in fitting)
    quick = [o for o in fitting if o.total_seconds(question.queries) <= _ABOUT * least]
    return min(quick, key=lambda option: option.memory_bytes)


def _tried(
    options: Sequence[Prediction], question: Question, exact: Prediction | None
) -> Prediction:
    """Return the quickest of options that are not exact that surely reaches the recall."""

    def seconds(option: Prediction) -> float:
        return option.total_seconds(question.queries)

    promising = [option for option in options if option.expected >= question.recall - _OFF]
    in_order = sorted(promising or [max(options, key=_expected)], key=seconds)
    if question.sample is None:
        return replace(in_order[0], obstacle="recall not measured: no signatures given")
    trial = question.sample.trial(question)
    needed = trial.lacks(in_order[0].index)
    if needed is not None:
        lacks = f"recall not measured: takes {needed:,} signatures"
        return replace(in_order[0], obstacle=lacks)
    best: Prediction | None = None
    for option in in_order[:_MOST_TRIED]:
        if exact is not None and seconds(option) >= seconds(exact):
            break
        recall, error, _ = trial.tried(option)
        option = replace(option, recall=recall, error=error)
        if recall - error >= question.recall:
            return option
        if best is None or recall > (best.recall or 0):
            best = option
    if best is not None:
        return replace(best, obstacle="finds too few")
    quicker = "scan" if exact is None else exact.index
    return replace(in_order[0], obstacle=f"recall not measured: {quicker} is quicker")


def _expected(option: Prediction) -> tuple[float, float]:
    return option.expected, -option.microseconds


# In words


@dataclass(frozen=True)
class Words:
    """What a plan tells people to do: in Python, or on a command line."""

    built: Callable[[Prediction], str]
    """What to build an index with."""
    searched: Callable[[Prediction], str]
    """What to search it with."""
    sample: str
    """How signatures to measure on are given."""


PYTHON = Words(
    built=lambda option: keywords(option.parameters),
    searched=lambda option: keywords(option.settings),
    sample="Give some to measure: signatures=...",
)
"""Arguments by their names."""


def plan_text(tuning: Tuning[Prediction], words: Words) -> str:
    """Return a table, the choice marked, and why: what to build in Python, or what to type."""
    return f"{_options_table(tuning, words)}\n\n{_reason(tuning, words)}"


def _title(plan: Tuning[Prediction]) -> str:
    """Return the question, in words."""
    what = f"the {plan.k} nearest"
    if plan.radius is not None:
        what = f"all within {plan.radius} bit{'' if plan.radius == 1 else 's'}"
    target = plan.target or 0.0
    found = "all of them" if target == 1 else f"at least {target:.4g} of them"
    asked = "" if plan.expected_queries is None else f", {plan.expected_queries:,} queries"
    if plan.batch is not None:
        asked += f", in batches of {plan.batch:,} from disk"
    return f"{plan.count:,} signatures of {plan.bits} bits: {what}, {found}{asked}"


def _options_table(plan: Tuning[Prediction], words: Words) -> str:
    headings = ["", "index", "built with", "searched with", "µs a query", "build s", "memory"]
    lines = [[*headings, "finds", "remark"]]
    for option in plan.options:
        cells = ["*" if option is plan.chosen else "", option.index]
        cells += [words.built(option), words.searched(option)]
        cells += map(_number, (option.microseconds, option.build_seconds))
        cells.append(_bytes(option.memory_bytes))
        cells.append(_found(option))
        cells.append("; ".join(filter(None, (option.obstacle, option.remark))))
        lines.append(cells)
    return f"{_title(plan)}\n\n{aligned(lines)}"


def _found(option: Prediction) -> str:
    """Return what an option finds, in a few characters."""
    if option.exact:
        return "all"
    if option.recall is None:
        return "?"
    return f"{min(option.recall, 0.999):.1%} ± {option.error:.1%}"


def _reason(plan: Tuning[Prediction], words: Words) -> str:
    chosen = plan.chosen
    possible = [option for option in plan.options if option.obstacle is None]
    fits = "" if plan.memory is None else f" within {_bytes(plan.memory)}"
    name = chosen.index if plan.batch is None else f"match_batch by {chosen.settings['method']}"
    if len(possible) == 1:
        why = f"{name}: the only one that answers this{fits}."
    else:
        what = "the least time in all, with building,"
        if plan.expected_queries is None:
            what = "the quickest"
        why = f"{name}: {what} of {len(possible)} that answer this{fits}."
    scan = next((option for option in plan.options if option.index == "scan"), None)
    if scan is not None and chosen.index != "scan":
        times = scan.microseconds / chosen.microseconds
        much = f"{_number(times)} times" if times >= 1.05 else "about"
        why += f" The scan takes {much} as long a query."
    elif plan.expected_queries is not None and any(
        option.microseconds < chosen.microseconds for option in possible
    ):
        why += " Others are quicker once built, but not for so few queries."
    if not chosen.exact and chosen.recall is not None:
        why += (
            f"\nMeasured: it found {chosen.recall:.1%} of the nearest, "
            f"± {chosen.error:.1%} for other queries. "
        )
        why += f"Tried with {plan.queries:,} queries and {plan.tried_rows:,} "
        whole = plan.tried_rows + plan.queries >= plan.count
        why += "signatures." if whole else f"of {plan.count:,} signatures."
    return f"{why}\n{_assumed(plan, words)}"


def _assumed(plan: Tuning[Prediction], words: Words) -> str:
    """Return what the figures rest on."""
    known = "Times are predicted for one thread and batches of queries"
    if plan.sampled is not None:
        return f"{known}, by {plan.sampled:,} signatures that were looked at."
    text = (
        f"{known}. No signatures were given: times assume bits that\nare fair and "
        "independent, which those of real data are not."
    )
    if plan.target != 1:
        text += " Recall was not measured: only exact indexes\nare recommended."
    return f"{text} {words.sample}"


def _number(value: float) -> str:
    """Return a number with the digits that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _bytes(size: int) -> str:
    """Return a size with its unit."""
    value, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"


def aligned(lines: list[list[str]]) -> str:
    """Return aligned columns: words to the left, numbers to the right; empty ones left out."""
    columns = [column for column in zip(*lines, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    right = {"µs a query", "build s", "memory", "finds"}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column[0] in right else cell.ljust(width)
            for cell, column, width in zip(line, columns, widths, strict=True)
        ).rstrip()
        for line in zip(*columns, strict=True)
    )
