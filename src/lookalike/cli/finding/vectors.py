"""Vectors on the command line: files that have them, and vectors to look for."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.cli.common import corpus_of
from lookalike.cli.finding.queries import AT_A_TIME, Queries
from lookalike.cli.parser import refuse_given
from lookalike.dedup.vectors import read_embeddings, written_vectors
from lookalike.errors import ArgumentError, FormatError, LookalikeError, Said
from lookalike.operation import in_parts
from lookalike.signatures.files import is_npy
from lookalike.vectors.given import as_vectors


def has_vectors(path: Path) -> bool:
    """Return whether this is a .npy file of floating-point numbers."""
    try:
        return path.is_file() and is_npy(path) and npy_vectors(path).dtype.kind == "f"
    except LookalikeError:  # opening it reports what is wrong
        return False


def npy_vectors(path: Path) -> NDArray[Any]:
    """Return the vectors of a .npy file, mapped and not read."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FormatError(f"{path} is a .npy file that cannot be used: {error}") from error
    return array


def vector_queries(options: argparse.Namespace, dimensions: int) -> Iterator[Queries]:
    """Yield the queries in batches."""
    file = options.signatures if options.signatures is not None else options.file
    if options.queries:
        rows = np.arange(len(options.queries))
        told = written_vectors(
            options.queries, rows, dimensions, lambda row: f"QUERY {row + 1}", like="the index"
        )
        yield from _in_parts(options.queries, told)
    elif has_vectors(Path(file)):
        no_columns = f"does nothing: {file} is an array without columns"
        refuse_given(options, ("id", "vectors"), no_columns)
        array = as_vectors(np.atleast_2d(npy_vectors(Path(file))), dimensions)
        yield from _in_parts(range(len(array)), array)
    elif options.signatures is not None:
        raise ArgumentError(
            Said("--signatures"),
            f" is {file}, but the index has vectors; expected a .npy file of vectors, or --file "
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
) -> Iterator[Queries]:
    for begin in in_parts(range(0, len(labels), AT_A_TIME)):
        part = slice(begin, begin + AT_A_TIME)
        missing = () if there is None else np.flatnonzero(~there[part]).tolist()
        yield Queries(
            labels[part], vectors[part], empty=frozenset(missing), nothing="has no vector"
        )
