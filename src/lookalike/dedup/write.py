"""The last step, write: kept items, annotated items, pairs, and signatures for next time.

Rows of a corpus are written as they were read; files such as images are listed or copied.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora import Problems, check_table_target, format_of, write_source, write_table
from lookalike.corpora.base import BATCH_ROWS, KeptRows, arrow_positions, limited, pa
from lookalike.corpora.columns import unfiltered
from lookalike.corpora.formats import is_table
from lookalike.dedup.pairs import (
    Ints,
    VerifiedPairs,
    count_every_pair,
    count_with_copies,
)
from lookalike.display import Column, TableColumns, arrow_batch
from lookalike.errors import ArgumentError, DocumentError, FileError, ResultTooLargeError, Said
from lookalike.signatures import save_signatures
from lookalike.signatures.arrays import distinct
from lookalike.storage.files import check_replaceable, is_there, whole_file, whole_folder

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult, MediaResult, RowsResult, TextResult

Ids = Callable[[Ints], Column]
"""Returns the ids of items, missing for -1."""
IdOf = Callable[[int], str | int]
"""Returns the id of an item."""

_ENDINGS = ".txt, .jsonl, .json, .csv, .tsv or .parquet"


def write_rows(result: RowsResult, path: Any, in_place: bool, *, annotated: bool = False) -> int:
    """Write the kept rows, or all rows with what was found."""
    if not annotated:
        return write_source(result, path, in_place, keep=result.keep)
    added = _added(result, ("group_id", "duplicate_of", "similarity"))
    every = np.ones(len(result.keep), np.bool_)
    return write_source(result, path, in_place, keep=every, added=added)


def annotated_batches(result: RowsResult) -> Iterator[Any]:
    """Yield all rows with what was found, a batch at a time; at least an empty batch."""
    source, names = result.source, result.source.columns()
    source.check_identity(result.source_identity)
    wanted = [name for name in _FOUND if name != "id" or "id" not in names]
    every, added = np.ones(len(result.keep), bool), _added(result, wanted)
    rows = KeptRows(
        *unfiltered(source, every, added, Problems(result.skip_bad)),
        Problems(result.skip_bad),
        result.source_identity,
    )
    batches, count = rows.tables(), 0
    while True:
        with limited(*result.limits):  # not while the caller works
            batch = next(batches, None)
        if batch is None:
            break
        count += 1
        yield batch
    if not count:
        yield pa.record_batch({"text": pa.array([], pa.string()), **added(0, 0)})


_FOUND = ("id", "kept", "group_id", "duplicate_of", "similarity")
"""Columns that are added to rows in memory."""


def _added(result: RowsResult, names: Sequence[str]) -> Callable[[int, int], dict[str, Any]]:
    """Return a function that returns these columns of a range of rows as Arrow."""

    def added(begin: int, end: int) -> dict[str, Any]:
        columns = result.found(begin, end)
        if "id" in names:  # takes longer than the others
            columns["id"] = result.ids(np.arange(begin, end)).all_there()
        batch = arrow_batch(columns)
        return {name: batch.column(name) for name in names}

    return added


def found_columns(
    result: DedupResult, rows: Ints, ids: Ids, id_of: IdOf, old_id_of: IdOf
) -> dict[str, Column | NDArray[Any]]:
    """Return what was found about items, which `ids` and the two functions name."""
    group_of, similarity = result.group_of[rows], result.similarity[rows]
    alone = result.group_sizes[group_of] < 2
    duplicate_of = ids(result.duplicate_of[rows])
    if result.old:
        own = id_column(id_of, result.duplicate_of[rows]).values
        old = id_column(old_id_of, result.matched_old[rows]).values
        either = [one if other is None else other for one, other in zip(own, old, strict=True)]
        duplicate_of = Column(either, str | None)
    return {
        "kept": result.keep[rows],
        "group_id": ids(np.where(alone, -1, group_of)),
        "duplicate_of": duplicate_of,
        "similarity": Column(similarity, float | None, np.isnan(similarity)),
    }


def id_column(id_of: IdOf | None, rows: Ints) -> Column:
    """Return ids of rows, missing for -1; positions without `id_of`."""
    if id_of is None:
        return Column(rows, int | None, rows < 0)
    names = {row: str(id_of(row)) for row in distinct(rows).tolist() if row >= 0}
    return Column([names.get(row) for row in rows.tolist()], str | None)


def kept_table(result: RowsResult) -> Any:
    """Return the kept rows as an Arrow table."""
    result.source.check_identity(result.source_identity)
    batches, begin = [], 0
    for batch in result.source.rows(Problems(result.skip_bad)):
        chosen = np.flatnonzero(result.keep[begin : begin + len(batch)])
        batches.append(batch.take(arrow_positions(chosen)))
        begin += len(batch)
    result.source.check_identity(result.source_identity)
    return pa.Table.from_batches(batches) if batches else pa.table({"text": pa.array([], "string")})


def write_signatures(result: TextResult, path: Path) -> None:
    """Write the signatures of old documents and of kept ones, with their ids.

    If no document of a group is kept, all are written, so that similar ones are dropped next time.
    """
    documents, signed, keep = result.documents, result.signed, result.keep
    if result.settings.keep == "none":
        keep = (result.first_equal == np.arange(len(documents)))[documents.old :]
    stays = np.concatenate([np.ones(documents.old, bool), keep])
    # The signature is that of the first of equal texts; the id is that of the kept one of them.
    staying = np.flatnonzero(stays & ~signed.too_short)
    rows = np.searchsorted(signed.positions, result.first_equal[staying])
    ids = [str(documents.id_of(position)) for position in staying.tolist()]
    signatures = np.ascontiguousarray(signed.signatures[rows])
    save_signatures(path, signatures, result.settings.signer(), ids)


def check_pair_count(result: TextResult, limit: int, *, collapse: bool) -> None:
    """Raise an error if there are more pairs of documents than the limit."""
    given = result.different_pairs, result.first_equal, result.documents.old
    fewer = count_with_copies(*given)
    every = result.settings.exact and not collapse
    count = count_every_pair(*given) if every else fewer
    if count > limit:
        collapsing = (
            "pair equal texts with their first only by ",
            Said("collapse=True", "--collapse"),
            f" ({fewer:,} pairs), ",
        )
        raise ResultTooLargeError(
            f"there are {count:,} pairs, more than ",
            Said(f"limit={limit:,}", f"--max-pairs {limit:,}"),
            "; ",
            *(collapsing if every else ()),
            "write the group of each document by ",
            Said("write_annotated", "--annotate"),
            ", or raise ",
            Said("limit", "--max-pairs"),
        )


def write_text_pairs(result: TextResult, path: Path, *, collapse: bool) -> int:
    """Write the verified pairs by id; with an old corpus, `old` says whether left is in it."""
    with limited(*result.limits):
        return write_table(all_pair_batches(result, result.ids, collapse=collapse), path)


def all_pair_batches(
    result: DedupResult,
    ids: Ids,
    *,
    id_of: IdOf | None = None,
    old_id_of: IdOf | None = None,
    collapse: bool = False,
    distances: bool = True,
) -> Iterator[Any]:
    """Yield all pairs as batches of a table; with an old corpus, `old` says whether left is in it.

    Without an old corpus, `ids` names items. With one, `id_of` and `old_id_of` do (default:
    `result.id` and `result.old_id`).
    """
    new_ids = partial(id_column, id_of or result.id)
    old_ids = partial(id_column, old_id_of or result.old_id)
    for new, old in result.pair_batches(collapse=collapse):
        if not result.old:
            yield from pair_batches(new, ids, ids, distances=distances)
            continue
        yield from pair_batches(old, old_ids, new_ids, distances=distances, old=True)
        yield from pair_batches(new, new_ids, new_ids, distances=distances, old=False)


def split_pairs(
    parts: Iterable[VerifiedPairs], old: int
) -> Iterator[tuple[VerifiedPairs, VerifiedPairs]]:
    """Yield the pairs of new items, and those of an old item with a new one, by their positions."""
    for part in parts:
        is_old = part.left < old
        yield part[~is_old].moved(old, old), part[is_old].moved(0, old)


def pair_batches(
    pairs: VerifiedPairs, left: Ids, right: Ids, *, distances: bool = True, **constant: bool
) -> Iterator[Any]:
    """Yield pairs as batches of a table; at least an empty one, which has the columns."""
    for begin in range(0, max(1, len(pairs)), BATCH_ROWS):
        part = pairs[begin : begin + BATCH_ROWS]
        columns: dict[str, Column | NDArray[Any]] = {
            "left": left(part.left),
            "right": right(part.right),
            "similarity": part.similarity,
        }
        if distances:
            columns["distance"] = distance_column(part.distance)
        columns |= {name: np.full(len(part), one) for name, one in constant.items()}
        yield arrow_batch(columns)


def distance_column(distances: NDArray[np.int32]) -> Column:
    """Return distances, missing where they are unknown."""
    return Column(distances, np.int32 | None, distances < 0)


def check_file_list(path: Path) -> None:
    """Refuse a name that a list of files cannot be written to."""
    if format_of(path) == "text":
        check_replaceable(path)
        return
    if not is_table(path):
        raise ArgumentError(
            f"{path}: the format of a list of files is not known from this name; expected one that "
            f"ends in {_ENDINGS}"
        )
    check_table_target(path)


def check_kept_files(path: Path) -> None:
    """Refuse a name that neither a list nor a folder of copies can have."""
    if not is_folder_name(path):
        check_file_list(path)
    elif is_there(path):
        raise FileError(f"{path} exists already; name a new folder, or remove it")


def is_folder_name(path: Path) -> bool:
    """Return whether kept files are copied to a new folder of this name, and not listed."""
    return format_of(path) is None and not path.suffix


def write_kept_files(result: MediaResult, path: Path) -> int:
    """Copy the kept files into a new folder, or list them."""
    check_kept_files(path)
    if is_folder_name(path):
        return _copy(result, result.kept_rows, path)
    return write_files(result, result.kept_rows, path, annotated=False)


def write_file_pairs(result: MediaResult, path: Path) -> int:
    """Write the pairs; an equal file is paired with the first one, at similarity 1."""
    path_of, old_path_of = partial(_path, result), partial(_old_path, result)
    batches = all_pair_batches(
        result, partial(_paths, result), id_of=path_of, old_id_of=old_path_of
    )
    return write_table(batches, path)


def write_files(result: MediaResult, rows: Ints, path: Path, *, annotated: bool = True) -> int:
    """List files: in a table with their facts, and if `annotated` with what was found."""
    columns = _annotated_columns if annotated else _file_columns
    if format_of(path) != "text":
        return write_table(_batches(result, rows, columns), path)
    lines = [os.fsencode(result.files[row]) for row in rows.tolist()]
    for line in lines:
        # A program that deletes the listed files must not delete a file that such a name spells.
        if b"\n" in line or b"\r" in line:
            raise DocumentError(
                f"{os.fsdecode(line)!r} has a line break in its name, and cannot be on a line of "
                f"{path}; write a table, such as {path.with_suffix('.jsonl')}"
            )
    with whole_file(path) as temporary:
        temporary.write_bytes(b"".join(line + b"\n" for line in lines))
    return len(lines)


def annotated_files(result: MediaResult) -> Iterator[Any]:
    """Yield a row for each file, with its facts and what was found, a batch at a time."""

    def columns(result: MediaResult, rows: Ints) -> TableColumns:
        begin, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        ids = result.ids(rows).all_there()
        return {**_file_columns(result, rows), "id": ids, **result.found(begin, end)}

    return _batches(result, np.arange(len(result.files)), columns)


def _batches(result: MediaResult, rows: Ints, columns: Any) -> Iterator[Any]:
    for begin in range(0, max(1, len(rows)), BATCH_ROWS):
        yield arrow_batch(columns(result, rows[begin : begin + BATCH_ROWS]))


def _file_columns(result: MediaResult, rows: Ints) -> TableColumns:
    """Return path, bytes and facts."""
    facts = {
        name: Column([result.facts[name][row] for row in rows.tolist()], kind)
        for name, kind in result.medium.facts.items()
    }
    return {"path": _paths(result, rows), "bytes": result.sizes[rows], **facts}


def _annotated_columns(result: MediaResult, rows: Ints) -> TableColumns:
    """Return these and what was found."""
    found = found_columns(
        result, rows, partial(_paths, result), partial(_path, result), partial(_old_path, result)
    )
    distance = distance_column(result.distance[rows])
    return {**_file_columns(result, rows), **found, "distance": distance}


def _paths(result: MediaResult, rows: Ints) -> Column:
    """Return paths as they lead to files from here; missing for -1."""
    paths = [None if row < 0 else _path(result, row) for row in rows.tolist()]
    return Column(paths, str | None)


def _path(result: MediaResult, row: int) -> str:
    return _text(result.files[row])


def _old_path(result: MediaResult, row: int) -> str:
    signed = len(result.old_signed)
    return result.old_id(row) if row < signed else _text(result.old_files[row - signed])


def _text(file: Path) -> str:
    """Return a path as text; bytes that are not UTF-8 become U+FFFD."""
    name = os.fsencode(file)
    text = name.decode("utf-8", "replace")
    if text.encode() != name and os.path.lexists(text):
        # A program that deletes the listed files must not delete that one.
        raise DocumentError(
            f"{str(file)!r} has a name that is not UTF-8. In a table it would be {text!r}, which "
            "is another file. Rename one of them, or write a list that ends in .txt"
        )
    return text


def _copy(result: MediaResult, rows: Ints, path: Path) -> int:
    """Copy files into a new folder, whole or not at all, under the paths that they have."""
    with whole_folder(path) as folder:
        for row in rows.tolist():
            file = result.files[row]
            target = folder / inside(result, file)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)
    return len(rows)


def inside(result: MediaResult, path: Path) -> Path:
    """Return the path of a file in the compared folder, or without one, from the root.

    Without `..`, it cannot lead out of the folder that it is put into.
    """
    if result.root is not None:
        return path.relative_to(result.root)
    return Path(*(part for part in path.absolute().parts[1:] if part != ".."))
