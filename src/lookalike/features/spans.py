"""Where the words of a text are, for showing them; the core only has their hashes."""

from __future__ import annotations

import re

from lookalike.features.text import Words

__all__ = ["word_spans"]

_LETTER, _MARK, _ALONE, _OTHER = "aoc "

# By the number of words in the character alone, and between two letters.
_CLASSES = {(1, 1): _LETTER, (0, 1): _MARK, (1, 3): _ALONE, (0, 2): _OTHER}
_WORD = re.compile(f"{_LETTER}[{_LETTER}{_MARK}]*|{_ALONE}{_MARK}*")


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return begin and end of each word, exactly as `Words()` cuts them.

    The core itself is asked what each character is, so that tables of Unicode cannot disagree.
    """
    characters = sorted(set(text))
    asked = [one for character in characters for one in (character, f"x{character}x")]
    counts = Words().counts(asked, threads=1).reshape(-1, 2).tolist()
    table = {
        ord(character): _CLASSES[alone, between]
        for character, (alone, between) in zip(characters, counts, strict=True)
    }
    return [match.span() for match in _WORD.finditer(text.translate(table))]
