"""Which files have vectors, and how they are opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import FormatError, LookalikeError
from lookalike.signatures.files import is_npy
from lookalike.vectors import VectorIndex

__all__ = ["has_vectors", "holds_vectors", "npy_vectors", "opened"]


def has_vectors(path: Path) -> bool:
    """Return whether this is a .npy file of numbers that are no signatures: fractions."""
    try:
        return path.is_file() and is_npy(path) and npy_vectors(path).dtype.kind == "f"
    except LookalikeError:  # whoever opens it says what is wrong with it
        return False


def holds_vectors(path: Path) -> bool:
    """Return whether this is an index of vectors, or vectors of which one can be made."""
    from lookalike.storage import open_container

    try:
        return (
            has_vectors(path)
            or open_container(path, verify=False).meta.get("index") == VectorIndex.kind
        )
    except LookalikeError:
        return False


def npy_vectors(path: Path) -> NDArray[Any]:
    """Return the vectors of a .npy file, mapped and not read."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FormatError(f"{path} is a .npy file that cannot be used: {error}") from error
    return array


def opened(path: Path, *, verify: bool, threads: int | None) -> VectorIndex:
    """Return the index of a file; of vectors alone one that is made of them."""
    if has_vectors(path):
        return VectorIndex(npy_vectors(path), threads=threads)
    return VectorIndex.load(path, verify=verify)
