"""Signatures in a file, with the signer that made them and the ids of their documents."""

from __future__ import annotations

import csv
import os
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import file_path, instance
from lookalike.display import Column, TableColumns, Tabular
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
    from lookalike.storage.container import Container

_NPY_MAGIC = b"\x93NUMPY"
_NPZ_MAGIC = b"PK\x03\x04"
_NPZ_ARRAY = "signatures"  # name of the array in an archive, unless it is the only one
_WEIGHTS = "weights"
_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})+)")
HEX_SUFFIXES = (".txt", ".hex", ".csv", ".tsv")
"""Suffixes of files that may have hashes in hexadecimal."""
_PREFIX = re.compile(r"[A-Za-z_]+=")  # of a value, as in hash=f8f8...,quality=100,filename=a.jpg
_LEAST_DIGITS = 16  # of a hash in a column that is not named; shorter ones may be numbers
_LONGEST_FIELD = 1 << 20
_NAMES = ("id", "path", "file", "filename", "file_name", "name", "image", "url", "key")
_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)).reshape(-1, 8)[:, ::-1])
"""Bytes with their bits in the other order."""


@dataclass(frozen=True, repr=False)
class SavedSignatures(Tabular):
    """Contents of a file that `save_signatures` wrote.

    The table has a row per signature: `id`, and `signature` in hexadecimal.
    """

    signatures: NDArray[np.uint8]
    """Mapped into memory."""
    signer: Signer
    ids: Sequence[str] | None
    """Ids of the documents; None: they are identified by position."""
    weights: NDArray[np.int16] | None = None
    """Quantized weights of the bits, mapped; None: they were not saved."""

    def _columns(self, begin: int, end: int) -> TableColumns:
        ids = np.arange(begin, end) if self.ids is None else Column(self.ids[begin:end], str)
        hexadecimal = [row.tobytes().hex() for row in self.signatures[begin:end]]
        return {"id": ids, "signature": Column(hexadecimal, str)}

    def _row_count(self) -> int:
        return len(self.signatures)


def save_signatures(
    path: str | os.PathLike[str],
    signatures: ArrayLike,
    signer: Signer,
    ids: Sequence[str] | None = None,
    *,
    weights: ArrayLike | None = None,
) -> None:
    """Write signatures, their signer and ids to a file, atomically.

    Args:
        path: File to write; an existing file is replaced.
        signatures: Array `uint8[n, bits // 8]`.
        signer: Signer of the signatures.
        ids: Ids of the documents (default: none).
        weights: Weights of the bits, as `sign_with_weights` returns them; stored in 16 bits.

    Examples:
        >>> signer = la.SimHash(bits=64)
        >>> la.save_signatures("two.lookalike", signer.sign(["a b", "c d"]), signer, ids=["x", "y"])
        >>> la.load_signatures("two.lookalike").signatures.shape
        (2, 8)
    """
    from lookalike.storage.container import write_container  # not needed to sign, so not at import
    from lookalike.storage.strings import Strings  # not needed to sign, so not at import

    target = file_path("path", path)
    rows = as_signatures(signatures, "the signatures")
    meta, learned = signer_contents(signer)
    arrays: dict[str, NDArray[Any]] = {"signatures": rows, **learned}
    if ids is not None:
        names = Strings.of(instance("ids", ids, Collection, "a list of strings"))
        if len(names) != len(rows):
            raise SignatureError(
                f"there are {len(names)} ids and {len(rows)} signatures; expected as many"
            )
        arrays |= names.arrays("id")
    if weights is not None:
        # Older versions read only unsigned numbers of 16 bits.
        arrays[_WEIGHTS] = as_bit_weights(weights, rows).view(np.uint16)
    write_container(target, {"kind": "signatures", **meta}, arrays)


def load_signatures(path: str | os.PathLike[str]) -> SavedSignatures:
    """Open a file that `save_signatures` wrote, and verify its checksums."""
    from lookalike.storage.container import open_container

    return signatures_in(open_container(file_path("path", path)))


def signatures_in(container: Container) -> SavedSignatures:
    """Return the signatures in a container that `save_signatures` wrote."""
    from lookalike.storage.strings import Strings

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
        raise _unreadable(path, error) from error


def _unreadable(path: str | os.PathLike[str], error: OSError) -> FileError:
    meant = did_you_mean_file(path) if isinstance(error, FileNotFoundError) else ""
    return FileError(f"{path} cannot be read: {error.strerror or error}{meant}")


def read_npy(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """Return the signatures of a .npy file, mapped into memory."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FormatError(f"{path} is a .npy file that cannot be used: {error}") from error
    return as_signatures(array, f"the signatures in {path}")


@contextmanager
def _archive(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a .npz file. Nothing is unpickled."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            yield archive
    except (OSError, ValueError, EOFError, KeyError, zlib.error, zipfile.BadZipFile) as error:
        raise FormatError(f"{path} is a .npz file that cannot be used: {error}") from error
    except (MemoryError, NotImplementedError, RuntimeError) as error:  # too large, or encrypted
        raise FormatError(f"{path} is a .npz file that cannot be used: {error!r}") from error


def read_npz(path: str | os.PathLike[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64] | None]:
    """Return the signatures of a .npz file, and its ids or None.

    Signatures are the array "signatures", or the only array beside "ids".
    """
    with _archive(path) as archive:
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
    rows = as_signatures(array, f"the signatures in {path}")
    if ids is not None and (ids.shape != (len(rows),) or ids.dtype.kind not in "iu"):
        raise SignatureError(
            f"the ids in {path} are {ids.dtype} of shape {ids.shape}; expected a whole number for "
            f"each of {len(rows)} signatures"
        )
    return rows, None if ids is None else ids.astype(np.int64)


def npz_weights(path: str | os.PathLike[str], rows: NDArray[np.uint8]) -> NDArray[np.int16] | None:
    """Return the weights of the bits (the array "weights") in a .npz file, or None."""
    with _archive(path) as archive:
        if _WEIGHTS not in archive.files or len(set(archive.files) - {"ids"}) < 2:
            return None
        weights = archive[_WEIGHTS]
    try:
        return as_bit_weights(weights, rows)
    except ArgumentError as error:
        raise SignatureError(f"{path} cannot be used: {error}") from error


def signatures_from_hex(hashes: str | Iterable[str]) -> NDArray[np.uint8]:
    """Return one or many hashes in hexadecimal as signatures: `uint8[n, bits // 8]`.

    Bit j is the j-th from the left, as imagehash and PDQ write their hashes. All need the same
    number of digits; a prefix 0x is accepted.
    """
    try:
        given = [hashes] if isinstance(hashes, str) else list(hashes)
    except TypeError:
        raise SignatureError(
            f"hashes are {brief(hashes)}; expected text in hexadecimal, one or many"
        ) from None
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
        raise SignatureError("there are no hashes, so their number of bits is unknown")
    return _REVERSED[np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)]


def signatures_to_hex(signatures: ArrayLike) -> list[str]:
    """Return signatures in hexadecimal, bit 0 first: the inverse of `signatures_from_hex`."""
    return [row.tobytes().hex() for row in _REVERSED[as_signatures(signatures, single=True)]]


def load_hex(
    path: str | os.PathLike[str], *, column: str | None = None, id: str | None = None
) -> tuple[NDArray[np.uint8], list[str] | None]:
    """Return the hashes of a text file as signatures, and their ids or None.

    The file has a hash on each line, or is a table with commas or tabs, with or without a header.
    Lists of PDQ hashes, of MD5 sums and of vPDQ frames are such tables. A value may have its name
    before it: `hash=f8f8...,quality=100`.

    Args:
        column: Column of hashes (default: the one with hashes of at least 16 digits in every row).
            Its name, or its number from 0 on ("1") if there is no header.
        id: Column of ids, likewise (default: one called id, path, file, name, image or url, or
            else the first other column of distinct values, rather not of numbers).

    Raises:
        FormatError: The file is not such a table.
        SignatureError: A value is not a hash, or not of as many bits as the first; it names the
            line and the column.
    """
    named = [one for one in (column, id) if isinstance(one, str)]
    table = _HexTable.read(file_path("path", path), named)
    column_at = table.hash_column() if column is None else table.position("column", column)
    id_at = table.id_column(column_at) if id is None else table.position("id", id)
    table.check_hashes(column_at)
    rows = signatures_from_hex([row[column_at] for row in table.rows])
    return rows, None if id_at is None else [row[id_at] for row in table.rows]


def save_hex(
    path: str | os.PathLike[str],
    signatures: ArrayLike,
    ids: Sequence[str] | None = None,
    *,
    quality: Sequence[int] | None = None,
) -> None:
    """Write signatures to a text file in hexadecimal, atomically, as `load_hex` reads them.

    A line has the hash, then the quality and the id, if they are given, separated by commas. So
    the tools of ThreatExchange write and read lists of PDQ hashes.

    Args:
        path: File to write; an existing file is replaced.
        signatures: Array `uint8[n, bits // 8]`.
        ids: Ids, such as the paths of images (default: none).
        quality: Quality of each hash (default: none).

    Raises:
        SignatureError: The numbers of signatures, ids and qualities differ.

    Examples:
        >>> rows = la.signatures.signatures_from_hex(["8f373714acfcf4d0", "8f373714bcfcf4d1"])
        >>> la.signatures.save_hex("hashes.csv", rows, ["a.png", "b.png"])
        >>> la.load_hex("hashes.csv")[1]
        ['a.png', 'b.png']
    """
    from lookalike.storage.files import whole_file

    columns: list[Sequence[Any]] = [signatures_to_hex(signatures)]
    for name, values in (("qualities", quality), ("ids", ids)):
        if values is None:
            continue
        if len(values) != len(columns[0]):
            raise SignatureError(
                f"there are {len(values)} {name} and {len(columns[0])} signatures; expected as many"
            )
        columns.append(values)
    with (
        whole_file(file_path("path", path)) as temporary,
        open(temporary, "w", encoding="utf-8", newline="") as file,
    ):
        csv.writer(file, lineterminator="\n").writerows(zip(*columns, strict=True))


@dataclass(frozen=True)
class _HexTable:
    path: Path
    rows: list[list[str]]
    header: list[str] | None
    lines: list[int]
    """The line of the file on which each row ends, from 1 on."""

    @classmethod
    def read(cls, path: Path, named: Collection[str]) -> _HexTable:
        """Read a file. Its first line is a header if it has the name of a column, or if the second
        line has hashes and the first has none.
        """
        try:
            with open(path, encoding="utf-8-sig", newline="") as file:
                beginning = file.readline(_LONGEST_FIELD)
                file.seek(0)
                reader = csv.reader(file, delimiter="\t" if "\t" in beginning else ",")
                numbered = [(reader.line_num, row) for row in reader if any(row)]
        except OSError as error:
            raise _unreadable(path, error) from error
        except (UnicodeDecodeError, csv.Error) as error:
            raise FormatError(f"{path} is not a text of hexadecimal hashes: {error}") from error
        rows = [[_PREFIX.sub("", value.strip(), count=1) for value in row] for _, row in numbered]
        lines = [number for number, _ in numbered]
        for number, row in zip(lines, rows, strict=True):
            if len(row) != len(rows[0]):
                raise FormatError(
                    f"{path} has {len(rows[0])} columns in its first line and {len(row)} in line "
                    f"{number}; expected a hash in hexadecimal on each line, or a table"
                )
        if not rows:
            raise FormatError(f"{path} is empty; expected hashes in hexadecimal")
        hashes = [any(map(_is_hash, row)) for row in rows[:2]]
        if hashes == [False, True] or any(name in named for name in rows[0]):
            return cls(path, rows[1:], rows[0], lines[1:])
        return cls(path, rows, None, lines)

    @property
    def columns(self) -> list[str]:
        return self.header or list(map(str, range(len(self.rows[0]))))

    def hash_column(self) -> int:
        positions = range(len(self.columns))
        found = [at for at in positions if all(_is_hash(row[at]) for row in self.rows)]
        if len(found) > 1:
            called = ", ".join(self.columns[at] for at in found)
            several = f"{self.path} has several columns of hashes ({called}); say which with "
            raise ArgumentError(several, Said("column"))
        if not found:
            usual = [sum(_is_hash(row[at]) for row in self.rows) for at in positions]
            if max(usual) > len(self.rows) / 2:  # a list with a few bad lines
                return usual.index(max(usual))
            raise FormatError(
                f"{self.path} has no column with hashes of {_LEAST_DIGITS} or more hexadecimal "
                "digits in every line; expected one"
            )
        return found[0]

    def check_hashes(self, column: int) -> None:
        """Raise `SignatureError` for the first value that is not a hash like the first one."""
        first = None
        for line, row in zip(self.lines, self.rows, strict=True):
            found = _HEX.fullmatch(row[column])
            where = f"{self.path}, line {line}, column {brief(self.columns[column])}"
            if found is None:
                raise SignatureError(
                    f"{where}: {brief(row[column])} is not a hash; expected an even number of "
                    "hexadecimal digits"
                )
            first = first or len(found[1])
            if len(found[1]) != first:
                raise SignatureError(
                    f"{where}: the hash has {4 * len(found[1])} bits, the first one has "
                    f"{4 * first}; expected hashes of one kind"
                )

    def id_column(self, column: int) -> int | None:
        others = [at for at in range(len(self.columns)) if at != column]
        folded = {self.columns[at].lower(): at for at in others}
        named = (folded[name] for name in _NAMES if name in folded)
        rows = self.rows
        distinct = [at for at in others if len({row[at] for row in rows}) == len(rows)]
        names = (at for at in distinct if not all(_is_number(row[at]) for row in rows))
        return next(chain(named, names, distinct), None)

    def position(self, argument: str, name: str) -> int:
        if isinstance(name, str) and name in self.columns:
            return self.columns.index(name)
        raise ArgumentError(
            Said(argument),
            f" is {brief(name)}, and {self.path} has no such column; "
            f"{'it has no header, so ' if self.header is None else ''}"
            f"there are: {', '.join(self.columns)}"
            f"{did_you_mean(name, self.header or []) if isinstance(name, str) else ''}",
        )


def _is_hash(value: str) -> bool:
    found = _HEX.fullmatch(value)
    return found is not None and len(found[1]) >= _LEAST_DIGITS


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
