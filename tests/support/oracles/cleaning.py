"""What is removed from texts, by looking at every window of words.

A window of n words is repeated if the same words occur in an earlier document, or earlier in the
same one without overlapping it; with `every`, if they occur anywhere else without overlapping it.
Words that a repeated window covers are removed, until there is no such window.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lookalike.common_passages.results import word_places

Document = list[tuple[int, str]]
"""The words that are left, each with its number in the original text."""


def words_of(text: str) -> list[str]:
    """Return the words of a text, lower-cased."""
    places = word_places(text)
    return [text[begin:end].lower() for begin, end in zip(*places, strict=True)]


def repeated(
    documents: Sequence[Sequence[str]], size: int, *, every: bool
) -> tuple[list[set[int]], list[set[int]]]:
    """Return the words that repeated windows cover, and those of first copies of such windows."""
    places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for number, words in enumerate(documents):
        for at in range(len(words) - size + 1):
            places[tuple(words[at : at + size])].append((number, at))
    covered: list[set[int]] = [set() for _ in documents]
    firsts: list[set[int]] = [set() for _ in documents]
    for some in places.values():
        for number, at in some:
            for other, where in some:
                apart = other != number or abs(where - at) >= size
                if apart and (every or (other, where) < (number, at)):
                    covered[number].update(range(at, at + size))
        if len(some) > 1 and not every:
            number, at = some[0]
            firsts[number].update(range(at, at + size))
    return covered, firsts


def kept_words(
    texts: Sequence[str], size: int, *, every: bool = False
) -> list[list[tuple[int, str]]]:
    """Return the words that are left of each text, after as many rounds as it takes."""
    left = [list(enumerate(words_of(text))) for text in texts]
    while True:
        covered, _ = repeated([[word for _, word in one] for one in left], size, every=every)
        if not any(covered):
            return left
        left = [
            [word for at, word in enumerate(one) if at not in gone]
            for one, gone in zip(left, covered, strict=True)
        ]


def units_removed(
    units: Sequence[Sequence[str]], *, most: int, least: int, every: bool
) -> list[list[bool]]:
    """Return which units of each document are removed: those in more than `most` documents, and
    those that are in the same document before. Units of fewer than `least` words stay.
    """
    keys = [[tuple(words_of(unit)) for unit in document] for document in units]
    having: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for number, document in enumerate(keys):
        for key in document:
            having[key].add(number)
    removed = []
    seen: set[tuple[str, ...]] = set()
    for document in keys:
        gone, here = [], set()
        for key in document:
            many = len(having[key]) > most
            again = key in here or (many and key in seen)
            if every:
                again = many or document.count(key) > 1
            gone.append(bool(key) and len(key) >= least and again)
            here.add(key)
        seen |= here
        removed.append(gone)
    return removed
