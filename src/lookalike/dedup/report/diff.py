"""Which words of two texts differ? In time and memory that long texts cannot run away with."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher

__all__ = ["Change", "Difference", "difference"]

WORDS_AT_A_TIME = 1000
MOST_WINDOWS = 12
MOST_CHANGES = 200

_LONGEST_WORD = 64
_MOST_CELLS = 50_000
_SURE_MATCH = 4
_BLOCK = 4096

# Scripts that are written without spaces (Thai, Lao, Myanmar, Khmer, Chinese, Japanese) are
# compared character by character, each with the marks upon it.
_ALONE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9f"
_ALONE += "\U00020000-\U0003ffff"
_MARKS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059"
)
_MARKS += "\u17b4-\u17d3\u3099\u309a\uff9e\uff9f\ufe00-\ufe0f"
_WORD = re.compile(rf"[{_ALONE}][{_MARKS}]{{,8}}|[^\s{_ALONE}]{{1,{_LONGEST_WORD}}}")


@dataclass(frozen=True)
class Change:
    """A stretch of words on the left that became one on the right, in characters; one may be empty.

    An empty stretch stands before the next word.
    """

    left: slice
    right: slice


@dataclass(frozen=True)
class Difference:
    """All changes, or those of the beginnings, if `left_end` or `right_end` is not the end."""

    changes: list[Change]
    left_end: int
    right_end: int
    complete: bool


def difference(left: str, right: str) -> Difference:
    """Return the words that differ; how they are spaced makes no difference.

    Equal stretches are skipped at the speed of comparing strings. What is between them is compared
    by `SequenceMatcher`, at most 1000 words at a time; after 12 such windows, 200 changes, or a
    window that holds nothing in common, the rest is left. Words longer than 64 characters are
    compared in pieces. So the time is linear in the length, whatever the texts are.
    """
    changes: list[Change] = []
    at_left = at_right = 0
    for _ in range(MOST_WINDOWS):
        equal = _equal_stretch(left, right, at_left, at_right)
        at_left, at_right = at_left + equal, at_right + equal
        one, two = _words(left, at_left), _words(right, at_right)
        if not one and not two:
            return Difference(changes, len(left), len(right), True)
        if not one or not two:
            rest = Change(_rest(left, one), _rest(right, two))
            return Difference([*changes, rest], len(left), len(right), True)
        ends = len(one) < WORDS_AT_A_TIME and len(two) < WORDS_AT_A_TIME
        blocks = _matching(left, right, one, two)
        if not ends:
            while blocks and blocks[-1][2] < _SURE_MATCH:
                blocks.pop()
        known = (blocks[-1][0] + blocks[-1][2], blocks[-1][1] + blocks[-1][2]) if blocks else (0, 0)
        if ends or not blocks:
            known = len(one), len(two)
        changes += _between(left, right, one, two, blocks, known)
        at_left = _end(one, known[0], at_left)
        at_right = _end(two, known[1], at_right)
        if ends:
            return Difference(changes, len(left), len(right), True)
        if not blocks or len(changes) > MOST_CHANGES:
            break
    return Difference(changes, at_left, at_right, False)


Spans = list[tuple[int, int]]


def _words(text: str, begin: int) -> Spans:
    """Return where the next words are, at most a window of them."""
    found: Spans = []
    for match in _WORD.finditer(text, begin):
        found.append(match.span())
        if len(found) == WORDS_AT_A_TIME:
            break
    return found


def _rest(text: str, words: Spans) -> slice:
    end = len(text.rstrip())
    return slice(words[0][0] if words else end, end)


def _end(words: Spans, count: int, begin: int) -> int:
    return words[count - 1][1] if count else begin


def _equal_stretch(left: str, right: str, at_left: int, at_right: int) -> int:
    """Return how many characters are equal from here on, without a word that goes on."""
    equal, most = 0, min(len(left) - at_left, len(right) - at_right)
    while equal < most:
        size = min(_BLOCK, most - equal)
        a, b = at_left + equal, at_right + equal
        if left[a : a + size] != right[b : b + size]:
            equal += _first_difference(left[a : a + size], right[b : b + size])
            break
        equal += size
    if at_left + equal == len(left) and at_right + equal == len(right):
        return equal
    back = equal
    while back and equal - back < _LONGEST_WORD and not left[at_left + back - 1].isspace():
        back -= 1
    return equal if back and equal - back == _LONGEST_WORD else back


def _first_difference(one: str, two: str) -> int:
    return next(i for i, (x, y) in enumerate(zip(one, two, strict=True)) if x != y)


def _matching(left: str, right: str, one: Spans, two: Spans) -> list[tuple[int, int, int]]:
    """Return runs of equal words: where on the left, where on the right, how many."""
    a = [left[begin:end] for begin, end in one]
    b = [right[begin:end] for begin, end in two]
    often = Counter(b)
    # Frequent words on both sides make SequenceMatcher slow; then it is told to leave them out.
    cells = sum(count * often[word] for word, count in Counter(a).items())
    matcher = SequenceMatcher(None, a, b, autojunk=cells > _MOST_CELLS)
    return [(block.a, block.b, block.size) for block in matcher.get_matching_blocks() if block.size]


def _between(
    left: str,
    right: str,
    one: Spans,
    two: Spans,
    blocks: list[tuple[int, int, int]],
    known: tuple[int, int],
) -> list[Change]:
    """Return the changes between runs of equal words, up to so many words of each."""
    changes = []
    i = j = 0
    for block_i, block_j, size in [*blocks, (*known, 0)]:
        if block_i > i or block_j > j:
            changes.append(
                Change(_stretch(left, one, i, block_i), _stretch(right, two, j, block_j))
            )
        i, j = block_i + size, block_j + size
    return changes


def _stretch(text: str, words: Spans, begin: int, end: int) -> slice:
    if begin < end:
        return slice(words[begin][0], words[end - 1][1])
    if begin < len(words):
        return slice(words[begin][0], words[begin][0])
    last = words[-1][1] if words else len(text)
    return slice(last, last)
