"""Precision and recall of signers on your own texts, beside exact similarity.

For pairs of texts, the share of those within a radius that are similar (precision), and the share
of similar ones that are within it (recall): equations (24) and (25) of Sood and Loguinov.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import flag, instance, instances, share, thread_count, whole_number
from lookalike.errors import ArgumentError, ResultTooLargeError, Said
from lookalike.features import FeatureKind, Weights, Words, similarity_pairs
from lookalike.indexes.scan import ScanIndex
from lookalike.indexes.tuning import Option, Tuning
from lookalike.progress import Progress, listener, shows_progress
from lookalike.shown import brief, counted
from lookalike.signatures.estimates import expected_distance
from lookalike.signatures.signer import DocumentSigner, WeightedSigner
from lookalike.signatures.simhash import SimHash

MOST_PAIRS = 10_000_000
"""Pairs that are compared exactly, at most, for each signer."""
_ALL_COMPARED = 1500  # texts of which all pairs are compared exactly
_SCREEN_BITS = 1024
_SCREEN_DEVIATIONS = 8
_DEVIATIONS = 3
LEFT_OUT_SHARES = (0.5, 0.2, 0.1, 0.05)
"""Shares of texts: features that more of them have are left out, one share after the other."""

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SignerMeasurement(Option):
    """Precision and recall of a signer, one value for each radius from 0 on.

    `index` is the name of the signer, `parameters` are its arguments, and `settings` has the radius
    where recall reaches precision.
    """

    label: str
    """What tells the signer from others."""
    bits: int
    similar: int
    """Number of similar pairs."""
    pairs: tuple[int, ...]
    """Number of pairs within each radius."""
    precisions: tuple[float | None, ...]
    """Share of these that are similar; None if there are none."""
    recalls: tuple[float, ...]
    """Share of similar pairs that are within each radius."""
    means: tuple[float | None, ...]
    """Mean similarity of pairs at exactly this distance; None if there are none."""
    crossing: int | None
    """The first radius at which recall is no less than precision; None: there is none."""

    @property
    def balance(self) -> float:
        """The largest value that both precision and recall reach at one radius."""
        both = zip(self.precisions, self.recalls, strict=True)
        return max((min(one, other) for one, other in both if one is not None), default=0.0)

    def recall_at(self, precision: SupportsFloat) -> float:
        """Return the largest recall of a radius with at least this precision, or 0."""
        least = share("precision", precision)
        both = zip(self.precisions, self.recalls, strict=True)
        return max((recall for one, recall in both if (one or 0) >= least), default=0.0)

    def table(self, tuning: Tuning[Any]) -> str:
        """Return a line per signer, and the curve of the chosen one."""
        lines = [["", "signer", "crosses at", "precision", "recall", "recall at 0.9", "balance"]]
        for one in tuning.options:
            at = one.crossing
            lines.append(
                [
                    "*" if one is self else "",
                    one.label,
                    "-" if at is None else f"{at} of {one.bits}",
                    "-" if at is None else _shown(one.precisions[at]),
                    "-" if at is None else _shown(one.recalls[at]),
                    _shown(one.recall_at(0.9)),
                    _shown(one.balance),
                ]
            )
        curve = [["radius", "pairs within", "precision", "recall", "mean similarity"]]
        last = self.bits if self.crossing is None else max(2 * self.crossing, self.crossing + 3)
        curve += [
            [
                f"{radius}{' *' if radius == self.crossing else ''}",
                f"{self.pairs[radius]:,}",
                _shown(self.precisions[radius]),
                _shown(self.recalls[radius]),
                _shown(self.means[radius]),
            ]
            for radius in range(min(last + 1, len(self.recalls)))
        ]
        return f"{_aligned(lines)}\n\n{self.label}:\n\n{_aligned(curve)}"

    def reason(self, tuning: Tuning[Any]) -> str:
        """Return why this signer was chosen."""
        number = counted(self.similar, "pair")
        return (
            f"Of {tuning.count:,} texts, {number} have a similarity of at least "
            f"{tuning.target:g}.\nPrecision and recall are equal where a line crosses; * marks the "
            "signer whose crossing is highest."
        )


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if heading in ("signer", "") else cell.rjust(width)
            for cell, width, heading in zip(line, widths, lines[0], strict=True)
        ).rstrip()
        for line in lines
    )


@shows_progress
def evaluate_signers(
    texts: Iterable[str],
    signers: Sequence[DocumentSigner] | None = None,
    *,
    threshold: SupportsFloat = 0.9,
    reference: DocumentSigner | None = None,
    leave_out: bool = False,
    sample: SupportsIndex = 10_000,
    seed: SupportsIndex = 0,
    threads: SupportsIndex | None = None,
    progress: Progress | bool | None = None,
) -> Tuning[SignerMeasurement]:
    """Measure precision and recall of signers over the radius, on a sample of your texts.

    Two texts are similar if the exact similarity of the `reference` signer's features is at least
    the threshold. Equal texts count once. Of up to 1,500 texts, all pairs are compared. Of more,
    similar pairs are those that 1024-bit signatures propose, at a radius 8 standard deviations
    above the expected distance, or one of the signers within its own largest radius.

    Args:
        texts: Texts to compare.
        signers: Signers to measure; weights that are not learned yet are learned from the sample
            (default: `suggested_signers()`).
        threshold: Least similarity of similar texts.
        reference: Signer whose features, weights and measure decide (default: the first signer).
        leave_out: Also measure each signer without features that more than 50%, 20%, 10% or 5% of
            the texts have, without short words, and without English stop words.
        sample: Number of texts that are compared at most.
        seed: Random seed of the sample.
        threads: Number of threads (default: all cores).
        progress: Called with a stage and a share, or True for a progress bar.

    Returns:
        A tuning with an option per signer; the chosen one has the highest crossing.

    Raises:
        ArgumentError: If no two texts of the sample are similar.

    Examples:
        >>> texts = [f"text {n} has words of number {n % 7} and more" for n in range(100)]
        >>> found = la.advice.evaluate_signers(texts, [la.SimHash(64), la.SimHash(256)])
        >>> len(found.options), found.chosen.balance >= found.options[0].balance
        (2, True)
    """
    wanted, tell = share("threshold", threshold), listener(progress)
    workers = thread_count(threads)
    chosen = sample_texts(texts, whole_number("sample", sample, at_least=2), seed)
    measured = suggested_signers() if signers is None else signers
    several = instances("signers", measured, DocumentSigner, "a signer of texts")  # type: ignore[type-abstract]
    if not several:
        raise ArgumentError("signers is empty; expected at least one signer")
    if flag("leave_out", leave_out):
        several = [
            one for given in several for one in (given, *without_features(given, len(chosen)))
        ]
    judge = several[0] if reference is None else reference
    instance("reference", judge, DocumentSigner, "a signer of texts")
    for signer in (*several, judge):
        _learn(signer, chosen, workers)
    known = _Similarities(chosen, judge, workers)
    known.add(*_screened(chosen, judge, wanted, workers))
    tell("similar pairs", 1.0)
    within: list[tuple[int, int, NDArray[np.int64], NDArray[np.int32]]] = []
    for number, signer in enumerate(several):
        rows = signer.sign(chosen, threads=workers)
        bits = 8 * rows.shape[1]
        radius, found = _pairs_near(rows, _widest_radius(signer, wanted, bits), workers)
        keys = known.add(found.left, found.right)
        within.append((bits, radius, keys, found.distances))
        tell("signers", (number + 1) / len(several))
    similar = known.similar(wanted)
    if not len(similar):
        raise ArgumentError(
            f"no two of {len(chosen):,} texts have a similarity of {wanted:g} or more, so that "
            "recall cannot be measured. Use more texts, or a lower threshold"
        )
    options = tuple(
        _measurement(signer, label, known, similar, *pairs)
        for signer, label, pairs in zip(several, map(_label, several), within, strict=True)
    )
    best = max(options, key=lambda option: option.balance)
    return Tuning(
        target=wanted,
        count=len(chosen),
        bits=best.bits,
        radius=best.crossing,
        threads=workers,
        matches=len(similar),
        chosen=best,
        options=options,
    )


def suggested_signers() -> list[DocumentSigner]:
    """Return settings of SimHash that are worth a comparison: weights, bits, and n-grams."""
    return [
        SimHash(64),
        SimHash(64, weights="tfidf"),
        SimHash(128, weights="tfidf"),
        SimHash(256, weights="tfidf"),
        SimHash(64, features=Words(ngram=2), weights="tfidf"),
    ]


def without_features(signer: DocumentSigner, count: int) -> list[DocumentSigner]:
    """Return copies of a signer that leave out features: common ones, and those of short words.

    Args:
        signer: Signer with weights; others have no features that could be left out.
        count: Number of texts that weights are learned from.
    """
    if not isinstance(signer, WeightedSigner):
        return []
    kind, given_common = signer.weights.kind, signer.weights.common
    variants = [
        _changed(signer, signer.features, Weights(kind, common=most))
        for most in dict.fromkeys(int(one * count) for one in LEFT_OUT_SHARES)
        if most and (given_common is None or most < given_common)
    ]
    if isinstance(signer.features, Words):
        names = ("ngram", "lowercase", "stopwords", "stem", "min_length")
        given = {name: getattr(signer.features, name) for name in names}
        weights = Weights(kind, common=given_common)
        shortest = max(3, signer.features.min_length + 1)
        variants.append(_changed(signer, Words(**given | {"min_length": shortest}), weights))
        if signer.features.stopwords is None:
            weights = Weights(kind, common=given_common)
            variants.append(_changed(signer, Words(**given | {"stopwords": "english"}), weights))
    return variants


def _changed(signer: WeightedSigner, features: FeatureKind, weights: Weights) -> DocumentSigner:
    """Return a signer like this one with other features and weights, which are not learned yet."""
    kept = {
        name: getattr(signer, name)
        for name in signature(type(signer)).parameters
        if name not in ("features", "weights")
    }
    made: DocumentSigner = type(signer)(**kept, features=features, weights=weights)
    return made


def sample_texts(texts: Iterable[str], size: int, seed: SupportsIndex) -> list[str]:
    """Return at most `size` distinct texts, drawn with equal chances, in their order."""
    generator = np.random.default_rng(whole_number("seed", seed, at_least=0))
    kept: list[tuple[int, str]] = []
    seen: set[int] = set()
    try:
        given = iter(texts)
    except TypeError:
        raise ArgumentError(
            Said("texts"),
            f" are {brief(texts)} of type {type(texts).__name__}; expected a list of str",
        ) from None
    for text in given:
        instance("a text", text, str, "a str")
        key = hash(text)
        if key in seen:
            continue
        position = len(seen)
        seen.add(key)
        if position < size:
            kept.append((position, text))
        elif (place := int(generator.integers(position + 1))) < size:
            kept[place] = (position, text)
    if len(kept) < 2:
        raise ArgumentError(f"there are {len(kept)} distinct texts; expected at least 2")
    return [text for _, text in sorted(kept)]


def _learn(signer: DocumentSigner, texts: list[str], threads: int) -> None:
    """Learn weights from the texts, unless the signer has learned some, or needs none."""
    if (
        isinstance(signer, WeightedSigner)
        and signer.weights.learns
        and signer.weights.vocabulary is None
    ):
        signer.fit(texts, threads=threads)


class _Similarities:
    """Exact similarities of pairs, each computed once."""

    def __init__(self, texts: list[str], judge: DocumentSigner, threads: int) -> None:
        self._texts, self._judge, self._threads = texts, judge, threads
        self._keys = np.empty(0, np.int64)
        self._values = np.empty(0)

    def add(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
        """Compute what is not known yet, and return the keys of the pairs."""
        keys: NDArray[np.int64] = left.astype(np.int64) * len(self._texts) + right
        new = np.setdiff1d(keys, self._keys)
        if len(new):
            weights = getattr(self._judge, "weights", "count")
            values = similarity_pairs(
                self._judge.measure,
                self._texts,
                new // len(self._texts),
                new % len(self._texts),
                self._judge.features,
                weights,
                threads=self._threads,
            )
            both = np.concatenate([self._keys, new])
            order = np.argsort(both)
            self._keys = both[order]
            self._values = np.concatenate([self._values, values])[order]
        return keys

    def of(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the similarities of pairs that were added."""
        values: NDArray[np.float64] = self._values[np.searchsorted(self._keys, keys)]
        return values

    def similar(self, threshold: float) -> NDArray[np.int64]:
        """Return the keys of pairs at the threshold or above."""
        keys: NDArray[np.int64] = self._keys[self._values >= threshold]
        return keys


def _screened(texts: list[str], judge: DocumentSigner, threshold: float, threads: int) -> Pairs:
    """Return pairs that may be similar: all, or those that wide signatures propose."""
    if len(texts) <= _ALL_COMPARED:
        left, right = np.triu_indices(len(texts), 1)
        return left, right
    screen = judge
    if isinstance(judge, WeightedSigner):
        screen = SimHash(_SCREEN_BITS, features=judge.features, weights=judge.weights)
    rows = screen.sign(texts, threads=threads)
    _, found = _pairs_near(
        rows, _widest_radius(screen, threshold, 8 * rows.shape[1], _SCREEN_DEVIATIONS), threads
    )
    return found.left, found.right


def _widest_radius(
    signer: DocumentSigner, threshold: float, bits: int, deviations: float = _DEVIATIONS
) -> int:
    """Return a radius that nearly all pairs at the threshold are within."""
    mean = expected_distance(signer, threshold, bits)
    spread = (mean * (1 - mean / bits)) ** 0.5
    return min(bits, int(np.ceil(mean + deviations * spread)) + 1)


def _pairs_near(rows: NDArray[np.uint8], radius: int, threads: int) -> tuple[int, Any]:
    """Return all pairs within the radius, or a smaller one if there are too many."""
    index = ScanIndex(rows)
    while True:
        try:
            return radius, index.pairs(radius, limit=MOST_PAIRS, threads=threads)
        except ResultTooLargeError:
            if radius == 0:
                raise
            radius = radius * 3 // 4


def _measurement(
    signer: DocumentSigner,
    label: str,
    known: _Similarities,
    similar: NDArray[np.int64],
    bits: int,
    radius: int,
    keys: NDArray[np.int64],
    distances: NDArray[np.int32],
) -> SignerMeasurement:
    """Count pairs by their distance, all and similar ones."""
    values = known.of(keys)
    near = np.isin(keys, similar)
    every = np.bincount(distances, minlength=radius + 1)
    right = np.bincount(distances[near], minlength=radius + 1)
    sums = np.bincount(distances, values, minlength=radius + 1)
    within, found = np.cumsum(every), np.cumsum(right)
    precisions = [float(a / b) if b else None for a, b in zip(found, within, strict=True)]
    recalls = [float(value) for value in found / len(similar)]
    both = enumerate(zip(precisions, recalls, strict=True))
    crossing = next((at for at, (p, r) in both if p is not None and r >= p), None)
    return SignerMeasurement(
        index=signer.name,
        parameters=signer.settings() | {"features": repr(signer.features)},
        settings={} if crossing is None else {"radius": crossing},
        recall=None if crossing is None else recalls[crossing],
        label=label,
        bits=bits,
        similar=len(similar),
        pairs=tuple(int(value) for value in within),
        precisions=tuple(precisions),
        recalls=tuple(recalls),
        means=tuple(float(a / b) if b else None for a, b in zip(sums.tolist(), every, strict=True)),
        crossing=crossing,
    )


def _label(signer: DocumentSigner) -> str:
    """Return a short name: the signer, its bits and weights, and what it leaves out."""
    settings, features = signer.settings(), signer.features
    parts = [signer.name, *(str(settings[name]) for name in ("bits",) if name in settings)]
    if isinstance(signer, WeightedSigner):
        parts.append(signer.weights.kind)
        if signer.weights.common is not None:
            parts.append(f"without features of more than {signer.weights.common:,} texts")
    if isinstance(features, Words):
        if features.ngram != 1:
            parts.append(f"ngram={features.ngram}")
        if isinstance(features.stopwords, str):
            parts.append(f"without {features.stopwords} stop words")
        elif features.stopwords:
            parts.append(f"without {len(features.stopwords)} stop words")
        if features.min_length > 1:
            parts.append(f"without words of fewer than {features.min_length} characters")
        if features.stem:
            parts.append(f"stem={features.stem}")
    else:
        parts.append(repr(features))
    return " ".join(parts)
