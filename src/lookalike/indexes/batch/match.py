"""match_batch: a batch of signatures against a collection that stays on disk, then appended to it.

The batch mode of Sood and Loguinov (section 6.3): the file is read once, in chunks; memory is
bounded by the chunk and the batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from lookalike.checks import callback, file_path, flag, one_of, share, thread_count, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.indexes.batch.chunks import Chunks, Ids, Matcher, MatchesSoFar
from lookalike.indexes.batch.matchers import ByBlocks, ByFlips
from lookalike.indexes.batch.merging_runs import sorted_run
from lookalike.indexes.batch.own_matches import OwnMatches
from lookalike.indexes.results import Matches
from lookalike.indexes.rows import Rows
from lookalike.indexes.tables import sorted_table
from lookalike.indexes.tables.volatility import as_weights
from lookalike.signatures import as_signatures
from lookalike.storage import is_there

if TYPE_CHECKING:
    from lookalike.indexes.batch.signature_file import SignatureFile

__all__ = ["Progress", "chunk_rows", "chunks_for", "match_and_append", "match_batch"]

Progress = Callable[[int, int], None]
"""Called with how many signatures of the file have been read, and how many there are."""

_CHUNK_BYTES = 1 << 27
_SMALL = 1 << 16
_SHORT = 4
"""Runs up to so many times as long as the batch are put together: sorting them takes less time than
looking the batch up in each of them.
"""


def match_batch(
    file: str | os.PathLike[str],
    queries: ArrayLike,
    radius: SupportsIndex = 3,
    *,
    method: str = "flips",
    weights: ArrayLike | None = None,
    flips: SupportsIndex | None = None,
    recall: SupportsFloat = 0.95,
    first: bool = False,
    tables: SupportsIndex | None = None,
    ids: ArrayLike | None = None,
    append: bool = True,
    chunk: SupportsIndex | None = None,
    limit: SupportsIndex = DEFAULT_LIMIT,
    threads: SupportsIndex | None = None,
    progress: Progress | None = None,
    duplicates: bool = False,
) -> Matches:
    """Find what is within the radius of each query in a signature file, then append the queries.

    The file is made if it is not there. It is read from beginning to end in chunks of at most
    `chunk` signatures: as many as the batch has unless told, or 128 MB if that is more. Runs of the
    file that are not much longer than the batch are put together to chunks of that size.

    `method="flips"`: each chunk is a `FlipIndex`, asked with `weights` as `FlipIndex.within` is;
    how many flips reach the `recall` is found out on the first chunk, for this call alone, if that
    has 50 matches or more to tell. Runs of the file are sorted already, so that one by itself needs
    no more than its header table; larger chunks are quicker.
    `method="blocks"`: the batch becomes a `BlockIndex` of `tables` tables, and every signature of
    the file is looked up in it; exact.

    With `first=True` each query gets one match, the first that is met, and is not asked any more;
    reading stops when all have one. Matches have the ids of the file.

    With `duplicates=True` each query is also compared with those before it in the batch, exactly
    and before the file is read: a match among them has the id that it is appended with (with
    `append=False`: that it would get now). With `first`, that is the nearest, of equals the
    earliest. Without, queries of a batch do not find each other.

    Afterwards, unless `append=False`, the queries are sorted and appended as one run, whole or not
    at all, with `ids`, or the numbers that follow the largest id of the file.
    """
    return match_and_append(
        file,
        queries,
        radius,
        method=method,
        weights=weights,
        flips=flips,
        recall=recall,
        first=first,
        tables=tables,
        ids=ids,
        append=append,
        chunk=chunk,
        limit=limit,
        threads=threads,
        progress=progress,
        duplicates=duplicates,
    )[0]


def match_and_append(
    file: str | os.PathLike[str],
    queries: ArrayLike,
    radius: SupportsIndex,
    *,
    method: str,
    weights: ArrayLike | None,
    flips: SupportsIndex | None,
    recall: SupportsFloat,
    first: bool,
    tables: SupportsIndex | None,
    ids: ArrayLike | None,
    append: bool,
    chunk: SupportsIndex | None,
    limit: SupportsIndex,
    threads: SupportsIndex | None,
    progress: Progress | None,
    duplicates: bool,
) -> tuple[Matches, Ids]:
    """Do what `match_batch` does; return the matches, and the ids that queries were appended with
    or would have been.
    """
    from lookalike.indexes.batch.signature_file import (
        SignatureFile,  # not needed to search, so not at import
    )

    rows = as_signatures(queries, "queries")
    bits = 8 * rows.shape[1]
    if len(rows) > sorted_table.MOST_ROWS:
        raise ArgumentError(
            f"there are {len(rows)} queries; a batch has at most {sorted_table.MOST_ROWS}, which "
            "become one run of the file: match them in several batches"
        )
    near = min(whole_number("radius", radius, at_least=0), bits)
    most = whole_number("limit", limit, at_least=0)
    workers = thread_count(threads)
    size = None if chunk is None else whole_number("chunk", chunk, at_least=1)
    names = None if ids is None else Rows.of(rows, ids).all_ids()
    one, keep = flag("first", first), flag("append", append)
    own = OwnMatches(rows, near, workers) if flag("duplicates", duplicates) else None
    hear = callback("progress", progress)
    values = None if weights is None else as_weights(weights, len(rows), bits)
    tries = None if flips is None else whole_number("flips", flips, at_least=0)
    target = share("recall", recall)
    if one_of("method", method, ("flips", "blocks")) == "blocks":
        matcher: Matcher = ByBlocks(rows, near, tables, workers)
    else:
        matcher = ByFlips(rows, near, workers, values, tries, target, one)

    path = file_path("file", file)
    if is_there(path):
        store = SignatureFile(path)
    elif keep:
        store = SignatureFile.create(path, bits, exist_ok=True)  # another process may be quicker
    else:
        raise ArgumentError(
            f"there is no file {path}; ",
            Said("with append=True it is made", "without --no-append it is made"),
        )
    if store.bits != bits:
        raise ArgumentError(
            f"queries have {bits} bits, the signatures of {store.path} {store.bits}; expected the "
            "same"
        )
    called = store._numbered(len(rows)) if names is None else names
    found = MatchesSoFar(len(rows), one, most, near)
    if own is not None:
        own.match(found)
    chunks = chunks_for(store, len(rows), size, matcher.joins_runs)
    _match(chunks, matcher, found, len(store), hear)
    if keep:
        numbers = np.arange(len(rows)) if names is None else names
        raised = store.append(*sorted_run(rows, numbers, workers), number_on=names is None)
        called = numbers + raised  # others may have appended meanwhile
    if own is not None:
        own.name(found, called)
    return found.matches(matcher.exact), called


def chunks_for(
    store: SignatureFile, queries: int, size: int | None = None, join: bool = True
) -> Chunks:
    """Return how a file is read for so many queries, in chunks of at most `size`."""
    size = chunk_rows(queries, store.bits) if size is None else min(size, sorted_table.MOST_ROWS)
    return Chunks(store, size, min(size, max(_SHORT * queries, _SMALL)) if join else 0)


def chunk_rows(queries: int, bits: int) -> int:
    """Return how many signatures a chunk has by default: those of a batch, or 128 MB if more."""
    size = max(queries, _CHUNK_BYTES * 8 // bits, 1)
    return min(size, sorted_table.MOST_ROWS)  # of a chunk, a table is made


def _match(
    chunks: Chunks, matcher: Matcher, found: MatchesSoFar, total: int, progress: Progress | None
) -> None:
    """Read the file and gather matches, until there is nothing left to be asked.

    What was matched has been verified in the end, also if reading ended early.
    """
    from lookalike.indexes.batch.run_reading import read_ahead  # brings threads, not at import

    sizes = chunks.sizes()
    matcher.prepare(sizes)
    done, chunk = 0, None
    with read_ahead(iter(chunks), len(sizes)) as reading:
        while found.left and (following := next(reading, None)) is not None:
            chunk = following
            matcher.match(chunk, found)
            done += len(chunk.ids)
            if progress is not None:
                progress(done, total)
    if chunk is not None:
        chunk.verify()
