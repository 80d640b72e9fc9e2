"""Vectors in a file: what is written, and what is checked before it is believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError, CorruptIndexError
from lookalike.indexes import ClusterIndex
from lookalike.indexes.files import index_in
from lookalike.indexes.tuning import Option, Tuning
from lookalike.signatures import Projection
from lookalike.signatures.signer import signer_contents, signer_in
from lookalike.storage import Container
from lookalike.vectors.search import Parts
from lookalike.vectors.store import Store

__all__ = ["KIND", "contents", "restored"]

KIND = "vectors"


def contents(
    parts: Parts,
    signer: Projection,
    own_ids: bool,
    next_id: int,
    tunings: Sequence[Tuning[Option]],
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what a container needs to hold the index. Halves are saved as their bits."""
    store = parts.store
    description, learnt = signer_contents(signer)
    rows = store.all_rows()
    meta: dict[str, Any] = {
        "index": KIND,
        "dtype": str(store.dtype),
        "own_ids": own_ids,
        "next_id": next_id,
        "tunings": [tuning.saved() for tuning in tunings],
        **description,
    }
    arrays: dict[str, NDArray[Any]] = {
        "vectors": rows.view(np.uint16) if store.dtype == np.float16 else rows,
        "signatures": np.frombuffer(parts.signatures.to_bytes(), np.uint8),
        **learnt,
    }
    if store.ids is not None:
        arrays["ids"] = store.ids
    if store.removed is not None:
        arrays["removed"] = store.removed
    return meta, arrays


def restored(
    container: Container,
) -> tuple[Parts, Projection, bool, int, tuple[Tuning[Option], ...]]:
    """Return what `contents` saved, arrays mapped."""
    meta = container.meta
    try:
        signer = signer_in(container)
        own, next_id = bool(meta["own_ids"]), int(meta["next_id"])
        tunings = tuple(
            Tuning.restored(KIND, ("candidates", "probe"), dict(each)) for each in meta["tunings"]
        )
        half = {"float16": True, "float32": False}[meta["dtype"]]
    except (ArgumentError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise CorruptIndexError(
            f"{container.path}: the description of the vectors cannot be used: {error!r}"
        ) from error
    rows = container.array("vectors", np.uint16 if half else np.float32, 2)
    ids = container.array("ids", np.int64, 1) if "ids" in container else None
    removed = container.array("removed", np.uint8, 1) if "removed" in container else None
    store = Store(rows.view(np.float16) if half else rows, _nothing(rows, half), ids, removed)
    inner = index_in(container.inner("signatures"))
    fits = (
        isinstance(signer, Projection)
        and isinstance(inner, ClusterIndex)
        and signer.dimensions == rows.shape[1]
        and inner.bits == signer.bits
        and all(len(array) == len(store) for array in (ids, removed) if array is not None)
        and inner.next_id == len(store)
        and len(inner) == store.alive
        and (own or ids is not None or next_id >= len(store))
        and 0 <= next_id <= 2**63
    )
    if not (fits and isinstance(signer, Projection) and isinstance(inner, ClusterIndex)):
        raise CorruptIndexError(
            f"{container.path} holds {len(store)} vectors, and signatures, ids or marks that do "
            "not fit them; it is damaged"
        )
    return Parts(inner, store), signer, own, next_id, tunings


def _nothing(rows: NDArray[Any], half: bool) -> NDArray[Any]:
    return np.empty((0, rows.shape[1]), np.float16 if half else np.float32)
