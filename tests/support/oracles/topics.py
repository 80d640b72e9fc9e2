"""Clusters of documents and their words, as slowly and plainly as can be."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["central", "nearest_two", "scattered", "weights"]

LEAST_SHARE, LEAST = 0.02, 2


def weights(texts: Sequence[str], labels: Sequence[int], cluster: int) -> dict[str, float]:
    """Return all words of a cluster that weigh something."""
    having = [set(re.findall(r"[a-z0-9]+", text.lower())) for text in texts]
    within = [words for words, label in zip(having, labels, strict=True) if label == cluster]
    others = [words for words, label in zip(having, labels, strict=True) if 0 <= label != cluster]
    n, m = len(within), len(others)
    found = {}
    for word in set().union(*within):
        a = sum(word in words for words in within)
        b = sum(word in words for words in others)
        if a < max(min(LEAST, n), LEAST_SHARE * n):
            continue
        if not others:
            found[word] = a / n
        elif a / n > b / m:
            expected = (n * (a + b) / (n + m), m * (a + b) / (n + m))
            terms = [(a, expected[0]), (n - a, n - expected[0])]
            terms += [(b, expected[1]), (m - b, m - expected[1])]
            found[word] = 2 * sum(x * math.log(x / e) for x, e in terms if x)
    return found


def nearest_two(
    row: NDArray[np.uint8], centers: NDArray[np.uint8]
) -> tuple[set[int], int, int | None]:
    """Return the nearest centers, their distance, and that of the next."""
    far = [int(np.unpackbits(row ^ center).sum()) for center in centers]
    ordered = sorted(far)
    nearest = {number for number, one in enumerate(far) if one == ordered[0]}
    return nearest, ordered[0], ordered[1] if len(ordered) > 1 else None


def central(
    rows: NDArray[np.uint8],
    distances: Sequence[int],
    labels: Sequence[int],
    cluster: int,
    most: int,
) -> list[int]:
    """Return documents nearest to the center, of those with equal signatures the first."""
    members = [row for row, label in enumerate(labels) if label == cluster]
    seen: set[bytes] = set()
    found = []
    for row in sorted(members, key=lambda row: (distances[row], row)):
        if rows[row].tobytes() not in seen:
            seen.add(rows[row].tobytes())
            found.append(row)
    return found[:most]


def scattered(seed: int, documents: int = 120, subjects: int = 4) -> list[str]:
    """Return texts about some subjects, a few copies, a few without words."""
    rng = np.random.default_rng(seed)
    texts = []
    for number in range(documents):
        subject = number % subjects
        own = [f"s{subject}w{one}" for one in rng.integers(0, 12, 20)]
        common = [f"common{one}" for one in rng.integers(0, 8, 10)]
        texts.append(" ".join([*own, *common]))
    texts[5] = texts[1]
    texts[documents // 2] = "?! ..."
    texts[documents - 1] = ""
    return texts
