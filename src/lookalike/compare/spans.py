"""Where the words of a text are, for showing them; the core only has their hashes."""

from __future__ import annotations

import re

from lookalike.features.text import Words

__all__ = ["LONGEST_TOKEN", "token_spans", "word_spans"]

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

    What is longer than 64 characters comes in pieces. Begun at the begin of any token, the rest of
    a text has the same tokens.
    """
    return [match.span() for match in _TOKEN.finditer(_classes(text))]


def _classes(text: str) -> str:
    """Return the class of each character.

    The core itself is asked what each one is, so that tables of Unicode cannot disagree.
    """
    characters = sorted(set(text))
    asked = [one for character in characters for one in (character, f"x{character}x")]
    counts = Words().counts(asked, threads=1).reshape(-1, 2).tolist()
    table = {
        ord(character): _SPACE if character.isspace() else _CLASSES[alone, between]
        for character, (alone, between) in zip(characters, counts, strict=True)
    }
    return text.translate(table)
