"""`lookalike plan`: which index suits a collection and a question, and what it will cost."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from lookalike import __version__
from lookalike.advice.machine import machine_costs
from lookalike.advice.planner import Prediction, Words, plan, plan_text
from lookalike.checks import byte_count, item_count
from lookalike.cli.parser import add_number, add_switch
from lookalike.cli.terminal import say
from lookalike.errors import ArgumentError
from lookalike.indexes import open_index
from lookalike.indexes.tuning import Tuning

PURPOSE = "say which index suits a collection, and what it will cost"
DESCRIPTION = (
    "Weigh all indexes for a collection and a question. Times are predicted by the cost of\n"
    "single steps on this machine, which is measured the first time, in about a second. With\n"
    "a file of signatures, the recall of an index that is not exact is measured on them before\n"
    "it is recommended. Without one, only exact indexes are recommended."
)
DETAILS = """\
columns of the table (* marks the choice):
  built with     options of `lookalike index`; with --batch, the command
  searched with  options of `lookalike search`, or with --batch of `lookalike match`
  µs a query     microseconds, one thread, queries in batches
  build s        seconds to build, one thread
  memory         signatures included
  finds          "all" if that is guaranteed; the recall that was measured, ± its sampling error;
                 or "?" if it was not measured
  remark         why it cannot be chosen, or what else there is to know

Numbers may end in K, M, G and T: thousands, millions and so on; sizes, too: 500MB, 8GB, 2GiB.

examples:
  lookalike plan signatures.npy --radius 3
  lookalike plan signatures.npy --nearest 10 --recall 0.9
  lookalike plan sample.npy --count 10M --nearest 10 --recall 0.9
  lookalike plan --count 10M --bits 64 --radius 3
  lookalike plan --count 60M --bits 64 --radius 3 --memory 1GB
  lookalike plan --count 1M --bits 64 --radius 3 --queries 100 --json
  lookalike plan --count 1G --bits 64 --radius 3 --batch 1M
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "signatures",
        type=Path,
        nargs="?",
        metavar="SIGNATURES",
        help="all signatures of the collection, or some drawn at random, to measure on: of "
        "`lookalike sign`, a .npy or .npz file, or a saved index",
    )
    parser.add_argument(
        "--count",
        type=item_count,
        metavar="N",
        help="signatures in the collection (default: as many as there are in the file)",
    )
    parser.add_argument(
        "--bits", type=int, metavar="N", help="bits of a signature (default: as in the file)"
    )
    question = parser.add_mutually_exclusive_group(required=True)
    add_number(question, "--radius", "find everything within so many bits", metavar="R")
    question.add_argument(
        "-k", "--nearest", dest="k", type=int, metavar="K", help="find so many nearest neighbours"
    )
    parser.add_argument(
        "--recall",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="least share that has to be found; below 1 give SIGNATURES, on which it is measured "
        "(default: 1)",
    )
    parser.add_argument(
        "--memory",
        type=byte_count,
        metavar="SIZE",
        help="what the index may take, as 2GB, signatures too",
    )
    parser.add_argument(
        "--queries",
        type=item_count,
        metavar="N",
        help="how many queries there will be; then building counts too",
    )
    parser.add_argument(
        "--batch",
        type=item_count,
        metavar="N",
        help="match N queries at a time with a collection on disk (`lookalike match`)",
    )
    parser.add_argument(
        "--query-signatures",
        type=Path,
        metavar="FILE",
        help="signatures that will be looked for (default: some of the collection, each looked for "
        "among the others)",
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "gpu"),
        default="cpu",
        help="gpu: weigh a CUDA card, too (default cpu)",
    )
    add_switch(parser, "--measure", "measure what steps cost on this machine again")
    add_switch(parser, "--json", "print JSON in place of a table")


def run(options: argparse.Namespace) -> None:
    """Print the plan."""
    if None in (options.count, options.bits) and options.signatures is None:
        raise ArgumentError("--count and --bits are needed, or a file of signatures")
    if options.query_signatures is not None and options.signatures is None:
        raise ArgumentError("--query-signatures goes with a file of signatures to measure on")
    if options.query_signatures is not None and options.queries is not None:
        raise ArgumentError("--queries and --query-signatures: expected one of them")
    queries = options.queries
    if options.query_signatures is not None:
        queries = open_index(options.query_signatures).living()[0]
    chosen = plan(
        count=options.count,
        bits=options.bits,
        radius=options.radius,
        k=options.k,
        recall=options.recall,
        memory=options.memory,
        queries=queries,
        signatures=open_index(options.signatures).living()[0] if options.signatures else None,
        batch=options.batch,
        device=options.device,
        costs=machine_costs(refresh=True) if options.measure else None,
    )
    if options.json:
        say(json.dumps({"lookalike": __version__, **chosen.to_dict()}, indent=2, allow_nan=False))
    else:
        say(plan_text(chosen, _words(chosen)))


def _words(chosen: Tuning[Prediction]) -> Words:
    """Return how what was planned is typed; the header of flips the index chooses by itself."""

    def built(option: Prediction) -> str:
        if option.index == "batch":
            return "lookalike match"
        typed = [f"--kind {option.index}"]
        if "slice_bits" in option.parameters:
            typed.append(f"--slice-bits {option.parameters['slice_bits']}")
        if "blocks" in option.parameters:
            tables = math.comb(option.parameters["blocks"], option.parameters["lead"])
            typed.append(f"--radius {option.parameters['radius']} --tables {tables}")
        if "orders" in option.parameters:
            typed.append(f"--orders {option.parameters['orders']}")
        if "clusters" in option.parameters:
            typed.append(f"--clusters {option.parameters['clusters']}")
        if option.parameters.get("compressed"):
            typed.append("--compressed")
        return " ".join(typed)

    def searched(option: Prediction) -> str:
        asked = f"-k {chosen.k}" if chosen.radius is None else f"--radius {chosen.radius}"
        typed = (
            f" --{name} {option.settings[name]:g}"
            for name in ("expand", "probe", "recall")
            if name in option.settings
        )
        method = f" --method {option.settings['method']}" if "method" in option.settings else ""
        return asked + method + "".join(typed)

    return Words(
        built,
        searched,
        sample="Give a file of some to measure.",
    )
