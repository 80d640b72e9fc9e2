"""Exact similarities of documents, on the same features that signatures estimate them from.

A document without features is similar to nothing, not even to another one without: 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import as_array, one_of, thread_count
from lookalike.errors import ArgumentError, DocumentError
from lookalike.features.base import FeatureKind, as_features, refuse_below_zero
from lookalike.features.text import Words
from lookalike.features.weights import Weights

MEASURES = ("jaccard", "cosine", "containment")
"""Of sets, of counts, of sets."""

_ROUNDING = 1e-12
"""A similarity that is the threshold exactly, or 1, may come out this much beside it."""

Compare = Callable[..., None]
"""Takes two sources, two arrays of positions in them, threads and where similarities go."""


def jaccard(
    a: Any, b: Any, features: FeatureKind | None = None, *, threads: SupportsIndex | None = None
) -> Any:
    """Return the Jaccard similarity of two documents, or of each of `a` with each of `b` in turn.

    |A ∩ B| / |A ∪ B| over their sets of features; `features` are `Words()` unless told. Two
    documents give a float, two sequences of equal length an array.
    """
    return _paired(a, b, features, threads, _native.jaccard)


def containment(
    a: Any, b: Any, features: FeatureKind | None = None, *, threads: SupportsIndex | None = None
) -> Any:
    """Return how much of the smaller document is in the larger one, as `jaccard` does.

    |A ∩ B| / min(|A|, |B|) over their sets of features.
    """
    return _paired(a, b, features, threads, _native.containment)


def similarity(
    measure: str,
    a: Any,
    b: Any,
    features: FeatureKind | None = None,
    *,
    threads: SupportsIndex | None = None,
) -> Any:
    """Return what a measure says of documents, as `jaccard` does; "cosine" is that of counts."""
    return _paired(a, b, features, threads, _by_measure(measure))


def cosine(
    a: Any,
    b: Any,
    features: FeatureKind | None = None,
    weights: str | Weights = "count",
    *,
    threads: SupportsIndex | None = None,
) -> Any:
    """Return the cosine of the weighted features of documents, as `jaccard` does."""
    return _paired(a, b, features, threads, _weighted(_native.cosine, weights))


def weighted_jaccard(
    a: Any,
    b: Any,
    features: FeatureKind | None = None,
    weights: str | Weights = "count",
    *,
    threads: SupportsIndex | None = None,
) -> Any:
    """Return the weighted Jaccard similarity of documents, as `jaccard` does.

    The sum of the lesser weights of all features over that of the greater ones: what
    `la.WeightedMinHash` estimates. With weights that are all 1 it is `jaccard`.
    """
    return _paired(a, b, features, threads, _weighted(_native.weighted_jaccard, weights))


def jaccard_pairs(
    documents: Any,
    left: ArrayLike,
    right: ArrayLike,
    features: FeatureKind | None = None,
    *,
    threads: SupportsIndex | None = None,
) -> NDArray[np.float64]:
    """Return the Jaccard similarity of documents `left[i]` and `right[i]`, for many pairs.

    Positions refer to `documents`; each one that occurs is read once, and its features are held.
    """
    return _by_position(documents, left, right, features, threads, _native.jaccard)


def containment_pairs(
    documents: Any,
    left: ArrayLike,
    right: ArrayLike,
    features: FeatureKind | None = None,
    *,
    threads: SupportsIndex | None = None,
) -> NDArray[np.float64]:
    """Return the containment of documents `left[i]` and `right[i]`, as `jaccard_pairs` does."""
    return _by_position(documents, left, right, features, threads, _native.containment)


def similarity_pairs(
    measure: str,
    documents: Any,
    left: ArrayLike,
    right: ArrayLike,
    features: FeatureKind | None = None,
    *,
    threads: SupportsIndex | None = None,
) -> NDArray[np.float64]:
    """Return what a measure says of documents `left[i]` and `right[i]`, as `similarity` does."""
    return _by_position(documents, left, right, features, threads, _by_measure(measure))


def cosine_pairs(
    documents: Any,
    left: ArrayLike,
    right: ArrayLike,
    features: FeatureKind | None = None,
    weights: str | Weights = "count",
    *,
    threads: SupportsIndex | None = None,
) -> NDArray[np.float64]:
    """Return the cosine of documents `left[i]` and `right[i]`, as `jaccard_pairs` does."""
    compare = _weighted(_native.cosine, weights)
    return _by_position(documents, left, right, features, threads, compare)


def weighted_jaccard_pairs(
    documents: Any,
    left: ArrayLike,
    right: ArrayLike,
    features: FeatureKind | None = None,
    weights: str | Weights = "count",
    *,
    threads: SupportsIndex | None = None,
) -> NDArray[np.float64]:
    """Return the weighted Jaccard similarity of `left[i]` and `right[i]`, as `jaccard_pairs`."""
    compare = _weighted(_native.weighted_jaccard, weights)
    return _by_position(documents, left, right, features, threads, compare)


def _by_measure(measure: str) -> Compare:
    compare: dict[str, Callable[[], Compare]] = {
        "jaccard": lambda: _native.jaccard,
        "cosine": lambda: _weighted(_native.cosine, "count"),
        "containment": lambda: _native.containment,
    }
    return compare[one_of("measure", measure, MEASURES)]()


def _weighted(compare: Callable[..., None], weights: str | Weights) -> Compare:
    chosen = weights if isinstance(weights, Weights) else Weights(weights)
    kind, vocabulary = chosen.native()
    return partial(compare, kind=kind, vocabulary=vocabulary)


def _paired(
    a: Any, b: Any, features: FeatureKind | None, threads: SupportsIndex | None, compare: Compare
) -> Any:
    kind = Words() if features is None else as_features(features)
    single = kind.is_document(a) and kind.is_document(b)
    if single:
        a, b = [a], [b]
    parts = [np.empty(0)]
    position = 0
    for left, right in zip_longest(kind.sources(a), kind.sources(b)):
        if left is None or right is None or len(left) != len(right):
            raise DocumentError(
                "there are more documents on one side than on the other; pairing them needs equal "
                "numbers"
            )
        for source in (left, right):
            _check_weights(compare, source, position)
        position += len(left)
        positions = np.arange(len(left))
        parts.append(np.empty(len(left)))
        compare(left, right, positions, positions, thread_count(threads), parts[-1])
    similarities = np.concatenate(parts)
    return float(similarities[0]) if single else similarities


def _by_position(
    documents: Any,
    left: ArrayLike,
    right: ArrayLike,
    features: FeatureKind | None,
    threads: SupportsIndex | None,
    compare: Compare,
) -> NDArray[np.float64]:
    kind = Words() if features is None else as_features(features)
    source = kind.source(documents)
    _check_weights(compare, source, 0)
    first = _positions("left", left, len(source))
    second = _positions("right", right, len(source))
    if len(first) != len(second):
        raise ArgumentError(
            f"left has {len(first)} positions and right {len(second)}; expected equal numbers"
        )
    similarities = np.empty(len(first))
    compare(source, source, first, second, thread_count(threads), similarities)
    return similarities


def _check_weights(compare: Compare, source: _native.Source, first_position: int) -> None:
    """Refuse weights below 0, but where cosines are asked for."""
    if not isinstance(compare, partial) or compare.func is not _native.cosine:
        refuse_below_zero(source, first_position)


def _positions(name: str, values: ArrayLike, count: int) -> NDArray[np.int64]:
    array = as_array(name, values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise ArgumentError(
            f"{name} has shape {array.shape} and type {array.dtype}; expected a list of positions"
        )
    if len(array) and not 0 <= array.min() <= array.max() < count:
        raise ArgumentError(
            f"{name} names documents {array.min()} to {array.max()}; there are 0 to {count - 1}"
        )
    return np.ascontiguousarray(array, np.int64)


def unrounded(values: NDArray[np.float64], threshold: float | None) -> NDArray[np.float64]:
    """Return similarities that are 1 or the threshold, but for rounding, as that."""
    for exact in (1.0, threshold):
        if exact is not None:
            values = np.where(np.abs(values - exact) <= _ROUNDING, float(exact), values)
    return values
