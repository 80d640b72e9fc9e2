"""Reading a column of vectors, and what else decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora import Corpus, Problems
from lookalike.corpora.base import compute, pa
from lookalike.corpora.columns import id_column, id_strings
from lookalike.dedup.embeddings.written import written_vectors
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.vectors.given import as_vectors

__all__ = ["Embeddings", "read_embeddings"]

_GUESSES = ("embedding", "embeddings", "vector", "vectors", "emb")


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of rows of a corpus."""

    count: int
    """Rows that there are, with a vector or not."""
    rows: NDArray[np.int64]
    """Which of them have one."""
    vectors: NDArray[Any]
    ids: Sequence[str] | None
    """Of all rows; None where numbers of rows are ids."""
    order: NDArray[np.int64] | None
    """Of all rows: the rank of the value that decides who stays; -1 where there is none."""


def read_embeddings(
    corpus: Corpus, column: str | None, id: str | None, order: str | None
) -> tuple[Embeddings, str]:
    """Return the vectors of a corpus, and the name of their column."""
    name = corpus.column_for(column, _GUESSES, "vectors")
    if name is None:
        raise ArgumentError(
            f"{corpus.name} has the columns {', '.join(corpus.columns()) or 'none'}; say which one "
            "has the vectors",
            Said(" with column=", " with --vectors COLUMN"),
        )
    id_name = id_column(corpus, id)
    if order is not None:
        corpus.column_for(order, (), "choice of survivors")
    others = [one for one in (id_name, order) if one is not None]
    count = 0
    rows: list[NDArray[np.int64]] = []
    parts: list[NDArray[Any]] = []
    ids: list[str] = []
    deciding: list[Any] = []
    for batch in corpus.read([name, *others], Problems()):
        vectors = batch.column(0)
        there = np.flatnonzero(vectors.is_valid().to_numpy(zero_copy_only=False))
        if len(there):
            rows.append(count + there)
            parts.append(_of_batch(vectors.drop_null(), rows[-1], corpus, name, parts))
        if id_name is not None:
            ids += id_strings(batch.column(1), count).to_pylist()
        if order is not None:
            deciding.append(batch.column(len(others)))
        count += len(batch)
    found = Embeddings(
        count,
        np.concatenate([np.empty(0, np.int64), *rows]),
        np.concatenate(parts) if parts else np.empty((0, 1), np.float32),
        ids if id_name is not None else None,
        _ranked(deciding) if order is not None else None,
    )
    return found, name


def _of_batch(
    column: Any, rows: NDArray[np.int64], corpus: Corpus, name: str, before: Sequence[Any]
) -> NDArray[Any]:
    kind = column.type
    width = before[0].shape[1] if before else None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return written_vectors(column.to_pylist(), rows, width, corpus.place_of)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or _is_fixed(kind)):
        raise DocumentError(
            f"{corpus.name}: the column {name!r} is of type {kind}; expected lists of numbers, as "
            "Parquet and JSON have them"
        )
    vectors = as_vectors(column, numbers=rows)
    if width is not None and vectors.shape[1] != width:
        raise DocumentError(
            f"vector {rows[0]} has {vectors.shape[1]} dimensions, and the first has {width}; "
            "expected the same for all"
        )
    return vectors


def _is_fixed(kind: Any) -> bool:
    return bool(pa.types.is_fixed_size_list(kind))


def _ranked(parts: Sequence[Any]) -> NDArray[np.int64]:
    """Return the place of each value among those that differ, from 0; -1 of nulls and NaN."""
    if not parts:
        return np.empty(0, np.int64)
    column = pa.chunked_array(parts).combine_chunks()
    if pa.types.is_floating(column.type):
        column = compute.if_else(compute.is_nan(column), pa.scalar(None, column.type), column)
    there = column.is_valid().to_numpy(zero_copy_only=False)
    places = np.full(len(column), -1, np.int64)
    ranks = compute.rank(column.drop_null(), "ascending", tiebreaker="dense")
    places[there] = ranks.to_numpy(zero_copy_only=False).astype(np.int64) - 1
    return places
