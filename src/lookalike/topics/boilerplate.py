"""Frequent words that do not tell what documents are about: in headers of pages, and names.

Each page of a document may repeat its author, title and date. Such lines count once; numbers and
spaces in them are not compared. The name of a person stands beside initials ("Doe, J.") or an
e-mail address, or after the years of a copyright.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.pairs import Ints
from lookalike.features import Words
from lookalike.topics.listed import Listed, prominence

_LOOKED_AT, _MORE, _AMONG = 12, 16, 128
"""Documents of a cluster, spread evenly; more that have words which few of these have; and the
number of documents among which such are searched.
"""
_FEW = 2
"""Documents with a word that should be looked at."""
_LONGEST = 1 << 16
"""Characters of a document that are looked at."""
_REPEATED = 3
"""Occurrences of a line that is repeated."""
_LEAST_SHARE = 0.5
"""Minimum share of documents where a word is prominent without repeated lines."""
_NAMED, _ADDRESSED = 0.25, 0.5
"""Minimum share of the occurrences of a word that are in names, or in e-mail addresses."""
_PERSONS = re.compile(
    r"\b[A-Z]\.[ -]?(?:[A-Z]\.[ -]?){0,3}([A-Z][^\W\d_]{1,30})\b"  # J. Doe
    r"|\b([A-Z][^\W\d_]{1,30}),\s[A-Z]\."  # Doe, J.
    r"|\b((?:[A-Z][^\W\d_]{1,30}(?:\s{1,4}|\s{1,20}(?=<)|-)){1,4})"  # Jane Doe <jane@...>
    r"(?:[(][^()@\n]{1,30}[)]\s{1,4}(?=<))?"  # Jane Doe (JD) <jane@...>
    r"(?:[(]?[\w.+-]{1,60}@|<[^<>@]{1,60}(?:@|\s[Aa][Tt]\s))"
)
"""Repetitions are bounded, so that any text takes a time in proportion to its length."""
_HOLDERS = re.compile(
    r"(?:\b[Cc]opyright:?|©|[(][Cc][)]|^)[ \t]{0,20}(?:(?:[(][Cc][)]|©)[ \t]{0,4})?"
    r"(?:(?:19|20)\d\d[ \t]?[-–,][ \t]?){0,20}(?:19|20)\d\d,?[ \t]{1,4}(?:by[ \t])?"
    r"((?:[A-Z][^\W\d_]{0,30}(?:,?[ \t]{1,4}and[ \t]|,[ \t]{0,4}|[ \t]{1,4}|[.'-]|$)){1,8})",
    re.MULTILINE,
)
"""Names after the years of a copyright, or after years at the beginning of a line."""
_ADDRESSES = re.compile(r"[\w.+-]{1,60}@[\w-]{1,60}(?:[.][\w-]{1,60}){1,6}")
_CHANGING = re.compile(r"[\d\s]+")

Weighted = list[tuple[int, float]]
"""Hashes of words, and weights."""


class Boilerplate:
    """Looks at words in some documents of each cluster."""

    def __init__(self, words: Words, texts: _native.Documents, labels: Ints, threads: int) -> None:
        self._words, self._texts, self._labels, self._threads = words, texts, labels, threads

    def without(self, cluster: int, ranked: list[Weighted]) -> list[Weighted]:
        """Return lists of words of a cluster without those of repeated lines, and names."""
        rows = np.flatnonzero(self._labels == cluster)
        words = [word for word, _ in ranked[0]] if ranked else []
        some = self._looked_at(rows, np.array(words, np.uint64))
        whole = [text[:_LONGEST] for text in self._texts.take(some).to_list()]
        rest = [without_repeated_lines(text) for text in whole]
        unwanted = self._names(rest) | self._repeated(whole, rest)
        return [[pair for pair in one if pair[0] not in unwanted] for one in ranked]

    def _looked_at(self, rows: Ints, words: NDArray[np.uint64]) -> Ints:
        """Return documents to look at, so that the first words are in some of them."""
        among = _spread(rows, _AMONG)
        some = np.unique(np.searchsorted(among, _spread(among, _LOOKED_AT)))
        if len(some) == len(among):
            return among
        listed = Listed.of(
            self._words, self._texts.take(np.ascontiguousarray(among)), self._threads
        )
        chosen = np.zeros(len(among), bool)
        chosen[some] = True
        for word in words.tolist():
            if int(chosen.sum()) >= _LOOKED_AT + _MORE:
                break
            having = listed.rows[listed.features == np.uint64(word)]
            missing = max(0, _FEW - int(chosen[having].sum()))
            chosen[having[~chosen[having]][:missing]] = True
        return np.ascontiguousarray(among[chosen])

    def _names(self, texts: list[str]) -> set[int]:
        """Return words that are often parts of names or addresses."""
        names = [" ".join(names_of_persons(text)) for text in texts]
        addresses = [" ".join(_ADDRESSES.findall(text)) for text in texts]
        if not any(names) and not any(addresses):
            return set()
        every, found = self._counted(texts), set[int]()
        for parts, least in ((names, _NAMED), (addresses, _ADDRESSED)):
            counts = self._counted(parts).items()
            found |= {word for word, count in counts if count >= least * every[word]}
        return found

    def _counted(self, texts: list[str]) -> Counter[int]:
        """Return how often words occur."""
        listed = Listed.of(self._words, _native.Documents.from_list(texts, 0), self._threads)
        counts: Counter[int] = Counter()
        for word, count in zip(listed.features.tolist(), listed.counts.tolist(), strict=True):
            counts[word] += int(count)
        return counts

    def _repeated(self, texts: list[str], rest: list[str]) -> set[int]:
        """Return words that are prominent only because of repeated lines; `rest` has them once."""
        if rest == texts:
            return set()
        before, after = self._prominent(texts), self._prominent(rest)
        return {word for word, count in before.items() if after[word] < _LEAST_SHARE * count}

    def _prominent(self, texts: list[str]) -> Counter[int]:
        """Return in how many texts words are prominent."""
        listed = Listed.of(self._words, _native.Documents.from_list(texts, 0), self._threads)
        counted = listed.counts >= prominence(listed.lengths)[listed.rows]
        hashes: NDArray[np.uint64] = listed.features[counted]
        return Counter(hashes.tolist())


def names_of_persons(text: str) -> list[str]:
    """Return the names of persons in a text, as far as they are marked as such.

    Examples:
        >>> names_of_persons("Written by J. Doe and Jane Roe <roe@example.org>; see Poe, E. A.")
        ['Doe', 'Jane Roe', 'Poe']
    """
    beside = ["".join(parts).strip() for parts in _PERSONS.findall(text)]
    return [*beside, *(name.strip(" \t.,'-") for name in _HOLDERS.findall(text))]


def _spread(rows: Ints, most: int) -> Ints:
    """Return at most `most` rows, spread evenly."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64)]


def without_repeated_lines(text: str) -> str:
    """Return a text with each line that occurs at least three times only once."""
    lines = text.splitlines()
    keys = [_CHANGING.sub("", line) for line in lines]
    counts = Counter(keys)
    if not any(count >= _REPEATED and key for key, count in counts.items()):
        return text
    seen: set[str] = set()
    kept = []
    for line, key in zip(lines, keys, strict=True):
        if counts[key] < _REPEATED or key not in seen:
            kept.append(line)
            seen.add(key)
    return "\n".join(kept)
