"""Step 8, write: survivors, or all rows with what was found; pairs; signatures for next time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora import Problems, write_corpus, write_table
from lookalike.corpora.base import BATCH_ROWS, arrow_positions, limited, pa
from lookalike.corpora.formats import Target
from lookalike.dedup.pairs import VerifiedPairs, count_every_pair, count_with_copies
from lookalike.errors import ResultTooLargeError, Said
from lookalike.signatures import save_signatures

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult

__all__ = [
    "check_pair_count",
    "survivors_table",
    "write_annotated",
    "write_pairs",
    "write_signatures",
    "write_survivors",
]


def write_survivors(result: DedupResult, path: Target, *, in_place: bool = False) -> int:
    """Write the rows that stay, in their order, with all their columns."""
    return _write(result, path, in_place, keep=result.keep)


def write_annotated(result: DedupResult, path: Target, *, in_place: bool = False) -> int:
    """Write all rows with `cluster`, `duplicate_of` and `similarity`.

    `cluster` is the id of the cluster's first row, null for a row that stands alone; `duplicate_of`
    the id of the row that stands for a dropped one, and `similarity` its similarity with that;
    both null for rows that stay.
    """
    sizes = np.bincount(result.clusters, minlength=len(result.clusters))

    def added(begin: int, end: int) -> dict[str, Any]:
        rows = slice(begin, end)
        labels = result.clusters[rows]
        alone = sizes[labels] < 2
        similarity = result.similarity[rows]
        return {
            "cluster": _ids(result, labels, alone),
            "duplicate_of": _representatives(result, begin, end),
            "similarity": pa.array(similarity, pa.float64(), mask=np.isnan(similarity)),
        }

    return _write(result, path, in_place, keep=np.ones(len(result.keep), bool), added=added)


def write_pairs(result: DedupResult, path: Path, *, collapse: bool) -> int:
    """Write the verified pairs by id; with an old corpus, `old` tells that left is one of it."""
    with limited(*result.limits):
        return write_table(_pair_batches(result, collapse), path)


def check_pair_count(result: DedupResult, limit: int, *, collapse: bool) -> None:
    """Raise an error if there are more pairs of documents than the limit."""
    pairs, first, old = result.text_pairs, result.first_equal, result.documents.old
    every = result.settings.exact and not collapse
    count = count_every_pair(pairs, first, old) if every else count_with_copies(pairs, first, old)
    if count > limit:
        raise ResultTooLargeError(
            f"there are {count:,} pairs, more than ",
            Said(f"limit={limit:,}", f"--max-pairs {limit:,}"),
            "; ",
            *(
                (
                    "pair equal texts with their first only by ",
                    Said("collapse=True", "--collapse"),
                    f" ({count_with_copies(pairs, first, old):,} pairs), ",
                )
                if every
                else ()
            ),
            "write the group of each document by ",
            Said("write_annotated", "--annotate"),
            ", or raise ",
            Said("limit", "--max-pairs"),
        )


def write_signatures(result: DedupResult, path: Path) -> None:
    """Write the signatures of old documents and of those that stay, with their ids.

    If none of a group stays, all are written: who is like them is to go next time, too.
    """
    documents, signed = result.documents, result.signed
    keep = result.keep
    if result.settings.keep == "none":
        keep = (result.first_equal == np.arange(len(documents)))[documents.old :]
    stays = np.concatenate([np.ones(documents.old, bool), keep])
    # The signature is that of the first of equal texts; whoever of them stays gives the id.
    staying = np.flatnonzero(stays & ~signed.too_short)
    rows = np.searchsorted(signed.positions, result.first_equal[staying])
    ids = [str(documents.id_of(position)) for position in staying.tolist()]
    signatures = np.ascontiguousarray(signed.signatures[rows])
    save_signatures(path, signatures, result.settings.signer(), ids)


def survivors_table(result: DedupResult) -> Any:
    """Return the rows that stay as an Arrow table."""
    result.source.check_identity(result.source_identity)
    batches, begin = [], 0
    for batch in result.source.rows(Problems(result.skip_bad)):
        chosen = np.flatnonzero(result.keep[begin : begin + len(batch)])
        batches.append(batch.take(arrow_positions(chosen)))
        begin += len(batch)
    result.source.check_identity(result.source_identity)
    return pa.Table.from_batches(batches) if batches else pa.table({"text": pa.array([], "string")})


def _write(result: DedupResult, path: Target, in_place: bool, **rows: Any) -> int:
    """Write rows of the source, if it is the one that was read, and still is when they are copied.

    In place, the check after copying is all that stands between a file that somebody has written
    to meanwhile and its end.
    """
    result.source.check_identity(result.source_identity)
    with limited(*result.limits):
        return write_corpus(
            result.source,
            path,
            skip_bad=result.skip_bad,
            identity=result.source_identity,
            in_place=in_place,
            **rows,
        )


def _ids(result: DedupResult, rows: NDArray[np.int64], missing: NDArray[np.bool_]) -> Any:
    """Return ids of rows as Arrow, null where they are missing."""
    if result.documents.ids is None:
        return pa.array(rows, pa.int64(), mask=missing)
    return pa.array(
        [
            None if absent else result.id(row)
            for row, absent in zip(rows.tolist(), missing.tolist(), strict=True)
        ],
        pa.string(),
    )


def _representatives(result: DedupResult, begin: int, end: int) -> Any:
    """Return ids of the rows that stand for others; where old ones do, all ids are strings."""
    own, old = result.duplicate_of[begin:end], result.matched_old[begin:end]
    if result.documents.old == 0:
        return _ids(result, own, own < 0)
    return pa.array(
        [
            str(result.old_id(other)) if other >= 0 else str(result.id(row)) if row >= 0 else None
            for row, other in zip(own.tolist(), old.tolist(), strict=True)
        ],
        pa.string(),
    )


def _pair_batches(result: DedupResult, collapse: bool) -> Iterator[Any]:
    has_old = result.documents.old > 0
    for new, old in result.pair_batches(
        collapse=collapse
    ):  # old ones before all new ones; the schema at least
        for pairs, is_old in ((old, True), (new, False)):
            for begin in range(0, max(1, len(pairs)), BATCH_ROWS):
                part = pairs[np.arange(begin, min(len(pairs), begin + BATCH_ROWS))]
                yield _pair_batch(result, part, is_old, has_old)


def _pair_batch(result: DedupResult, pairs: VerifiedPairs, is_old: bool, has_old: bool) -> Any:
    left_id = result.old_id if is_old else result.id
    kind = pa.int64() if result.documents.ids is None and not has_old else pa.string()
    as_is = str if has_old or result.documents.ids is not None else int

    def ids(rows: NDArray[np.int64], id_of: Callable[[int], str | int]) -> Any:
        different, places = np.unique(rows, return_inverse=True)
        found = pa.array([as_is(id_of(row)) for row in different.tolist()], kind)
        return found.take(arrow_positions(places))

    columns = {
        "left": ids(pairs.left, left_id),
        "right": ids(pairs.right, result.id),
        "similarity": pa.array(pairs.similarity, pa.float64()),
        "distance": pa.array(pairs.distance, pa.int32()),
    }
    if has_old:
        columns["old"] = pa.array(np.full(len(pairs), is_old))
    return pa.record_batch(columns)
