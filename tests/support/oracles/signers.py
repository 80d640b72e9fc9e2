"""Precision and recall of a radius from their definition: every pair of texts is looked at."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from support.oracles import scan as oracle


def cosine(left: str, right: str) -> float:
    """Return the cosine of the counts of words between spaces."""
    a, b = Counter(left.split()), Counter(right.split())
    length = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return sum(a[word] * b[word] for word in a) / length if length else 0.0


def curves(
    texts: Sequence[str], rows: oracle.Signatures, threshold: float, radius: int
) -> list[tuple[int, float | None, float]]:
    """Return the pairs within each radius, their precision, and their recall."""
    pairs = list(combinations(range(len(texts)), 2))
    similar = {(a, b) for a, b in pairs if cosine(texts[a], texts[b]) >= threshold - 1e-9}
    found = []
    for most in range(radius + 1):
        near = {(a, b) for a, b in pairs if oracle.distance(rows[a], rows[b]) <= most}
        both = len(near & similar)
        found.append((len(near), both / len(near) if near else None, both / len(similar)))
    return found
