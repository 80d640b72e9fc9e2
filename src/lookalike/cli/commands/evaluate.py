"""`lookalike evaluate`: how good and how quick indexes are, and how good signers, on your data."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import __version__, advice
from lookalike.advice import Measurement
from lookalike.advice.evaluation import measurement_table
from lookalike.checks import share, whole_number
from lookalike.cli.common import corpus_of
from lookalike.cli.parser import VALUES, numbers, refuse_given
from lookalike.cli.terminal import say, say_json
from lookalike.corpora import Problems
from lookalike.corpora.columns import find_columns, text_strings
from lookalike.errors import ArgumentError, FileError, MissingDependencyError, Said
from lookalike.indexes import open_index
from lookalike.indexes.tuning import Tuning
from lookalike.progress import progress_bars
from lookalike.shown import counted, escape_terminal
from lookalike.signatures.methods import TEXT_SIGNERS
from lookalike.signatures.signer import SIGNERS, DocumentSigner

_MOST_NEIGHBORS = 1 << 20
QUERIES, TEXTS = 200, 10_000  # of a sample
EXPAND = (0, 1, 2, 3)
_EXPAND_TEXT = ",".join(map(str, EXPAND))
_SETTINGS = ("slice_bits", "expand", "admit", "rerank", "orders", "clusters", "probe", "growth")
VALUES["ALL"] = lambda text: "all" if text == "all" else numbers(text)

TASK = "tools"
PURPOSE = "measure speed and recall of indexes on your signatures, or of signers on your texts"
DESCRIPTION = """\
Build slice indexes over your signatures, search them, and compare time and
answers with an exhaustive scan. With --signer, measure precision and recall
of signatures of your texts, compared with exact similarity."""
ARGUMENTS = f"""
  SIGNATURES            file of `lookalike sign`, .npy or .npz (uint8[n, bits // 8] or
                        uint64[n, bits // 64]), or an index; with --signer, a corpus of texts
  -k K=10               number of neighbors per query
  --tune SHARE          find the fastest settings that reach this target, such as 0.95, instead of
                        measuring all settings
  --target cdr|recall=cdr  measure of --tune: cumulative distance ratio, or recall
  --signer SIGNERS      measure precision and recall of these signers over the radius, such as
                        simhash:64:tfidf,topsig:1024, or "suggested"
  --threshold T=0.9     least similarity of similar texts, with --signer
  --leave-out           also measure each signer without common features and short words, with
                        --signer
  -o --output FOLDER    write evaluation.json and plots to this folder
  --json                print the contents of evaluation.json, and no table
advanced options:
  --queries FILE        signatures to search for (default: a sample of SIGNATURES)
  --sample N            number of queries in that sample (default: 200), or of texts with --signer
                        (default: 10000)
  --text COLUMN         column with the document text, with --signer (default: detected)
  --slice-bits NUMBERS  slice widths, such as 14,16 (default: what SliceIndex chooses)
  --expand NUMBERS      values of --expand (default: {_EXPAND_TEXT})
  --admit ALL           values of --admit, or "all" from 0 to --expand (default: the same as
                        --expand)
  --rerank NUMBERS      numbers of candidates whose distance is computed, each at least K, or 0 to
                        rank by score
  --orders NUMBERS      also measure indexes of --type prefix with these numbers of orders: 8,16
  --clusters NUMBERS    also measure indexes of --type clusters with these numbers of groups
  --probe NUMBERS       numbers of groups to read, with --clusters, such as 8,32 (default: every
                        12th, or as many as near-duplicates need)
  --growth              also measure parts of 1000, 2000, 4000, ... signatures
  memory:--memory-limit SIZE  memory for lists and groups with --tune, such as 2GB
  --threads N=1         number of threads
"""
EXAMPLES = """\
  lookalike evaluate signatures.npy
  lookalike evaluate signatures.npy --tune 0.9 --target recall
  lookalike evaluate signatures.npy --slice-bits 12,14,16 --expand 0,1,2,3 -o report
  lookalike evaluate corpus.jsonl --signer suggested --threshold 0.8 -o report
"""
DETAILS = """\
columns of the table with --signer:
  signer         name, bits, weights of features, and what is left out
  crosses at     first radius at which recall is no less than precision
  precision      share of the pairs within this radius that are similar
  recall         share of the similar pairs that are within this radius
  recall at 0.9  largest recall of a radius with a precision of at least 0.9
  balance        largest value that precision and recall both reach at one radius

columns of the table:
  slices       slice width; "scan" is the exhaustive search; "16 orders" is an index of --type
               prefix, "16 of 500 groups" one of --type clusters and the groups read
  expand       bits of a slice that may differ
  admit        bits of a slice up to which new candidates are admitted
  rerank       candidates whose distance was computed (with --rerank)
  ms           milliseconds per query, one at a time
  ms in batch  milliseconds per query, all at once
  CDR@k        cumulative distance ratio: 1 if the results are as near as the true nearest
  recall@k     share of the true k nearest that was found
  nearest      share of queries whose nearest signature came first
  near-dup.    share found of all signatures within a tenth of the bits (at most k per query)
  touched      share of the collection that became candidates
  build s      seconds to build the index
  bytes        bytes per signature, lists included
"""


def run(options: argparse.Namespace) -> None:
    """Measure, print, and write the outputs."""
    _check(options)
    if options.signer is not None:
        _evaluate_signers(options)
        return
    options.sample = QUERIES if options.sample is None else options.sample
    signatures = open_index(options.signatures).living()[0]
    queries = open_index(options.queries).living()[0] if options.queries else None
    count, bits = signatures.shape[0], 8 * signatures.shape[1]
    settings = {"k": options.k, "sample": options.sample, "threads": options.threads}
    threads = counted(options.threads, "thread")
    _make_folder(options.output)
    if options.tune is not None:
        with progress_bars(options.json, transient=True) as progress:
            tuning = advice.tune(
                signatures,
                queries=queries,
                memory=options.memory,
                progress=progress,
                **settings,
                **{f"target_{options.target}": options.tune},
            )
        if not options.json:
            asked = counted(tuning.queries, "query", "queries")
            say(f"{count:,} signatures of {bits} bits, {asked}, {threads}\n")
            say(tuning)
        _conclude(options, {"tuning": tuning.to_dict()})
        return
    options.expand = EXPAND if options.expand is None else options.expand
    with progress_bars(options.json, transient=True) as progress:
        evaluation = advice.evaluate(
            signatures,
            queries,
            **{name: getattr(options, name) for name in _SETTINGS[:-1]},
            progress=progress,
            **settings,
        )
    series = {}
    if options.growth:
        series = _growth(signatures, {**settings, "expand": max(options.expand)})
    if not options.json:
        asked = counted(evaluation.queries, "query", "queries")
        say(f"{count:,} signatures of {bits} bits, {asked}, {threads}\n")
        say(evaluation)
        for name, rows in series.items():
            table = measurement_table(rows, options.k, sizes=True)
            say(f"\n{name[0].upper()}{name[1:]}:\n\n{table}")
    grown = {name: [asdict(row) for row in rows] for name, rows in series.items()}
    _conclude(options, {**evaluation.to_dict(), "growth": grown})
    if options.output:
        _draw(options, evaluation, series)


def _make_folder(folder: Path | None) -> None:
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made: {error.strerror or error}") from error


def _evaluate_signers(options: argparse.Namespace) -> None:
    """Measure signers on a corpus, print, and write the outputs."""
    signers = _signers(options.signer)
    corpus = corpus_of([str(options.signatures)], options)
    column = find_columns(corpus, options.text, None).text

    def texts() -> Iterator[str]:
        for batch in corpus.read([column], Problems(skip_bad=True)):
            yield from text_strings(batch.column(0), column, corpus).drop_null().to_pylist()

    _make_folder(options.output)
    with progress_bars(options.json, transient=True) as progress:
        found = advice.evaluate_signers(
            texts(),
            signers,
            threshold=options.threshold,
            leave_out=options.leave_out,
            sample=TEXTS if options.sample is None else options.sample,
            threads=options.threads,
            progress=progress,
        )
    if not options.json:
        say(found)
    _conclude(options, {"signers": found.to_dict()})
    if options.output:
        _plot(options, {"signers.png": partial(advice.plot_signers, found)})


def _signers(text: str) -> list[DocumentSigner] | None:
    """Return the signers that are named as NAME:BITS:WEIGHTS; None for those that are suggested."""
    if text == "suggested":
        return None
    signers: list[DocumentSigner] = []
    for part in text.split(","):
        name, bits, weights = (*part.split(":"), "", "")[:3]
        if name not in TEXT_SIGNERS or part.count(":") > 2 or (bits and not bits.isdecimal()):
            raise ArgumentError(
                Said("--signer"),
                f" has {part!r}; expected NAME, NAME:BITS or NAME:BITS:WEIGHTS with a name of "
                f"{', '.join(TEXT_SIGNERS)}, or the word suggested",
            )
        given = {"bits": int(bits)} if bits else {}
        signers.append(SIGNERS[name](**given, **({"weights": weights} if weights else {})))  # type: ignore[arg-type]
    return signers


def _check(options: argparse.Namespace) -> None:
    """Refuse options that do not go together, before anything takes time."""
    if options.sample is not None:
        whole_number("--sample", options.sample, at_least=1)
    whole_number("-k", options.k, at_least=1, at_most=_MOST_NEIGHBORS)
    whole_number("--threads", options.threads, at_least=1)
    if options.signer is not None:
        share("--threshold", options.threshold)
        idle = {**dict.fromkeys(_SETTINGS), "growth": False, "tune": None, "queries": None}
        refuse_given(options, idle, "does nothing with --signer, which measures signers")
        return
    only = "needs --signer, such as --signer suggested"
    refuse_given(options, {"threshold": 0.9, "leave_out": False, "text": None}, only)
    if options.tune is None:
        only = "needs --tune, such as --tune 0.95"
        refuse_given(options, {"memory": None, "target": "cdr"}, only)
        return
    share("--tune", options.tune)
    refuse_given(options, _SETTINGS, "does nothing with --tune, which chooses it")


def _growth(
    signatures: NDArray[np.uint8], settings: dict[str, Any]
) -> dict[str, list[Measurement]]:
    """Return the two series of the paper's Figure 3, by their names."""
    with progress_bars(transient=True) as progress:
        grown = advice.growth(signatures, **settings, progress=progress)
    first = grown[1].get("slice_bits")
    with progress_bars(transient=True) as progress:
        kept = advice.growth(signatures, **settings, slice_bits=first, progress=progress)
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
    """Print what is not a result; to standard error where results are JSON."""
    say(text, file=sys.stderr if options.json else sys.stdout)


def _draw(
    options: argparse.Namespace,
    evaluation: Tuning[Measurement],
    series: dict[str, list[Measurement]],
) -> None:
    """Write the plots of indexes."""
    pictures: dict[str, Callable[[Path], None]] = {
        "trade_off.png": partial(advice.plot_trade_off, evaluation),
        "touched.png": partial(advice.plot_touched, evaluation),
    }
    if series:
        pictures["growth.png"] = partial(advice.plot_growth, series, threads=evaluation.threads)
    _plot(options, pictures)


def _plot(options: argparse.Namespace, pictures: dict[str, Callable[[Path], None]]) -> None:
    """Write plots by name, and say where; without matplotlib, a hint."""
    try:
        for name, draw in pictures.items():
            path = options.output / name
            draw(path)
            _say_beside(options, f"wrote {escape_terminal(path)}")
    except MissingDependencyError as error:
        _say_beside(options, f"no plots: {error}")
