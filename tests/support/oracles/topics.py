"""Clusters of documents and their words, as slowly and plainly as can be."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["cosines", "nearest_two", "scattered", "weights"]

LEAST_SHARE, LEAST, LEAST_WEIGHT = 0.05, 2, 6.63
FEW, RARER_SHARE, RARER = 3, 0.02, 3
LEAST_INFORMATION, SHARED, ABOVE_SHARED, FEW_CLUSTERS = 0.15, 4, 1.25, 8


def weights(
    texts: Sequence[str],
    labels: Sequence[int],
    cluster: int,
    meaningless: frozenset[str] = frozenset(),
) -> dict[str, float]:
    """Return the words of a cluster that weigh something.

    Of frequent words that tell topics, of others, and of meaningless ones: the first that there
    are. If the first are few, rarer ones are added.
    """
    having = [prominent(re.findall(r"[a-z0-9]+", text.lower())) for text in texts]
    within = [words for words, label in zip(having, labels, strict=True) if label == cluster]
    others = [words for words, label in zip(having, labels, strict=True) if 0 <= label != cluster]
    n, m = len(within), len(others)
    found, frequent, rarer = {}, set(), set()
    for word in set().union(*within):
        a = sum(word in words for words in within)
        b = sum(word in words for words in others)
        if a < min(LEAST, n):
            continue
        if a >= LEAST_SHARE * n:
            frequent.add(word)
        elif a >= max(RARER, RARER_SHARE * n):
            rarer.add(word)
        if not others:
            found[word] = a / n
        elif a / n > b / m:
            expected = (n * (a + b) / (n + m), m * (a + b) / (n + m))
            terms = [(a, expected[0]), (n - a, n - expected[0])]
            terms += [(b, expected[1]), (m - b, m - expected[1])]
            found[word] = 2 * sum(x * math.log(x / e) for x, e in terms if x)
    positive = {word for word, weight in found.items() if weight > 1e-9}
    topical = {word for word in positive if is_topical(word, having, labels, cluster)}
    telling = {word for word in positive if not others or found[word] >= LEAST_WEIGHT}
    for plain in (True, False):
        best = (telling & frequent & topical) - meaningless
        best = {word for word in best if is_word(word) or not plain}
        if 0 < len(best) < FEW:
            added = (telling & rarer & topical) - meaningless
            ranked = sorted(added, key=lambda word: -found[word])
            best |= set([word for word in ranked if is_word(word) or not plain][: FEW - len(best)])
        for some in (
            best,
            (telling & frequent) - meaningless,
            positive - meaningless,
            positive & frequent & topical,
            positive,
        ):
            shown = {word for word in some if is_word(word) or not plain}
            if shown:
                return {word: found[word] for word in shown}
    return {}


def prominent(words: Sequence[str]) -> set[str]:
    """Return the words of a document that count: in a long one, those that are repeated."""
    least = 1 + math.isqrt(len(words) // 300)
    return {word for word, count in Counter(words).items() if count >= least}


def is_word(word: str) -> bool:
    """Return whether a word is neither a number nor a single letter."""
    letters = sum(letter.isalpha() for letter in word)
    hexadecimal = letters < len(word) and set(word) <= set("0123456789abcdef")
    return letters >= 2 and not hexadecimal


def is_topical(word: str, having: Sequence[set[str]], labels: Sequence[int], cluster: int) -> bool:
    """Return whether a word tells about clusters, and few clusters have it as often as this."""
    sizes = Counter(label for label in labels if label >= 0)
    count = max(labels) + 1
    every = sum(sizes.values())
    if len(sizes) < 2 and count < 2:
        return True
    found = Counter(
        label for words, label in zip(having, labels, strict=True) if label >= 0 and word in words
    )
    total = sum(found.values())
    information = sum(
        n / total * math.log(n / total / (sizes[label] / every)) for label, n in found.items()
    )
    entropy = -sum(size / every * math.log(size / every) for size in sizes.values())
    if information < LEAST_INFORMATION * entropy - 1e-12:
        return False
    rates = sorted((found[label] / sizes[label] for label in found), reverse=True)
    if count < FEW_CLUSTERS or len(rates) < SHARED:
        return True
    return found[cluster] / sizes[cluster] >= ABOVE_SHARED * rates[SHARED - 1] - 1e-12


def nearest_two(
    point: NDArray[np.float32], centers: NDArray[np.float32]
) -> tuple[float, float | None]:
    """Return the cosines with the nearest center, and with the next."""
    ordered = sorted((float(point @ center) for center in centers), reverse=True)
    return ordered[0], ordered[1] if len(ordered) > 1 else None


def cosines(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the cosines of all documents by TF-IDF weights; 0 for those without words."""
    counted = [Counter(re.findall(r"[a-z0-9]+", text.lower())) for text in texts]
    words = sorted(set().union(*counted))
    n = len(texts)
    matrix = np.zeros((n, len(words)))
    for column, word in enumerate(words):
        documents = sum(word in one for one in counted)
        occurrences = sum(one[word] for one in counted)
        residual = math.log2(max(1.0, n * (1 - math.exp(-occurrences / n)) / documents))
        burst = 1 - (1 - min(1.0, (0.1 + residual) / 0.6)) * min(1.0, documents / 40)
        weight = math.log(1 + n / documents) ** 1.5 * burst
        for row, one in enumerate(counted):
            if one[word]:
                matrix[row, column] = (1 + math.log(one[word])) * weight
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    rows = matrix / np.where(lengths > 0, lengths, 1)
    return np.asarray(rows @ rows.T)


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
