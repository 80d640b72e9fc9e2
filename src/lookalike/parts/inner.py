"""The index over different signatures: any that answers `within` or `search`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError, Said
from lookalike.indexes import (
    BlockIndex,
    ClusterIndex,
    FlipIndex,
    PrefixIndex,
    ScanIndex,
    SliceIndex,
)
from lookalike.shown import brief

__all__ = ["AUTO", "Maker", "maker_of"]

AUTO = "auto"

_SCANNED = 4096
"""So few are compared one by one before lists would pay."""

Maker = Callable[[NDArray[np.uint8]], Any]


def _suitable(rows: NDArray[np.uint8]) -> Any:
    """Return an exact index: a scan of a few signatures, slices of many.

    Those of 32 bits and less are cut in two, so that what differs in five bits is found by lists of
    values that differ in two.
    """
    if len(rows) < _SCANNED:
        return ScanIndex(rows)
    return SliceIndex(rows, 4 * rows.shape[1] if rows.shape[1] <= 4 else None)


_MAKERS: dict[str, Maker] = {
    AUTO: _suitable,
    "scan": ScanIndex,
    "slices": SliceIndex,
    "blocks": BlockIndex,
    "flips": FlipIndex,
    "prefix": PrefixIndex,
    "clusters": ClusterIndex,
}


def maker_of(index: object) -> tuple[str, Maker]:
    """Return what makes an index of signatures, and its name: "auto" of a caller's own."""
    if isinstance(index, str) and index in _MAKERS:
        return index, _MAKERS[index]
    if callable(index):
        return AUTO, lambda rows: _checked(index(rows), len(rows))
    raise ArgumentError(
        Said("index"),
        f" is {brief(index)}; expected one of {', '.join(_MAKERS)}, or a class or function that "
        "makes an index of signatures",
    )


def _checked(index: Any, count: int) -> Any:
    """Return what a caller's function made, if it can be asked."""
    if callable(getattr(index, "within", None)) or callable(getattr(index, "search", None)):
        return index
    raise ArgumentError(
        Said("index"),
        f" made {brief(index)} of {count} signatures; expected something with the methods within "
        "or search",
    )
