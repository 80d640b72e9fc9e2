"""The words of highest weight of each cluster: frequent in its documents, and rare in the others.

The weight of a word in `a` of the `n` documents of a cluster and in `b` of the `m` others is
Dunning's log-likelihood ratio,

    2 * (a log(a / A) + (n - a) log((n - a) / (n - A))
         + b log(b / B) + (m - b) log((m - b) / (m - B)))

where A = n (a + b) / (n + m) and B = m (a + b) / (n + m) are expected if the word were independent
of the cluster; 0 if it is not more frequent in the cluster. A word in less than 5% of the cluster's
documents, or in only one, is left out: such words are often names. A long document counts if it
repeats the word. Otherwise documents are counted, not occurrences.

A word that is spread evenly says little about a topic, however high its weight is. Such words are
found by two tests, in any language: the word tells less than a share of the information that
clusters carry, or several clusters have it about as often. They are shown only if a cluster has no
other words. So are words whose weight may be due to chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.pairs import Floats, Ints
from lookalike.features import Words
from lookalike.signatures.arrays import distinct
from lookalike.topics.boilerplate import Boilerplate
from lookalike.topics.listed import Listed, is_among, prominence

_MOST_FEATURES = 1 << 17
"""Different words of a cluster that are counted; of more, the rarest are forgotten."""
_SPARE = 4
"""Times as many words as wanted are considered: some may be too long, or forms of others."""
_LEAST_SHARE, _LEAST = 0.05, 2
"""Minimum share and number of a cluster's documents that have a word."""
_FEW = 3
"""A cluster with fewer words also has rarer ones, until there are as many."""
_RARER_SHARE, _RARER = 0.02, 3
"""Minimum share and number of a cluster's documents that have such a rarer word."""
_LEAST_WEIGHT = 6.63
"""A weight that one word of a hundred reaches by chance (chi-squared, one degree of freedom)."""
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
_PLURAL, _PART = 3, 5
"""Minimum letters of a word with another one that has a letter more, or that is part of another."""
_HEXADECIMAL = re.compile("[0-9a-f]+")

_NO_WORDS: NDArray[np.uint64] = np.empty(0, np.uint64)

Counts = tuple[NDArray[np.uint64], Ints]
"""Hashes of words, ascending, and in how many documents each is."""
_NOTHING: Counts = np.empty(0, np.uint64), np.empty(0, np.int64)


@dataclass(frozen=True)
class WordCounts:
    """In how many documents of each cluster a word is."""

    words: Words
    documents: Ints
    """Of each cluster."""
    clusters: list[Counts]

    @classmethod
    def of(
        cls,
        words: Words,
        texts: _native.Documents,
        labels: Ints,
        count: int,
        threads: int,
        *,
        every: bool = False,
        common: NDArray[np.uint64] = _NO_WORDS,
    ) -> WordCounts:
        """Count; texts whose label is -1 are in none of the `count` clusters.

        A word counts where it is prominent, or with `every` wherever it is. `common` words,
        ascending, are left out.
        """
        clusters = [_NOTHING] * count
        for begin in range(0, len(labels), _AT_A_TIME):
            some = labels[begin : begin + _AT_A_TIME]
            rows = begin + np.flatnonzero(some >= 0)
            part = texts.take(np.ascontiguousarray(rows))
            listed = Listed.of(words, part, threads).without(common)
            _count(clusters, listed, labels[rows], every=every)
        return cls(words, _sizes(labels, count), clusters)

    @classmethod
    def of_listed(cls, words: Words, listed: Listed, labels: Ints, count: int) -> WordCounts:
        """Count where words are prominent, of documents that were read already."""
        clusters = [_NOTHING] * count
        _count(clusters, listed, labels)
        return cls(words, _sizes(labels, count), clusters)

    def totals(self) -> Counts:
        """Return the same of all clusters together."""
        if not self.clusters:
            return np.empty(0, np.uint64), np.empty(0, np.int64)
        hashes = np.concatenate([hashes for hashes, _ in self.clusters])
        every, place = np.unique(hashes, return_inverse=True)
        counts = np.concatenate([counts for _, counts in self.clusters])
        return every, np.bincount(place, counts, minlength=len(every)).astype(np.int64)


def _sizes(labels: Ints, count: int) -> Ints:
    return np.bincount(labels[labels >= 0], minlength=count).astype(np.int64)


def _count(clusters: list[Counts], listed: Listed, labels: Ints, *, every: bool = False) -> None:
    """Add the words of documents to the counts of their clusters."""
    rows = listed.rows
    counted = (labels >= 0)[rows]
    counted &= listed.counts >= (1 if every else prominence(listed.lengths)[rows])
    label, hashes = labels[rows[counted]], listed.features[counted]
    for one in np.unique(label).tolist():
        clusters[one] = _added(clusters[one], hashes[label == one])


def _added(before: Counts, hashes: NDArray[np.uint64]) -> Counts:
    """Return counts with those of more documents; of too many words, the rarest are forgotten."""
    more, counts = np.unique(hashes, return_counts=True)
    every, place = np.unique(np.concatenate([before[0], more]), return_inverse=True)
    totals = np.bincount(place, np.concatenate([before[1], counts]), len(every)).astype(np.int64)
    if len(every) > _MOST_FEATURES:
        some = np.sort(np.lexsort((every, -totals))[:_MOST_FEATURES])
        return every[some], totals[some]
    return every, totals


def cluster_words(
    counts: WordCounts,
    texts: _native.Documents,
    labels: Ints,
    most: int,
    meaningless: NDArray[np.uint64],
    threads: int,
) -> list[list[tuple[str, float]]]:
    """Return at most `most` words of each cluster with their weights above 0, highest first.

    A single cluster has its most frequent words. Of words with the same stem, the most frequent
    form is returned. Words of equal weight are in the order of their hashes. Numbers, single
    letters and other forms of a word that is returned already are left out. Words that are
    `meaningless`, spread evenly, in few documents or of small weight are returned only if there are
    no others. If there are fewer than three others, words in rather few documents are, too.
    """
    every, totals = counts.totals()
    all_documents = int(counts.documents.sum())
    topical = _topical(counts, every, totals)
    says_nothing = is_among(every, meaningless)
    chosen: list[list[list[tuple[int, float]]]] = []
    for (hashes, inside), size, content in zip(
        counts.clusters, counts.documents.tolist(), topical, strict=True
    ):
        places = np.searchsorted(every, hashes)
        outside = totals[places] - inside
        others = all_documents - size
        weights = word_weights(inside, size, outside, others) if others else inside / size
        weights[inside < min(_LEAST, size)] = 0
        frequent, says_something = inside >= _LEAST_SHARE * size, ~says_nothing[places]
        telling = says_something & ((weights >= _LEAST_WEIGHT) | (others == 0))
        ranked: list[list[tuple[int, float]]] = []
        for allowed in (
            frequent & content & telling,
            ~frequent & content & telling & (inside >= max(_RARER, _RARER_SHARE * size)),
            frequent & telling,
            says_something,
            frequent & content,
            np.ones(len(hashes), np.bool_),
        ):
            if len(ranked) > 1 and len(ranked[0]) > most:
                break  # enough words of the best kind
            some = np.flatnonzero(allowed & (weights > 0))
            best = some[np.lexsort((hashes[some], -weights[some]))[: _SPARE * most]]
            ranked.append(list(zip(hashes[best].tolist(), weights[best].tolist(), strict=True)))
        chosen.append(ranked)
    wanted = {hash for ranked in chosen for one in ranked for hash, _ in one}
    names = _names(_Spelling(counts.words, threads), texts, labels, wanted)
    boilerplate = Boilerplate(counts.words, texts, labels, threads)
    return [
        _first_shown(
            [
                [(names[hash], weight) for hash, weight in one]
                for one in boilerplate.without(cluster, ranked)
            ],
            most,
        )
        for cluster, ranked in enumerate(chosen)
    ]


def _first_shown(ranked: list[list[tuple[str, float]]], most: int) -> list[tuple[str, float]]:
    """Return words of the first list that has some that can be read, highest weight first.

    If the first list has few, words of the second one are added.
    """
    for plain in (True, False):
        best, rarer, *others = (
            [pair for pair in one if _is_word(pair[0]) or not plain] for one in ranked
        )
        found = _shown(best, max(most, _FEW))
        if 0 < len(found) < _FEW:
            found = sorted(_shown(found + rarer, _FEW), key=lambda pair: -pair[1])
        for one in others:
            found = found or _shown(one, most)
        if found:
            return found[:most]
    return []


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
    """Return the first words that are not too long, each in one form."""
    found: list[tuple[str, float]] = []
    for word, weight in weighted:
        if len(found) == most:
            break
        if len(word) <= _LONGEST and not any(same_word(word, other) for other, _ in found):
            found.append((word, weight))
    return found


def _is_word(text: str) -> bool:
    """Return whether a word is neither a number, in any notation, nor a single letter."""
    letters = [letter for letter in text if letter.isalpha()]
    if len(letters) < len(text) and _HEXADECIMAL.fullmatch(text):
        return False
    is_alphabet = any(letter.lower() != letter.upper() for letter in letters)
    return len(letters) >= (2 if is_alphabet else 1)


def same_word(one: str, two: str) -> bool:
    """Return whether two words have one meaning, as far as their letters tell.

    They differ only in short endings, such as "galaxy" and "galaxies" or "lsp" and "lsps". Or a
    long word begins or ends with the other one, such as "spiel" and "spielfeld".
    """
    short, long = sorted((one, two), key=len)
    common = next(
        (at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
    )
    if common >= _STEM and len(long) - common <= _ENDING:
        return True
    if len(short) >= _PLURAL and common == len(short) and len(long) - common <= 1:
        return True
    return len(short) >= _PART and (common == len(short) or long.endswith(short))


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


def _names(
    spelling: _Spelling, texts: _native.Documents, labels: Ints, wanted: set[int]
) -> dict[int, str]:
    """Return the words behind hashes; of a stem, the form that is in most documents."""
    words = spelling.kind
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

    def __init__(self, words: Words, threads: int) -> None:
        self.kind, self._threads = words, threads
        self._plain = Words(**{**words.settings(), "stem": None})

    def hashes(self, part: _native.Documents) -> tuple[Ints, NDArray[np.uint64]]:
        """Return the words of texts as hashes, with where those of each text begin."""
        self.kind.source(part)  # which learns the stems
        return self.kind._reader.extract(part)

    def first_with(self, part: _native.Documents, wanted: NDArray[np.uint64]) -> Ints:
        """Return the texts that have one of these first."""
        offsets, hashes = self.hashes(part)
        places = np.flatnonzero(is_among(hashes, wanted))
        _, first = np.unique(hashes[places], return_index=True)
        return distinct(np.searchsorted(offsets, places[first], side="right") - 1)

    def form_counts(
        self, texts: _native.Documents, labels: Ints, forms: list[str]
    ) -> dict[str, int]:
        """Return in how many documents of clusters each of these words is, as it is."""
        together = np.minimum(labels, 0)
        counted = WordCounts.of(self._plain, texts, together, 1, self._threads, every=True)
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
