"""De-duplication by brute force: all pairs compared, groups and kept documents by definition."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache
from typing import TypeVar

from support.oracles import text as text_oracle

Pair = tuple[int, int]
Lengths = int | tuple[int, ...]


@cache
def shingles(text: str, ngram: Lengths) -> list[tuple[str, ...]]:
    found = text_oracle.words(text)
    if not found:
        return []
    lengths = (ngram,) if isinstance(ngram, int) else ngram
    if len(found) < min(lengths):
        return [tuple(found)]
    return [
        tuple(found[at : at + length])
        for length in lengths
        for at in range(len(found) - length + 1)
    ]


def jaccard(a: str, b: str, ngram: Lengths) -> float:
    one, two = set(shingles(a, ngram)), set(shingles(b, ngram))
    return len(one & two) / len(one | two) if one | two else 0.0


def containment(a: str, b: str, ngram: Lengths) -> float:
    one, two = set(shingles(a, ngram)), set(shingles(b, ngram))
    return len(one & two) / min(len(one), len(two)) if one and two else 0.0


def cosine(a: str, b: str, ngram: Lengths) -> float:
    one, two = Counter(shingles(a, ngram)), Counter(shingles(b, ngram))
    product = sum(one[shingle] * two[shingle] for shingle in one)
    lengths = math.sqrt(sum(v * v for v in one.values()) * sum(v * v for v in two.values()))
    return product / lengths if lengths else 0.0


MEASURES = {"jaccard": jaccard, "containment": containment, "cosine": cosine}

Feature = TypeVar("Feature")


def frequency_weights(
    sets: Sequence[Set[Feature]], *, rare: bool, common: int | None
) -> dict[Feature, float]:
    """Return the weight of each feature: log(N / n) or 1, and 0 if too many documents have it."""
    having = Counter(feature for each in sets for feature in each)
    return {
        feature: 0.0
        if common is not None and count > common
        else text_oracle.rarity(count, len(sets))
        if rare
        else 1.0
        for feature, count in having.items()
    }


def weighted_similarity(
    measure: str, one: Set[Feature], two: Set[Feature], weights: Mapping[Feature, float]
) -> float:
    """Return the "jaccard" or "containment" of sets whose elements have weights."""
    both, first, second = (
        math.fsum(weights[each] for each in some) for some in (one & two, one, two)
    )
    least = min(first, second) if measure == "containment" else first + second - both
    return both / least if both else 0.0


def similar_pairs(
    texts: Sequence[str], threshold: float, similarity: Callable[[str, str], float]
) -> dict[Pair, float]:
    found = {}
    for left in range(len(texts)):
        for right in range(left + 1, len(texts)):
            value = similarity(texts[left], texts[right])
            if value >= threshold:
                found[left, right] = value
    return found


def components(count: int, pairs: Iterable[Pair]) -> list[int]:
    """Return the first member of each one's component, by walking from each."""
    neighbors: dict[int, set[int]] = {member: set() for member in range(count)}
    for left, right in pairs:
        neighbors[left].add(right)
        neighbors[right].add(left)
    labels = [-1] * count
    for start in range(count):
        waiting = [start] if labels[start] < 0 else []
        while waiting:
            member = waiting.pop()
            if labels[member] < 0:
                labels[member] = start
                waiting += neighbors[member]
    return labels


def stars(order: Sequence[int], pairs: Iterable[Pair]) -> list[int]:
    """Return each one's center: in this order, whoever is free takes its free neighbors."""
    together = set(pairs) | {(right, left) for left, right in pairs}
    centers = [-1] * len(order)
    for center in order:
        if centers[center] < 0:
            for other in range(len(order)):
                if other == center or (centers[other] < 0 and (center, other) in together):
                    centers[other] = center
    return centers


def stay(order: Sequence[int], pairs: Iterable[Pair], old: int) -> set[int]:
    """Return who stays: the first `old` do, and in this order whoever is paired with none of those.

    Old documents come first in the order.
    """
    neighbors: dict[int, set[int]] = {member: set() for member in order}
    for left, right in pairs:
        neighbors[left].add(right)
        neighbors[right].add(left)
    found: set[int] = set()
    for member in order:
        if member < old or not neighbors[member] & found:
            found.add(member)
    return found


def kept(labels: Sequence[int], rank: Callable[[int], tuple[float, int]]) -> list[int]:
    """Return for each one who stays of its cluster."""
    best: dict[int, int] = {}
    for member, label in enumerate(labels):
        if label not in best or rank(member) < rank(best[label]):
            best[label] = member
    return [best[label] for label in labels]
