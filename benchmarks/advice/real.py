"""Whether plans made by a sample hold for signatures whose bits are not fair: time and recall."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.advice.kinds import descriptors, molecules
from benchmarks.advice.predictions import FACTOR, build_verdict
from benchmarks.harness import Measurement, Result, Verdict
from benchmarks.report import table
from benchmarks.signing.documents import read_documents
from lookalike.advice import recall_at_k
from lookalike.advice.machine import machine_costs
from lookalike.advice.planner import Prediction as Option
from lookalike.advice.planner import Question
from lookalike.advice.predictions import (
    block_options,
    cluster_options,
    flip_options,
    prefix_options,
    scan_options,
    slice_options,
)
from lookalike.advice.sample import Sample
from lookalike.indexes.tuning import build_option

__all__ = ["CASES", "real_table", "run_real"]

RECALL_ERROR = 0.02
"""What the queries of the benchmark may be off by themselves."""
QUERIES = 640
BATCH = 64
SEED = 61

Rows = NDArray[np.uint8]


@dataclass(frozen=True)
class Case:
    """One kind of signatures and a question."""

    data: str
    radius: int | None = None
    k: int | None = None
    recall: float = 1.0
    sampled: int = 1
    """The plan is told of one in so many signatures."""

    @property
    def name(self) -> str:
        """What the case is called on the command line."""
        what = f"within-{self.radius}" if self.k is None else f"nearest-{self.k}-{self.recall:g}"
        return f"plan-real-{self.data}-{what}" + (f"-of-{self.sampled}" if self.sampled > 1 else "")


PLANNED = (
    Case("hubs", radius=20),
    Case("hubs", k=10, recall=0.9),
    Case("zeros", radius=6),
    Case("zeros", k=10, recall=0.9),
    Case("molecules", radius=8),
    Case("molecules", k=10, recall=0.95),
    Case("molecules", k=10, recall=0.95, sampled=4),
    Case("descriptors", radius=6),
    Case("descriptors", k=10, recall=0.95),
    Case("templates", radius=3),
    Case("templates", radius=3, sampled=10),
    Case("abstracts", radius=100),
    Case("abstracts", k=10, recall=0.9),
    Case("abstracts", k=10, recall=0.5),
    Case("abstracts", k=10, recall=0.5, sampled=4),
    Case("words", radius=30),
    Case("words", k=10, recall=0.9),
    Case("words", k=10, recall=0.6),
)
CASES = tuple(case.name for case in PLANNED)


def hubs(count: int, generator: np.random.Generator) -> Rows:
    """1024 bits around 30 centers, and a tenth anywhere."""
    return _around(30, 0.06, 1024, count, generator)


def zeros(count: int, generator: np.random.Generator) -> Rows:
    """1024 bits of which some are set in every third signature and most hardly ever."""
    often = np.clip(generator.pareto(1.2, 1024) * 0.01, 0.001, 0.35)
    rows = np.empty((count, 128), np.uint8)
    for begin in range(0, count, 10_000):
        part = rows[begin : begin + 10_000]
        part[:] = np.packbits(generator.random((len(part), 1024), np.float32) < often, axis=1)
    return rows


def templates(count: int, generator: np.random.Generator) -> Rows:
    """64 bits: copies of 300 templates with a few bits changed."""
    return _around(300, 0.02, 64, count, generator)


def _around(
    centers: int, changed: float, bits: int, count: int, generator: np.random.Generator
) -> Rows:
    middle = generator.integers(0, 256, (centers, bits // 8), dtype=np.uint8)
    popular = generator.dirichlet(np.full(centers, 0.5))
    rows = middle[generator.choice(centers, count, p=popular)]
    for begin in range(0, count, 10_000):
        part = rows[begin : begin + 10_000]
        noise = generator.random((len(part), bits), np.float32) < changed
        part ^= np.packbits(noise, axis=1)
    anywhere = generator.random(count) < 0.1
    rows[anywhere] = generator.integers(0, 256, (int(anywhere.sum()), bits // 8), dtype=np.uint8)
    return rows


def abstracts(count: int, folder: Path) -> Rows:
    """Real texts, as TopSig signs them."""
    documents = read_documents(folder, count)
    signer = la.TopSig(1024)
    signer.fit(documents.texts)
    return signer.sign(documents.texts)


def words(count: int, folder: Path) -> Rows:
    """Real vectors: on which side of 256 planes they are."""
    vectors = np.load(folder / "word_vectors_100d_50k.npy")[:count].astype(np.float32)
    planes = np.random.default_rng(SEED).normal(size=(vectors.shape[1], 256)).astype(np.float32)
    return np.packbits(vectors @ planes > 0, axis=1)


MADE_UP: dict[str, tuple[int, Callable[[int, np.random.Generator], Rows]]] = {
    "hubs": (200_000, hubs),
    "zeros": (200_000, zeros),
    "molecules": (176_000, lambda count, _: molecules(count, SEED)),
    "descriptors": (200_000, lambda count, _: descriptors(count, SEED)),
    "templates": (1_000_000, templates),
}
REAL: dict[str, tuple[int, Callable[[int, Path], Rows]]] = {
    "abstracts": (120_000, abstracts),
    "words": (50_000, words),
}


@dataclass(frozen=True)
class Prediction(Result):
    """What was predicted and measured of one sort of index."""

    settings: str
    microseconds: tuple[float, float]
    build_seconds: tuple[float, float]
    recalls: tuple[float, float]


def run_real(names: Sequence[str], folder: Path | None, *, part: int) -> Iterator[Prediction]:
    """Run cases one after the other; those of real data are left out where there is none."""
    machine_costs(refresh=True)
    known: dict[str, Rows] = {}
    for case in PLANNED:
        if case.name not in names:
            continue
        if case.data not in known:
            known.clear()
            if case.data in MADE_UP:
                count, make = MADE_UP[case.data]
                known[case.data] = make(count // part, np.random.default_rng(SEED))
            elif folder is not None:
                size, read = REAL[case.data]
                known[case.data] = read(size // part, folder)
            else:
                print(f"\n{case.name}: left out, because it needs real data: --data")
                continue
        yield from _run(case, known[case.data])


def _run(case: Case, every: Rows) -> Iterator[Prediction]:
    order = np.random.default_rng(SEED).permutation(len(every))
    queries, rows = every[order[:QUERIES]], every[order[QUERIES:]]
    some = rows[:: case.sampled]
    question = Question(
        len(rows), 8 * rows.shape[1], case.radius, case.k, case.recall, sample=Sample(some, None)
    )
    costs = machine_costs()
    sorts = [
        [next(scan_options(question, costs))],
        list(slice_options(question, costs)),
        list(prefix_options(question, costs)),
        list(cluster_options(question, costs)),
    ]
    if case.radius is not None and case.radius <= 8:
        sorts.append(list(block_options(question, costs)))
        sorts.append(list(flip_options(question, costs)))
    for options in sorts:
        if options:
            yield _measured(case, _chosen(options, question), rows, queries)


def _chosen(options: Sequence[Option], question: Question) -> Option:
    """Return the quickest option that surely reaches the recall, tried as a plan tries it."""
    in_order = sorted(options, key=lambda each: each.microseconds)
    if options[0].exact or question.sample is None:
        return in_order[0]
    trial = question.sample.trial(question)
    promising = [each for each in in_order if each.expected >= question.recall - 0.1]
    tried = [replace(in_order[-1], recall=0.0)]
    for option in promising:
        recall, error, _ = trial.tried(option)
        tried.append(replace(option, recall=recall, error=error))
        if recall - error >= question.recall:
            return tried[-1]
    return max(tried, key=lambda each: each.recall or 0.0)


def _measured(case: Case, option: Option, rows: Rows, queries: Rows) -> Prediction:
    start = process_time()
    index: Any = build_option(option, rows, threads=1)
    built = process_time() - start
    ask: Callable[[Any], Any] = partial(index.within, radius=case.radius, threads=1)
    if case.k is not None:
        ask = partial(index.search, k=case.k, threads=1, **option.settings)
    ask(queries[-BATCH:])
    times, ids = [], []
    for begin in range(0, QUERIES, BATCH):
        start = process_time()
        found = ask(queries[begin : begin + BATCH])
        times.append((process_time() - start) / BATCH)
        ids.append(found.ids)
    seconds, recall = float(np.mean(times)), 1.0
    if case.k is not None:
        true = la.ScanIndex(rows).search(queries, case.k).ids
        recall = float(recall_at_k(np.concatenate(ids), true).mean())
    predicted = option.microseconds
    factor = max(predicted / (1e6 * seconds), 1e6 * seconds / predicted)
    name = f"{case.name}-{option.index}"
    verdicts = [
        Verdict(
            f"{name}: predicted / measured, or the inverse",
            f"<= {FACTOR:g} x",
            f"{factor:.2f} x",
            None if option.index == "flips" else factor <= FACTOR,  # too high for dense buckets
        )
    ]
    verdicts.append(build_verdict(name, option.build_seconds, built))
    if option.recall is not None and not option.exact:
        least = option.recall - option.error - RECALL_ERROR
        verdicts.append(
            Verdict(
                f"{name}: recall of other queries",
                f">= {least:.3f}: {option.recall:.3f} in the trial, less its error",
                f"{recall:.3f}",
                recall >= least,
            )
        )
    measurement = Measurement(option.index, min(times), median(times), len(times), times, 1.0, True)
    settings = {**option.parameters, **option.settings}
    return Prediction(
        name,
        f"{len(rows):,} x {8 * rows.shape[1]} bits",
        [measurement],
        verdicts,
        ", ".join(f"{name}={value:g}" for name, value in settings.items()),
        (predicted, 1e6 * seconds),
        (option.build_seconds, built),
        (option.recall or 0.0, recall),
    )


def real_table(results: Sequence[Prediction]) -> str:
    """Return a line for each sort of index of each case."""
    rows = [
        (
            each.name,
            each.settings,
            *(f"{time:,.1f}" for time in each.microseconds),
            f"{each.microseconds[0] / each.microseconds[1]:.2f}",
            *(f"{seconds:.2f}" for seconds in each.build_seconds),
            *(f"{recall:.3f}" for recall in each.recalls),
        )
        for each in results
    ]
    times = ("µs predicted", "measured", "ratio", "build s predicted", "measured")
    heading = ("case", "settings", *times, "recall in the trial", "of others")
    return table(heading, rows)
