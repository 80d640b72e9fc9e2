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
_FIELD = re.compile(r"\s*([A-Z][\w -]{0,30}):\s+(\S.*)")
"""A field such as "Category: Informational"."""
_TITLE_FIELDS = frozenset({"title", "subject", "betreff", "titre", "título"})
_DIRECTIVE = re.compile(r"\s*(?:\.\.(?:\s|$)|:[\w -]+:(?:\s|$)|<!--|//|/\*|#!|\.\\\")")
"""Comments and directives of markup."""
_APART = re.compile(r"\S\s{6,}\S")
"""Columns of a line."""
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
            counts.update({key for line in _lines(text)[:_HEADER] for key in _keys(line)})
        least = max(_LEAST, _LEAST_SHARE * looked_at)
        return cls(frozenset(key for key, count in counts.items() if key and count >= least))

    def of_text(self, beginning: str) -> str:
        """Return the first line that can be a title; "" if there is none.

        A block of lines that begins with boilerplate has no title, but may have one under a heading
        such as "NAME". Of indented lines, which are centered, a few are one title; a long line is
        the beginning of a paragraph.
        """
        for block in _blocks(beginning):
            if (field := _FIELD.match(block[0])) and field[1].casefold() in _TITLE_FIELDS:
                return _one_line(field[2])
            if self._is_boilerplate(block[0]):
                under = block[1:]
                if not under or block[0][:1].isspace() or not under[0][:1].isspace():
                    continue
                block = under
                if self._is_boilerplate(block[0]):
                    continue
            if not _WORD.search(block[0]):
                continue
            centered = len(block) <= _MOST_LINES and all(line[:1].isspace() for line in block)
            wrapped = len(block[0]) >= _PARAGRAPH
            return _one_line(" ".join(block) if centered or wrapped else block[0])
        return ""

    def _is_boilerplate(self, line: str) -> bool:
        """Return whether a line is in columns, is a field of numbers, or is in many documents."""
        if _APART.search(line.strip()):
            return True
        field = _FIELD.match(line)
        if field and not _WORD.search(field[2]):
            return True
        return any(key in self.boilerplate for key in _keys(line))


def _blocks(beginning: str) -> list[list[str]]:
    """Return the first lines in blocks; a heading that is marked as one is a block of its own."""
    blocks: list[list[str]] = [[]]
    for line in beginning[:_BEGINNING].splitlines()[:_LINES]:
        text = _MARKS.sub("", line.rstrip())
        if not text.strip("=-_*#~ \t") or _DIRECTIVE.match(text):
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


def _keys(line: str) -> set[str]:
    """Return what is equal in boilerplate: words of the first column, and the name of a field."""
    first = _COLUMNS.split(line.strip())[0]
    keys = {" ".join(_WORD.findall(first)).casefold()}
    if field := _FIELD.match(line):
        keys.add(f"{field[1].casefold()}:")
    return keys
