"""`lookalike plan`: which index suits a collection and a question, and what it will cost."""

from __future__ import annotations

import argparse
import json
import math

from lookalike import __version__
from lookalike.advice.machine import machine_costs
from lookalike.advice.planner import Prediction, Words, plan, plan_text
from lookalike.advice.scale import plan_scale
from lookalike.cli.parser import refuse_given
from lookalike.cli.terminal import say
from lookalike.errors import ArgumentError
from lookalike.indexes import open_index
from lookalike.indexes.tuning import Tuning
from lookalike.progress import watched

TASK = "tools"
PURPOSE = "recommend an index for a collection and predict its cost"
DESCRIPTION = """\
Compare all indexes for a collection and a kind of query. Times are predicted
from the cost of single steps on this machine, which is measured once. With a
file of signatures, the recall of inexact indexes is measured too; without one,
only exact indexes are recommended. With --documents and --engine, predict what
billions of documents take: time, bytes and memory."""
ARGUMENTS = """
  [SIGNATURES]       all signatures, or a random sample to measure on: a file of `lookalike sign`,
                     .npy or .npz, or an index
  --count COUNT      number of signatures in the collection (default: that of the file)
  --bits N           bits per signature (default: that of the file)
  | --radius N       find everything within this Hamming distance, in bits
  | -k K             find this number of nearest neighbors
  --recall SHARE=1   minimum share of the results that are found; below 1, needs SIGNATURES
  memory:--memory-limit SIZE  memory for the index with its signatures, such as 2GB
  --documents COUNT  predict what this number of documents takes with --engine
  --engine spark|shards|gpu  spark: dedup on a cluster; shards: search on several machines with
                     --memory-limit each; gpu: search on GPUs
  --json             print the plan as JSON
advanced options:
  --text-bytes N=740  average size of a document, for --engine spark
  duplicates:--duplicate-share SHARE=0.1  share of documents with a near-duplicate, for --engine
                     spark
  --cores N=1600     number of cores of the cluster, for --engine spark
  queries:--query-count COUNT  expected number of queries; build time then counts too
  query_signatures:--queries FILE  signatures to search for (default: a sample of SIGNATURES)
  --batch COUNT      match this number of queries at a time with a file on disk (`lookalike match`)
  --device cpu|gpu=cpu  gpu: also consider a CUDA GPU
  --remeasure        measure the cost of steps on this machine again
"""
EXAMPLES = """\
  lookalike plan signatures.npy --radius 3
  lookalike plan sample.npy --count 10M -k 10 --recall 0.9
  lookalike plan --count 60M --bits 64 --radius 3 --memory-limit 1GB
  lookalike plan --documents 10G --engine spark
"""
DETAILS = """\
columns of the table (* marks the recommended index):
  built with     options of `lookalike index`; with --batch, the command
  searched with  options of `lookalike search`, or with --batch of `lookalike match`
  µs a query     microseconds per query, one thread, queries in batches
  build s        seconds to build, one thread
  memory         signatures included
  finds          "all" if guaranteed; the measured recall ± its sampling error; or "?" if unknown
  remark         why it cannot be chosen, or other notes

Numbers may end in K, M, G and T; sizes in KB, MB, GB or MiB, GiB.
"""


def run(options: argparse.Namespace) -> None:
    """Print the plan."""
    if options.documents is not None or options.engine is not None:
        _plan_scale(options)
        return
    cluster = {"text_bytes": 740, "duplicates": 0.1, "cores": 1600}
    refuse_given(options, cluster, "needs --documents and --engine spark")
    if options.radius is None and options.k is None:
        raise ArgumentError("expected --radius or -k, or --documents and --engine")
    if None in (options.count, options.bits) and options.signatures is None:
        raise ArgumentError("expected --count and --bits, or a file of signatures")
    if options.query_signatures is not None and options.signatures is None:
        raise ArgumentError("--queries needs a file of signatures to measure on")
    if options.query_signatures is not None and options.queries is not None:
        raise ArgumentError("--queries and --query-count exclude each other; use one of them")
    queries = options.queries
    if options.query_signatures is not None:
        queries = open_index(options.query_signatures).living()[0]
    asked = ("count", "bits", "radius", "k", "recall", "memory", "batch", "device")
    with watched("plan", options.json):
        chosen = plan(
            **{name: getattr(options, name) for name in asked},
            queries=queries,
            signatures=open_index(options.signatures).living()[0] if options.signatures else None,
            costs=machine_costs(refresh=True) if options.remeasure else None,
        )
    if options.json:
        say(json.dumps({"lookalike": __version__, **chosen.to_dict()}, indent=2, allow_nan=False))
    else:
        say(plan_text(chosen, _words(chosen)))


def _plan_scale(options: argparse.Namespace) -> None:
    """Print what very many documents take."""
    if None in (options.documents, options.engine):
        raise ArgumentError("--documents and --engine need each other, such as --engine spark")
    idle = ("signatures", "count", "queries", "query_signatures", "batch")
    why = f"does nothing with --engine {options.engine}"
    refuse_given(options, {**dict.fromkeys(idle), "recall": 1.0, "device": "cpu"}, why)
    if options.engine != "shards":
        refuse_given(options, ("radius", "k", "memory"), why)
    if options.engine != "spark":
        refuse_given(options, {"text_bytes": 740, "duplicates": 0.1, "cores": 1600}, why)
    else:
        refuse_given(options, ("bits",), why)
    asked = {"bits": options.bits, "memory": options.memory, "k": options.k}
    found = plan_scale(
        options.documents,
        options.engine,
        text_bytes=options.text_bytes,
        duplicates=options.duplicates,
        cores=options.cores,
        radius=options.radius,
        **{name: value for name, value in asked.items() if value is not None},
    )
    if options.json:
        say(json.dumps({"lookalike": __version__, **found.to_dict()}, indent=2, allow_nan=False))
    else:
        say(found)


def _words(chosen: Tuning[Prediction]) -> Words:
    """Return how what was planned is typed; the header of flips the index chooses by itself."""

    def built(option: Prediction) -> str:
        if option.index == "batch":
            return "lookalike match"
        typed, chosen = [f"--type {option.index}"], option.parameters
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
        method = f" --algorithm {option.settings['method']}" if "method" in option.settings else ""
        return asked + method + "".join(typed)

    return Words(built, searched, sample="Give a file of some to measure.")
