"""Titles of documents: from a column, or else the line of a text that looks like a heading.

Many documents of a corpus may begin with the same lines, such as "Network Working Group". A line
that many other documents have, too, is not a title. Numbers and what is in a second column of the
line, such as an author, do not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

_BEGINNING = 4000
"""Bytes of a text where its title is searched."""
_LINES = 60
_MOST_LINES = 4
"""Lines of a title."""
_PARAGRAPH = 60
"""Characters of a line that goes on in the next one."""
_HEADER = 12
"""Lines of a text that can be boilerplate above its title."""
_LEAST, _LEAST_SHARE = 3, 0.02
"""Documents with the same line: a number, and a share of the documents looked at."""
_WORD = re.compile(r"[^\W\d_]+")
_MARKS = re.compile(r"^(?:#+|=+|\*+|>+|[-–—]+|\.TH|\.SH|%+)\s+|\s+(?:#+|=+)$")
_SPACES, _COLUMNS = re.compile(r"\s+"), re.compile(r"\s{2,}")


@dataclass(frozen=True)
class Headings:
    """Finds the heading of a text; knows the lines that many documents begin with."""

    boilerplate: frozenset[str]

    @classmethod
    def of(cls, beginnings: Iterable[str]) -> Headings:
        """Learn which lines are in many documents, from the beginnings of some."""
        counts, looked_at = Counter[str](), 0
        for text in beginnings:
            looked_at += 1
            counts.update({_key(line) for line in _lines(text)[:_HEADER]})
        least = max(_LEAST, _LEAST_SHARE * looked_at)
        return cls(frozenset(key for key, count in counts.items() if key and count >= least))

    def of_text(self, beginning: str) -> str:
        """Return the first line that can be a title; without one, the beginning of the text.

        A block of lines that begins with boilerplate has no title. Of indented lines, which are
        centered, a few are one title; a long line is the beginning of a paragraph.
        """
        for block in _blocks(beginning):
            if _key(block[0]) in self.boilerplate or not _WORD.search(block[0]):
                continue
            centered = len(block) <= _MOST_LINES and all(line[:1].isspace() for line in block)
            wrapped = len(block[0]) >= _PARAGRAPH
            return _one_line(" ".join(block) if centered or wrapped else block[0])
        return _one_line(beginning)


def _blocks(beginning: str) -> list[list[str]]:
    """Return the first lines in blocks; a heading that is marked as one is a block of its own."""
    blocks: list[list[str]] = [[]]
    for line in beginning[:_BEGINNING].splitlines()[:_LINES]:
        text = _MARKS.sub("", line.rstrip())
        if not text.strip("=-_*#~ \t"):
            blocks.append([])
        elif text != line.rstrip():
            blocks += [[text], []]
        else:
            blocks[-1].append(text)
    return [block for block in blocks if block]


def _one_line(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def _lines(beginning: str) -> list[str]:
    return [line for block in _blocks(beginning) for line in block]


def _key(line: str) -> str:
    """Return the words of the first column of a line, without numbers: equal in boilerplate."""
    return " ".join(_WORD.findall(_COLUMNS.split(line.strip())[0])).casefold()
