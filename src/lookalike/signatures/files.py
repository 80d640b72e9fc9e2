"""Signatures in a file, with the signer that made them and the ids of their documents."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Collection, Sequence
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
    SignatureError,
)
from lookalike.signatures.arrays import as_signatures
from lookalike.signatures.bit_weights import as_bit_weights
from lookalike.signatures.signer import Signer, signer_contents, signer_in
from lookalike.suggestions import did_you_mean_file

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = [
    "SavedSignatures",
    "is_npy",
    "is_npz",
    "load_signatures",
    "npz_weights",
    "read_npy",
    "read_npz",
    "save_signatures",
    "signatures_in",
    "weights_in",
]

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
