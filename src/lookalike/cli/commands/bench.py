"""`lookalike bench`: how quick searches of random signatures are, here or on a CUDA card."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from lookalike.advice.planner import aligned
from lookalike.checks import thread_count, whole_number
from lookalike.cli.parser import refuse_given
from lookalike.cli.terminal import say, say_json
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.kinds import KINDS
from lookalike.operation import in_parts, report
from lookalike.progress import watched
from lookalike.shown import counted

COUNT, GPU_COUNT, BITS = 100_000, 500_000_000, 256

TASK = "tools"
PURPOSE = "measure the search speed of this machine or a CUDA GPU"
DESCRIPTION = """\
Measure how long each type of index takes to build and to search, on random
signatures. With --device gpu, measure exact searches on a CUDA GPU."""
ARGUMENTS = f"""
  --count COUNT        number of signatures (default: {COUNT:,}; gpu {GPU_COUNT:,})
  --bits N             bits per signature, on the CPU (default: {BITS})
  kind:--type NAME     type of index, on the CPU, as in `lookalike index` (default: all of them)
  --device cpu|gpu=cpu  where to search
  --gpu-number N       number of the GPU (default: 0)
  --threads
  --json
"""
EXAMPLES = """\
  lookalike bench
  lookalike bench --count 1M --bits 64 --type blocks
  lookalike bench --device gpu --count 10M --json
"""
DETAILS = """\
columns of the table:
  build       seconds to build the index
  MB          memory of the index, signatures included
  one         milliseconds for a single query: the median of 32
  of 256      milliseconds per query in a batch of 256
  found       share of queries whose near-duplicate, 1 bit in 64 away, is among the 10 nearest

columns on a GPU (signatures of 1024 bits; a fifth as many of 64 bits, and a fiftieth for pairs):
  queries     number of queries in a batch
  ms          milliseconds for the batch: the median of five
  a pass      milliseconds for one pass over the collection, for at most 256 queries
  a second    queries per second, or comparisons for pairs
"""
_ALONE, _TOGETHER, _K = 32, 256, 10


def run(options: argparse.Namespace) -> None:
    """Print the table, a line at a time."""
    for name, least in {"count": 1, "bits": 8, "threads": 1, "gpu_number": 0}.items():
        if getattr(options, name) is not None:
            whole_number(name, getattr(options, name), at_least=least)
    if options.device == "gpu":
        refuse_given(options, ("bits", "kind", "threads"), "does nothing with --device gpu")
        _measure_gpu(options)
    else:
        refuse_given(options, ("gpu_number",), "needs --device gpu")
        _measure_kinds(options)


def _measure_kinds(options: argparse.Namespace) -> None:
    count = COUNT if options.count is None else options.count
    bits = BITS if options.bits is None else options.bits
    if bits % 8:
        raise ArgumentError(Said("bits"), f" is {bits}; expected a multiple of 8")
    threads = thread_count(options.threads)
    kinds = [kind for kind in KINDS if kind.is_built]
    if options.kind is not None:
        kinds = [KINDS.get(options.kind, "kind")]
        if not kinds[0].is_built:
            raise ArgumentError(Said("kind"), f" is {options.kind}, which cannot be built by name")
    random = np.random.default_rng(0)
    signatures = random.integers(0, 256, (count, bits // 8), np.uint8)
    asked = random.integers(0, count, _TOGETHER)
    flips = np.zeros((_TOGETHER, bits), bool)
    for query in flips:
        query[random.choice(bits, max(1, bits // 64), replace=False)] = True
    queries = signatures[asked] ^ np.packbits(flips, axis=1, bitorder="little")
    k, rows = min(_K, count), [["kind", "build", "MB", "one", "of 256", "found"]]
    with watched("bench", options.json):
        for kind in in_parts(kinds):
            index, built = _timed(lambda: kind.build(signatures, threads=threads))  # noqa: B023
            index.search(queries[:1], k, threads=threads)  # some kinds learn at the first search
            answer, batch = _timed(lambda: index.search(queries, k, threads=threads))  # noqa: B023
            alone = [
                _timed(lambda: index.search(one, k, threads=threads))[1]  # noqa: B023
                for one in queries[:_ALONE, None]
            ]
            line = {
                "kind": kind.name,
                "build_seconds": built,
                "memory_bytes": index.memory_bytes,
                "milliseconds": 1000 * float(np.median(alone)),
                "batch_milliseconds": 1000 * batch / _TOGETHER,
                "found": float((answer.ids == asked[:, None]).any(axis=1).mean()),
            }
            if options.json:
                say_json({"signatures": count, "bits": bits, **line})
                continue
            cells = [f"{built:.2f}", f"{index.memory_bytes / 1e6:,.0f}"]
            cells += [f"{line['milliseconds']:.3f}", f"{line['batch_milliseconds']:.3f}"]
            rows.append([kind.name, *cells, f"{line['found']:.3f}"])
    if not options.json:
        say(f"{counted(count, 'signature')} of {bits} bits\n\n{aligned(rows)}")


def _timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """Return what an action returns, and how many seconds it took."""
    begin = time.perf_counter()
    return action(), time.perf_counter() - begin


def _measure_gpu(options: argparse.Namespace) -> None:
    from lookalike.gpu.bench import CASES, lines
    from lookalike.gpu.card import card

    here = card(options.gpu_number or 0)
    rows = [["case", "signatures", "bits", "queries", "ms", "a pass", "a second", "checked"]]
    count = GPU_COUNT if options.count is None else options.count
    with watched("bench", options.json):
        for place, line in enumerate(lines(here, count), 1):
            report(place, CASES)
            if options.json:
                say_json({"card": here.name, **asdict(line)})
                continue
            alone = "" if line.pass_seconds is None else f"{1000 * line.pass_seconds:.2f}"
            cells = [line.case, f"{line.signatures:,}", str(line.bits), str(line.queries or "")]
            cells += [f"{1000 * line.seconds:.2f}", alone, f"{line.rate:,.0f}"]
            rows.append([*cells, "same" if line.checked else "NOT THE SAME"])
    if not options.json:
        say(f"{here.name}\n\n{aligned(rows)}")
