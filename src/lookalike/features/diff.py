"""What has to change in one text to make it the other, word by word."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from lookalike.features.spans import word_spans

__all__ = ["Change", "WordDiff", "word_diff"]

MOST_TOKENS = 4000
"""Words and signs of each text that are compared, beside what both begin and end with."""

MOST_CHARACTERS = 1_000_000
"""Of each text that are looked at."""

Kind = Literal["equal", "delete", "insert"]


@dataclass(frozen=True)
class Change:
    """A run of words that both texts have, or that is deleted from one or inserted in the other."""

    kind: Kind
    text: str
    words: int


@dataclass(frozen=True)
class WordDiff:
    """Changes in their order: the first text is `equal` and `delete`, the other the rest."""

    changes: list[Change]
    complete: bool
    """Whether it goes to the end of both texts; very long ones are cut."""


def word_diff(a: str, b: str, *, most: int = MOST_TOKENS) -> WordDiff:
    """Return how to make `b` of `a`, in words and signs; white space does not count.

    The common beginning and end cost linear time; of what is between, `most` tokens of each text
    are compared, and of a text no more than its first million characters: the work is bounded.
    """
    cut = max(len(a), len(b)) > MOST_CHARACTERS
    left, right = _tokens(a[:MOST_CHARACTERS]), _tokens(b[:MOST_CHARACTERS])
    shorter = min(len(left), len(right))
    same = _same_words(left, right, shorter)
    tail = _same_words(left[same:][::-1], right[same:][::-1], shorter - same)
    middles = [side[same : len(side) - tail] for side in (left, right)]
    whole = max(map(len, middles)) <= most
    middle_a, middle_b = (middle[:most] for middle in middles)
    changes = [_change("equal", right[:same])]
    words_a, words_b = ([word for word, _ in side] for side in (middle_a, middle_b))
    matcher = SequenceMatcher(None, words_a, words_b)
    for tag, begin_a, end_a, begin_b, end_b in matcher.get_opcodes():
        if tag == "equal":
            changes.append(_change("equal", middle_b[begin_b:end_b]))
        else:
            changes.append(_change("delete", middle_a[begin_a:end_a]))
            changes.append(_change("insert", middle_b[begin_b:end_b]))
    if whole:
        changes.append(_change("equal", right[len(right) - tail :]))
    return WordDiff(_joined([change for change in changes if change.words]), whole and not cut)


Token = tuple[str, str]
"""A word or a run of signs, and the white space after it."""


def _tokens(text: str) -> list[Token]:
    found: list[str] = []
    position = 0
    for begin, end in word_spans(text):
        found += text[position:begin].split()
        found.append(text[begin:end])
        position = end
    found += text[position:].split()
    tokens: list[Token] = []
    position = len(text) - len(text.lstrip())
    for token in found:
        position += len(token)
        end = position
        while end < len(text) and text[end].isspace():
            end += 1
        tokens.append((token, text[position:end]))
        position = end
    return tokens


def _same_words(left: list[Token], right: list[Token], most: int) -> int:
    """Return how many tokens both begin with."""
    for index in range(most):
        if left[index][0] != right[index][0]:
            return index
    return most


def _change(kind: Kind, tokens: list[Token]) -> Change:
    return Change(kind, "".join(word + space for word, space in tokens), len(tokens))


def _joined(changes: list[Change]) -> list[Change]:
    """Put neighbours of one kind together."""
    joined: list[Change] = []
    for change in changes:
        if joined and joined[-1].kind == change.kind:
            last = joined.pop()
            change = Change(change.kind, last.text + change.text, last.words + change.words)
        joined.append(change)
    return joined
