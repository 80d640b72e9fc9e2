"""The slow, obvious truth about a collection: a dictionary, and brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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


def fused(first: Sequence[str], second: Sequence[str], k: int) -> list[tuple[tuple[int, int], str]]:
    """Return the ranks and ids of what two rankings give together, by reciprocal rank fusion."""
    depth = max(100, 2 * k)
    ranks = {
        id: tuple(one.index(id) + 1 if id in one[:depth] else 0 for one in (first, second))
        for id in {*first[:depth], *second[:depth]}
    }
    scores = {id: sum(1 / (60 + rank) for rank in both if rank) for id, both in ranks.items()}
    best = sorted(scores, key=lambda id: (-scores[id], id))[:k]
    return [((ranks[id][0], ranks[id][1]), id) for id in best]


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
