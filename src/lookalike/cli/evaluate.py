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
from typing import Any, Literal

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
from lookalike.checks import byte_count, share, whole_number
from lookalike.cli.parser import add_json, add_number, add_switch
from lookalike.cli.terminal import say, say_json
from lookalike.errors import ArgumentError, FileError, MissingDependencyError, Said
from lookalike.indexes import open_index
from lookalike.indexes.tuning import Tuning
from lookalike.shown import escape_terminal

_MOST_NEIGHBOURS = 1 << 20
EXPAND = (0, 1, 2, 3)
_EXPAND_TEXT = ",".join(map(str, EXPAND))

PURPOSE = "measure speed and quality of slice indexes on your own signatures"
DESCRIPTION = (
    "Build slice indexes over your signatures, search them, and compare time and\n"
    "answers with the exhaustive scan. Prints a table; with --output also writes\n"
    "evaluation.json and plots."
)
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


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "signatures",
        type=Path,
        metavar="SIGNATURES",
        help="signatures of `lookalike sign`, a .npy or .npz file (uint8[n, bits // 8] or "
        "uint64[n, bits // 64]), or a saved index, whose signatures are taken",
    )
    parser.add_argument(
        "--queries",
        type=Path,
        metavar="FILE",
        help="what to look for, in the same sort of file (default: a sample of the signatures, "
        "each looked for among the others)",
    )
    add_number(parser, "--sample", "size of that sample", default=200)
    parser.add_argument("-k", type=int, default=10, help="neighbours a query (default 10)")
    parser.add_argument(
        "--slice-bits",
        type=_numbers,
        metavar="LIST",
        help="slice widths to build, such as 14,16 (default: what SliceIndex chooses)",
    )
    parser.add_argument(
        "--expand", type=_numbers, metavar="LIST", help=f"values of expand (default {_EXPAND_TEXT})"
    )
    parser.add_argument(
        "--admit",
        type=_numbers_or_all,
        metavar="LIST",
        help='values of admit, or "all" from 0 to expand (default: the same as expand)',
    )
    parser.add_argument(
        "--rerank",
        type=_numbers,
        metavar="LIST",
        help="numbers of candidates that get their true distance, each at least K; 0: none, the "
        "best by score are taken",
    )
    parser.add_argument(
        "--orders",
        type=_numbers,
        metavar="LIST",
        help="also measure indexes of --kind prefix with so many orders, such as 8,16",
    )
    parser.add_argument(
        "--clusters",
        type=_numbers,
        metavar="LIST",
        help="also measure indexes of --kind clusters with so many groups, such as 500,1000",
    )
    parser.add_argument(
        "--probe",
        type=_numbers,
        metavar="LIST",
        help="with --clusters: how many groups are read, such as 8,32 (default: every 12th, or "
        "as many as near-duplicates take)",
    )
    add_number(parser, "--threads", "threads", default=1)
    add_switch(
        parser,
        "--growth",
        "also measure parts of 1000, 2000, 4000, ... signatures, with a slice bit more each "
        "time and with the same slices throughout",
    )
    parser.add_argument(
        "--tune",
        type=float,
        metavar="TARGET",
        help="instead of a table of all settings, find the quickest that reaches this, such as "
        "0.95, or say that a scan is",
    )
    parser.add_argument(
        "--target",
        choices=("cdr", "recall"),
        default="cdr",
        help="with --tune: what is to be reached, the cumulative distance ratio or the share of "
        "the true neighbours (default cdr)",
    )
    parser.add_argument(
        "--memory",
        type=byte_count,
        metavar="SIZE",
        help="with --tune: only lists and groups that fit into that, such as 2GB",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="write evaluation.json and plots there"
    )
    add_json(parser, "print what evaluation.json holds, and no table")


def run(options: argparse.Namespace) -> None:
    """Measure, print, and write what was asked for."""
    _check(options)
    signatures = open_index(options.signatures).living()[0]
    queries = open_index(options.queries).living()[0] if options.queries else None
    count, bits = signatures.shape[0], 8 * signatures.shape[1]
    settings = {"k": options.k, "sample": options.sample, "threads": options.threads}
    threads = "1 thread" if options.threads == 1 else f"{options.threads} threads"
    if options.output:
        _make_folder(options.output)
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
    evaluation = evaluate(
        signatures,
        queries,
        slice_bits=options.slice_bits,
        expand=EXPAND if options.expand is None else options.expand,
        admit=options.admit,
        rerank=options.rerank,
        orders=options.orders,
        clusters=options.clusters,
        probe=options.probe,
        progress=_progress("settings"),
        **settings,
    )
    series = {}
    if options.growth:
        expand = 3 if options.expand is None else max(options.expand)
        series = _growth(signatures, {**settings, "expand": expand})
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
    if options.tune is not None:
        share("--tune", options.tune)
    else:
        if options.memory is not None:
            raise ArgumentError(
                Said("--memory"), " goes with --tune only; leave it out, or add --tune 0.95"
            )
        if options.target != "cdr":
            raise ArgumentError(
                Said("--target"), " goes with --tune only; leave it out, or add --tune 0.95"
            )
        return
    for name in (
        "slice_bits",
        "expand",
        "admit",
        "rerank",
        "orders",
        "clusters",
        "probe",
        "growth",
    ):
        if getattr(options, name):
            raise ArgumentError(Said(name), " does not go with --tune, which chooses by itself")


def _growth(
    signatures: NDArray[np.uint8], settings: dict[str, Any]
) -> dict[str, list[Measurement]]:
    """Return the two series of the paper's Figure 3, by their names."""
    grown = growth(signatures, **settings, progress=_progress("sizes"))
    first = grown[1].get("slice_bits")
    kept = growth(signatures, **settings, slice_bits=first, progress=_progress("sizes"))
    return {"slices a bit wider with each doubling": grown, f"slices of {first} bits": kept}


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made: {error.strerror or error}") from error


def _conclude(options: argparse.Namespace, contents: dict[str, Any]) -> None:
    """Print and write what was found, for programs."""
    contents = {"lookalike": __version__, **contents}
    if options.json:
        say_json(contents)
    if options.output:
        path = options.output / "evaluation.json"
        _write_json(path, contents)
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


def _write_json(path: Path, contents: dict[str, Any]) -> None:
    text = json.dumps(contents, indent=2, allow_nan=False)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error


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


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of whole numbers; expected something like 0,1,2"
        ) from None


def _numbers_or_all(text: str) -> list[int] | Literal["all"]:
    return "all" if text == "all" else _numbers(text)
