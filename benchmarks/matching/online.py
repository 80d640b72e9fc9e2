"""Flips beside blocks on generated fingerprints, asked batch by batch with one thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from papers.generated import GeneratedFingerprints, generate_fingerprints

import lookalike as la
from benchmarks.harness import Effort, Verdict, WrongAnswerError
from benchmarks.quality import (
    Entry,
    Quality,
    QualityResult,
    at_least,
    at_most,
    run_entries,
)

__all__ = ["growth", "online"]

RADIUS = 3
RECALL = 0.95
BATCH = 10_000
"""Queries asked at once: too few for two of them to meet in a bucket of tens of millions."""
SAMPLE = 500_000
"""Queries that the number of flips is learned from; they are not those that are timed. Only those
with a match tell, less than one in a hundred.
"""
CHECKED = 50
EFFORT = Effort(rounds=3, seconds=6.0)

Answer = list[la.results.Matches]


@dataclass(frozen=True, eq=False)
class _Timed:
    """Fingerprints, and those of their queries that are timed."""

    made: GeneratedFingerprints
    asked: int

    @classmethod
    def of(cls, count: int, asked: int) -> _Timed:
        return cls(generate_fingerprints(count, asked + SAMPLE), asked)

    def in_batches(self, ask: Callable[[slice], la.results.Matches]) -> Answer:
        return [ask(slice(at, at + BATCH)) for at in range(0, self.asked, BATCH)]

    def tuned(self, index: la.FlipIndex, first: bool) -> int:
        query, row = self.made.partners[self.made.partners[:, 0] >= self.asked].T
        differing = np.bitwise_count(self.made.queries[query] ^ self.made.signatures[row])
        matched = np.unique(query[differing <= RADIUS])
        tuning = index.tune_flips(
            self.made.queries[matched],
            self.made.weights[matched],
            RADIUS,
            recall=RECALL,
            first=first,
            sample=len(matched),
        )
        return int(tuning.search_settings["flips"])


def online(name: str, count: int, asked: int, *, gates: bool, many_tables: bool) -> QualityResult:
    """Ask for all matches, and for one; with all tables in memory at the same time."""
    data = _Timed.of(count, asked)
    flips, flips_seconds = _built(partial(la.FlipIndex, data.made.signatures, threads=1))
    blocks, blocks_seconds = _built(
        partial(la.BlockIndex, data.made.signatures, RADIUS, 4, threads=1)
    )
    truth = data.in_batches(partial(_ask_blocks, blocks, data.made, False))
    _check_with_scan(data, truth)
    judge_all, judge_first = partial(_recall, truth), partial(_first_recall, truth)
    entries = []
    for first in (False, True):
        tries = data.tuned(flips, first)
        entries.append(
            Entry(
                f"flips {'first' if first else 'all'}, {tries} of them",
                partial(data.in_batches, partial(_ask_flips, flips, data.made, tries, first)),
                asked,
                judge_first if first else judge_all,
                flips_seconds,
                flips.memory_bytes / count,
            )
        )
    named: dict[str, tuple[la.BlockIndex, float]] = {"4 tables": (blocks, blocks_seconds)}
    if many_tables:
        named["10 tables"] = _built(
            partial(la.BlockIndex, data.made.signatures, RADIUS, 10, threads=1)
        )
        named["10 tables, compressed"] = _built(
            partial(la.BlockIndex, data.made.signatures, RADIUS, 10, compressed=True, threads=1)
        )
        named["4 tables, compressed"] = _built(
            partial(la.BlockIndex, data.made.signatures, RADIUS, 4, compressed=True, threads=1)
        )
    for label, (index, seconds) in named.items():
        entries += [
            Entry(
                f"blocks {'first' if first else 'all'}, {label}",
                partial(data.in_batches, partial(_ask_blocks, index, data.made, first)),
                asked,
                judge_first if first else judge_all,
                seconds,
                index.memory_bytes / count,
            )
            for first in (False, True)
        ]
    title = (
        f"within {RADIUS} of {count:,} generated fingerprints of 64 bits, {asked:,} queries in "
        f"batches of {BATCH:,}, 1 thread"
    )
    result = run_entries(name, title, entries, asked, EFFORT)
    matches = sum(len(part.ids) for part in truth)
    note = f"{matches:,} matches; recall is relative to the exact answer"
    verdicts = _verdicts(result, entries, flips, blocks) if gates else []
    if count == 10_000_000:
        rate = asked / result.times()[entries[0].name].best / 1e6
        verdicts.append(
            at_least(f"24.  flips all of {count:,}: million queries a second", rate, 1.0)
        )
    return replace(result, verdicts=verdicts, notes=[note])


def growth(name: str, counts: list[int], asked: int) -> QualityResult:
    """Ask flips only, in collections of several sizes by turns."""
    entries = []
    for count in counts:
        data = _Timed.of(count, asked)
        index, seconds = _built(partial(la.FlipIndex, data.made.signatures, threads=1))
        tries = data.tuned(index, False)
        data = _Timed(replace(data.made, signatures=np.empty(0, np.uint64)), asked)
        entries.append(
            Entry(
                f"{count:,}, {tries} flips",
                partial(data.in_batches, partial(_ask_flips, index, data.made, tries, False)),
                asked,
                lambda answer: {},
                seconds,
                index.memory_bytes / count,
            )
        )
    title = f"flips, within {RADIUS} of growing collections, recall {RECALL}, 1 thread"
    result = run_entries(name, title, entries, asked, EFFORT)
    times = result.times()
    grown = times[entries[-1].name].times_as_long_as(times[entries[0].name])
    label = f"25.  flips, time a query from {counts[0]:,} to {counts[-1]:,}"
    return replace(result, verdicts=[at_most(label, grown, 3, " x")])


def _ask_flips(
    index: la.FlipIndex, made: GeneratedFingerprints, flips: int, first: bool, part: slice
) -> la.results.Matches:
    return index.within(
        made.queries[part], RADIUS, weights=made.weights[part], flips=flips, first=first, threads=1
    )


def _ask_blocks(
    index: la.BlockIndex, made: GeneratedFingerprints, first: bool, part: slice
) -> la.results.Matches:
    return index.within(made.queries[part], RADIUS, first=first, threads=1)


def _built(make: Callable[[], Any]) -> tuple[Any, float]:
    start = perf_counter()
    index = make()
    return index, perf_counter() - start


def _check_with_scan(data: _Timed, truth: Answer) -> None:
    scan = la.ScanIndex(data.made.signatures)
    expected = scan.within(data.made.queries[:CHECKED], RADIUS)
    for query in range(CHECKED):
        if not np.array_equal(expected[query][0], truth[0][query][0]):
            raise WrongAnswerError(f"query {query}: blocks and the scan differ")


def _pairs(answer: Answer) -> NDArray[np.int64]:
    """Return (query, id) of all matches as numbers."""
    parts = [(batch * BATCH + part.query) << 32 | part.ids for batch, part in enumerate(answer)]
    return np.concatenate(parts)


def _recall(truth: Answer, answer: Answer) -> Quality:
    expected, found = _pairs(truth), _pairs(answer)
    if not np.isin(found, expected).all():
        raise WrongAnswerError("a match was found that is none")
    return {"recall": len(found) / len(expected)}


def _first_recall(truth: Answer, answer: Answer) -> Quality:
    expected, found = _pairs(truth), _pairs(answer)
    if not np.isin(found, expected).all() or len(np.unique(found >> 32)) < len(found):
        raise WrongAnswerError("a match was found that is none, or two of one query")
    return {"recall": len(found) / len(np.unique(expected >> 32))}


def _verdicts(
    result: QualityResult, entries: list[Entry], flips: la.FlipIndex, blocks: la.BlockIndex
) -> list[Verdict]:
    times = result.times()
    names = [entry.name for entry in entries]
    all_, first = (times[names[2 + n]].times_as_long_as(times[names[n]]) for n in (0, 1))
    count = f"{len(flips):,}"
    recalls = [result.quality[name]["recall"] for name in names[:2]]
    memory = flips.memory_bytes / blocks.memory_bytes
    return [
        at_least(f"20a. find-all in {count}: blocks / flips", all_, 5, " x"),
        at_least(f"20b. find-first in {count}: blocks / flips", first, 8.6, " x"),
        at_least(f"20c. recall of flips in {count}", min(recalls), RECALL, digits=3),
        at_most(f"20d. memory in {count}: flips / blocks", memory, 0.5, digits=2),
    ]
