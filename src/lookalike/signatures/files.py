"""Signatures in a file, with the signer that made them and the ids of their documents."""

from __future__ import annotations

import csv
import os
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import file_path, instance
from lookalike.errors import (
    ArgumentError,
    CorruptIndexError,
    FileError,
    FormatError,
    Said,
    SignatureError,
)
from lookalike.shown import brief
from lookalike.signatures.arrays import as_signatures
from lookalike.signatures.bit_weights import as_bit_weights
from lookalike.signatures.signer import Signer, signer_contents, signer_in
from lookalike.suggestions import did_you_mean, did_you_mean_file

if TYPE_CHECKING:
    from lookalike.storage import Container

_NPY_MAGIC = b"\x93NUMPY"
_NPZ_MAGIC = b"PK\x03\x04"
_WEIGHTS = "weights"
_UNREADABLE = (
    *(OSError, ValueError, EOFError, KeyError, zlib.error, zipfile.BadZipFile, MemoryError),
    *(NotImplementedError, RuntimeError),  # packed in another way, or encrypted
)
_NPZ_ARRAY = "signatures"
"""What the array of an archive is called, unless it is the only one."""


@dataclass(frozen=True)
class SavedSignatures:
    """What `save_signatures` wrote."""

    signatures: NDArray[np.uint8]
    """Mapped."""
    signer: Signer
    ids: Sequence[str] | None
    """Of the documents; None: they are known by their position."""
    weights: NDArray[np.int16] | None = None
    """Behind the bits, quantized (see `la.quantize_weights`), mapped; None: they were not saved."""


def save_signatures(
    path: str | os.PathLike[str],
    signatures: ArrayLike,
    signer: Signer,
    ids: Sequence[str] | None = None,
    *,
    weights: ArrayLike | None = None,
) -> None:
    """Write signatures and what is needed to compare others with them, whole or not at all.

    `weights` are those behind their bits, `(signatures, bits)`, as `sign_with_weights` returns
    them; they are kept in 16 bits each.
    """
    from lookalike.storage import Strings, write_container  # not needed to sign, so not at import

    target = file_path("path", path)
    rows = as_signatures(signatures, "the signatures")
    meta, learnt = signer_contents(signer)
    arrays: dict[str, NDArray[Any]] = {"signatures": rows, **learnt}
    if ids is not None:
        names = Strings.of(instance("ids", ids, Collection, "a list of strings"))
        if len(names) != len(rows):
            raise SignatureError(
                f"there are {len(names)} ids and {len(rows)} signatures; expected as many"
            )
        arrays |= names.arrays("id")
    if weights is not None:
        # Their bytes as unsigned numbers: older versions know no others of 16 bits.
        arrays[_WEIGHTS] = as_bit_weights(weights, rows).view(np.uint16)
    write_container(target, {"kind": "signatures", **meta}, arrays)


def load_signatures(path: str | os.PathLike[str]) -> SavedSignatures:
    """Open a file that `save_signatures` wrote, after its checksums have been compared.

    That reads it once, which whoever compares signatures does anyway.
    """
    from lookalike.storage import open_container

    return signatures_in(open_container(file_path("path", path)))


def signatures_in(container: Container) -> SavedSignatures:
    """Return the signatures in a container that `save_signatures` wrote."""
    from lookalike.storage import Strings

    path = container.path
    if container.meta.get("kind") != "signatures":
        what = "an index" if "index" in container.meta else "something else"
        raise FormatError(
            f"{path} holds {what}; expected signatures, as `lookalike sign` writes them"
        )
    container.verify_ahead()
    rows: NDArray[np.uint8] = container.array("signatures", np.uint8, 2)
    signer = signer_in(container)
    if signer is None:
        raise CorruptIndexError(f"{path}: the signer is missing; it is damaged")
    ids = Strings.restored(container, "id")
    if ids is not None and len(ids) != len(rows):
        raise CorruptIndexError(f"{path}: the ids do not fit the signatures; it is damaged")
    return SavedSignatures(rows, signer, ids, weights_in(container, rows))


def weights_in(container: Container, rows: NDArray[np.uint8]) -> NDArray[np.int16] | None:
    """Return the weights that a container of signatures has, or None."""
    if _WEIGHTS not in container:
        return None
    weights = container.array(_WEIGHTS, np.uint16, 2).view(np.int16)
    if weights.shape != (len(rows), 8 * rows.shape[1]):
        raise CorruptIndexError(
            f"{container.path}: the weights do not fit the signatures; it is damaged"
        )
    return weights


def is_npy(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins as those of `np.save` do."""
    return _begins(path, _NPY_MAGIC)


def is_npz(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins as those of `np.savez` do."""
    return _begins(path, _NPZ_MAGIC)


def _begins(path: str | os.PathLike[str], magic: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(magic)) == magic
    except OSError as error:
        meant = did_you_mean_file(path) if isinstance(error, FileNotFoundError) else ""
        raise FileError(f"{path} cannot be read: {error.strerror or error}{meant}") from error


def read_npy(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """Return the signatures of a .npy file, mapped and not read."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FormatError(f"{path} is a .npy file that cannot be used: {error}") from error
    return as_signatures(array, f"the signatures in {path}")


def read_npz(path: str | os.PathLike[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64] | None]:
    """Return the signatures of a .npz file, and its ids if it has some. Nothing is unpickled.

    They are the array "signatures", or the only one there is beside "ids".
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            names = [name for name in archive.files if name != "ids"]
            if len(names) > 1 and _WEIGHTS in names:
                names.remove(_WEIGHTS)
            if _NPZ_ARRAY not in names and len(names) != 1:
                raise FormatError(
                    f"{path} has the arrays {', '.join(names) or 'none'}; expected one that is "
                    f"called {_NPZ_ARRAY!r}, or a single one"
                )
            array = archive[_NPZ_ARRAY if _NPZ_ARRAY in names else names[0]]
            ids = archive["ids"] if "ids" in archive.files else None
    except (OSError, ValueError, EOFError, KeyError, zlib.error, zipfile.BadZipFile) as error:
        raise FormatError(f"{path} is a .npz file that cannot be used: {error}") from error
    except (MemoryError, NotImplementedError, RuntimeError) as error:  # too large, or encrypted
        raise FormatError(f"{path} is a .npz file that cannot be used: {error!r}") from error
    rows = as_signatures(array, f"the signatures in {path}")
    if ids is not None and (ids.shape != (len(rows),) or ids.dtype.kind not in "iu"):
        raise SignatureError(
            f"the ids in {path} are {ids.dtype} of shape {ids.shape}; expected a whole number for "
            f"each of {len(rows)} signatures"
        )
    return rows, None if ids is None else ids.astype(np.int64)


def npz_weights(path: str | os.PathLike[str], rows: NDArray[np.uint8]) -> NDArray[np.int16] | None:
    """Return the weights behind the bits that a .npz file has beside its signatures, or None.

    They are the array "weights", where that is not the only one. Their signs have to be the bits.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            if _WEIGHTS not in archive.files or len(set(archive.files) - {"ids"}) < 2:
                return None
            weights = archive[_WEIGHTS]
    except _UNREADABLE as error:
        raise FormatError(f"{path} is a .npz file that cannot be used: {error!r}") from error
    try:
        return as_bit_weights(weights, rows)
    except ArgumentError as error:
        raise SignatureError(f"{path} cannot be used: {error}") from error


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
