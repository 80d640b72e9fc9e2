"""`lookalike search` in an index of vectors: what points most nearly the same way?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import whole_number
from lookalike.cli.finding.answers import LONGEST_ID, Found, Lines, Table
from lookalike.cli.options import corpus_of
from lookalike.cli.parser import Group, add_number
from lookalike.cli.terminal import warn
from lookalike.cli.vectors.files import has_vectors, npy_vectors, opened
from lookalike.dedup.vectors import read_embeddings, written_vectors
from lookalike.errors import ArgumentError, Said
from lookalike.shown import escape_terminal
from lookalike.vectors import VectorIndex
from lookalike.vectors.given import as_cosine, as_vectors

__all__ = ["add_vector_options", "refuse_vector_options", "run_on_vectors"]

_AT_A_TIME = 1 << 12

_NOT_THERE = (
    *("radius", "text", "skip_bad", "max_document", "html", "page_limits", "strip_urls"),
    *("origin", "columns", "measure", "expand", "admit", "rerank", "flips", "first"),
)
"""Options that say nothing of vectors."""


def add_vector_options(group: Group) -> None:
    """Declare the options."""
    group.add_argument(
        "--vectors",
        metavar="COLUMN",
        help="of an index of vectors: column of --file with the queries (default: a guess)",
    )
    add_number(
        group,
        "--candidates",
        "of an index of vectors: so many are compared themselves (default: 16 K, 256 at least)",
    )


def refuse_vector_options(options: argparse.Namespace) -> None:
    """Refuse what says nothing of signatures."""
    for name in ("vectors", "candidates"):
        if getattr(options, name) is not None:
            raise ArgumentError(Said(name), " goes with an index of vectors; leave it out")


def run_on_vectors(options: argparse.Namespace) -> None:
    """Search and print."""
    _check(options)
    index = opened(options.index, verify=not options.no_verify, threads=options.threads)
    settings = _settings(options, index)
    show = Lines() if options.json else Table((), compared=True, vectors=True)
    for queries in _queries(options, index.dimensions):
        found: Any = (
            index.within(queries.vectors, **settings)
            if "similarity" in settings
            else index.search(queries.vectors, **settings)
        )
        show.begin(queries.labels)
        for number, (label, (ids, cosines)) in enumerate(zip(queries.labels, found, strict=True)):
            if number in queries.missing:
                said = escape_terminal(repr(label), LONGEST_ID)
                warn(f"{said} has no vector; there is nothing to look for")
                show.query(label, [], True, masked=False)
                continue
            both = zip(ids.tolist(), cosines.tolist(), strict=True)
            near = [Found(index.name(id), None, None, similarity=cosine) for id, cosine in both]
            show.query(label, near, found.exact, masked=False)


@dataclass(frozen=True)
class _Queries:
    """Some queries at a time."""

    labels: Sequence[str | int]
    vectors: NDArray[Any]
    missing: frozenset[int] = frozenset()
    """Those that have none; zeros stand for them."""


def _check(options: argparse.Namespace) -> None:
    for name in _NOT_THERE:
        if getattr(options, name) not in (None, False):
            raise ArgumentError(Said(name), " does nothing with an index of vectors; leave it out")
    if options.mask != "auto":
        raise ArgumentError(Said("mask"), " does nothing with an index of vectors; leave it out")


def _settings(options: argparse.Namespace, index: VectorIndex) -> dict[str, Any]:
    """Return what the search is called with."""
    shared = {"threads": options.threads, "recall": options.recall}
    for name in ("recall", "candidates", "probe"):
        if options.exact and getattr(options, name) is not None:
            raise ArgumentError(
                Said(name), " looks at a part of them, and --exact at all; give one of them"
            )
    if options.threshold is None:
        # More than there are is all of them.
        k = min(whole_number("k", options.k, at_least=1), max(1, len(index)))
        effort = {"candidates": options.candidates, "probe": options.probe}
        return {"k": k, "exact": options.exact, **effort, **shared}
    for name in ("candidates", "probe"):
        if getattr(options, name) is not None:
            raise ArgumentError(Said(name), " goes with -k; leave it out")
    return {"similarity": as_cosine(options.threshold, "threshold"), **shared}


def _queries(options: argparse.Namespace, dimensions: int) -> Iterator[_Queries]:
    """Yield what is looked for, some at a time."""
    file = options.signatures if options.signatures is not None else options.file
    if options.queries:
        rows = np.arange(len(options.queries))
        told = written_vectors(
            options.queries, rows, dimensions, lambda row: f"QUERY {row + 1}", like="the index"
        )
        yield from _in_parts(options.queries, told)
    elif has_vectors(Path(file)):
        if options.vectors is not None or options.id is not None:
            raise ArgumentError(
                Said("vectors" if options.id is None else "id"),
                f" does nothing here: {file} is an array, and has no columns; leave it out",
            )
        array = as_vectors(np.atleast_2d(npy_vectors(Path(file))), dimensions)
        yield from _in_parts(range(len(array)), array)
    elif options.signatures is not None:
        raise ArgumentError(
            Said("--signatures"),
            f" is {file}, and the index has vectors; expected a .npy file of vectors, or --file "
            "CORPUS with a column of them",
        )
    else:
        given, _ = read_embeddings(corpus_of([file], options), options.vectors, options.id, None)
        rows = np.zeros((given.count, dimensions), np.float32)
        if len(given.rows):
            rows[given.rows] = as_vectors(given.vectors, dimensions)
        there = np.isin(np.arange(given.count), given.rows)
        yield from _in_parts(given.ids or range(given.count), rows, there)


def _in_parts(
    labels: Sequence[str | int], vectors: NDArray[Any], there: NDArray[np.bool_] | None = None
) -> Iterator[_Queries]:
    for begin in range(0, len(labels), _AT_A_TIME):
        part = slice(begin, begin + _AT_A_TIME)
        missing = () if there is None else np.flatnonzero(~there[part]).tolist()
        yield _Queries(labels[part], vectors[part], frozenset(missing))
