"""Which words of two texts differ? In time and memory that long texts cannot run away with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice

from lookalike.features.text import Words

LONGEST_TOKEN = 64
"""Characters; longer words and runs of signs are cut into pieces."""

_LETTER, _MARK, _ALONE, _SIGN, _SPACE = "aoc. "

# By the number of words in the character alone, and between two letters.
_CLASSES = {(1, 1): _LETTER, (0, 1): _MARK, (1, 3): _ALONE, (0, 2): _SIGN}
_WORD = re.compile(f"{_LETTER}[{_LETTER}{_MARK}]*|{_ALONE}{_MARK}*")

_MORE = f"{{,{LONGEST_TOKEN - 1}}}"
_SIGNS = f"[{_SIGN}{_MARK}]"
_TOKEN = re.compile(
    f"{_LETTER}[{_LETTER}{_MARK}]{_MORE}|{_ALONE}{_MARK}{_MORE}|{_SIGNS}{_SIGNS}{_MORE}"
)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return begin and end of each word, exactly as `Words()` cuts them."""
    return [match.span() for match in _WORD.finditer(_classes(text))]


def token_spans(text: str) -> list[tuple[int, int]]:
    """Return begin and end of each word and of each run of other signs: all but white space.

    What is longer than 64 characters comes in pieces. From the begin of any token on, the rest of a
    text has the same tokens.
    """
    return [match.span() for match in _TOKEN.finditer(_classes(text))]


def _classes(text: str) -> str:
    """Return the class of each character, by the core, whose tables of Unicode count."""
    characters = sorted(set(text))
    asked = [one for character in characters for one in (character, f"x{character}x")]
    counts = Words().counts(asked, threads=1).reshape(-1, 2).tolist()
    table = {
        ord(character): _SPACE if character.isspace() else _CLASSES[alone, between]
        for character, (alone, between) in zip(characters, counts, strict=True)
    }
    return text.translate(table)


WORDS_AT_A_TIME = 1000
MOST_WINDOWS = 12
MOST_CHANGES = 200

_MOST_CELLS = 50_000
_SURE_MATCH = 4
_BLOCK = 4096
_ONE_SPACE, _SPACES = re.compile(r"\s"), re.compile(r"\s*")


@dataclass(frozen=True)
class Change:
    """Words on the left that became words on the right, as characters; empty: before a word."""

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
    """Return the words and signs that differ; how they are spaced makes no difference.

    Words are those of `Words()`, so that scripts without spaces are compared by character; signs
    between them count as words. The time is linear in the length: equal stretches are skipped, and
    what is between them is compared by `SequenceMatcher`, 1000 words at a time. After 12 such
    windows, 200 changes, or a window with nothing in common, the rest is left.
    """
    changes: list[Change] = []
    at_left, at_right = _after_equal(left, right, 0, 0)
    end_left, end_right = _before_equal(left, right, at_left, at_right)
    for _ in range(MOST_WINDOWS):
        one = list(islice(_tokens(left, at_left, end_left), WORDS_AT_A_TIME))
        two = list(islice(_tokens(right, at_right, end_right), WORDS_AT_A_TIME))
        if not one and not two:
            return Difference(changes, len(left), len(right), True)
        if not one or not two:
            rest = Change(_rest(left, one, end_left), _rest(right, two, end_right))
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
        if ends:
            return Difference(changes, len(left), len(right), True)
        at_left, at_right = one[known[0] - 1][1], two[known[1] - 1][1]
        if not blocks or len(changes) > MOST_CHANGES:
            break
        at_left, at_right = _after_equal(left[:end_left], right[:end_right], at_left, at_right)
    return Difference(changes, at_left, at_right, False)


def _skip_space(text: str, at: int) -> int:
    match = _SPACES.match(text, at)
    return match.end() if match else at


Span = tuple[int, int]


def _tokens(text: str, begin: int, end: int) -> Iterator[Span]:
    """Yield where words and signs are; no more is looked at than is asked for."""
    while begin < end:
        until = min(end, begin + _BLOCK)
        spans = token_spans(text[begin:until])
        after = until
        if until < end and spans and begin + spans[-1][1] == until:
            after = begin + spans.pop()[0]  # it may go on in the next block
        for start, stop in spans:
            yield begin + start, begin + stop
        begin = after


def _rest(text: str, words: list[Span], end: int) -> slice:
    """Return all words from here to the end; an empty stretch there, if there are none."""
    if not words:
        at = _skip_space(text, end)
        return slice(at, at)
    return slice(words[0][0], len(text[:end].rstrip()))


def _equal_length(most: int, pieces: Callable[[int, int], tuple[str, str]]) -> int:
    """Return how many characters are equal; `pieces(start, count)` cuts them from both texts."""
    equal = 0
    while equal < most:
        size = min(_BLOCK, most - equal)
        one, two = pieces(equal, size)
        if one != two:
            return equal + next(i for i, (x, y) in enumerate(zip(one, two, strict=True)) if x != y)
        equal += size
    return equal


def _after_equal(left: str, right: str, at_left: int, at_right: int) -> Span:
    """Return where texts that are equal from here on begin to differ, before that word."""

    def pieces(at: int, size: int) -> tuple[str, str]:
        a, b = at_left + at, at_right + at
        return left[a : a + size], right[b : b + size]

    equal = _equal_length(min(len(left) - at_left, len(right) - at_right), pieces)
    if at_left + equal < len(left) or at_right + equal < len(right):
        equal -= _cut_off(left[max(at_left, at_left + equal - LONGEST_TOKEN) : at_left + equal])
    return at_left + equal, at_right + equal


def _cut_off(text: str) -> int:
    """Return how many characters at the end may belong to a word that goes on."""
    last = len(text)
    while last and not text[last - 1].isspace():
        last -= 1
    if not last and len(text) == LONGEST_TOKEN:
        # No space in sight: a script without any, or a very long word.
        last = token_spans(text)[-1][0] or len(text)
    return len(text) - last


def _before_equal(left: str, right: str, at_left: int, at_right: int) -> Span:
    """Return from where on texts are equal to their ends, after the word that differs."""
    a, b = len(left.rstrip()), len(right.rstrip())

    def pieces(at: int, size: int) -> tuple[str, str]:
        i, j = a - at, b - at
        return left[i - size : i][::-1], right[j - size : j][::-1]

    equal = _equal_length(min(a - at_left, b - at_right), pieces)
    places = ((left, at_left, a - equal), (right, at_right, b - equal))
    if any(at > begin and not text[at - 1].isspace() for text, begin, at in places):
        following = left[a - equal : min(a, a - equal + LONGEST_TOKEN)]
        space = _ONE_SPACE.search(following)
        if space:
            equal -= space.start()
        elif len(following) < LONGEST_TOKEN:
            equal = 0
        else:
            equal -= token_spans(following)[0][1]
    return a - equal, b - equal


Block = tuple[int, int, int]


def _matching(left: str, right: str, one: list[Span], two: list[Span]) -> list[Block]:
    """Return runs of equal words: where on the left, where on the right, how many."""
    a = [left[begin:end] for begin, end in one]
    b = [right[begin:end] for begin, end in two]
    often = Counter(b)
    # Frequent words on both sides make SequenceMatcher slow; then it is told to leave them out.
    cells = sum(count * often[word] for word, count in Counter(a).items())
    matcher = SequenceMatcher(None, a, b, autojunk=cells > _MOST_CELLS)
    return [(block.a, block.b, block.size) for block in matcher.get_matching_blocks() if block.size]


def _between(
    left: str, right: str, one: list[Span], two: list[Span], blocks: list[Block], known: Span
) -> list[Change]:
    """Return the changes between runs of equal words, up to `known` words of each text."""
    changes = []
    i = j = 0
    for block_i, block_j, size in [*blocks, (*known, 0)]:
        if block_i > i or block_j > j:
            before = _stretch(left, one, i, block_i), _stretch(right, two, j, block_j)
            changes.append(Change(*before))
        i, j = block_i + size, block_j + size
    return changes


def _stretch(text: str, words: list[Span], begin: int, end: int) -> slice:
    if begin < end:
        return slice(words[begin][0], words[end - 1][1])
    at = words[begin][0] if begin < len(words) else _skip_space(text, words[-1][1])
    return slice(at, at)
