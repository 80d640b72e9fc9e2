"""`lookalike index --vectors COLUMN`: vectors in, an index by their cosine out."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from lookalike.cli.options import add_format, check_folder, check_not_read, corpus_of, save_built
from lookalike.cli.parser import Group, add_number
from lookalike.cli.terminal import say, say_json, warn
from lookalike.cli.vectors.files import has_vectors, npy_vectors
from lookalike.dedup.vectors import read_embeddings
from lookalike.errors import ArgumentError, Said
from lookalike.shown import counted, escape_terminal
from lookalike.storage import check_replaceable
from lookalike.vectors import VectorIndex

__all__ = ["add_vector_options", "are_vectors", "run_on_vectors"]

_OWN = {"vectors": None, "id": None, "format": None, "bits": 512, "recall": None}
"""Options that are for vectors alone, and what they are unless told."""


def add_vector_options(group: Group) -> None:
    """Declare the options."""
    group.add_argument(
        "--vectors",
        metavar="COLUMN",
        help="index this column of vectors, lists of numbers in Parquet or JSON Lines, by cosine",
    )
    group.add_argument("--id", metavar="COLUMN", help="column with ids (default: a guess, or rows)")
    add_format(group)
    add_number(group, "--bits", "of the signatures that propose", default=_OWN["bits"])
    group.add_argument(
        "--recall",
        type=float,
        metavar="R",
        help="find out how much has to be looked at to find this share of the 10 nearest, for "
        "`lookalike search --recall`",
    )


def are_vectors(options: argparse.Namespace) -> bool:
    """Return whether vectors are to be indexed, or refuse options that are for them alone."""
    if options.vectors is not None or has_vectors(options.signatures):
        return True
    for name, usual in _OWN.items():
        if getattr(options, name) != usual:
            raise ArgumentError(Said(name), " goes with vectors: --vectors COLUMN; leave it out")
    return False


def run_on_vectors(options: argparse.Namespace, idle: list[str]) -> None:
    """Build, save, and say what was built; `idle` are options that do nothing here."""
    for name in idle:
        if getattr(options, name) not in (None, False):
            raise ArgumentError(Said(name), " does nothing with vectors; leave it out")
    if options.kind != "slices":
        raise ArgumentError(Said("kind"), " does nothing with vectors; leave it out")
    check_folder(options.output)
    check_replaceable(options.output)
    start = time.perf_counter()
    index, missing = _built(options)
    if options.recall is not None:
        index.tune(10, options.recall, threads=options.threads)
    summary = {**save_built(index, options.output, start), "without_vector": missing}
    if options.json:
        say_json(summary)
    elif not options.quiet:
        say(
            f"{len(index):,} vectors of {counted(index.dimensions, 'dimension')}, {index.dtype}, "
            f"with signatures of {index.bits} bits in {counted(index.clusters, 'group')}: "
            f"{escape_terminal(options.output)}\n"
            f"  {summary['file_bytes']:,} bytes, {summary['seconds']:.2f} s"
        )
        for tuning in index.tunings:
            candidates, probe = map(tuning.chosen.get, ("candidates", "probe"))
            say(
                f"  a recall of {tuning.target:g} takes {candidates:,} candidates of "
                f"{counted(probe, 'group')}; measured {tuning.recall:.3f}"
            )
    if missing:
        warn(f"{counted(missing, 'row')} without a vector left out")


def _built(options: argparse.Namespace) -> tuple[VectorIndex, int]:
    """Return the index, and how many rows had no vector."""
    how = {"bits": options.bits, "clusters": options.clusters, "threads": options.threads}
    if has_vectors(options.signatures):
        for name in ("vectors", "id", "format"):
            if getattr(options, name) is not None:
                raise ArgumentError(
                    Said(name), f" does nothing here: {options.signatures} is an array, and has no "
                    "columns; leave it out"
                )  # fmt: skip
        check_not_read("-o", options.output, [options.signatures])
        return VectorIndex(npy_vectors(options.signatures), **how), 0
    corpus = corpus_of([str(options.signatures)], options)
    check_not_read("-o", options.output, [Path(one) for one in corpus.files])
    given, _ = read_embeddings(corpus, options.vectors, options.id, None)
    if not len(given.rows):
        raise ArgumentError(
            f"{corpus.name} has no vectors in the column {options.vectors!r}; expected one at least"
        )
    missing = given.count - len(given.rows)
    index = VectorIndex(given.vectors, given.rows if missing else None, **how)
    if given.ids is not None:
        # Vectors that are added get the numbers behind the last, and none of these names.
        index.names = given.ids[: int(given.rows[-1]) + 1]
    return index, missing
