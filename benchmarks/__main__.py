"""Run the benchmarks: `python -m benchmarks`. Fails only if answers differ, not if gates miss."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from benchmarks.harness import Result, WrongAnswerError
from benchmarks.importing import NAME as IMPORT
from benchmarks.importing import judge_import
from benchmarks.machine import describe_machine
from benchmarks.report import case_table, gate_table, machine_lines, summary_table, write_json
from benchmarks.scan import Plan, plans
from lookalike.checks import thread_count

RESULTS = Path(__file__).parent / "results" / "scan.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for, print and write it; return 1 if a rival's answer differs."""
    options = parse(arguments)
    selected = [
        plan for plan in plans(options.threads, quick=options.quick) if options.only in plan.name
    ]
    with_import = options.only in IMPORT
    if not selected and not with_import:
        print(f"no case has {options.only!r} in its name", file=sys.stderr)
        return 2

    machine = describe_machine()
    print(machine_lines(machine), flush=True)
    results: list[Result] = []
    try:
        for result in run_all(selected):
            print(f"\n{case_table(result)}", flush=True)
            results.append(result)
    except WrongAnswerError as error:
        print(f"\n*** WRONG ANSWER *** {error}", file=sys.stderr)
        return 1

    verdicts = [verdict for result in results for verdict in result.verdicts]
    if options.quick:
        verdicts = [replace(verdict, passed=None) for verdict in verdicts]
    if with_import:
        verdicts.append(judge_import())
    if results:
        print(f"\n{summary_table(results)}")
    if verdicts:
        verdicts.sort(key=lambda verdict: verdict.title)
        print(f"\n{gate_table(verdicts)}")
    write_json(options.output, machine, results, verdicts)
    print(f"\nwritten to {options.output}")
    return 0


def run_all(selected: Sequence[Plan]) -> Iterator[Result]:
    """Run cases one after the other, with never more than one collection in memory."""
    for _, sharing in groupby(selected, key=lambda plan: plan.collection):
        yield from run_on_one_collection(list(sharing))


def run_on_one_collection(sharing: Sequence[Plan]) -> Iterator[Result]:
    """Make a collection once for all cases that use it."""
    workload = sharing[0].draw()
    for plan in sharing:
        yield plan.case(workload).run()


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Compare lookalike with its peers: same process, same threads, same answers.",
    )
    parser.add_argument(
        "--only",
        metavar="NAME",
        default="",
        help="run only cases with NAME in their name, such as search-1024 or skewed or import",
    )
    parser.add_argument(
        "--threads",
        type=number_of_threads,
        default=thread_count(None),
        help="threads for lookalike and every peer, except where a gate says how many "
        "(default: all cores)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="use collections a tenth as large; gates are measured but not judged",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        default=RESULTS,
        help="the JSON file to write (default: benchmarks/results/scan.json)",
    )
    return parser.parse_args(arguments)


def number_of_threads(text: str) -> int:
    """Read a number that lookalike accepts; argparse names this function if it is none."""
    return thread_count(int(text))


if __name__ == "__main__":
    sys.exit(main())
