"""Benchmarks that run only if they are named in full."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from benchmarks.clusters.all_indexes import NAMES as INDEXES
from benchmarks.clusters.all_indexes import draw, run_indexes
from benchmarks.clusters.topics import NAME as TOPICS
from benchmarks.clusters.topics import run_topics
from benchmarks.clusters.wide_pairs import NAME as WIDE_PAIRS
from benchmarks.clusters.wide_pairs import run_wide_pairs
from benchmarks.dedup.defaults import NAME as DEFAULTS
from benchmarks.dedup.defaults import run_defaults
from benchmarks.harness import Verdict, WrongAnswerError
from benchmarks.machine import describe_machine
from benchmarks.quality import quality_table
from benchmarks.report import gate_table, machine_lines, write_json
from benchmarks.scan.cases import QUICK_FRACTION
from benchmarks.signing.learning import NAME as LEARNING
from benchmarks.signing.learning import run_learning
from benchmarks.spark.cases import LARGE as SPARK_LARGE
from benchmarks.spark.cases import LARGE_SIZES, MLLIB_SIZE, SIZES, run_spark
from benchmarks.spark.cases import NAME as SPARK
from benchmarks.spark.radius import RADIUS, RADIUS_SIZES, run_radius

__all__ = ["BY_NAME"]


def defaults(options: Namespace) -> int:
    """Measure what settings of de-duplication find; no peers, no gates."""
    if options.data is None:
        print(f"{DEFAULTS} needs real texts: --data", file=sys.stderr)
        return 2
    part = QUICK_FRACTION if options.quick else 1
    try:
        path = run_defaults(options.data, options.cache, options.output, part=part)
    except WrongAnswerError as error:
        print(f"\n*** WRONG ANSWER *** {error}", file=sys.stderr)
        return 1
    print(f"\nwritten to {path}")
    return 0


def topics(options: Namespace) -> int:
    """Measure how well clusters of documents agree with known labels, beside scikit-learn's."""
    return _on_texts(TOPICS, run_topics, options)


def learning(options: Namespace) -> int:
    """Measure what a linear classifier learns from b-bit signatures, beside exact resemblance."""
    return _on_texts(LEARNING, run_learning, options)


def _on_texts(name: str, run: Callable[..., tuple[str, list[Verdict]]], options: Namespace) -> int:
    """Run a benchmark that needs real texts; print its tables and its verdicts."""
    if options.data is None:
        print(f"{name} needs real texts: --data", file=sys.stderr)
        return 2
    machine = describe_machine()
    print(machine_lines(machine), flush=True)
    lines, verdicts = run(options.data, part=QUICK_FRACTION if options.quick else 1)
    if options.quick:
        verdicts = [replace(verdict, passed=None) for verdict in verdicts]
    print(f"\n{lines}\n\n{gate_table(verdicts)}")
    write_json(options.output / f"{name}.json", machine, [], verdicts)
    return 0


def wide_pairs(options: Namespace) -> int:
    """Measure how the time of pairs within a wide radius grows."""
    machine = describe_machine()
    print(machine_lines(machine), flush=True)
    part = QUICK_FRACTION if options.quick else 1
    lines, verdicts = run_wide_pairs(options.data, options.cache, part=part)
    if options.quick:
        verdicts = [replace(verdict, passed=None) for verdict in verdicts]
    print(f"\n{lines}\n\n{gate_table(verdicts)}")
    write_json(options.output / "wide_pairs.json", machine, [], verdicts)
    return 0


def all_indexes(options: Namespace) -> int:
    """Draw every index beside faiss's: time against quality; no gates."""
    machine = describe_machine()
    print(machine_lines(machine), flush=True)
    found = []
    part = QUICK_FRACTION if options.quick else 1
    for result, lines in run_indexes(options.only, options.data, options.cache, part=part):
        print(f"\n{quality_table(result)}", flush=True)
        found.append((result, lines))
    write_json(options.output / "indexes.json", machine, [result for result, _ in found], [])
    picture = options.output / "indexes.svg"
    draw(found, picture)
    print(f"\nwritten to {picture}")
    return 0


def on_spark(options: Namespace) -> int:
    """Measure the job on a Spark of several processes, beside the local job and MLlib."""
    part = QUICK_FRACTION if options.quick else 1
    sizes = tuple(size // part for size in SIZES)
    run = partial(run_spark, sizes=sizes, mllib_size=MLLIB_SIZE // part, name=SPARK)
    return _on_spark(options, SPARK, run)


def on_spark_at_large(options: Namespace) -> int:
    """Measure the job on Spark with up to 30 million documents."""
    part = QUICK_FRACTION if options.quick else 1
    sizes = tuple(size // part for size in LARGE_SIZES)
    return _on_spark(
        options, SPARK_LARGE, partial(run_spark, sizes=sizes, mllib_size=0, name=SPARK_LARGE)
    )


def on_spark_by_radius(options: Namespace) -> int:
    """Measure SimHash on a Spark of several processes: by tables, and each with each."""
    part = QUICK_FRACTION if options.quick else 1
    sizes = tuple(size // part for size in RADIUS_SIZES)
    return _on_spark(options, RADIUS, partial(run_radius, sizes=sizes))


def _on_spark(options: Namespace, name: str, measure: Callable[..., list[Verdict]]) -> int:
    if options.data is None:
        print(f"{name} needs real texts: --data", file=sys.stderr)
        return 2
    print(machine_lines(describe_machine()), flush=True)
    try:
        verdicts = measure(options.data, options.cache, options.output)
    except WrongAnswerError as error:
        print(f"\n*** WRONG ANSWER *** {error}", file=sys.stderr)
        return 1
    if options.quick:
        verdicts = [replace(verdict, passed=None) for verdict in verdicts]
    print(f"\n{gate_table(verdicts)}\n\nwritten to {options.output}")
    return 0


BY_NAME = {
    DEFAULTS: defaults,
    TOPICS: topics,
    LEARNING: learning,
    SPARK: on_spark,
    SPARK_LARGE: on_spark_at_large,
    RADIUS: on_spark_by_radius,
    WIDE_PAIRS: wide_pairs,
    **dict.fromkeys(INDEXES, all_indexes),
}
