"""`lookalike plan`: which index suits a collection and a question, and what it will cost."""

from __future__ import annotations

import argparse
import json
import math

from lookalike import __version__
from lookalike.advice.machine import machine_costs
from lookalike.advice.planner import Prediction, Words, plan, plan_text
from lookalike.cli.terminal import say
from lookalike.errors import ArgumentError
from lookalike.indexes import open_index
from lookalike.indexes.tuning import Tuning

PURPOSE = "say which index suits a collection, and what it will cost"
DESCRIPTION = """\
Weigh all indexes for a collection and a question. Times are predicted by the cost of
single steps on this machine, which is measured the first time, in about a second. With
a file of signatures, the recall of an index that is not exact is measured on them before
it is recommended. Without one, only exact indexes are recommended."""
ARGUMENTS = """
  [SIGNATURES]       all signatures of the collection, or a random sample to measure on: a file of
                     `lookalike sign`, .npy or .npz, or a saved index
  --count COUNT      signatures in the collection (default: as many as there are in the file)
  --bits N           bits of a signature (default: as in the file)
  | --radius R       find everything within this number of bits (required)
  | k:-k --nearest K  find this number of nearest neighbors
  --recall SHARE=1   share that has to be found; below 1 give SIGNATURES, on which it is measured
  --memory SIZE      memory for the index with its signatures, such as 2GB
  --queries COUNT    number of queries to expect; building then counts, too
  --batch COUNT      match this number of queries at a time with a collection on disk
                     (`lookalike match`)
  --query-signatures FILE  signatures to search for (default: some of the collection, each looked
                     for among the others)
  --device cpu|gpu=cpu  gpu: consider a CUDA card, too
  --measure          measure what steps cost on this machine again
  --json             print JSON in place of a table
"""
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
  lookalike plan --count 60M --bits 64 --radius 3 --memory 1GB
  lookalike plan --count 1M --bits 64 --radius 3 --queries 100 --json
  lookalike plan --count 1G --bits 64 --radius 3 --batch 1M
"""


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
    asked = ("count", "bits", "radius", "k", "recall", "memory", "batch", "device")
    chosen = plan(
        **{name: getattr(options, name) for name in asked},
        queries=queries,
        signatures=open_index(options.signatures).living()[0] if options.signatures else None,
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
        typed, chosen = [f"--kind {option.index}"], option.parameters
        if "blocks" in chosen:
            tables = math.comb(chosen["blocks"], chosen["lead"])
            typed.append(f"--radius {chosen['radius']} --tables {tables}")
        named = [name for name in ("slice_bits", "orders", "clusters") if name in chosen]
        typed += [f"--{name.replace('_', '-')} {chosen[name]}" for name in named]
        if chosen.get("compressed"):
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

    return Words(built, searched, sample="Give a file of some to measure.")
