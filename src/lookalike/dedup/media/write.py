"""Lists of files that stay and of files that could go, and copies of those that stay."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora import check_table_target, format_of, write_table
from lookalike.corpora.base import BATCH_ROWS, pa
from lookalike.corpora.formats import is_table
from lookalike.errors import ArgumentError, DocumentError, FileError
from lookalike.storage import check_replaceable, is_there, whole_file, whole_folder

if TYPE_CHECKING:
    from lookalike.dedup.media.result import MediaResult

__all__ = [
    "check_list",
    "check_survivors",
    "write_annotated",
    "write_dropped",
    "write_pairs",
    "write_survivors",
]

_ENDINGS = ".txt, .jsonl, .json, .csv, .tsv or .parquet"


def check_list(path: Path) -> None:
    """Refuse a name that no list could be written to."""
    if format_of(path) == "text":
        check_replaceable(path)
        return
    if not is_table(path):
        raise ArgumentError(
            f"{path}: its name tells no format for a list of files; expected one that ends in "
            f"{_ENDINGS}"
        )
    check_table_target(path)


def check_survivors(path: Path) -> None:
    """Refuse a name that neither a list nor a folder of copies could have."""
    if not _is_folder(path):
        check_list(path)
    elif is_there(path):
        raise FileError(f"{path} is there already; name a folder that is not, or remove it")


def _is_folder(path: Path) -> bool:
    return format_of(path) is None and not path.suffix


def write_survivors(result: MediaResult, path: Path) -> int:
    """Copy the files that stay into a new folder, or list them."""
    check_survivors(path)
    stays = np.flatnonzero(result.keep)
    if _is_folder(path):
        return _copy(result, stays, path)
    return _write_list(result, stays, path, _columns)


def write_dropped(result: MediaResult, path: Path) -> int:
    """List the files that could go, by cluster; in a table, with what stands for each."""
    check_list(path)
    gone = np.flatnonzero(~result.keep)
    gone = gone[np.argsort(result.clusters[gone], kind="stable")]
    return _write_list(result, gone, path, _annotated)


def write_annotated(result: MediaResult, path: Path) -> int:
    """Write a table of all files.

    `cluster` is the path of the cluster's first file, null for one that stands alone;
    `duplicate_of` that of the file that stands for a dropped one, with their `similarity` and
    `distance`, which are null for those that stay.
    """
    check_table_target(path)
    return write_table(_batches(result, np.arange(len(result.files)), _annotated), path)


def write_pairs(result: MediaResult, path: Path) -> int:
    """Write the pairs; an equal file is paired with the first of its kind, at similarity 1."""
    check_table_target(path)
    copies = np.flatnonzero(result.first_equal != np.arange(len(result.files)))
    different = result.different_pairs
    left = np.concatenate([different.left, result.first_equal[copies]])
    right = np.concatenate([different.right, copies])
    similarity = np.concatenate([different.similarity, np.ones(len(copies))])
    distance = np.concatenate([different.distance, np.zeros(len(copies), np.int32)])
    order = np.lexsort((right, left))

    def batches() -> Iterator[Any]:
        for begin in range(0, max(1, len(order)), BATCH_ROWS):
            part = order[begin : begin + BATCH_ROWS]
            yield pa.record_batch(
                {
                    "left": _paths(result, left[part]),
                    "right": _paths(result, right[part]),
                    "similarity": pa.array(similarity[part], pa.float64()),
                    "distance": _distances(distance[part]),
                }
            )

    return write_table(batches(), path)


def _write_list(result: MediaResult, rows: NDArray[np.int64], path: Path, columns: Any) -> int:
    if format_of(path) != "text":
        return write_table(_batches(result, rows, columns), path)
    lines = [os.fsencode(result.files[row]) for row in rows.tolist()]
    for line in lines:
        # Whoever deletes what is listed must not delete what such a name spells.
        if b"\n" in line or b"\r" in line:
            raise DocumentError(
                f"{os.fsdecode(line)!r} has a line break in its name, and cannot be on a line of "
                f"{path}; write a table, such as {path.with_suffix('.jsonl')}"
            )
    with whole_file(path) as temporary:
        temporary.write_bytes(b"".join(line + b"\n" for line in lines))
    return len(lines)


def _batches(result: MediaResult, rows: NDArray[np.int64], columns: Any) -> Iterator[Any]:
    for begin in range(0, max(1, len(rows)), BATCH_ROWS):
        yield pa.record_batch(columns(result, rows[begin : begin + BATCH_ROWS]))


def _columns(result: MediaResult, rows: NDArray[np.int64]) -> Mapping[str, Any]:
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


def _annotated(result: MediaResult, rows: NDArray[np.int64]) -> Mapping[str, Any]:
    """Return these and what was found."""
    alone = np.bincount(result.clusters, minlength=len(result.files))[result.clusters[rows]] < 2
    similarity = result.similarity[rows]
    return {
        **_columns(result, rows),
        "stays": pa.array(result.keep[rows]),
        "cluster": _paths(result, np.where(alone, -1, result.clusters[rows])),
        "duplicate_of": _paths(result, result.duplicate_of[rows]),
        "similarity": pa.array(similarity, pa.float64(), mask=np.isnan(similarity)),
        "distance": _distances(result.distance[rows]),
    }


def _paths(result: MediaResult, rows: NDArray[np.int64]) -> Any:
    """Return paths as they lead to files from here; null for -1."""
    return pa.array(
        [None if row < 0 else _text(result.files[row]) for row in rows.tolist()], pa.string()
    )


def _text(file: Path) -> str:
    """Return a path as text. Bytes that are none become U+FFFD, unless that is another file."""
    name = os.fsencode(file)
    text = name.decode("utf-8", "replace")
    if text.encode() != name and os.path.lexists(text):
        # Whoever deletes what is listed must not delete that one.
        raise DocumentError(
            f"{str(file)!r} has a name that is no UTF-8; in a table it would read {text!r}, which "
            "is another file: rename one of them, or write a list that ends in .txt"
        )
    return text


def _distances(distances: NDArray[np.int32]) -> Any:
    return pa.array(distances, pa.int32(), mask=distances < 0)


def _copy(result: MediaResult, rows: NDArray[np.int64], path: Path) -> int:
    """Copy files into a new folder, whole or not at all, under the paths that they have."""
    with whole_folder(path) as folder:
        for row in rows.tolist():
            file = result.files[row]
            inside = file.relative_to(result.root) if result.root else _plain(file)
            target = folder / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)
    return len(rows)


def _plain(file: Path) -> Path:
    """Return a path that cannot lead out of a folder."""
    return Path(*(part for part in file.absolute().parts[1:] if part != ".."))
