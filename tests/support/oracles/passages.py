"""Passages that two texts have in common, by comparing each word with each."""

from __future__ import annotations

import re

__all__ = ["Found", "overlaps_of", "passages_between", "runs_between", "words_of"]

Run = tuple[int, int, int]
Found = list[list[Run]]


def words_of(text: str) -> list[str]:
    """Return the words of a plain text."""
    return re.findall(r"[^\W_]+", text.lower())


def runs_between(left: list[str], right: list[str], piece: int) -> list[Run]:
    """Return all runs of equal words that cannot be made longer."""
    runs = []
    for a, one in enumerate(left):
        for b, other in enumerate(right):
            begins = not a or not b or left[a - 1] != right[b - 1]
            if one == other and begins:
                length = 0
                while (
                    a + length < len(left)
                    and b + length < len(right)
                    and left[a + length] == right[b + length]
                ):
                    length += 1
                if length >= piece:
                    runs.append((a, b, length))
    return runs


def passages_between(
    left: list[str], right: list[str], *, piece: int, gap: int, min_words: int
) -> Found:
    """Return passages as lists of runs, as the rules say."""
    found: Found = []
    for a, b, length in sorted(runs_between(left, right, piece)):
        best: tuple[int, list[Run], int] | None = None
        for passage in found:
            one, other, size = passage[-1]
            cut = max(0, one + size - a, other + size - b)
            fits = cut < length and a + cut - one - size <= gap and b + cut - other - size <= gap
            shift = abs((b - a) - (other - one))
            if fits and (best is None or shift < best[0]):
                best = shift, passage, cut
        if best is None:
            found.append([(a, b, length)])
        else:
            _, passage, cut = best
            passage.append((a + cut, b + cut, length - cut))
    return [passage for passage in found if sum(run[2] for run in passage) >= min_words]


def overlaps_of(
    texts: list[str], *, piece: int, gap: int, min_words: int
) -> list[tuple[int, int, list[Run]]]:
    """Return the passages of each pair of texts."""
    words = [words_of(text) for text in texts]
    return [
        (one, other, passage)
        for one in range(len(texts))
        for other in range(one + 1, len(texts))
        for passage in passages_between(
            words[one], words[other], piece=piece, gap=gap, min_words=min_words
        )
    ]
