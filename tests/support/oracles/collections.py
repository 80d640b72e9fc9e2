"""The slow, obvious truth about a collection: a dictionary, and brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from support.oracles import scan as oracle

Entry = tuple[bytes, dict[str, Any]]
"""Signature and metadata."""


def nearest(
    documents: Mapping[str, Entry],
    query: oracle.Signatures,
    *,
    radius: int | None = None,
    k: int | None = None,
    where: Callable[[dict[str, Any]], object] = lambda metadata: True,
    exclude: Iterable[str] = (),
) -> list[tuple[int, str]]:
    """Return (distance, id) of all that are asked for, sorted."""
    left_out = set(exclude)
    found = []
    for id, (signature, metadata) in documents.items():
        if id in left_out or not where(metadata):
            continue
        far = sum((a ^ b).bit_count() for a, b in zip(signature, query.tobytes(), strict=True))
        if radius is None or far <= radius:
            found.append((far, id))
    return sorted(found)[:k]


def pairs(documents: Mapping[str, Entry], radius: int) -> list[tuple[str, str, int]]:
    """Return (left, right, distance) of every pair within the radius, sorted."""
    ids = sorted(documents)
    rows = np.array([np.frombuffer(documents[id][0], np.uint8) for id in ids])
    far = oracle.distances(rows, rows).tolist() if ids else []
    return sorted(
        (ids[i], ids[j], far[i][j])
        for j in range(len(ids))
        for i in range(j)
        if far[i][j] <= radius
    )
