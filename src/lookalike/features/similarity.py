"""Exact similarities of documents by features; that of a document without features is 0."""

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

_ROUNDING = 1e-12  # rounding error of a similarity that is exactly 1 or the threshold

Compare = Callable[..., None]
"""Takes two sources, two arrays of positions in them, threads and an array for similarities."""


def _weighted(compare: Compare, weights: str | Weights) -> Compare:
    chosen = weights if isinstance(weights, Weights) else Weights(weights)
    kind, vocabulary = chosen.native()
    return partial(compare, kind=kind, vocabulary=vocabulary)


_COMPARE: dict[str, Compare] = {
    "jaccard": _native.jaccard,
    "cosine": _weighted(_native.cosine, "count"),
    "containment": _native.containment,
}
MEASURES = tuple(_COMPARE)


def jaccard(
    a: Any, b: Any, features: FeatureKind | None = None, *, threads: SupportsIndex | None = None
) -> Any:
    """Return the Jaccard similarity of two documents: |A ∩ B| / |A ∪ B| of their features.

    For two sequences of documents of equal length, return an array of the similarities of `a[i]`
    and `b[i]`. `features` are `Words()` by default.
    """
    return _paired(a, b, features, threads, _native.jaccard)


def containment(
    a: Any, b: Any, features: FeatureKind | None = None, *, threads: SupportsIndex | None = None
) -> Any:
    """Return the containment of documents, |A ∩ B| / min(|A|, |B|), as `jaccard` does."""
    return _paired(a, b, features, threads, _native.containment)


def similarity(
    measure: str,
    a: Any,
    b: Any,
    features: FeatureKind | None = None,
    *,
    threads: SupportsIndex | None = None,
) -> Any:
    """Return one of `MEASURES` of documents, as `jaccard` does; "cosine" is that of counts."""
    return _paired(a, b, features, threads, _COMPARE[one_of("measure", measure, MEASURES)])


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
    """Return the sum of lesser weights of features by that of greater ones, as `jaccard` does."""
    return _paired(a, b, features, threads, _weighted(_native.weighted_jaccard, weights))


def jaccard_pairs(
    documents: Any,
    left: ArrayLike,
    right: ArrayLike,
    features: FeatureKind | None = None,
    *,
    threads: SupportsIndex | None = None,
) -> NDArray[np.float64]:
    """Return the Jaccard similarity of `documents[left[i]]` and `documents[right[i]]`.

    Each document is read once, and its features are held in memory.
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
    """Return the containment of pairs of documents, as `jaccard_pairs` does."""
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
    """Return one of `MEASURES` of pairs of documents, as `jaccard_pairs` does."""
    compare = _COMPARE[one_of("measure", measure, MEASURES)]
    return _by_position(documents, left, right, features, threads, compare)


def cosine_pairs(
    documents: Any,
    left: ArrayLike,
    right: ArrayLike,
    features: FeatureKind | None = None,
    weights: str | Weights = "count",
    *,
    threads: SupportsIndex | None = None,
) -> NDArray[np.float64]:
    """Return the cosine of pairs of documents, as `jaccard_pairs` does."""
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
    """Return the weighted Jaccard similarity of pairs of documents, as `jaccard_pairs` does."""
    compare = _weighted(_native.weighted_jaccard, weights)
    return _by_position(documents, left, right, features, threads, compare)


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
    """Raise at a weight below 0, which only cosines allow."""
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
    """Return similarities, with 1 and the threshold where only rounding makes a difference."""
    for exact in (1.0, threshold):
        if exact is not None:
            values = np.where(np.abs(values - exact) <= _ROUNDING, float(exact), values)
    return values
