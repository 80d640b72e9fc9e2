"""Opening a saved index, whichever sort it is, or whatever else has signatures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path, flag
from lookalike.errors import FormatError
from lookalike.indexes.base import Index
from lookalike.indexes.clusters.index import ClusterIndex
from lookalike.indexes.scan import ScanIndex
from lookalike.indexes.sharded import ShardedIndex
from lookalike.indexes.slices.index import SliceIndex
from lookalike.indexes.tables.blocks import BlockIndex
from lookalike.indexes.tables.flips import FlipIndex
from lookalike.indexes.tables.prefixes import PrefixIndex
from lookalike.signatures.files import (
    HEX_SUFFIXES,
    is_npy,
    is_npz,
    load_hex,
    npz_weights,
    read_npy,
    read_npz,
    signatures_in,
    weights_in,
)

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["index_in", "load_index", "named_scan", "open_index", "open_with_weights"]

_INDEXES: tuple[type[Index], ...] = (
    ScanIndex,
    SliceIndex,
    BlockIndex,
    FlipIndex,
    PrefixIndex,
    ClusterIndex,
    ShardedIndex,
)
_KINDS = {index.kind: index for index in _INDEXES}


def load_index(path: str | os.PathLike[str], *, verify: bool = True) -> Index:
    """Open a saved index, its arrays memory-mapped, after all checksums have been compared.

    That reads the file once: 5 to 10 GB/s a thread if it is in memory, else what the disk gives.
    With `verify=False` only header, layout and description are checked, and opening costs the same
    for any size; damage then shows in answers until `Index.verify` is called. What leaves the index
    otherwise, saved or as arrays, is verified before it does.

    The file must not be changed in place while it is open; saving to the same name is safe, because
    that makes a new file.
    """
    from lookalike.storage import open_container  # not needed to search, so not at import

    checked = flag("verify", verify)
    return index_in(open_container(file_path("path", path), verify=checked))


def open_index(path: str | os.PathLike[str], *, verify: bool = True) -> Index:
    """Open whatever file has signatures: a saved index, `la.save_signatures`', `np.save`'s,
    `np.savez`'s, or a text (.txt, .hex, .csv, .tsv) with hashes in hexadecimal (`la.load_hex`).

    Signatures alone become a `ScanIndex`, which has nothing to build, with the signer and the names
    of the documents where the file has them. Files are verified as `load_index` does; those of
    `np.save` have no checksums.
    """
    from lookalike.storage import is_container, open_container

    path, verify = file_path("path", path), flag("verify", verify)
    if path.is_dir():
        raise FormatError(f"{path} is a folder; expected a file with signatures{_sign_first(path)}")
    if is_npy(path):
        return ScanIndex(read_npy(path))
    if is_npz(path):
        rows, ids = read_npz(path)
        return ScanIndex(rows, ids=ids)
    if path.suffix.lower() in HEX_SUFFIXES:
        try:
            return named_scan(*load_hex(path))
        except FormatError as error:
            raise FormatError(f"{error}{_sign_first(path)}") from error
    if not is_container(path):
        raise FormatError(
            f"{path} is not a lookalike file with signatures, nor is it a .npy or .npz file, which "
            f"np.save and np.savez write{_sign_first(path)}"
        )
    container = open_container(path, verify=verify)
    if container.meta.get("kind") != "signatures":
        return index_in(container)
    saved = signatures_in(container)
    index = ScanIndex(saved.signatures)
    index._container = container
    index.signer, index.names = saved.signer, saved.ids
    return index


def _sign_first(path: Path) -> str:
    """Return what to do with documents where signatures are expected."""
    return f"; of a corpus, make signatures first: lookalike sign {path} -o NAME.lookalike"


def named_scan(signatures: NDArray[np.uint8], names: Sequence[str] | None) -> ScanIndex:
    """Return an index of signatures that nobody knows the signer of, with the names of theirs."""
    index = ScanIndex(signatures)
    index.names = names
    return index


def open_with_weights(path: str | os.PathLike[str]) -> tuple[Index, NDArray[np.int16] | None]:
    """Open whatever file has signatures, and the weights behind their bits where it has these.

    Row i of the weights belongs to the signature that `Index.living` has at place i.
    """
    index = open_index(path)
    if is_npz(path):
        return index, npz_weights(path, index.living()[0])
    container = index._container
    if container is None or container.meta.get("kind") != "signatures":
        return index, None
    return index, weights_in(container, index.living()[0])


def index_in(container: Container) -> Index:
    """Return the index that a container holds, whichever sort it is."""
    kind = container.meta.get("index")
    if kind == "bands":
        raise FormatError(f"{container.path} holds a BandIndex; la.BandIndex.load opens it")
    if kind == "parts":
        raise FormatError(f"{container.path} holds a PartIndex; la.PartIndex.load opens it")
    if kind == "vectors":
        raise FormatError(f"{container.path} holds a VectorIndex; la.VectorIndex.load opens it")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise FormatError(
            f"{container.path} holds an index of kind {kind!r}; this version knows {list(_KINDS)}"
        )
    container.verify_ahead()
    return _KINDS[kind].from_container(container)
