"""The truth about equal runs: the hashes of all windows of some words, sorted."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

__all__ = ["Run", "equal_runs", "window_hashes"]

Run = tuple[int, int, int, int, int]
"""Left and right document, places of the first word in them, and number of words."""

_WORD = re.compile(r"[^\W_]+")


def equal_runs(texts: list[str], least: int) -> set[Run]:
    """Return all runs of equal words of two texts that cannot be made longer.

    Words that are equal in hash only would show as runs that nobody else has. Texts are ASCII.
    """
    numbers: dict[str, int] = defaultdict(lambda: len(numbers))
    each = [[numbers[word] for word in _WORD.findall(text.lower())] for text in texts]
    begins = np.concatenate([[0], np.cumsum([len(words) for words in each])])
    words = np.concatenate([np.array(own, np.int64) for own in each])
    document = np.repeat(np.arange(len(texts)), np.diff(begins))
    hashes = window_hashes(words, least)
    count = max(0, len(words) - least + 1)
    whole = np.flatnonzero(document[:count] == document[least - 1 :][:count])  # within one text
    order = whole[np.argsort(hashes[whole], kind="stable")]
    edges = np.flatnonzero(np.diff(hashes[order]) != 0) + 1
    diagonals: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for group in np.split(order, edges):
        for first, one in enumerate(group.tolist() if len(group) > 1 else []):
            for other in group[first + 1 :].tolist():
                if document[one] != document[other]:
                    key = int(document[one]), int(document[other]), other - one
                    diagonals[key].append(one)
    runs: set[Run] = set()
    for (left, right, shift), places in diagonals.items():
        for stretch in _stretches(sorted(places)):
            begin = stretch[0] - int(begins[left])
            other = stretch[0] + shift - int(begins[right])
            runs.add((left, right, begin, other, len(stretch) + least - 1))
    return runs


def window_hashes(words: NDArray[np.int64], least: int) -> NDArray[np.uint64]:
    """Return a hash of the words from each place on; twice as many at each step."""
    values = words.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    result = np.zeros(max(0, len(words) - least + 1), np.uint64)
    width, at = 1, 0
    while at < least:
        if least & width:
            part = values[at : at + len(result)]
            result = _mixed(result * np.uint64(0xC2B2AE3D27D4EB4F) + part)
            at += width
        values = _mixed(values[:-width] * np.uint64(0x9FB21C651E98DF25) + values[width:])
        width *= 2
    return result


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return values ^ (values >> np.uint64(29))


def _stretches(places: list[int]) -> list[list[int]]:
    """Return places that follow each other, together."""
    result: list[list[int]] = []
    for place in places:
        if result and place == result[-1][-1] + 1:
            result[-1].append(place)
        else:
            result.append([place])
    return result
