"""Opening a saved index, whichever sort it is."""

from __future__ import annotations

import os

from lookalike.errors import FormatError
from lookalike.indexes.base import Index
from lookalike.indexes.blocks import BlockIndex
from lookalike.indexes.flips import FlipIndex
from lookalike.indexes.scan import ScanIndex
from lookalike.indexes.slices import SliceIndex

__all__ = ["load_index"]

_INDEXES: tuple[type[Index], ...] = (ScanIndex, SliceIndex, BlockIndex, FlipIndex)
_KINDS = {index.kind: index for index in _INDEXES}


def load_index(path: str | os.PathLike[str], *, verify: bool = False) -> Index:
    """Open a saved index. Its arrays are memory-mapped: opening costs the same for any size.

    Header and layout are always checked. `verify=True` also reads every section and compares its
    checksum, as `Index.verify` does later. The file must not be changed in place while it is
    open; saving to the same name is safe, because that makes a new file.
    """
    from lookalike.storage import open_container  # not needed to search, so not at import

    container = open_container(path)
    kind = container.meta.get("index")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise FormatError(
            f"{container.path} holds an index of kind {kind!r}; this version knows {list(_KINDS)}"
        )
    index = _KINDS[kind].from_container(container)
    if verify:
        index.verify()
    return index
