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
from lookalike.checks import as_array, thread_count
from lookalike.errors import ArgumentError, DocumentError
from lookalike.features.base import FeatureKind, as_features
from lookalike.features.text import Words
from lookalike.features.weights import Weights

__all__ = ["cosine", "cosine_pairs", "jaccard", "jaccard_pairs"]

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


def cosine(
    a: Any,
    b: Any,
    features: FeatureKind | None = None,
    weights: str | Weights = "count",
    *,
    threads: SupportsIndex | None = None,
) -> Any:
    """Return the cosine of the weighted features of documents, as `jaccard` does."""
    return _paired(a, b, features, threads, _cosine_with(weights))


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
    return _by_position(documents, left, right, features, threads, _cosine_with(weights))


def _cosine_with(weights: str | Weights) -> Compare:
    chosen = weights if isinstance(weights, Weights) else Weights(weights)
    kind, vocabulary = chosen.native()
    return partial(_native.cosine, kind=kind, vocabulary=vocabulary)


def _paired(
    a: Any, b: Any, features: FeatureKind | None, threads: SupportsIndex | None, compare: Compare
) -> Any:
    kind = Words() if features is None else as_features(features)
    single = kind.is_document(a) and kind.is_document(b)
    if single:
        a, b = [a], [b]
    parts = [np.empty(0)]
    for left, right in zip_longest(kind.sources(a), kind.sources(b)):
        if left is None or right is None or len(left) != len(right):
            raise DocumentError(
                "there are more documents on one side than on the other; pairing them needs equal "
                "numbers"
            )
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
    first = _positions("left", left, len(source))
    second = _positions("right", right, len(source))
    if len(first) != len(second):
        raise ArgumentError(
            f"left has {len(first)} positions and right {len(second)}; expected equal numbers"
        )
    similarities = np.empty(len(first))
    compare(source, source, first, second, thread_count(threads), similarities)
    return similarities


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
