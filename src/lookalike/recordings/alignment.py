"""Local alignment of two sequences of words: how long both go on alike, at tempos that may differ.

After Serrà, Serra and Andrzejak (Cross recurrence quantification for cover song identification,
2009). Two words match if each is among the nearest of the other. A path goes on from one match to
the next, by one word of each, or by two of one of them; words that do not match cost a little. Its
length is the largest number of matches, less these costs, that a path collects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NEAREST = 0.1  # share of the words of one recording that are near a word of the other
_GAIN, _FIRST, _NEXT = 2, 10, 1  # of a match; cost of leaving one, and of each further step


def matching(words: NDArray[np.uint8], others: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which words, and others, are each among the nearest of the other, `bool[n, m]`."""
    left, right = (np.ascontiguousarray(one).view(np.uint64) for one in (words, others))
    apart = np.zeros((len(left), len(right)), np.uint8)
    for part in range(left.shape[1]):
        apart += np.bitwise_count(left[:, part, None] ^ right[None, :, part])
    found: NDArray[np.bool_] = _among_nearest(apart) & _among_nearest(apart.T).T
    return found


def _among_nearest(apart: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which columns are among the nearest of each row.

    If many are equally near, none of these is: a tone that is held says nothing.
    """
    most = max(1, int(_NEAREST * apart.shape[1]))
    last = np.partition(apart, most - 1, axis=1)[:, most - 1 : most]
    near = apart <= last
    common = near.sum(axis=1, keepdims=True) > 2 * most
    found: NDArray[np.bool_] = near & ~(common & (apart == last))
    return found


@dataclass(frozen=True)
class Path:
    """The best path of a pair, by positions of words: (word, other)."""

    length: float
    begin: tuple[int, int]
    end: tuple[int, int]
    """The position of the last words, which are on the path."""


def longest_paths(matches: NDArray[np.bool_]) -> list[Path]:
    """Return the best path of each of several pairs, `bool[words, pairs, others]`."""
    count, pairs, others = matches.shape
    if 0 in matches.shape:
        return [Path(0.0, (0, 0), (0, 0))] * pairs
    nothing = _Row.empty(pairs, others)
    last, before = nothing, nothing
    best, where, begin = (np.zeros((pairs, others), np.int32) for _ in range(3))
    for place in range(count):
        row = _next_row(last, before, matches[place], place * others)
        better = row.value[:, 2:] > best
        np.copyto(best, row.value[:, 2:], where=better)
        np.copyto(begin, row.begin[:, 2:], where=better)
        where[better] = place
        last, before = row, last
    found = []
    for pair, column in enumerate(best.argmax(axis=1).tolist()):
        first = divmod(int(begin[pair, column]), others)
        end = int(where[pair, column]), column
        found.append(Path(float(best[pair, column]) / _GAIN, first, end))
    return found


@dataclass(frozen=True)
class _Row:
    """One word against all others; two columns before the first stand for nothing."""

    value: NDArray[np.int32]
    left: NDArray[np.int32]
    """The value, less what it costs to leave it without a match."""
    begin: NDArray[np.int32]
    """Where the path begins: word times the number of others, plus the other."""

    @classmethod
    def empty(cls, pairs: int, others: int) -> _Row:
        zeros = np.zeros((pairs, others + 2), np.int32)
        return cls(zeros, zeros, zeros)


def _next_row(last: _Row, before: _Row, match: NDArray[np.bool_], first: int) -> _Row:
    row = _Row(*(np.zeros_like(last.value) for _ in range(3)))
    gone_on = _best_of(last.value, before.value, last, before)
    skipped = _best_of(last.left, before.left, last, before)
    value = np.where(match, gone_on[0] + _GAIN, np.maximum(skipped[0], 0))
    begun = np.where(match, gone_on[1], skipped[1])
    new = np.where(match, gone_on[0], value) <= 0
    row.value[:, 2:] = value
    row.left[:, 2:] = value - np.where(match, _FIRST, _NEXT)
    here = np.arange(first, first + match.shape[1], dtype=np.int32)
    row.begin[:, 2:] = np.where(new, here, begun)
    return row


def _best_of(
    values: NDArray[np.int32], earlier: NDArray[np.int32], last: _Row, before: _Row
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the largest of three values before each cell, and where the path with it begins."""
    one, two, three = values[:, 1:-1], earlier[:, 1:-1], values[:, :-2]
    largest = np.maximum(np.maximum(one, two), three)
    begin = np.where(two == largest, before.begin[:, 1:-1], last.begin[:, :-2])
    return largest, np.where(one == largest, last.begin[:, 1:-1], begin)
