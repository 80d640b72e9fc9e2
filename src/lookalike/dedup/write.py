"""The last step, write: kept items, annotated items, pairs, and signatures for next time.

Rows of a corpus are written as they were read; files such as images are listed or copied.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora import Problems, check_table_target, format_of, write_corpus, write_table
from lookalike.corpora.base import BATCH_ROWS, arrow_positions, limited, pa
from lookalike.corpora.formats import is_table
from lookalike.corpora.writing import local_file
from lookalike.dedup.pairs import (
    Flags,
    Ints,
    VerifiedPairs,
    count_every_pair,
    count_with_copies,
    with_copies,
)
from lookalike.errors import ArgumentError, DocumentError, FileError, ResultTooLargeError, Said
from lookalike.signatures import save_signatures
from lookalike.storage.files import check_replaceable, is_there, whole_file, whole_folder

if TYPE_CHECKING:
    from lookalike.dedup.result import MediaResult, RowsResult, TextResult

Ids = Callable[[Ints], Any]
"""Returns the ids of items as an Arrow array."""

_ENDINGS = ".txt, .jsonl, .json, .csv, .tsv or .parquet"


def write_rows(
    result: RowsResult,
    path: str | Path | BinaryIO,
    *,
    in_place: bool = False,
    annotated: bool = False,
) -> int:
    """Write the kept rows, or all rows with what was found.

    The source must be unchanged since it was read, also after its rows were copied.
    """
    rows: dict[str, Any] = {"keep": result.keep}
    if annotated:
        rows = {"keep": np.ones(len(result.keep), bool), "added": _found_columns(result)}
    if isinstance(path, io.TextIOBase):
        raise ArgumentError("path is a stream of text; expected one of bytes, such as its buffer")
    opened: AbstractContextManager[Any] = (
        nullcontext(path) if hasattr(path, "write") else local_file(path, result.source)
    )
    with opened as target, limited(*result.limits):
        result.source.check_identity(result.source_identity)
        return write_corpus(
            result.source,
            target,
            skip_bad=result.skip_bad,
            identity=result.source_identity,
            in_place=in_place,
            **rows,
        )


def _found_columns(result: RowsResult) -> Callable[[int, int], dict[str, Any]]:
    sizes = np.bincount(result.group_of, minlength=len(result.group_of))

    def added(begin: int, end: int) -> dict[str, Any]:
        labels, similarity = result.group_of[begin:end], result.similarity[begin:end]
        return {
            "group_id": result.ids(labels, sizes[labels] < 2),
            "duplicate_of": result.representatives(begin, end),
            "similarity": pa.array(similarity, pa.float64(), mask=np.isnan(similarity)),
        }

    return added


def id_array(
    id_of: Callable[[int], str | int] | None, rows: Ints, missing: Flags | None = None
) -> Any:
    """Return ids of rows as Arrow, null where they are missing; positions without `id_of`."""
    if id_of is None:
        return pa.array(rows, pa.int64(), mask=missing)
    if missing is not None:
        each = zip(rows.tolist(), missing.tolist(), strict=True)
        return strings([None if gone else str(id_of(row)) for row, gone in each])
    different, places = np.unique(rows, return_inverse=True)
    return strings([str(id_of(row)) for row in different.tolist()]).take(arrow_positions(places))


def strings(values: list[str | None] | list[str]) -> Any:
    """Return strings as Arrow."""
    return pa.array(values, pa.string())


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
    given = result.text_pairs, result.first_equal, result.documents.old
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
        return write_table(_text_pair_batches(result, collapse), path)


def _text_pair_batches(result: TextResult, collapse: bool) -> Iterator[Any]:
    new_ids, old_ids = (partial(id_array, id_of) for id_of in (result.id, result.old_id))
    for new, old in result.pair_batches(collapse=collapse):
        if not result.documents.old:
            yield from pair_batches(new, result.ids, result.ids)
            continue
        yield from pair_batches(old, old_ids, new_ids, old=True)
        yield from pair_batches(new, new_ids, new_ids, old=False)


def pair_batches(
    pairs: VerifiedPairs, left: Ids, right: Ids, *, distances: bool = True, **constant: bool
) -> Iterator[Any]:
    """Yield pairs as batches of a table; at least an empty one, which has the columns."""
    for begin in range(0, max(1, len(pairs)), BATCH_ROWS):
        part = pairs[begin : begin + BATCH_ROWS]
        columns = {
            "left": left(part.left),
            "right": right(part.right),
            "similarity": pa.array(part.similarity, pa.float64()),
        }
        if distances:
            columns["distance"] = _distances(part.distance)
        columns |= {name: pa.array(np.full(len(part), one)) for name, one in constant.items()}
        yield pa.record_batch(columns)


def _distances(distances: NDArray[np.int32]) -> Any:
    """Return distances as Arrow, null where they are unknown."""
    return pa.array(distances, pa.int32(), mask=distances < 0)


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
    (pairs,) = with_copies(result.different_pairs, result.first_equal, 0)
    paths = partial(_paths, result)
    return write_table(pair_batches(pairs, paths, paths), path)


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


def _batches(result: MediaResult, rows: Ints, columns: Any) -> Iterator[Any]:
    for begin in range(0, max(1, len(rows)), BATCH_ROWS):
        yield pa.record_batch(columns(result, rows[begin : begin + BATCH_ROWS]))


def _file_columns(result: MediaResult, rows: Ints) -> Mapping[str, Any]:
    """Return path, bytes and facts."""
    facts = {
        name: pa.array([result.facts[name][row] for row in rows.tolist()], pa.type_for_alias(kind))
        for name, kind in result.medium.facts.items()
    }
    return {
        "path": _paths(result, rows),
        "bytes": pa.array(result.sizes[rows], pa.int64()),
        **facts,
    }


def _annotated_columns(result: MediaResult, rows: Ints) -> Mapping[str, Any]:
    """Return these and what was found."""
    alone = np.bincount(result.group_of, minlength=len(result.files))[result.group_of[rows]] < 2
    similarity = result.similarity[rows]
    return {
        **_file_columns(result, rows),
        "kept": pa.array(result.keep[rows]),
        "group_id": _paths(result, np.where(alone, -1, result.group_of[rows])),
        "duplicate_of": _paths(result, result.duplicate_of[rows]),
        "similarity": pa.array(similarity, pa.float64(), mask=np.isnan(similarity)),
        "distance": _distances(result.distance[rows]),
    }


def _paths(result: MediaResult, rows: Ints) -> Any:
    """Return paths as they lead to files from here; null for -1."""
    return strings([None if row < 0 else _text(result.files[row]) for row in rows.tolist()])


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
            # Without `..`, a path cannot lead out of the folder.
            parts = (part for part in file.absolute().parts[1:] if part != "..")
            target = folder / (file.relative_to(result.root) if result.root else Path(*parts))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)
    return len(rows)
