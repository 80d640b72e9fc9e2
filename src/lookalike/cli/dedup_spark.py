"""`lookalike dedup --engine spark`: the same job on a cluster."""

from __future__ import annotations

import argparse
import re
import time

from lookalike.cli.options import filters_of, settings_of
from lookalike.cli.terminal import say, say_json, warn
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.summary import criterion, share_text, size_text
from lookalike.errors import ArgumentError, ResultTooLargeError, Said
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.shown import shown

ENGINES = ("local", "spark")

_NOT_THERE = {
    "collapse": "leave out --exact to pair equal texts with their first only",
    "memory_limit": "Spark's own settings say how much memory its workers have",
    "max_document": "Spark's own settings say how much memory its workers have",
    "threads": "Spark's own settings say how many cores its workers have",
    "report": "the page is made by the local job, of the documents that stay or of a sample",
    "save_signatures": "signatures are saved by `lookalike sign`",
    "in_place": "the output is a new folder",
    "device": "a card is of the local job",
    "encoding": "Spark reads UTF-8; convert the files first, or use the local job",
}
"""Options that Spark cannot honour, and what to do instead."""


def engine_of(text: str) -> tuple[str, str | None]:
    """Return the engine that an option names, and its master."""
    name, _, master = text.partition("=")
    if name not in ENGINES or (name == "local" and master):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no engine; expected local, spark, or spark=MASTER"
        )
    return name, master or None


def run_on_spark(options: argparse.Namespace) -> None:
    """Run the job on Spark, write what was asked for, print the summary."""
    settings = settings_of(options)
    DedupSettings(**settings)  # before anything starts
    _check(options)
    from lookalike.spark.files import SparkCorpus, check_new, session_of
    from lookalike.spark.job import dedup
    from lookalike.spark.sources import OldFiles

    start = time.perf_counter()
    spark = session_of(options.engine[1])
    started = time.perf_counter() - start
    for output in (options.output, options.pairs):
        if output is not None:
            check_new(spark, _address(str(output)))
    corpus = SparkCorpus.read(
        spark,
        options.input[0],
        format=options.format,
        text=options.text,
        id=options.id,
        order=DedupSettings(**settings).keep_column,
        whole=options.annotate,
        skip_bad=options.skip_bad,
        html=options.html,
    )
    old = None
    if options.against is not None:
        old = OldFiles(str(options.against), options.format, options.skip_bad)
    found = dedup(
        corpus.frame,
        text=corpus.text,
        id=corpus.id,
        against=old,
        html=options.html,
        page_limits=options.page_limits,
        work=None if options.work is None else _address(str(options.work)),
        **vars(filters_of(options)),
        **settings,
    )
    bad = corpus.bad + (0 if old is None else old.bad)
    with found:
        written = {}
        start = time.perf_counter()
        if options.pairs is not None:
            _check_pair_count(found.counts.verified_pairs, options)
            written["pairs"] = _address(str(options.pairs))
            corpus.write(found.pairs, written["pairs"])
        if options.output is not None:
            kind = "annotated documents" if options.annotate else "documents that stay"
            written[kind] = _address(str(options.output))
            corpus.write(found.annotated if options.annotate else found.survivors, written[kind])
        seconds = {"start": started, **found.seconds}
        if written:
            seconds["write"] = time.perf_counter() - start
    if options.json:
        told = {**found.to_dict(), "written": written, "bad_rows": bad}
        say_json({**told, "seconds": {name: round(one, 4) for name, one in seconds.items()}})
    elif not options.quiet:
        counts = found.counts
        share = share_text(counts.kept, counts.documents)
        rows = [
            ("documents", counts.documents, size_text(counts.bytes)),
            ("exact duplicates", counts.exact_duplicates, "the same text, byte for byte"),
            ("kept", counts.kept, f"{share} of the documents" if counts.documents else ""),
            *(
                [("in the old corpus", counts.in_old, "dropped because of a document there")]
                if old is not None
                else []
            ),
            ("clusters", counts.clusters, f"the largest has {counts.largest_cluster:,}"),
            ("pairs", counts.verified_pairs, criterion(found.settings, "exact")),
        ]
        for name, count, note in rows:
            say(f"  {name:<18} {count:>12,}  {note}".rstrip())
        say()
        for name, passed in seconds.items():
            say(f"  {name:<18} {passed:>12.2f} s")
        for kind, path in written.items():
            say(f"  {kind}: {shown(path)}")
    for warning in found.warnings:
        warn(warning)
    for kind, count in found.left_out.items():
        warn(f"{count:,} documents were left out: {kind}")
    if bad:
        warn(f"{bad:,} bad lines were left out")


def _check_pair_count(count: int, options: argparse.Namespace) -> None:
    limit = DEFAULT_LIMIT if options.max_pairs is None else options.max_pairs
    if count > limit:
        raise ResultTooLargeError(
            f"there are {count:,} pairs, more than --max-pairs {limit:,}; leave out --exact to "
            "pair equal texts with their first only, write the group of each document by "
            "--annotate, or raise --max-pairs"
        )


def _check(options: argparse.Namespace) -> None:
    """Refuse what Spark cannot honour."""
    from lookalike.spark.sources import check_old

    for name, instead in _NOT_THERE.items():
        if getattr(options, name) not in (None, False, 0, "cpu"):
            raise ArgumentError(Said(name), f" does nothing with --engine spark: {instead}")
    if len(options.input) != 1 or options.input[0] == "-":
        raise ArgumentError(
            "--engine spark reads one input: a file, a folder, or a pattern such as "
            "'s3a://bucket/{a,b}/*.parquet'"
        )
    if options.annotate and options.output is None:
        raise ArgumentError(Said("--annotate"), " needs a folder to write to: -o FOLDER")
    for name in ("output", "pairs"):
        if str(getattr(options, name)) == "-":
            raise ArgumentError(Said(name), " is -; with --engine spark expected a new folder")
    if options.against is not None:
        check_old(str(options.against))


def _address(path: str) -> str:
    """Return an address as it was typed: a path has lost one of its slashes."""
    return re.sub(r"^([a-z][a-z0-9+.-]+):/(?=[^/])", r"\1://", path)
