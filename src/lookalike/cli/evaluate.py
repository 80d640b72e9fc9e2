"""`lookalike evaluate`: how good and how quick slices are on your own signatures."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import __version__
from lookalike.advice import (
    Measurement,
    evaluate,
    growth,
    plot_growth,
    plot_touched,
    plot_trade_off,
    tune,
)
from lookalike.advice.evaluation import Progress, measurement_table
from lookalike.checks import share, whole_number
from lookalike.cli.parser import VALUES, numbers, refuse_given
from lookalike.cli.terminal import say, say_json
from lookalike.errors import FileError, MissingDependencyError
from lookalike.indexes import open_index
from lookalike.indexes.tuning import Tuning
from lookalike.shown import escape_terminal

_MOST_NEIGHBOURS = 1 << 20
EXPAND = (0, 1, 2, 3)
_EXPAND_TEXT = ",".join(map(str, EXPAND))
_SETTINGS = ("slice_bits", "expand", "admit", "rerank", "orders", "clusters", "probe", "growth")
VALUES["ALL"] = lambda text: "all" if text == "all" else numbers(text)

PURPOSE = "measure speed and quality of slice indexes on your own signatures"
DESCRIPTION = """\
Build slice indexes over your signatures, search them, and compare time and
answers with the exhaustive scan. Prints a table; with --output also writes
evaluation.json and plots."""
ARGUMENTS = f"""
  SIGNATURES            signatures of `lookalike sign`, a .npy or .npz file (uint8[n, bits // 8] or
                        uint64[n, bits // 64]), or a saved index, whose signatures are taken
  --queries FILE        signatures to search for (default: a sample of the signatures, each looked
                        for among the others)
  --sample N=200        size of that sample
  -k K=10               neighbors per query
  --slice-bits NUMBERS  slice widths, such as 14,16 (default: what SliceIndex chooses)
  --expand NUMBERS      values of expand (default: {_EXPAND_TEXT})
  --admit ALL           values of admit, or "all" from 0 to expand (default: the same as expand)
  --rerank NUMBERS      numbers of candidates that get their true distance, each at least K; 0:
                        none, the best by score are taken
  --orders NUMBERS      also measure indexes of --kind prefix with these numbers of orders: 8,16
  --clusters NUMBERS    also measure indexes of --kind clusters with these numbers of groups
  --probe NUMBERS       with --clusters: how many groups are read, such as 8,32 (default: every
                        12th, or as many as near-duplicates take)
  --threads N=1         threads
  --growth              also measure parts of 1000, 2000, 4000, ... signatures, with a slice bit
                        more each time and with the same slices throughout
  --tune SHARE          instead of a table of all settings, find the fastest that reaches this
                        target, such as 0.95, or say that a scan is
  --target cdr|recall=cdr  with --tune: what has to reach it, the cumulative distance ratio or the
                        share of the true neighbors
  --memory SIZE         with --tune: memory for lists and groups, such as 2GB
  --output FOLDER       write evaluation.json and plots there
  --json                print what evaluation.json holds, and no table
"""
DETAILS = """\
columns of the table:
  slices       slice width; "scan" is the exhaustive search, always exact; "16 orders" is an
               index of --kind prefix (with --orders), "16 of 500 groups" are those that were
               read of one of --kind clusters (with --clusters)
  expand       bits of a slice that may differ and its list still be read
  admit        bits up to which a list may bring in new candidates
  rerank       candidates that got their true distance (with --rerank)
  ms           milliseconds for one query, asked alone
  ms in batch  milliseconds for one query, all asked at once
  CDR@k        cumulative distance ratio: 1 if the results are as near as the nearest
  recall@k     share of the true k nearest that was found
  nearest      queries whose nearest signature came first
  near-dup.    share found of all signatures that differ in at most a tenth of the bits
               (at most k a query; "-" if there are none)
  touched      share of the collection that became candidates
  build s      seconds to build the index
  bytes        for one signature, lists included

examples:
  lookalike evaluate signatures.npy
  lookalike evaluate signatures.npy --slice-bits 12,14,16 --expand 0,1,2,3 --output report
  lookalike evaluate signatures.npy --tune 0.95
  lookalike evaluate signatures.npy --tune 0.9 --target recall
"""


def run(options: argparse.Namespace) -> None:
    """Measure, print, and write what was asked for."""
    _check(options)
    signatures = open_index(options.signatures).living()[0]
    queries = open_index(options.queries).living()[0] if options.queries else None
    count, bits = signatures.shape[0], 8 * signatures.shape[1]
    settings = {"k": options.k, "sample": options.sample, "threads": options.threads}
    threads = "1 thread" if options.threads == 1 else f"{options.threads} threads"
    if options.output:
        try:
            options.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise FileError(f"{options.output} cannot be made: {reason}") from error
    if options.tune is not None:
        tuning = tune(
            signatures,
            queries=queries,
            memory=options.memory,
            progress=_progress("indexes"),
            **settings,
            **{f"target_{options.target}": options.tune},
        )
        if not options.json:
            say(f"{count:,} signatures of {bits} bits, {tuning.queries} queries, {threads}\n")
            say(tuning)
        _conclude(options, {"tuning": tuning.to_dict()})
        return
    options.expand = EXPAND if options.expand is None else options.expand
    evaluation = evaluate(
        signatures,
        queries,
        **{name: getattr(options, name) for name in _SETTINGS[:-1]},
        progress=_progress("settings"),
        **settings,
    )
    series = {}
    if options.growth:
        series = _growth(signatures, {**settings, "expand": max(options.expand)})
    if not options.json:
        say(f"{count:,} signatures of {bits} bits, {evaluation.queries} queries, {threads}\n")
        say(evaluation)
        for name, rows in series.items():
            table = measurement_table(rows, options.k, sizes=True)
            say(f"\n{name[0].upper()}{name[1:]}:\n\n{table}")
    grown = {name: [asdict(row) for row in rows] for name, rows in series.items()}
    _conclude(options, {**evaluation.to_dict(), "growth": grown})
    if options.output:
        _draw(options, evaluation, series)


def _check(options: argparse.Namespace) -> None:
    """Refuse options that do not go together, before anything takes time."""
    whole_number("--sample", options.sample, at_least=1)
    whole_number("-k", options.k, at_least=1, at_most=_MOST_NEIGHBOURS)
    whole_number("--threads", options.threads, at_least=1)
    if options.tune is None:
        only = "goes with --tune only; leave it out, or add --tune 0.95"
        refuse_given(options, {"memory": None, "target": "cdr"}, only)
        return
    share("--tune", options.tune)
    refuse_given(options, _SETTINGS, "does not go with --tune, which chooses by itself")


def _growth(
    signatures: NDArray[np.uint8], settings: dict[str, Any]
) -> dict[str, list[Measurement]]:
    """Return the two series of the paper's Figure 3, by their names."""
    grown = growth(signatures, **settings, progress=_progress("sizes"))
    first = grown[1].get("slice_bits")
    kept = growth(signatures, **settings, slice_bits=first, progress=_progress("sizes"))
    return {"slices a bit wider with each doubling": grown, f"slices of {first} bits": kept}


def _conclude(options: argparse.Namespace, contents: dict[str, Any]) -> None:
    """Print and write what was found, for programs."""
    contents = {"lookalike": __version__, **contents}
    if options.json:
        say_json(contents)
    if options.output:
        path = options.output / "evaluation.json"
        text = json.dumps(contents, indent=2, allow_nan=False)
        try:
            path.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror or error}") from error
        _say_beside(options, f"{'' if options.json else chr(10)}wrote {escape_terminal(path)}")


def _say_beside(options: argparse.Namespace, text: str) -> None:
    """Print what is no result, so that those who read the results as JSON do not get it."""
    say(text, file=sys.stderr if options.json else sys.stdout)


def _draw(
    options: argparse.Namespace,
    evaluation: Tuning[Measurement],
    series: dict[str, list[Measurement]],
) -> None:
    """Write plots, and say where; without matplotlib, a hint."""
    folder = options.output
    pictures: dict[str, Callable[[Path], None]] = {
        "trade_off.png": partial(plot_trade_off, evaluation),
        "touched.png": partial(plot_touched, evaluation),
    }
    if series:
        pictures["growth.png"] = partial(plot_growth, series, threads=evaluation.threads)
    try:
        for name, draw in pictures.items():
            draw(folder / name)
            _say_beside(options, f"wrote {escape_terminal(folder / name)}")
    except MissingDependencyError as error:
        _say_beside(options, f"no plots: {error}")


def _progress(what: str) -> Progress | None:
    """Return what shows a line that overwrites itself, after a second; None without a terminal."""
    if not sys.stderr.isatty():
        return None
    start = time.monotonic()

    def show(done: int, total: int) -> None:
        if time.monotonic() - start < 1:
            return
        text = f"measured {done} of {total} {what}" if done < total else ""
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()

    return show
