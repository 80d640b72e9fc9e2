"""Run the benchmarks: `python -m benchmarks`. Fails only if answers differ, not if gates miss."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from benchmarks.bands.live import CASES as BANDS
from benchmarks.bands.live import run_bands
from benchmarks.clusters.all_indexes import NAMES as INDEXES
from benchmarks.clusters.all_indexes import draw, run_indexes
from benchmarks.clusters.cases import CASES as CLUSTERS
from benchmarks.clusters.cases import run_clusters
from benchmarks.clusters.topics import NAME as TOPICS
from benchmarks.clusters.topics import run_topics
from benchmarks.collection.cases import CASES as COLLECTIONS
from benchmarks.collection.cases import run_collections
from benchmarks.dedup.defaults import NAME as DEFAULTS
from benchmarks.dedup.defaults import run_defaults
from benchmarks.dedup.whole_job import dedup_table, run_dedup, selected_cases
from benchmarks.harness import Result, Verdict, WrongAnswerError
from benchmarks.images.cases import CASES as IMAGES
from benchmarks.images.cases import recall_table, run_images
from benchmarks.importing import NAME as IMPORT
from benchmarks.importing import judge_import
from benchmarks.machine import describe_machine
from benchmarks.masks.cases import CASES as MASKS
from benchmarks.masks.cases import run_masks
from benchmarks.matching.cases import CASES as MATCHING
from benchmarks.matching.cases import matching_table, run_matching
from benchmarks.pages.cases import CASES as PAGES
from benchmarks.pages.cases import page_table, run_pages
from benchmarks.passages.cases import CASES as PASSAGES
from benchmarks.passages.cases import run_passages
from benchmarks.planning.predictions import CASES as PLANNING
from benchmarks.planning.predictions import prediction_table, run_planning
from benchmarks.planning.real import CASES as REAL
from benchmarks.planning.real import real_table, run_real
from benchmarks.quality import quality_table
from benchmarks.recordings.cases import CASES as RECORDINGS
from benchmarks.recordings.cases import recordings_table, run_recordings
from benchmarks.report import case_table, gate_table, machine_lines, summary_table, write_json
from benchmarks.scan.cases import QUICK_FRACTION, Plan, plans
from benchmarks.serve.cases import CASES as SERVE
from benchmarks.serve.cases import run_serve
from benchmarks.signing.cases import CASES as SIGNING
from benchmarks.signing.cases import COUNT, run_signing
from benchmarks.signing.documents import FILE, read_documents
from benchmarks.signing.memory import NAME as MEMORY
from benchmarks.signing.memory import judge_memory
from benchmarks.signing.throughput import throughput_table
from benchmarks.slices.cases import CASES as SLICES
from benchmarks.slices.cases import run_slices
from benchmarks.spark.cases import MLLIB_SIZE, SIZES, run_spark
from benchmarks.spark.cases import NAME as SPARK
from benchmarks.vectors.cases import CASES as VECTORS
from benchmarks.vectors.cases import run_vectors
from lookalike.checks import thread_count

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for, print and write it; return 1 if a rival's answer differs."""
    options = parse(arguments)
    if options.only == DEFAULTS:
        return defaults(options)
    if options.only == SPARK:
        return on_spark(options)
    if options.only in INDEXES:
        return all_indexes(options)
    if options.only == TOPICS:
        return topics(options)
    scans = [
        plan for plan in plans(options.threads, quick=options.quick) if options.only in plan.name
    ]
    signings = [name for name in SIGNING if options.only in name]
    sliced = [name for name in SLICES if options.only in name]
    grouped = [name for name in CLUSTERS if options.only in name]
    matched = [name for name in MATCHING if options.only in name]
    planned = [name for name in PLANNING if options.only in name]
    sampled = [name for name in REAL if options.only in name]
    collections = [name for name in COLLECTIONS if options.only in name]
    banded = [name for name in BANDS if options.only in name]
    masked = [name for name in MASKS if options.only in name]
    deduped = selected_cases(options.only)
    pictured = [name for name in IMAGES if options.only in name]
    paged = [name for name in PAGES if options.only in name]
    embedded = [name for name in VECTORS if options.only in name]
    served = [name for name in SERVE if options.only in name]
    copied = [name for name in PASSAGES if options.only in name]
    recorded = [name for name in RECORDINGS if options.only in name]
    with_import, with_memory = options.only in IMPORT, options.only in MEMORY
    if not (
        scans or signings or sliced or matched or planned or sampled or collections
        or grouped or banded or masked or deduped or paged or pictured or embedded or served
        or copied or recorded or with_import or with_memory
    ):  # fmt: skip
        print(f"no case has {options.only!r} in its name", file=sys.stderr)
        return 2

    machine = describe_machine()
    print(machine_lines(machine), flush=True)
    gates: list[Verdict] = []
    try:
        if scans or with_import:
            results, verdicts = scan(scans, with_import, quick=options.quick)
            write_json(options.output / "scan.json", machine, results, verdicts)
            gates += verdicts
        if signings or with_memory:
            origin, results, verdicts = sign(
                signings, with_memory, options.data, quick=options.quick
            )
            described = {**machine, "documents": origin}
            write_json(options.output / "signing.json", described, results, verdicts)
            gates += verdicts
        if sliced:
            results, verdicts = slices(sliced, options.data, options.cache, quick=options.quick)
            write_json(options.output / "slices.json", machine, results, verdicts)
            gates += verdicts
        if grouped:
            results, verdicts = clusters(grouped, options.data, options.cache, quick=options.quick)
            write_json(options.output / "clusters.json", machine, results, verdicts)
            gates += verdicts
        if matched:
            results, verdicts = match(matched, options.data, quick=options.quick)
            write_json(options.output / "matching.json", machine, results, verdicts)
            gates += verdicts
        if planned:
            results, verdicts = predictions(planned, quick=options.quick)
            write_json(options.output / "planning.json", machine, results, verdicts)
            gates += verdicts
        if sampled:
            results, verdicts = sampled_predictions(sampled, options.data, quick=options.quick)
            write_json(options.output / "planning_real.json", machine, results, verdicts)
            gates += verdicts
        if collections:
            results, verdicts = keep(collections, quick=options.quick)
            write_json(options.output / "collections.json", machine, results, verdicts)
            gates += verdicts
        if banded:
            results, verdicts = live_bands(banded, quick=options.quick)
            write_json(options.output / "bands.json", machine, results, verdicts)
            gates += verdicts
        if masked:
            results, verdicts = masks(masked, options.data, quick=options.quick)
            write_json(options.output / "masks.json", machine, results, verdicts)
            gates += verdicts
        if deduped:
            results, verdicts = dedup(deduped, options.data, options.cache, quick=options.quick)
            write_json(options.output / "dedup.json", machine, results, verdicts)
            gates += verdicts
        if paged:
            results, verdicts = read_pages(paged, quick=options.quick)
            write_json(options.output / "pages.json", machine, results, verdicts)
            gates += verdicts
        if recorded:
            results, verdicts = hear(recorded, options.cache, quick=options.quick)
            write_json(options.output / "recordings.json", machine, results, verdicts)
            gates += verdicts
        if pictured:
            results, verdicts = hash_images(pictured, quick=options.quick)
            write_json(options.output / "images.json", machine, results, verdicts)
        if embedded:
            results, verdicts = vectors(embedded, options.data, options.cache, quick=options.quick)
            write_json(options.output / "vectors.json", machine, results, verdicts)
        if served:
            results, verdicts = serve(served, quick=options.quick)
            write_json(options.output / "serve.json", machine, results, verdicts)
        if copied:
            results, verdicts = passages(copied, options.data, quick=options.quick)
            write_json(options.output / "passages.json", machine, results, verdicts)
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
) -> tuple[str, list[Result], list[Verdict]]:
    """Run the benchmark of signing; also return what the documents are."""
    results: list[Result] = []
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


def slices(
    selected: Sequence[str], folder: Path | None, cache: Path, *, quick: bool
) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of slice lists, with one thread each."""
    results: list[Result] = []
    for result in run_slices(selected, folder, cache, part=QUICK_FRACTION if quick else 1):
        print(f"\n{quality_table(result)}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def clusters(
    selected: Sequence[str], folder: Path | None, cache: Path, *, quick: bool
) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of groups around centres."""
    results: list[Result] = []
    for result in run_clusters(selected, folder, cache, part=QUICK_FRACTION if quick else 1):
        print(f"\n{quality_table(result)}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def vectors(
    selected: Sequence[str], folder: Path | None, cache: Path, *, quick: bool
) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of vectors."""
    results: list[Result] = []
    for result in run_vectors(selected, folder, cache, part=QUICK_FRACTION if quick else 1):
        print(f"\n{quality_table(result)}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def keep(selected: Sequence[str], *, quick: bool) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of collections in databases."""
    results: list[Result] = []
    for result in run_collections(selected, part=QUICK_FRACTION if quick else 1):
        print(f"\n{case_table(result)}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def serve(selected: Sequence[str], *, quick: bool) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of the service under load."""
    results: list[Result] = []
    for result in run_serve(selected, part=QUICK_FRACTION if quick else 1):
        print(f"\n{case_table(result)}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def live_bands(selected: Sequence[str], *, quick: bool) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of live MinHash, with one thread."""
    results: list[Result] = []
    for result in run_bands(selected, part=QUICK_FRACTION if quick else 1):
        print(f"\n{case_table(result)}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def passages(
    selected: Sequence[str], folder: Path | None, *, quick: bool
) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of copied passages and of parts, with all threads."""
    results: list[Result] = []
    for result in run_passages(selected, folder, part=QUICK_FRACTION if quick else 1):
        print(f"\n{case_table(result)}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def masks(
    selected: Sequence[str], folder: Path | None, *, quick: bool
) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of queries of a few words, with one thread."""
    results: list[Result] = []
    for result in run_masks(selected, folder, part=QUICK_FRACTION if quick else 1):
        print(f"\n{quality_table(result)}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def hash_images(selected: Sequence[str], *, quick: bool) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of image hashes, with two threads."""
    results: list[Result] = []
    for result in run_images(selected, part=QUICK_FRACTION if quick else 1):
        shown = quality_table(result) if result.measurements else recall_table(result)
        print(f"\n{shown}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def predictions(selected: Sequence[str], *, quick: bool) -> tuple[list[Result], list[Verdict]]:
    """Measure the costs of this machine, then what plans predict from them."""
    found = list(run_planning(selected, part=QUICK_FRACTION if quick else 1))
    print(f"\n{prediction_table(found)}", flush=True)
    results: list[Result] = list(found)
    return results, finish(results, quick=quick, summary=False)


def sampled_predictions(
    selected: Sequence[str], folder: Path | None, *, quick: bool
) -> tuple[list[Result], list[Verdict]]:
    """Compare what plans predict by a sample of skewed signatures with what they take and find."""
    found = list(run_real(selected, folder, part=QUICK_FRACTION if quick else 1))
    print(f"\n{real_table(found)}", flush=True)
    results: list[Result] = list(found)
    return results, finish(results, quick=quick, summary=False)


def match(
    selected: Sequence[str], folder: Path | None, *, quick: bool
) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of blocks and flips, with one thread each."""
    results: list[Result] = []
    for result in run_matching(selected, folder, part=QUICK_FRACTION if quick else 1):
        print(f"\n{matching_table(result)}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def dedup(
    selected: Sequence[str], folder: Path | None, cache: Path, *, quick: bool
) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of de-duplicating files, with two cores."""
    results: list[Result] = []
    for result in run_dedup(selected, folder, cache, part=QUICK_FRACTION if quick else 1):
        print(f"\n{dedup_table(result)}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def read_pages(selected: Sequence[str], *, quick: bool) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of web pages."""
    results: list[Result] = []
    for result in run_pages(selected, part=QUICK_FRACTION if quick else 1):
        print(f"\n{page_table(result)}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def hear(
    selected: Sequence[str], cache: Path, *, quick: bool
) -> tuple[list[Result], list[Verdict]]:
    """Run the benchmark of recordings."""
    results: list[Result] = []
    for result in run_recordings(selected, cache, part=QUICK_FRACTION if quick else 1):
        print(f"\n{recordings_table(result)}", flush=True)
        results.append(result)
    return results, finish(results, quick=quick, summary=False)


def defaults(options: argparse.Namespace) -> int:
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


def topics(options: argparse.Namespace) -> int:
    """Measure how well clusters of documents agree with what their authors call them."""
    if options.data is None:
        print(f"{TOPICS} needs real texts: --data", file=sys.stderr)
        return 2
    print(machine_lines(describe_machine()), flush=True)
    print(run_topics(options.data, part=QUICK_FRACTION if options.quick else 1))
    return 0


def all_indexes(options: argparse.Namespace) -> int:
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


def on_spark(options: argparse.Namespace) -> int:
    """Measure the job on a Spark of several processes, beside the local job and MLlib."""
    if options.data is None:
        print(f"{SPARK} needs real texts: --data", file=sys.stderr)
        return 2
    print(machine_lines(describe_machine()), flush=True)
    sizes = tuple(size // QUICK_FRACTION for size in SIZES) if options.quick else SIZES
    size = MLLIB_SIZE // QUICK_FRACTION if options.quick else MLLIB_SIZE
    try:
        verdicts = run_spark(
            options.data, options.cache, options.output, sizes=sizes, mllib_size=size
        )
    except WrongAnswerError as error:
        print(f"\n*** WRONG ANSWER *** {error}", file=sys.stderr)
        return 1
    if options.quick:
        verdicts = [replace(verdict, passed=None) for verdict in verdicts]
    print(f"\n{gate_table(verdicts)}\n\nwritten to {options.output}")
    return 0


def finish(results: Sequence[Result], *, quick: bool, summary: bool = True) -> list[Verdict]:
    """Print the summary and return the verdicts in order, withheld if the sizes were not those."""
    compared = [each for each in results if any(rival.is_rival for rival in each.measurements[1:])]
    if compared and summary:
        print(f"\n{summary_table(compared)}", flush=True)
    verdicts = [verdict for result in results for verdict in result.verdicts]
    if quick:
        verdicts = [replace(verdict, passed=None) for verdict in verdicts]
    return sorted(verdicts, key=lambda verdict: verdict.title)


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
        "plan, collection, dedup, pages or import; dedup-large, dedup-defaults, spark, "
        "indexes, indexes-real and topics only if named in full",
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
        default=RESULTS,
        help="where to write scan.json and the others (default: benchmarks/results)",
    )
    return parser.parse_args(arguments)


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
