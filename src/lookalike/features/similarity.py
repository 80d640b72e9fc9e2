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


_NATIVE: dict[str, Compare] = {
    "jaccard": _native.jaccard,
    "cosine": _native.cosine,
    "containment": _native.containment,
    "weighted_jaccard": _native.weighted_jaccard,
    "weighted_containment": _native.weighted_containment,
}
_OF_SETS = ("jaccard", "containment")
MEASURES = ("jaccard", "cosine", "containment")
"""Of two documents, in `dedup` and `compare`: cosines are those of counts."""
RARITY_MEASURES = {"weighted-jaccard": "jaccard", "weighted-containment": "containment"}
"""Of two documents of a corpus: features weigh by their rarity there; see `la.Weights`, "idf"."""


def jaccard(
    a: Any, b: Any, features: FeatureKind | None = None, *, threads: SupportsIndex | None = None
) -> Any:
    """Return the Jaccard similarity of two documents: |A ∩ B| / |A ∪ B| of their features.

    Args:
        a: A document, or a sequence of documents.
        b: Another document, or a sequence of equal length.
        features: Features to compare (default: `Words()`).
        threads: Number of threads (default: all cores).

    Returns:
        A float; for sequences, an array with the similarities of `a[i]` and `b[i]`.

    Examples:
        >>> la.jaccard("the quick fox", "the lazy fox")
        0.5
    """
    return similarity("jaccard", a, b, features, threads=threads)


def containment(
    a: Any, b: Any, features: FeatureKind | None = None, *, threads: SupportsIndex | None = None
) -> Any:
    """Return the containment of documents, |A ∩ B| / min(|A|, |B|). Arguments as for `jaccard`.

    Examples:
        >>> la.containment("the quick fox", "the fox")
        1.0
    """
    return similarity("containment", a, b, features, threads=threads)


def cosine(
    a: Any,
    b: Any,
    features: FeatureKind | None = None,
    weights: str | Weights = "count",
    *,
    threads: SupportsIndex | None = None,
) -> Any:
    """Return the cosine of the weighted features of documents. Other arguments as for `jaccard`.

    Examples:
        >>> round(la.cosine("the quick fox", "the lazy fox"), 3)
        0.667
    """
    return similarity("cosine", a, b, features, weights, threads=threads)


def weighted_jaccard(
    a: Any,
    b: Any,
    features: FeatureKind | None = None,
    weights: str | Weights = "count",
    *,
    threads: SupportsIndex | None = None,
) -> Any:
    """Return the sum of smaller weights over the sum of larger weights of all features.

    Examples:
        >>> la.weighted_jaccard("fox fox", "fox dog")
        0.3333333333333333
    """
    return similarity("weighted_jaccard", a, b, features, weights, threads=threads)


def weighted_containment(
    a: Any,
    b: Any,
    features: FeatureKind | None = None,
    weights: str | Weights = "count",
    *,
    threads: SupportsIndex | None = None,
) -> Any:
    """Return the sum of smaller weights over the smaller one of the sums of weights.

    Arguments as for `cosine`.

    Examples:
        >>> la.weighted_containment("fox fox", "fox dog cat")
        0.5
    """
    return similarity("weighted_containment", a, b, features, weights, threads=threads)


def similarity(
    measure: str,
    a: Any,
    b: Any,
    features: FeatureKind | None = None,
    weights: str | Weights = "count",
    *,
    threads: SupportsIndex | None = None,
) -> Any:
    """Return the similarity of documents by a measure: the name of a function of this module."""
    return _paired(a, b, features, threads, _comparison(measure, weights))


def similarity_pairs(
    measure: str,
    documents: Any,
    left: ArrayLike,
    right: ArrayLike,
    features: FeatureKind | None = None,
    weights: str | Weights = "count",
    *,
    threads: SupportsIndex | None = None,
) -> NDArray[np.float64]:
    """Return the similarity of `documents[left[i]]` and `documents[right[i]]`.

    Each document is read once, and its features are held in memory.

    Args:
        measure: "jaccard", "cosine", "containment", "weighted_jaccard" or "weighted_containment".
        documents: Sequence of documents.
        left: Position of the first document of each pair.
        right: Position of the second document of each pair.
        features: Features to compare (default: `Words()`).
        weights: Weights of features, for "cosine" and the last two (default: "count").
        threads: Number of threads (default: all cores).

    Examples:
        >>> texts = ["the quick fox", "the lazy fox", "the fox"]
        >>> la.features.similarity_pairs("containment", texts, [0, 0], [1, 2]).round(3).tolist()
        [0.667, 1.0]
    """
    kind = Words() if features is None else as_features(features)
    compare, source = _comparison(measure, weights), kind.source(documents)
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


def _comparison(measure: str, weights: str | Weights) -> Compare:
    native = _NATIVE[one_of("measure", measure, _NATIVE)]
    if measure in _OF_SETS:
        return native
    kind, vocabulary = (weights if isinstance(weights, Weights) else Weights(weights)).native()
    return partial(native, kind=kind, vocabulary=vocabulary)


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
