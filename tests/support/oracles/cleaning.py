"""What is removed from texts, by looking at every window of words.

A window of n words is repeated if the same words occur in an earlier document, or earlier in the
same one without overlapping it; with `every`, if they occur anywhere else without overlapping it.
Words that a repeated window covers are removed, until there is no such window.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, pairwise

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


Run = tuple[int, int, int]
"""Words here and in the copy, and their number."""


def copied_runs(
    documents: Sequence[Sequence[str]], piece: int, most: int, *, every: bool
) -> dict[tuple[int, int], list[Run]]:
    """Return, by two documents, windows of `piece` words one after the other that have copies one
    after the other. Of equal windows, only the first `most` are copies of others.
    """
    places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for number, words in enumerate(documents):
        for at in range(len(words) - piece + 1):
            places[tuple(words[at : at + piece])].append((number, at))
    pairs: dict[tuple[int, int], set[tuple[int, int]]] = defaultdict(set)
    for some in places.values():
        for number, at in some:
            for other, where in some[:most]:
                apart = other != number or abs(where - at) >= piece
                if apart and (every or (other, where) < (number, at)):
                    pairs[number, other].add((at, where))
    runs: dict[tuple[int, int], list[Run]] = defaultdict(list)
    for key, found in pairs.items():
        for at, where in sorted(found):
            if (at - 1, where - 1) in found:
                continue
            length = piece
            while (at + length - piece + 1, where + length - piece + 1) in found:
                length += 1
            runs[key].append((at, where, length))
    return runs


def follows(run: Run, before: Run, gap: int) -> bool:
    """Return whether a run begins and ends behind another one, not far from it, in both."""
    return all(
        before[side] < run[side]
        and before[side] + before[2] < run[side] + run[2]
        and run[side] - before[side] - before[2] <= gap
        for side in (0, 1)
    )


def words_in(run: Run) -> frozenset[int]:
    """Return the words of a run, here."""
    return frozenset(range(run[0], run[0] + run[2]))


def largest(sets: Sequence[frozenset[int]]) -> frozenset[int]:
    """Return the largest set; an empty one if there is none."""
    return max(sets, key=lambda one: len(one)) if sets else frozenset()


def in_passages(runs: Sequence[Run], size: int, gap: int) -> set[int]:
    """Return the words of all chains of runs that have at least `size` words.

    What a run adds to a chain that ends before it depends on the last run of that chain only.
    """
    ending: dict[Run, frozenset[int]] = {}
    for run in sorted(runs):
        before = [ending[one] for one in ending if follows(run, one, gap)]
        ending[run] = words_in(run).union(largest(before))
    beginning: dict[Run, frozenset[int]] = {}
    for run in sorted(runs, reverse=True):
        behind = [beginning[one] for one in beginning if follows(one, run, gap)]
        beginning[run] = words_in(run).union(largest(behind))
    enough = [run for run in runs if len(ending[run] | beginning[run]) >= size]
    return set().union(*map(words_in, enough))


def in_any_chain(runs: Sequence[Run], size: int, gap: int) -> set[int]:
    """Return the same by all chains there are, of few runs."""
    covered: set[int] = set()
    for count in range(1, len(runs) + 1):
        for chain in combinations(sorted(runs), count):
            words = frozenset().union(*map(words_in, chain))
            if len(words) >= size and all(
                follows(run, before, gap) for before, run in pairwise(chain)
            ):
                covered |= words
    return covered


def kept_words(
    texts: Sequence[str], size: int, *, every: bool = False, gap: int = 0, most: int = 8
) -> list[list[tuple[int, str]]]:
    """Return the words that are left of each text, after as many rounds as it takes.

    With `gap`, passages of several runs are removed once no window is repeated.
    """
    left = [list(enumerate(words_of(text))) for text in texts]
    piece = max(2, size // 5)
    while True:
        words = [[word for _, word in one] for one in left]
        covered, _ = repeated(words, size, every=every)
        if gap and not any(covered):
            covered = [set() for _ in left]
            for (number, _), runs in copied_runs(words, piece, most, every=every).items():
                covered[number] |= in_passages(runs, size, gap)
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
