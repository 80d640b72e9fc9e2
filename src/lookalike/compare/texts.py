"""Two texts side by side: what every method says of them, exactly and by signatures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import flag, instance, one_of, whole_number
from lookalike.compare.diff import difference, word_spans
from lookalike.display import Displayed, TableColumns, Tabular, record_columns
from lookalike.errors import ArgumentError, Said
from lookalike.features import (
    MEASURES,
    RARITY_MEASURES,
    FeatureKind,
    Weights,
    Words,
    containment,
    similarity,
)
from lookalike.features.choice import FeatureChoice, chosen_names, unit_text
from lookalike.features.text import Lengths
from lookalike.pages.marks import without_marks
from lookalike.signatures import hamming
from lookalike.signatures.estimates import set_bits
from lookalike.signatures.methods import BAND_METHODS, METHODS, Method
from lookalike.signatures.minhash import VALUE_BYTES

_MOST_CHARACTERS = 1_000_000
"""Of a text that examples are taken from."""


@dataclass(frozen=True)
class SharedShingles:
    """How many different features, usually n-grams of words, both texts have, or only one."""

    ngram: Lengths | None
    """Words or characters of each, one length or several; None for other features."""
    shared: int
    only_a: int
    only_b: int
    examples: dict[str, list[str]]
    """Some of each, by the names above, as they stand in the text; only of words of one length."""
    unit: str = "features"
    """What was counted, in words."""


def shared_shingles(a: str, b: str, features: FeatureKind, *, examples: int = 3) -> SharedShingles:
    """Compare the sets of features of two texts; linear but for sorting their hashes."""
    ngram = features.ngram if isinstance(features, Words) else None
    if not isinstance(features, Words) or not isinstance(ngram, int) or features != Words(ngram):
        return _only_counts(a, b, features)
    left, right = _hashes(a, features), _hashes(b, features)
    in_b, in_a = np.isin(left, right), np.isin(right, left)
    return SharedShingles(
        ngram,
        shared=len(np.unique(left[in_b])),
        only_a=len(np.unique(left[~in_b])),
        only_b=len(np.unique(right[~in_a])),
        examples={
            "shared": _examples(a, in_b, ngram, examples),
            "only_a": _examples(a, ~in_b, ngram, examples),
            "only_b": _examples(b, ~in_a, ngram, examples),
        },
        unit=unit_text(features),
    )


def _only_counts(a: str, b: str, features: FeatureKind) -> SharedShingles:
    one, two = features.counts([a, b], distinct=True).tolist()
    shared = round(containment(a, b, features) * min(one, two))
    examples: dict[str, list[str]] = {"shared": [], "only_a": [], "only_b": []}
    counts = shared, one - shared, two - shared
    return SharedShingles(getattr(features, "ngram", None), *counts, examples, unit_text(features))


def _hashes(text: str, words: Words) -> NDArray[np.uint64]:
    """Return the shingles of a text in their order."""
    return words._reader.extract(_native.Documents.from_list([text], 0))[1]


def _examples(text: str, chosen: NDArray[np.bool_], ngram: int, most: int) -> list[str]:
    """Return the text of some of the shingles that are chosen."""
    spans = word_spans(text[:_MOST_CHARACTERS])
    if len(text) > _MOST_CHARACTERS:
        spans = spans[:-1]  # a word that may be cut
    if not spans:
        return []
    wide = min(ngram, len(spans))
    found: list[str] = []
    free = 0
    for first in np.flatnonzero(chosen).tolist():
        if len(found) == most or first + wide > len(spans):
            break
        if first >= free:
            found.append(" ".join(text[spans[first][0] : spans[first + wide - 1][1]].split()))
            free = first + wide
    return found


@dataclass(frozen=True, repr=False)
class MethodVerdict(Displayed):
    """What one method of `dedup` says of two texts."""

    method: str
    measure: str
    """"jaccard" of sets, or "cosine" of counts."""
    ngram: Lengths | None
    """Words or characters that make a feature; None where that is the caller's matter."""
    exact: float
    estimate: float | None
    """By the signatures; None where a text has no features."""
    distance: int
    """Values (minhash) or bits that differ."""
    size: int
    """Values or bits of a signature."""
    unit: str = "features"
    """What is compared, in words."""


@dataclass(frozen=True)
class Containment:
    """How much of each text is in the other, by their sets of features."""

    exact: float
    """Of the one that has fewer different features in the other one."""
    of_a: float
    of_b: float
    unit: str
    """What is compared, in words."""


@dataclass(frozen=True)
class DiffPart:
    """Words that both texts have, or that are deleted from the first, or inserted in the second."""

    kind: Literal["equal", "delete", "insert"]
    text: str


@dataclass(frozen=True)
class WordDiff:
    """How the second text is made of the first, in words; white space does not count."""

    parts: list[DiffPart]
    complete: bool
    """Whether it goes to the end of both texts; very different ones are left at some point."""


@dataclass(frozen=True, repr=False)
class Comparison(Tabular):
    """Everything there is to say about two texts; the table has a row per method."""

    equal: bool
    bytes: tuple[int, int]
    words: tuple[int, int]
    methods: list[MethodVerdict]
    """By the measure that was asked for, or by all."""
    shingles: SharedShingles
    diff: WordDiff | None
    containment: Containment | None = None
    """None if another measure was asked for."""
    weighted: dict[str, float] = field(default_factory=dict)
    """By weights of features, if there are some: "weighted-jaccard" and "weighted-containment". If
    the weights leave out common features, also "jaccard" and "containment" without these.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain values; without `weighted` if features have no weights."""
        told = asdict(self)
        return told if self.weighted else {name: told[name] for name in told if name != "weighted"}

    def _values(self) -> dict[str, object]:
        similarity = {verdict.measure: verdict.exact for verdict in self.methods}
        if self.containment is not None:
            similarity["containment"] = self.containment.exact
        similarity |= self.weighted
        return {"equal": self.equal, "words": self.words, **similarity}

    def _columns(self, begin: int, end: int) -> TableColumns:
        return record_columns(MethodVerdict, self.methods[begin:end])

    def _row_count(self) -> int:
        return len(self.methods)


def compare_texts(
    a: str,
    b: str,
    *,
    measure: str | None = None,
    features: FeatureChoice = "words",
    ngram: SupportsIndex | Iterable[SupportsIndex] | None = None,
    stop_words: str | Iterable[str] | None = None,
    stem: str | None = None,
    seed: SupportsIndex = 0,
    weights: Weights | None = None,
    examples: SupportsIndex = 3,
    diff: bool = True,
    threads: SupportsIndex | None = None,
) -> Comparison:
    """Compare two texts as `dedup` does with its defaults, by each of its methods.

    `measure` is "jaccard", "cosine" (of counts) or "containment", or None for all. With `weights`,
    such as `la.Weights("idf").fit(corpus, la.Words(5))`, it may be "weighted-jaccard" or
    "weighted-containment", too: what is common in that corpus hardly counts. If these weights have
    `common`, sets are also compared without the features of more documents. `features` are
    "words", "chars" or "words,chars", an object such as `la.Words(...)` or a function; `stop_words`
    and `stem` those of words. `ngram` is the length of word n-grams in sets and shingles (default:
    5), or of characters alone; it may be several lengths. Similarities and counts are of the whole
    texts; examples and the diff look at a bounded part of them.

    Examples:
        >>> import lookalike as la
        >>> found = la.compare_texts("the early bird gets the worm", "the early bird gets it")
        >>> found.shingles.shared, found.diff.parts[-1]
        (0, DiffPart(kind='insert', text='it'))
    """
    for name, text in (("a", a), ("b", b)):
        instance(name, text, str, "a text")
    if measure is not None:
        one_of("measure", measure, (*MEASURES, *RARITY_MEASURES))
    if weights is not None:
        instance("weights", weights, Weights, "a la.Weights or None")
    elif measure in RARITY_MEASURES:
        raise ArgumentError(
            Said("measure"),
            f" is {measure!r}, and what features weigh is not known; give ",
            Said("weights=la.Weights('idf').fit(corpus, la.Words(5))", "--in CORPUS"),
        )
    examples = whole_number("examples", examples, at_least=0)
    diff = flag("diff", diff)
    words = None if ngram is None else Words(ngram).ngram
    stop_words = Words(stopwords=stop_words).stopwords  # which may come only once
    with_words = isinstance(features, str) and "words" in chosen_names(features)
    methods = []
    for name in METHODS:
        lengths = words if name in BAND_METHODS or not with_words else None
        chosen: dict[str, Any] = {"features": features, "ngram": lengths, "seed": seed}
        methods.append(Method.of(name, **chosen, stop_words=stop_words, stem=stem))
    wanted = [one for one in methods if measure in (None, one.measure)]
    texts = without_marks(a), without_marks(b)
    counts = Words().counts(texts, threads=threads).tolist()
    shingles = shared_shingles(a, b, methods[0].features, examples=examples)
    sizes = shingles.shared + shingles.only_a, shingles.shared + shingles.only_b
    of_a, of_b = (shingles.shared / size if size else 0.0 for size in sizes)
    contained = Containment(max(of_a, of_b), of_a, of_b, shingles.unit)
    return Comparison(
        equal=a == b,
        bytes=(len(texts[0].encode()), len(texts[1].encode())),
        words=(counts[0], counts[1]),
        methods=[_verdict(a, b, one, threads) for one in wanted],
        shingles=shingles,
        diff=word_diff(*texts) if diff else None,
        containment=contained if measure in (None, "containment") else None,
        weighted={
            name: similarity(f"weighted_{base}", a, b, methods[0].features, chosen, threads=threads)
            for name, base, chosen in _weighted(weights)
            if measure in (None, name)
        },
    )


def _weighted(weights: Weights | None) -> Iterator[tuple[str, str, Weights]]:
    """Yield names of measures, those that they are made of, and the weights of features.

    Where common features are left out, those that are left also count without weights.
    """
    if weights is None:
        return
    yield from ((name, base, weights) for name, base in RARITY_MEASURES.items())
    if weights.common is not None:
        plain = Weights("uniform", weights.vocabulary)
        yield from ((base, base, plain) for base in RARITY_MEASURES.values())


def _verdict(a: str, b: str, method: Method, threads: SupportsIndex | None) -> MethodVerdict:
    exact = similarity(method.measure, a, b, method.features, threads=threads)
    signer = method.signer
    signatures = signer.sign([a, b], threads=threads)
    if method.by_bands:
        values = signatures.view(f"<u{VALUE_BYTES}")
        distance, size = int((values[0] != values[1]).sum()), method.permutations
    else:
        distance, size = int(hamming(signatures[0], signatures[1])[0]), method.bits
    comparable = signer.feature_counts([a, b], threads=threads).min() > 0
    ones = int(set_bits(signatures).sum())
    estimate = max(0.0, float(method.estimate(distance, ones))) if comparable else None
    found = exact, estimate, distance, size, unit_text(method.features)
    return MethodVerdict(method.name, method.measure, method.ngram, *found)


def word_diff(a: str, b: str) -> WordDiff:
    """Return what both texts have and what differs, one after the other; all of it has words.

    The first text is what is equal and deleted, the second what is equal and inserted. White space
    of what is equal is that of the second. In bounded time: see `difference`.
    """
    found = difference(a, b)
    parts: list[DiffPart] = []
    at = 0
    for change in found.changes:
        equal, deleted = b[at : change.right.start], a[change.left]
        before = a[max(0, change.left.start - 1) : change.left.start]
        if deleted and not equal[-1:].isspace() and before.isspace():
            equal += " "
        spaced = deleted and a[change.left.stop : change.left.stop + 1].isspace()
        parts += [
            DiffPart("equal", equal),
            DiffPart("delete", f"{deleted} " if spaced else deleted),
            DiffPart("insert", b[change.right]),
        ]
        at = change.right.stop
    parts.append(DiffPart("equal", b[at : found.right_end]))
    return WordDiff([part for part in parts if part.text.strip()], found.complete)
