"""plan: which index suits a collection and a search, by predicted cost."""

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
from lookalike.operation import in_parts
from lookalike.signatures import as_queries, as_signatures
from lookalike.signatures.arrays import MAX_BITS

if TYPE_CHECKING:
    from lookalike.advice.sample import Sample


TOGETHER = 1024  # number of queries that are searched at once
_MOST_COUNT = 2**40
_ABOUT = 1.1  # times that differ by less are the same, and less memory is better
_OFF = 0.1  # how far the recall expected of an option may be off: with less, it is not tried
_MOST_TRIED = 6  # options of one kind that are tried


@dataclass(frozen=True, slots=True)
class Question:
    """What to search for, and in what."""

    count: int
    bits: int
    radius: int | None
    k: int | None
    recall: float
    memory: int | None = None
    queries: int | None = None
    sample: Sample | None = None
    """Sample of signatures; None: bits are assumed fair and independent."""
    batch: int | None = None  # batch size for a collection on disk
    device: str = "cpu"

    @property
    def width(self) -> int:
        """Bytes of a signature."""
        return self.bits // 8

    @property
    def lines(self) -> int:
        """Cache lines of a signature."""
        return -(-self.width // 64)

    @property
    def signature_bytes(self) -> int:
        """Bytes of all signatures."""
        return self.count * self.width

    @property
    def together(self) -> int:
        """Number of queries that are searched at once."""
        return min(TOGETHER, self.queries or TOGETHER)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Prediction(Option):
    """An option and its predicted cost."""

    microseconds: float = 0.0
    """Time of one query on one thread."""
    build_seconds: float = 0.0
    memory_bytes: int = 0
    """Size including signatures."""
    remark: str = ""
    """Further information."""
    obstacle: str | None = None
    """Why it cannot be chosen, or None."""
    expected: float = 1.0
    """Expected recall, which decides what is tried."""

    @property
    def exact(self) -> bool:
        """Whether everything is found, guaranteed."""
        return self.recall == 1.0 and not self.error

    def total_seconds(self, queries: int | None) -> float:
        """Return the time of building and all queries, or of one query."""
        if queries is None:
            return 1e-6 * self.microseconds
        return self.build_seconds + 1e-6 * self.microseconds * queries

    def table(self, tuning: Tuning[Any]) -> str:
        """Return the search and a table of all options."""
        return _options_table(tuning, PYTHON)

    def reason(self, tuning: Tuning[Any]) -> str:
        """Return why this was chosen, and the assumptions."""
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
    """Compare all kinds of index for a collection, and choose the fastest that fits.

    Without `signatures`, times assume fair and independent bits, and only exact indexes are
    recommended. With them, steps are counted on the sample. An approximate index is built over up
    to some hundred thousand signatures and searched for 512 others. It is recommended only if its
    recall, minus the sampling error, reaches `recall`.

    With `batch`, the collection is a signature file of one run (`la.SignatureFile.compact`). The
    two methods of `la.match_batch` are compared, after Sood and Loguinov, for n signatures of b
    bits and batches of m queries:

        disk     n (b / 8 + 8) d                                      (16), ids included
        blocks   m T sort + n (query + T bucket + T m / 2^t row)      (17), T tables over the batch
        flips    m (sort + choose) + c 2^t + m (1 + k) (c bucket + n / 2^t row)     (23), c chunks
        seconds  max(disk, processor); with one chunk their sum       (18)

    d is the time to read a byte from disk, and t the number of header bits. k is the number of
    flips of a query: all sets of up to `radius` bits, or as many as texts needed to reach the
    `recall`.

    Args:
        count: Number of signatures (default: as many as given).
        bits: Number of bits of a signature (default: as given).
        radius: Find every signature within this distance. Give `radius` or `k`.
        k: Find this many nearest neighbors.
        recall: Smallest share to find (default: 1, all of them).
        memory: Maximum size in bytes, including signatures (default: no limit).
        queries: Number of queries, so that build time counts. Or signatures to search for (default:
            some of the collection, each among the others).
        signatures: All signatures of the collection, or a random sample.
        batch: Batch size, for a collection on disk.
        device: "gpu" also considers the first CUDA GPU (default: "cpu").
        costs: Result of `machine_costs` (default: measured once, in about a second, and kept).

    Returns:
        One option of each kind, and the choice. `obstacle` of an option says why it was not
            possible.

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
            "count and bits, or signatures, are required: plan(count=1_000_000, bits=64, "
            "radius=3), or plan(signatures=rows, radius=3)"
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
    options = [
        sure.pop(0) if kind[0].exact else _best(kind, question, exact) for kind in in_parts(made)
    ]
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
    """Return the numbers of queries and signatures of the trial, or zeros."""
    if question.sample is None or all(each.exact or each.recall is None for each in options):
        return 0, 0
    trial = question.sample.trial(question)
    return len(trial.queries), len(trial)


def _sample(rows: Any, queries: Any, question: Question) -> Sample:
    """Return the sample, or raise."""
    from lookalike.advice.sample import Sample

    if rows is None:
        raise ArgumentError(
            "queries are signatures, and there are no others to measure on. Pass signatures, too, "
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
    """Return the fastest option of one kind that is possible, or the closest with its obstacle.

    An approximate option must be faster than `exact`, the best exact one, and is tried.
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
    """Return the fastest approximate option that reaches the recall."""

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
    """Texts of a plan for Python or for a command line."""

    built: Callable[[Prediction], str]
    """Arguments to build an index."""
    searched: Callable[[Prediction], str]
    """Arguments to search it."""
    sample: str
    """How to pass signatures to measure on."""


PYTHON = Words(
    built=lambda option: keywords(option.parameters),
    searched=lambda option: keywords(option.settings),
    sample="Give some to measure: signatures=...",
)
"""Keyword arguments."""


def plan_text(tuning: Tuning[Prediction], words: Words) -> str:
    """Return a table with the choice marked, and the reason."""
    return f"{_options_table(tuning, words)}\n\n{_reason(tuning, words)}"


def _title(plan: Tuning[Prediction]) -> str:
    """Return the search in words."""
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
    """Return the recall of an option in a few characters."""
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
    """Return the assumptions."""
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
    """Return aligned columns: words to the left, numbers to the right, without empty columns."""
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
