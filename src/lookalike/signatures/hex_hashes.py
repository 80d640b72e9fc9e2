"""Hashes of other tools, written in hexadecimal: imagehash's, PDQ's, anybody's."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import file_path
from lookalike.errors import ArgumentError, FileError, FormatError, Said, SignatureError
from lookalike.shown import brief
from lookalike.signatures.arrays import as_signatures
from lookalike.suggestions import did_you_mean, did_you_mean_file

__all__ = ["HEX_SUFFIXES", "load_hex", "signatures_from_hex", "signatures_to_hex"]

HEX_SUFFIXES = (".txt", ".hex", ".csv", ".tsv")
"""Of files that may have such hashes."""

_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})+)")
_LEAST_DIGITS = 16
"""Of a hash that is not asked for by the name of its column: numbers are shorter."""
_LONGEST_FIELD = 1 << 20
_NAMES = ("id", "path", "file", "filename", "file_name", "name", "image", "url", "key")
_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)).reshape(-1, 8)[:, ::-1])
"""Bytes with their bits in the other order."""


def signatures_from_hex(hashes: str | Iterable[str]) -> NDArray[np.uint8]:
    """Return hashes in hexadecimal, one or many, as signatures: `uint8[n, bits // 8]`.

    Bit j is the j-th from the left, as imagehash and PDQ write theirs. All have to have the same
    number of digits; 0x before them is taken, too.
    """
    given = [hashes] if isinstance(hashes, str) else _listed(hashes)
    rows = []
    for position, one in enumerate(given):
        found = _HEX.fullmatch(one.strip()) if isinstance(one, str) else None
        if found is None:
            raise SignatureError(
                f"hash {position} is {brief(one)}; expected an even number of hexadecimal digits"
            )
        rows.append(bytes.fromhex(found[1]))
        if len(rows[-1]) != len(rows[0]):
            raise SignatureError(
                f"hash {position} has {8 * len(rows[-1])} bits, the first has {8 * len(rows[0])}; "
                "expected hashes of one kind"
            )
    if not rows:
        raise SignatureError("there are no hashes, so it cannot be told how many bits they have")
    return _REVERSED[np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)]


def signatures_to_hex(signatures: ArrayLike) -> list[str]:
    """Return signatures in hexadecimal, bit 0 first: the inverse of `signatures_from_hex`."""
    return [row.tobytes().hex() for row in _REVERSED[as_signatures(signatures, single=True)]]


def load_hex(
    path: str | os.PathLike[str], *, column: str | None = None, id: str | None = None
) -> tuple[NDArray[np.uint8], list[str] | None]:
    """Return the hashes of a text file as signatures, and the names beside them, or None.

    A hash a line, or a table with commas or tabs, with a header or without. The column of hashes
    is the one that has nothing but hashes of 16 digits or more, names are in a column called id,
    path, file, name, image or url, or else in the first other one; `column` and `id` say which, by
    their names, or by their numbers from 0 on ("1") where there is no header.
    """
    source = file_path("path", path)
    table, header = _table(source, [one for one in (column, id) if isinstance(one, str)])
    column_at = _hash_column(table, header, column, source)
    id_at = _id_column(table, header, id, column_at, source)
    try:
        rows = signatures_from_hex([row[column_at] for row in table])
    except SignatureError as error:
        raise SignatureError(f"{source} cannot be used: {error}") from error
    return rows, None if id_at is None else [row[id_at] for row in table]


def _listed(hashes: Any) -> list[Any]:
    try:
        return list(hashes)
    except TypeError:
        raise SignatureError(
            f"hashes are {brief(hashes)}; expected text in hexadecimal, one or many"
        ) from None


def _table(path: Any, wanted: Sequence[str]) -> tuple[list[list[str]], list[str] | None]:
    """Return the rows of a file, all of the same length, and its header, if it has one: a first
    line with the name of a wanted column, or without the hashes that the second one has.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            beginning = file.readline(_LONGEST_FIELD)
            file.seek(0)
            delimiter = "\t" if "\t" in beginning else ","
            rows = [row for row in csv.reader(file, delimiter=delimiter) if any(row)]
    except OSError as error:
        meant = did_you_mean_file(path) if isinstance(error, FileNotFoundError) else ""
        raise FileError(f"{path} cannot be read: {error.strerror or error}{meant}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"{path} is no text with hashes in hexadecimal: {error}") from error
    rows = [[value.strip() for value in row] for row in rows]
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise FormatError(
                f"{path} has {len(rows[0])} columns in its first line and {len(row)} in line "
                f"{number + 1}; expected a hash in hexadecimal on each line, or a table"
            )
    if not rows:
        raise FormatError(f"{path} is empty; expected hashes in hexadecimal")
    hashes = [any(map(_is_hash, row)) for row in rows[:2]]
    if not set(rows[0]).isdisjoint(wanted) or hashes == [False, True]:
        return rows[1:], rows[0]
    return rows, None


def _is_hash(value: str) -> bool:
    found = _HEX.fullmatch(value)
    return found is not None and len(found[1]) >= _LEAST_DIGITS


def _hash_column(
    table: Sequence[Sequence[str]], header: list[str] | None, wanted: str | None, path: Any
) -> int:
    if wanted is not None:
        return _named(table, header, wanted, "column", path)
    found = [at for at in range(len(table[0])) if all(_is_hash(row[at]) for row in table)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise FormatError(
            f"{path} has no column with hashes of {_LEAST_DIGITS} or more hexadecimal digits in "
            "every line; expected one"
        )
    called = ", ".join(str(at) if header is None else header[at] for at in found)
    raise ArgumentError(
        f"{path} has several columns of hashes ({called}); say which with ", Said("column")
    )


def _id_column(
    table: Sequence[Sequence[str]],
    header: list[str] | None,
    wanted: str | None,
    column: int,
    path: Any,
) -> int | None:
    if wanted is not None:
        return _named(table, header, wanted, "id", path)
    others = [at for at in range(len(header or table[0])) if at != column]
    folded = {} if header is None else {header[at].lower(): at for at in others}
    for name in _NAMES:
        if name in folded:
            return folded[name]
    different = (at for at in others if len({row[at] for row in table}) == len(table))
    return next(different, None)


def _named(
    table: Sequence[Sequence[str]], header: list[str] | None, name: str, argument: str, path: Any
) -> int:
    known = list(map(str, range(len(table[0])))) if header is None else header
    if not isinstance(name, str) or name not in known:
        there = f"there are: {', '.join(known)}"
        raise ArgumentError(
            Said(argument),
            f" is {brief(name)}, and {path} has no such column; "
            f"{there if header is not None else f'it has no header, so {there}'}"
            f"{did_you_mean(name, header or []) if isinstance(name, str) else ''}",
        )
    return known.index(name)
