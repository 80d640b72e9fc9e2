"""Signatures in a file, with the signer that made them and the ids of their documents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.errors import CorruptIndexError, FormatError, SignatureError
from lookalike.signatures.arrays import as_signatures
from lookalike.signatures.signer import Signer, signer_from_dict

__all__ = ["SignatureFile", "load_signatures", "save_signatures"]


@dataclass(frozen=True)
class SignatureFile:
    """What `save_signatures` wrote."""

    signatures: NDArray[np.uint8]
    """Mapped and not read."""
    signer: Signer
    ids: list[str] | None
    """Of the documents; None: they are known by their position."""


def save_signatures(
    path: str | os.PathLike[str],
    signatures: ArrayLike,
    signer: Signer,
    ids: Sequence[str] | None = None,
) -> None:
    """Write signatures and what is needed to compare others with them, whole or not at all."""
    from lookalike.storage import write_container  # not needed to sign, so not at import

    rows = as_signatures(signatures, "the signatures")
    arrays: dict[str, NDArray[Any]] = {"signatures": rows}
    if ids is not None:
        if len(ids) != len(rows):
            raise SignatureError(
                f"there are {len(ids)} ids and {len(rows)} signatures; expected as many"
            )
        encoded = [one.encode() for one in ids]
        arrays["id_ends"] = np.cumsum([0, *map(len, encoded)])[1:].astype(np.int64)
        arrays["id_bytes"] = np.frombuffer(b"".join(encoded), np.uint8)
    write_container(path, {"kind": "signatures", "signer": signer.to_dict()}, arrays)


def load_signatures(path: str | os.PathLike[str]) -> SignatureFile:
    """Open a file that `save_signatures` wrote."""
    from lookalike.storage import open_container

    container = open_container(path)
    if container.meta.get("kind") != "signatures":
        raise FormatError(
            f"{path} holds {container.meta.get('kind', 'something else')!r}; expected signatures, "
            "as `lookalike sign` writes them"
        )
    rows: NDArray[np.uint8] = container.array("signatures", np.uint8, 2)
    signer = signer_from_dict(container.meta["signer"])
    ids = None
    if "id_ends" in container:
        ends = container.array("id_ends", np.int64, 1)
        data = container.array("id_bytes", np.uint8, 1).tobytes()
        starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        if len(ends) != len(rows) or (ends < starts).any() or (ends.max(initial=0) > len(data)):
            raise CorruptIndexError(f"{path}: the ids do not fit the signatures; it is damaged")
        ids = [
            data[begin:end].decode("utf-8", "replace")
            for begin, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
    return SignatureFile(rows, signer, ids)
