"""Weights of features, and vocabularies, which some weights learn.

With c the number of times a feature occurs in the document (or its ready-made weight):

    uniform          1
    count            c
    log-count        log(1 + c)
    tfidf            c * (1 + log((1 + N) / (1 + n))), for n of N documents that have the feature
    log-likelihood   (c - 0.5) * log((c / C) / (t / T)) where that is positive, else 0: the
                     feature's share in the document over its share in the collection

A negative ready-made weight has the negative of the weight of its magnitude.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import instance, instances, one_of, thread_count, whole_number
from lookalike.errors import ArgumentError, NotFittedError, Said
from lookalike.features.base import FeatureKind, as_features
from lookalike.shown import counted

_KINDS = {
    "uniform": _native.WeightKind.uniform,
    "count": _native.WeightKind.count,
    "log-count": _native.WeightKind.log_count,
    "tfidf": _native.WeightKind.tfidf,
    "log-likelihood": _native.WeightKind.log_likelihood,
}
LEARNED = ("tfidf", "log-likelihood")
WEIGHT_KINDS = tuple(_KINDS)
VOCABULARY_ARRAYS = ("features", "documents", "occurrences")
MOST_FEATURES = 1 << 22  # features that a vocabulary keeps by default: up to about 200 MB


class Vocabulary:
    """Numbers of documents and occurrences of each feature.

    Beyond `most` features, the rarest are dropped until at most half of `most` are left. An unknown
    feature counts as often as the most frequent dropped one, and at least once.

    Args:
        most: Maximum number of features (default: 2**22).

    Examples:
        >>> weights = la.Weights("tfidf").fit(["a b", "b c"], la.Words())
        >>> weights.vocabulary
        Vocabulary(3 features of 2 documents)
    """

    def __init__(self, most: SupportsIndex = MOST_FEATURES) -> None:
        self.most = whole_number("most", most, at_least=2)
        self._native = _native.Vocabulary(self.most)

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        documents = counted(self.documents, "document")
        return f"Vocabulary({counted(len(self), 'feature')} of {documents})"

    @property
    def documents(self) -> int:
        """Number of documents that were counted."""
        return self._native.totals[0]

    @classmethod
    def merge(cls, vocabularies: Iterable[Vocabulary]) -> Vocabulary:
        """Return the vocabulary of all collections together; exact if no feature was dropped."""
        parts = instances("vocabularies", vocabularies, Vocabulary, "a la.Vocabulary")
        if not parts:
            raise ArgumentError("there are no vocabularies to merge; expected at least one")
        merged = cls(max(part.most for part in parts))
        for part in parts:
            merged._native.add(*part._native.arrays())
            merged._native.add_totals(*part._native.totals)
        return merged

    def to_dict(self) -> dict[str, Any]:
        """Return a plain description, features in ascending order; `from_dict` is its inverse."""
        features, documents, occurrences = self._native.arrays()
        order = np.argsort(features)
        arrays = (features[order], documents[order], occurrences[order])
        return {
            "most": self.most,
            "totals": list(self._native.totals),
            **dict(zip(VOCABULARY_ARRAYS, map(encode_array, arrays), strict=True)),
        }

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Vocabulary:
        """Return the vocabulary that `to_dict` described."""
        instance("description", description, dict, "what Vocabulary.to_dict returned")
        try:
            vocabulary = cls(description["most"])
            arrays = [decode_array(description[name]) for name in VOCABULARY_ARRAYS]
            if len({len(array) for array in arrays}) != 1:
                raise ValueError(f"arrays have lengths {[len(array) for array in arrays]}")
            vocabulary._native.add(*arrays)
            vocabulary._native.add_totals(*description["totals"])
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"the description of a vocabulary cannot be used: {error!r}"
            ) from error
        return vocabulary

    def __reduce__(self) -> tuple[Any, ...]:
        return Vocabulary.from_dict, (self.to_dict(),)


class Weights:
    """A kind of weights, and the vocabulary that some kinds learn.

    Args:
        kind: "uniform", "count", "log-count", "tfidf" or "log-likelihood" (default: "count").
        vocabulary: Vocabulary for the last two kinds (default: learned by `fit`).

    Examples:
        >>> la.SimHash(weights=la.Weights("log-count")).sign(["some text"]).shape
        (1, 8)
    """

    def __init__(self, kind: str = "count", vocabulary: Vocabulary | None = None) -> None:
        self.kind = one_of("the kind of weights", kind, _KINDS)
        if vocabulary is not None:
            instance("vocabulary", vocabulary, Vocabulary, "a la.Vocabulary or None")
        self.vocabulary = vocabulary

    def __repr__(self) -> str:
        learned = "" if self.vocabulary is None else f", {self.vocabulary!r}"
        return f"Weights({self.kind!r}{learned})"

    @property
    def learns(self) -> bool:
        """Whether `fit` has to be called before these weights can be used."""
        return self.kind in LEARNED

    def fit(
        self,
        documents: Any,
        features: FeatureKind,
        *,
        most_features: SupportsIndex = MOST_FEATURES,
        threads: SupportsIndex | None = None,
    ) -> Self:
        """Learn the vocabulary of any iterable of documents, replacing an earlier one."""
        vocabulary = Vocabulary(most_features)
        count = thread_count(threads)
        for source in as_features(features).sources(documents):
            vocabulary._native.observe(source, count)
        self.vocabulary = vocabulary
        return self

    def native(self) -> tuple[_native.WeightKind, _native.Vocabulary | None]:
        """Return the weights for the core, or raise `NotFittedError`."""
        if not self.learns:
            return _KINDS[self.kind], None
        if self.vocabulary is None:
            raise NotFittedError(
                f"weights {self.kind!r} are not fitted yet; ",
                Said("call fit(documents) first", "let them learn with --fit"),
                ", or use ",
                Said("weights='count'", "--weights count"),
            )
        return _KINDS[self.kind], self.vocabulary._native

    def to_dict(self) -> dict[str, Any]:
        """Return a plain description; `from_dict` is its inverse."""
        learned = None if self.vocabulary is None else self.vocabulary.to_dict()
        return {"kind": self.kind, "vocabulary": learned}

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Weights:
        """Return the weights that `to_dict` described."""
        instance("description", description, dict, "what Weights.to_dict returned")
        learned = description.get("vocabulary")
        vocabulary = None if learned is None else Vocabulary.from_dict(learned)
        return cls(description.get("kind", ""), vocabulary)


def encode_array(array: NDArray[np.uint64]) -> str:
    """Return 64-bit words as text."""
    return base64.b64encode(array.astype("<u8").tobytes()).decode()


def decode_array(text: str) -> NDArray[np.uint64]:
    """Return the words that `encode_array` wrote."""
    return np.frombuffer(base64.b64decode(text, validate=True), "<u8").astype(np.uint64)
