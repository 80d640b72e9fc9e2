"""`lookalike dedup --vectors COLUMN`: the same job by the cosine of vectors."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from lookalike.cli.options import check_folder, check_not_read, corpus_of, publish, typed_settings
from lookalike.cli.terminal import is_standard, progress_bars, say, say_json, standard_output, warn
from lookalike.corpora import check_table_target, check_target
from lookalike.dedup.embeddings.job import THRESHOLD, dedup_vectors
from lookalike.errors import ArgumentError, Said
from lookalike.shown import shown
from lookalike.storage import same_file

_SETTINGS = {"threshold", "cluster", "max_cluster", "keep", "exact"}
_TEXTS = "which are not compared here"

_NOT_THERE = {
    "text": f"it is for texts, {_TEXTS}",
    "against": "put both into one file, and keep the first",
    "report": "it shows texts, which are not compared here; --annotate and --pairs say who is like "
    "whom",
    "save_signatures": "la.VectorIndex keeps vectors and signatures in a file",
    "work": "there is nothing to go on with: vectors are held in memory",
    "memory_limit": "vectors are held in memory",
    "skip_bad": "a null stays, and whatever else is no vector has to be mended",
    "max_document": f"it is for texts, {_TEXTS}",
    "html": f"it is for texts, {_TEXTS}",
    "page_limits": f"it is for texts, {_TEXTS}",
    "min_words": f"it is for texts, {_TEXTS}",
    "language": f"it is for texts, {_TEXTS}",
    "min_links": f"it is for texts, {_TEXTS}",
    "strip_urls": f"it is for texts, {_TEXTS}",
    "max_pairs": "there are at most 100,000,000 pairs of vectors",
    "collapse": "equal vectors are pairs like others",
    "device": "a card looks for pairs of texts",
}
"""Options that say nothing of vectors, and what to do instead."""


def run_on_vectors(options: argparse.Namespace) -> None:
    """Run the job, write what was asked for, print the summary."""
    _check(options)
    corpus = corpus_of(options.input, options)
    _check_outputs(options, corpus)
    given = typed_settings(options)
    with progress_bars(options.quiet or options.json) as progress:
        found = dedup_vectors(
            corpus,
            options.vectors,
            threshold=options.threshold if "threshold" in given else THRESHOLD,
            exact=options.exact,
            id=options.id,
            cluster=options.cluster,
            keep=options.keep,
            max_cluster=options.max_cluster,
            threads=options.threads,
            progress=progress,
        )
    start, written = time.perf_counter(), {}
    if options.pairs is not None:
        found.write_pairs(options.pairs)
        written["pairs"] = publish(options, options.pairs)
    if options.output is not None:
        kind, write = (
            ("annotated rows", found.write_annotated)
            if options.annotate
            else ("rows that stay", found.write)
        )
        _write(options, write)
        written[kind] = publish(options, options.output)
    if written:
        found.seconds["write"] = time.perf_counter() - start
    file = sys.stderr if is_standard(options.output) else sys.stdout
    if options.json:
        say_json({**found.to_dict(), "written": written}, file=file)
    elif not options.quiet:
        say(found.summary(), file=file)
        if written:
            say(file=file)
        for kind, path in written.items():
            say(f"  {kind}: {shown(path)}", file=file)
    if options.json or options.quiet:
        for warning in found.warnings:
            warn(warning)


def _write(options: argparse.Namespace, write: Callable[..., int]) -> None:
    if is_standard(options.output):
        with standard_output() as stream:
            write(stream)
    else:
        write(options.output, in_place=options.in_place)


def _check(options: argparse.Namespace) -> None:
    """Refuse what says nothing of vectors."""
    if options.engine[0] != "local":
        raise ArgumentError(Said("--vectors"), " goes with the local job alone; leave out --engine")
    for name, instead in _NOT_THERE.items():
        if getattr(options, name) not in (None, False, 0, "cpu"):
            raise ArgumentError(Said(name), f" does nothing with --vectors: {instead}")
    idle = sorted(set(typed_settings(options)) - _SETTINGS)
    idle += [name for name in ("verify",) if not getattr(options, name)]
    if idle:
        raise ArgumentError(Said(idle[0]), " does nothing with --vectors; leave it out")


def _check_outputs(options: argparse.Namespace, corpus: Any) -> None:
    """Refuse what can be seen to fail, before the work is done."""
    if options.in_place:
        if options.output is None and len(corpus.files) == 1:
            options.output = corpus.files[0]
        if options.output is None or same_file(options.output, corpus.files) is None:
            raise ArgumentError("--in-place takes the place of one file that is read")
    if options.annotate and options.output is None:
        raise ArgumentError(Said("--annotate"), " needs a file to write to: -o FILE")
    if is_standard(options.pairs):
        raise ArgumentError(Said("pairs"), " is -; expected a file")
    for path in (options.output, options.pairs):
        if path is not None and not is_standard(path):
            check_folder(path)
    check_not_read("--pairs", options.pairs, corpus.files)
    if options.pairs is not None:
        check_table_target(options.pairs)
    if options.output is not None and not is_standard(options.output):
        if options.pairs is not None and options.output.resolve() == options.pairs.resolve():
            raise ArgumentError("two outputs have the same name; give each its own")
        check_target(corpus, options.output, annotated=options.annotate, in_place=options.in_place)
