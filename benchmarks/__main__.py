"""Run the benchmarks: `python -m benchmarks`. Fails only if answers differ, not if gates miss."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.by_name import BY_NAME
from benchmarks.harness import Result, Verdict, WrongAnswerError
from benchmarks.importing import NAME as IMPORT
from benchmarks.importing import judge_import
from benchmarks.machine import describe_machine
from benchmarks.report import RESULTS, case_table, gate_table, machine_lines, write_json
from benchmarks.scan.cases import QUICK_FRACTION, Plan, plans
from benchmarks.signing.cases import CASES as SIGNING
from benchmarks.signing.cases import COUNT, run_signing
from benchmarks.signing.documents import FILE, read_documents
from benchmarks.signing.memory import NAME as MEMORY
from benchmarks.signing.memory import judge_memory
from benchmarks.signing.throughput import ThroughputResult, throughput_table
from benchmarks.suites import SUITES, finish
from lookalike.checks import thread_count


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for, print and write it; return 1 if a rival's answer differs."""
    options = parse(arguments)
    # Started programs would compile their modules each time; installed ones do so once.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if options.only in BY_NAME:
        return BY_NAME[options.only](options)
    scans = [
        plan for plan in plans(options.threads, quick=options.quick) if options.only in plan.name
    ]
    signings = [name for name in SIGNING if options.only in name]
    with_import, with_memory = options.only in IMPORT, options.only in MEMORY
    others = [(suite, names) for suite in SUITES if (names := suite.cases(options.only))]
    if not (scans or signings or with_import or with_memory or others):
        print(f"no case has {options.only!r} in its name", file=sys.stderr)
        return 2

    machine = describe_machine()
    print(machine_lines(machine), flush=True)
    gates: list[Verdict] = []
    try:
        if scans or with_import:
            results, verdicts = scan(scans, with_import, quick=options.quick)
            tables = {result.name: case_table(result) for result in results}
            write_json(options.output / "scan.json", machine, results, verdicts, tables)
            gates += verdicts
        if signings or with_memory:
            origin, signed, verdicts = sign(
                signings, with_memory, options.data, quick=options.quick
            )
            described = {**machine, "documents": origin}
            tables = {result.name: throughput_table(result) for result in signed}
            write_json(options.output / "signing.json", described, signed, verdicts, tables)
            gates += verdicts
        for suite, names in others:
            results, verdicts, tables = suite.measure(names, options)
            write_json(options.output / suite.file, machine, results, verdicts, tables)
            gates += verdicts
    except WrongAnswerError as error:
        print(f"\n*** WRONG ANSWER *** {error}", file=sys.stderr)
        return 1
    if gates:
        print(f"\n{gate_table(gates)}")
    print(f"\nwritten to {options.output}")
    return 0


def scan(
    selected: Sequence[Plan], with_import: bool, *, quick: bool
) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of searching."""
    results: list[Result] = []
    for result in run_all(selected):
        print(f"\n{case_table(result)}", flush=True)
        results.append(result)
    verdicts = finish(results, quick=quick)
    if with_import:
        verdicts.append(judge_import())
    return results, verdicts


def sign(
    selected: Sequence[str], with_memory: bool, folder: Path | None, *, quick: bool
) -> tuple[str, list[ThroughputResult], list[Verdict]]:
    """Run the benchmark of signing; also return what the documents are."""
    results: list[ThroughputResult] = []
    origin = "made-up text for memory only"
    if selected:
        documents = read_documents(folder, COUNT // QUICK_FRACTION if quick else COUNT)
        origin = documents.origin
        print(f"\ndocuments to sign: {origin}", flush=True)
        for result in run_signing(selected, documents):
            print(f"\n{throughput_table(result)}", flush=True)
            results.append(result)
    verdicts = finish(results, quick=quick)
    if with_memory:
        verdicts += judge_memory()
    return origin, results, verdicts


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
        help="run only cases with NAME in their name, such as search-1024, skewed, sign, slices, "
        "plan, collection, dedup, clean, pages or import; dedup-large, clean-spans-1gb, "
        "dedup-defaults, spark, spark-large, spark-radius, indexes, indexes-real and topics only "
        "if named in full",
    )
    parser.add_argument(
        "--threads",
        type=number_of_threads,
        default=thread_count(None),
        help="threads for lookalike and every peer in searching, except where a gate says how many "
        "(default: all cores); signing has one thread",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="use collections a tenth as large; gates are measured but not judged",
    )
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        type=data_folder,
        default=os.environ.get("LOOKALIKE_DATA") or None,
        help=f"where {FILE} is, to be signed and searched (default: the environment variable "
        "LOOKALIKE_DATA; without either, made-up text)",
    )
    parser.add_argument(
        "--cache",
        metavar="FOLDER",
        type=Path,
        default=Path(tempfile.gettempdir()) / "lookalike-benchmarks",
        help="where to keep signatures and corpora that take a minute to make (default: a "
        "temporary folder)",
    )
    parser.add_argument(
        "--output",
        metavar="FOLDER",
        type=Path,
        help="where to write scan.json and the others (default: benchmarks/results, or "
        "benchmarks/results/quick)",
    )
    options = parser.parse_args(arguments)
    if options.output is None:
        options.output = RESULTS / "quick" if options.quick else RESULTS
    return options


def number_of_threads(text: str) -> int:
    """Read a number that lookalike accepts; argparse names this function if it is none."""
    return thread_count(int(text))


def data_folder(text: str) -> Path:
    """Return a folder that has the documents: to fall back on made-up ones would mislead."""
    folder = Path(text)
    if not (folder / FILE).is_file():
        raise argparse.ArgumentTypeError(f"{text} has no {FILE}")
    return folder


if __name__ == "__main__":
    sys.exit(main())
