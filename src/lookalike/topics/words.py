"""The words of highest weight of each cluster: frequent in its documents, and rare in the others.

The weight of a word in `a` of the `n` documents of a cluster and in `b` of the `m` others is
Dunning's log-likelihood ratio,

    2 * (a log(a / A) + (n - a) log((n - a) / (n - A))
         + b log(b / B) + (m - b) log((m - b) / (m - B)))

where A = n (a + b) / (n + m) and B = m (a + b) / (n + m) are expected if the word were independent
of the cluster; 0 if it is not more frequent in the cluster. A word in less than 5% of the cluster's
documents, or in only one, is left out: such words are often names. Documents are counted, not
occurrences, so that repeating a word in one text has no effect.

A word that is spread evenly says little about a topic, however high its weight is. Such words are
found by two tests, in any language: the word tells less than a share of the information that
clusters carry, or several clusters have it about as often. They are shown only if a cluster has no
other words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import thread_count
from lookalike.dedup.pairs import Floats, Ints
from lookalike.features import Words

_MOST_FEATURES = 1 << 17
"""Different words of a cluster that are counted; of more, the rarest are forgotten."""
_SPARE = 4
"""Times as many words as wanted are considered: some may be too long, or forms of others."""
_LEAST_SHARE, _LEAST = 0.05, 2
"""Minimum share and number of a cluster's documents that have a word."""
_LEAST_INFORMATION = 0.15
"""Minimum information that a word gives about the cluster, as a share of the entropy of these."""
_SHARED, _ABOVE_SHARED = 4, 1.25
"""A word is shared if this many clusters have it about as often, within this factor."""
_FEW_CLUSTERS = 8
"""With fewer clusters, words are not tested for being shared."""
_AT_A_TIME, _NAMED_AT_A_TIME = 8192, 1024
_LONGEST = 40
"""Maximum characters of a word."""
_STEM, _ENDING = 4, 3
"""Minimum letters that two forms of a word have in common, and maximum letters that follow."""

Counts = tuple[NDArray[np.uint64], Ints]
"""Hashes of words, ascending, and in how many documents each is."""


@dataclass(frozen=True)
class WordCounts:
    """In how many documents of each cluster a word is."""

    words: Words
    documents: Ints
    """Of each cluster."""
    clusters: list[Counts]

    @classmethod
    def of(
        cls, words: Words, texts: _native.Documents, labels: Ints, count: int, threads: int
    ) -> WordCounts:
        """Count; texts whose label is -1 are in none of the `count` clusters."""
        counted = [_native.Vocabulary(_MOST_FEATURES) for _ in range(count)]
        for begin in range(0, len(labels), _AT_A_TIME):
            some = labels[begin : begin + _AT_A_TIME]
            order = np.argsort(some, kind="stable")
            present, begins = np.unique(some[order], return_index=True)
            parts = np.split(order, begins[1:].tolist())
            for label, rows in zip(present.tolist(), parts, strict=True):
                if label >= 0:
                    part = texts.take(np.ascontiguousarray(begin + rows))
                    counted[label].observe(words.source(part), threads)
        documents = np.bincount(labels[labels >= 0], minlength=count).astype(np.int64)
        return cls(words, documents, [_sorted(one) for one in counted])

    def totals(self) -> Counts:
        """Return the same of all clusters together."""
        if not self.clusters:
            return np.empty(0, np.uint64), np.empty(0, np.int64)
        hashes = np.concatenate([hashes for hashes, _ in self.clusters])
        every, place = np.unique(hashes, return_inverse=True)
        counts = np.concatenate([counts for _, counts in self.clusters])
        return every, np.bincount(place, counts, minlength=len(every)).astype(np.int64)


def cluster_words(
    counts: WordCounts, texts: _native.Documents, labels: Ints, most: int
) -> list[list[tuple[str, float]]]:
    """Return at most `most` words of each cluster with their weights above 0, highest first.

    A single cluster has its most frequent words. Of words with the same stem, the most frequent
    form is returned. Words of equal weight are in the order of their hashes. Numbers, single
    letters and other forms of a word that is returned already are left out.
    """
    every, totals = counts.totals()
    all_documents = int(counts.documents.sum())
    topical = _topical(counts, every, totals)
    chosen: list[list[tuple[int, float]]] = []
    for (hashes, inside), size, content in zip(
        counts.clusters, counts.documents.tolist(), topical, strict=True
    ):
        outside = totals[np.searchsorted(every, hashes)] - inside
        others = all_documents - size
        weights = word_weights(inside, size, outside, others) if others else inside / size
        weights[inside < max(min(_LEAST, size), _LEAST_SHARE * size)] = 0
        if (weights[content] > 0).any():
            weights[~content] = 0
        best = np.lexsort((hashes, -weights))[: _SPARE * most]
        best = best[weights[best] > 0]
        chosen.append(list(zip(hashes[best].tolist(), weights[best].tolist(), strict=True)))
    names = _names(counts.words, texts, labels, {hash for one in chosen for hash, _ in one})
    return [_shown([(names[hash], weight) for hash, weight in one], most) for one in chosen]


def _topical(
    counts: WordCounts, every: NDArray[np.uint64], totals: Ints
) -> list[NDArray[np.bool_]]:
    """Return which words of each cluster are about topics: not spread evenly over clusters."""
    sizes = counts.documents
    if len(sizes) < 2:
        return [np.ones(len(hashes), np.bool_) for hashes, _ in counts.clusters]
    shares = sizes / max(1, int(sizes.sum()))
    places = [np.searchsorted(every, hashes) for hashes, _ in counts.clusters]
    information = np.zeros(len(every))
    for (_, inside), place, share in zip(counts.clusters, places, shares.tolist(), strict=True):
        information[place] += _surprise(inside, totals[place] * share)
    entropy = float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())
    telling = information >= _LEAST_INFORMATION * entropy * totals
    rates = [
        inside / max(1, size)
        for (_, inside), size in zip(counts.clusters, sizes.tolist(), strict=True)
    ]
    shared = _ranked_rates(places, rates, len(every))
    return [
        telling[place] & (rate >= _ABOVE_SHARED * shared[place])
        for place, rate in zip(places, rates, strict=True)
    ]


def _ranked_rates(places: list[Ints], rates: list[Floats], words: int) -> Floats:
    """Return for each word the rate in the cluster that is the `_SHARED`-th by that rate."""
    found = np.zeros(words)
    if len(places) >= _FEW_CLUSTERS:
        place, rate = np.concatenate(places), np.concatenate(rates)
        order = np.lexsort((-rate, place))
        begins = np.searchsorted(place[order], np.arange(words))
        ranked = begins + _SHARED - 1
        having = ranked < np.r_[begins[1:], len(order)]
        found[having] = rate[order[ranked[having]]]
    return found


def _shown(weighted: list[tuple[str, float]], most: int) -> list[tuple[str, float]]:
    """Return the first words that can be read, each in one form."""
    plain = [(word, weight) for word, weight in weighted if _is_word(word)]
    found: list[tuple[str, float]] = []
    for word, weight in plain or weighted:
        if len(found) == most:
            break
        if len(word) <= _LONGEST and not any(_same_word(word, other) for other, _ in found):
            found.append((word, weight))
    return found


def _is_word(text: str) -> bool:
    """Return whether a word is neither a number nor a single letter of an alphabet."""
    is_letter = len(text) == 1 and text.lower() != text.upper()
    return not is_letter and any(map(str.isalpha, text))


def _same_word(one: str, two: str) -> bool:
    """Return whether two words differ only in short endings, such as "galaxy" and "galaxies"."""
    common = next(
        (at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b),
        min(len(one), len(two)),
    )
    return common >= _STEM and max(len(one), len(two)) - common <= _ENDING


def word_weights(inside: Ints, size: int, outside: Ints, others: int) -> Floats:
    """Return the weights of words in `inside` documents of a cluster and `outside` of others."""
    having, every = (inside + outside).astype(np.float64), max(size + others, 1)
    ratio = np.zeros(len(inside))
    for found, among in ((inside, size), (outside, others)):
        expected = having * (among / every)
        ratio += _surprise(found, expected) + _surprise(among - found, among - expected)
    more_frequent = inside * others > outside * size
    return np.where(more_frequent, np.maximum(2 * ratio, 0.0), 0.0)


def _surprise(found: Ints, expected: Floats) -> Floats:
    """Return x log(x / expected), 0 where x is 0."""
    some = found > 0
    ratio = np.divide(found, expected, out=np.ones(len(found)), where=some & (expected > 0))
    return np.where(some, found * np.log(ratio), 0.0)


def _sorted(vocabulary: _native.Vocabulary) -> Counts:
    hashes, documents, _ = vocabulary.arrays()
    order = np.argsort(hashes)
    return hashes[order], documents[order].astype(np.int64)


def _names(
    words: Words, texts: _native.Documents, labels: Ints, wanted: set[int]
) -> dict[int, str]:
    """Return the words behind hashes; of a stem, the form that is in most documents."""
    spelling = _Spelling(words)
    missing = np.array(sorted(wanted), np.uint64)
    forms: dict[int, set[str]] = {hash: set() for hash in wanted}
    order = _in_turn(labels)
    step = _AT_A_TIME if words.stem is not None else _NAMED_AT_A_TIME
    for begin in range(0, len(order), step):
        if not len(missing):
            break
        part = texts.take(np.ascontiguousarray(order[begin : begin + step]))
        if words.stem is None:
            part = part.take(spelling.first_with(part, missing))
        for hash, word in spelling.words(part):
            if hash in wanted:
                forms[hash].add(word)
        if words.stem is None:  # then there is but one form
            missing = missing[[not forms[hash] for hash in missing.tolist()]]
    if words.stem is None:
        return {hash: min(several) for hash, several in forms.items()}
    counts = spelling.form_counts(texts, labels, sorted(set().union(*forms.values())))
    return {
        hash: min(several, key=lambda form: (-counts[form], form))
        for hash, several in forms.items()
    }


def _in_turn(labels: Ints) -> Ints:
    """Return the documents of clusters: one of each, then another of each, and so on."""
    order = np.argsort(labels, kind="stable")
    order = order[np.searchsorted(labels[order], 0) :]
    begins = np.searchsorted(labels[order], labels[order])
    return order[np.argsort(np.arange(len(order)) - begins, kind="stable")]


class _Spelling:
    """Words of texts beside their hashes."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._plain = Words(**{**words.settings(), "stem": None})

    def hashes(self, part: _native.Documents) -> tuple[Ints, NDArray[np.uint64]]:
        """Return the words of texts as hashes, with where those of each text begin."""
        self._words.source(part)  # which learns the stems
        return self._words._reader.extract(part)

    def first_with(self, part: _native.Documents, wanted: NDArray[np.uint64]) -> Ints:
        """Return the texts that have one of these first."""
        offsets, hashes = self.hashes(part)
        places = np.flatnonzero(np.isin(hashes, wanted))
        _, first = np.unique(hashes[places], return_index=True)
        return np.unique(np.searchsorted(offsets, places[first], side="right") - 1)

    def form_counts(
        self, texts: _native.Documents, labels: Ints, forms: list[str]
    ) -> dict[str, int]:
        """Return in how many documents of clusters each of these words is, as it is."""
        together = np.minimum(labels, 0)
        counted = WordCounts.of(self._plain, texts, together, 1, thread_count(None))
        known = dict(zip(*(one.tolist() for one in counted.clusters[0]), strict=True))
        hashes = self._plain._reader.extract(_native.Documents.from_list(forms, 0))[1]
        return {form: known.get(hash, 0) for form, hash in zip(forms, hashes.tolist(), strict=True)}

    def words(self, part: _native.Documents) -> Iterator[tuple[int, str]]:
        """Yield the different words of some texts, each with its hash."""
        # To a reader that stems and knows no stems, all words are unknown.
        plain = self._plain
        reader = _native.TextFeatures(
            False, [1], plain.lowercase, plain.min_length, plain._stop_list(), True
        )
        spelt = sorted(reader.unknown_words(part))
        each = _native.Documents.from_list(spelt, 0)
        offsets, hashes = self.hashes(each)
        for word, (begin, end) in zip(spelt, pairwise(offsets.tolist()), strict=True):
            if end == begin + 1:
                yield int(hashes[begin]), word
