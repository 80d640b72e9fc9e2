"""plan: which index suits a collection and a question, by what each is expected to cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from lookalike.checks import instance, one_of, share, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.base import Index
from lookalike.planning.building import build_option
from lookalike.planning.clusters import cluster_options
from lookalike.planning.machine import MachineCosts, machine_costs
from lookalike.planning.prefixes import prefix_options
from lookalike.planning.question import Option, Question
from lookalike.planning.sample import Sample
from lookalike.planning.scan import scan_option
from lookalike.planning.slices import slice_options
from lookalike.planning.tables import block_options, flip_options
from lookalike.planning.words import (
    PYTHON,
    Words,
    bytes_in_words,
    number_in_words,
    table,
    times_in_words,
)
from lookalike.signatures import as_queries, as_signatures
from lookalike.signatures.arrays import MAX_BITS

__all__ = ["Plan", "plan"]

_MOST_COUNT = 2**40
_ABOUT = 1.1
"""Times that differ by less are the same, and less memory is better."""
_OFF = 0.1
"""By how much the recall expected of an option may be off: with less, it is not tried."""
_MOST_TRIED = 6
"""Options of one sort that are tried."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What was weighed and what was chosen. `str` is a table, the choice marked, and why."""

    count: int
    bits: int
    radius: int | None
    k: int | None
    recall: float
    memory: int | None
    queries: int | None
    chosen: Option
    options: tuple[Option, ...]
    """The best of each sort of index; `obstacle` says why one could not be chosen."""
    sampled: int | None = None
    """How many signatures were given to measure on; None: fair bits were assumed."""
    tried_queries: int = 0
    """Queries of the trial that recall was measured with; 0 if there was none."""
    tried_rows: int = 0
    """Signatures of that trial."""

    @property
    def search_settings(self) -> dict[str, Any]:
        """What to pass on when searching: `index.search(queries, k, **plan.search_settings)`."""
        return dict(self.chosen.settings)

    @property
    def reason(self) -> str:
        """Why this was chosen, in a few lines."""
        return self._reason(PYTHON)

    def _reason(self, words: Words) -> str:
        chosen = self.chosen
        possible = [option for option in self.options if option.obstacle is None]
        fits = "" if self.memory is None else f" within {bytes_in_words(self.memory)}"
        if len(possible) == 1:
            why = f"{chosen.index}: the only one that answers this{fits}."
        else:
            what = (
                "the quickest" if self.queries is None else "the least time in all, with building,"
            )
            why = f"{chosen.index}: {what} of {len(possible)} that answer this{fits}."
        scan = next(option for option in self.options if option.index == "scan")
        if chosen.index != "scan":
            times = scan.microseconds / chosen.microseconds
            why += f" The scan takes {times_in_words(times)} as long a query."
        elif self.queries is not None and any(
            option.microseconds < chosen.microseconds for option in possible
        ):
            why += " Others are quicker once built, but not for so few queries."
        if not chosen.exact and chosen.recall is not None:
            why += (
                f"\nMeasured: it found {chosen.recall:.1%} of the nearest, "
                f"± {chosen.error:.1%} for other queries. "
            )
            why += f"Tried with {self.tried_queries:,} queries and {self.tried_rows:,} "
            whole = self.tried_rows + self.tried_queries >= self.count
            why += "signatures." if whole else f"of {self.count:,} signatures."
        return f"{why}\n{self._assumed(words)}"

    @property
    def assumed(self) -> str:
        """What the figures rest on, in words."""
        return self._assumed(PYTHON)

    def _assumed(self, words: Words) -> str:
        known = "Times are predicted for one thread and batches of queries"
        if self.sampled is not None:
            return f"{known}, by {self.sampled:,} signatures that were looked at."
        text = (
            f"{known}. No signatures were given: times assume bits that\nare fair and "
            "independent, which those of real data are not."
        )
        if self.recall < 1:
            text += " Recall was not measured: only exact indexes\nare recommended."
        return f"{text} {words.sample}"

    def __str__(self) -> str:
        return plan_text(self, PYTHON)

    @property
    def title(self) -> str:
        """The question, in words."""
        what = f"the {self.k} nearest"
        if self.radius is not None:
            what = f"all within {self.radius} bit{'' if self.radius == 1 else 's'}"
        share = "all of them" if self.recall == 1 else f"at least {self.recall:.4g} of them"
        asked = "" if self.queries is None else f", {self.queries:,} queries"
        return f"{self.count:,} signatures of {self.bits} bits: {what}, {share}{asked}"

    def build(
        self,
        signatures: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> Index:
        """Build the chosen index; signatures must have the bits that were planned for."""
        rows = as_signatures(signatures)
        if 8 * rows.shape[1] != self.bits:
            raise ArgumentError(
                f"signatures have {8 * rows.shape[1]} bits; the plan is for {self.bits}: "
                "make one for these with la.plan"
            )
        return build_option(self.chosen, rows, ids, threads)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain values, fit for JSON."""
        return {**asdict(self), "search_settings": self.search_settings, "reason": self.reason}


def plan_text(plan: Plan, words: Words) -> str:
    """Return a table, the choice marked, and why: what to build in Python, or what to type."""
    headings = ["", "index", "built with", "searched with", "µs a query", "build s", "memory"]
    lines = [[*headings, "finds", "remark"]]
    for option in plan.options:
        cells = ["*" if option is plan.chosen else "", option.index]
        cells += [words.built(option), words.searched(option)]
        cells += map(number_in_words, (option.microseconds, option.build_seconds))
        cells.append(bytes_in_words(option.memory_bytes))
        cells.append(_found(option))
        cells.append("; ".join(filter(None, (option.obstacle, option.remark))))
        lines.append(cells)
    return f"{plan.title}\n\n{table(lines)}\n\n{plan._reason(words)}"


def _found(option: Option) -> str:
    """Return what an option finds, in a few characters."""
    if option.exact:
        return "all"
    if option.recall is None:
        return "?"
    return f"{min(option.recall, 0.999):.1%} ± {option.error:.1%}"


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
    device: str = "cpu",
    costs: MachineCosts | None = None,
) -> Plan:
    """Weigh every sort of index for a collection and choose the quickest that will do.

    Without `signatures`, nothing is known of the data: times assume fair and independent bits, and
    only exact indexes are recommended, whatever the `recall`. With them, times are predicted by
    steps counted on them, and an index that is not exact is tried: built over up to some hundred
    thousand of them and searched for 512 others. It is recommended only if the recall measured,
    less its sampling error, is at least the one asked for.

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
        device: "gpu" weighs the first CUDA card, too, by what a search on it takes now.
        costs: What `machine_costs` returned (default: measured the first time, in less than a
            second, and kept).

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
    number: Any = None if given else queries
    question = _question(count, bits, radius, k, recall, memory, number)
    if rows is not None or given:
        sample = _sample(rows, queries if given else None, question)
        question = replace(question, sample=sample)
    if costs is not None:
        instance("costs", costs, MachineCosts, "what machine_costs() returned, or None")
    prices = machine_costs() if costs is None else costs
    sorts: list[list[Option]] = [
        [scan_option(question, prices)],
        list(slice_options(question, prices)),
        list(block_options(question, prices)),
        list(flip_options(question, prices)),
        list(prefix_options(question, prices)),
        list(cluster_options(question, prices)),
    ]
    if one_of("device", device, ("cpu", "gpu")) == "gpu":
        from lookalike.planning.gpu import gpu_option

        sorts.append([gpu_option(question)])
    made = [sort for sort in sorts if sort]
    sure = [_best(sort, question) for sort in made if sort[0].exact]
    exact = min(
        (option for option in sure if option.obstacle is None),
        key=lambda option: option.total_seconds(question.queries),
        default=None,
    )
    options = [sure.pop(0) if sort[0].exact else _best(sort, question, exact) for sort in made]
    possible = [option for option in options if option.obstacle is None]
    if not possible:
        raise ArgumentError(
            Said("memory"),
            f" is {question.memory} bytes; {question.count} signatures of {question.bits} "
            f"bits take {question.signature_bytes} by themselves: allow that, or keep them in a "
            "file and search it in parts",
        )
    chosen = min(possible, key=lambda option: option.total_seconds(question.queries))
    return Plan(
        question.count,
        question.bits,
        question.radius,
        question.k,
        question.recall,
        question.memory,
        question.queries,
        chosen,
        tuple(options),
        None if rows is None else len(rows),
        *_trial_size(options, question),
    )


def _trial_size(options: Sequence[Option], question: Question) -> tuple[int, int]:
    """Return the queries and signatures of the trial, if any option was tried."""
    if question.sample is None or all(each.exact or each.recall is None for each in options):
        return 0, 0
    trial = question.sample.trial(question)
    return len(trial.queries), len(trial)


def _sample(rows: Any, queries: Any, question: Question) -> Sample:
    """Return what is measured on, or say what does not fit."""
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


def _question(
    count: SupportsIndex,
    bits: SupportsIndex,
    radius: SupportsIndex | None,
    k: SupportsIndex | None,
    recall: SupportsFloat,
    memory: SupportsIndex | None,
    queries: SupportsIndex | None,
) -> Question:
    """Return a question that makes sense, or say what does not."""
    wide = whole_number("bits", bits, at_least=8, at_most=MAX_BITS)
    if wide % 8:
        raise ArgumentError(Said("bits"), f" is {wide}; expected a multiple of 8")
    if (radius is None) == (k is None):
        given = "both" if k is not None else "neither"
        raise ArgumentError(
            f"radius and k: {given} given; expected one of them: radius for everything within so "
            "many bits, k for so many nearest"
        )
    return Question(
        whole_number("count", count, at_least=1, at_most=_MOST_COUNT),
        wide,
        None if radius is None else whole_number("radius", radius, at_least=0, at_most=wide),
        None if k is None else whole_number("k", k, at_least=1),
        share("recall", recall),
        None if memory is None else whole_number("memory", memory, at_least=0),
        None if queries is None else whole_number("queries", queries, at_least=1),
    )


def _best(every: Sequence[Option], question: Question, exact: Option | None = None) -> Option:
    """Return the quickest of one sort that will do, or the nearest to it and what it lacks.

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


def _tried(options: Sequence[Option], question: Question, exact: Option | None) -> Option:
    """Return the quickest of options that are not exact that surely reaches the recall."""

    def seconds(option: Option) -> float:
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
    best: Option | None = None
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


def _expected(option: Option) -> tuple[float, float]:
    return option.expected, -option.microseconds
