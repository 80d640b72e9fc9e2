"""Weights of features, and vocabularies, which some weights learn.

With c the number of times a feature occurs in the document (or its ready-made weight):

    uniform          1
    count            c
    log-count        log(1 + c)
    tfidf            c * (1 + log((1 + N) / (1 + n))), for n of N documents that have the feature
    idf              log(N / n), rounded to a multiple of 2**-16: rarity alone, so that sums are
                     exact and a feature of all documents weighs 0
    log-likelihood   (c - 0.5) * log((c / C) / (t / T)) where that is positive, else 0: the
                     feature's share in the document over its share in the collection

A negative ready-made weight has the negative of the weight of its magnitude. With `common`, a
feature of more than that many documents weighs 0, whatever the kind.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
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
    "idf": _native.WeightKind.idf,
}
LEARNED = ("tfidf", "log-likelihood", "idf")
WEIGHT_KINDS = tuple(_KINDS)
VOCABULARY_ARRAYS = ("features", "documents", "occurrences")
MOST_FEATURES = 1 << 22  # features that a vocabulary keeps by default: up to about 200 MB
UNLIMITED = 1 << 62
NEVER_COMMON = (1 << 64) - 1  # documents, for the core: none is common
RARITY_UNIT = 1 / (1 << 16)  # of the weights "idf"


class Vocabulary:
    """Numbers of documents and occurrences of each feature.

    Beyond `most` features, the rarest are dropped until at most half of `most` are left. An unknown
    feature counts as often as the most frequent dropped one, and at least once.

    Args:
        most: Maximum number of features (default: 2**22).
        common: Largest number of documents of a feature that weighs anything (default: any).

    Examples:
        >>> weights = la.Weights("tfidf").fit(["a b", "b c"], la.Words())
        >>> weights.vocabulary
        Vocabulary(3 features of 2 documents)
    """

    def __init__(
        self, most: SupportsIndex = MOST_FEATURES, common: SupportsIndex | None = None
    ) -> None:
        self.most = whole_number("most", most, at_least=2)
        self.common = most_common(common)
        self._native = _native.Vocabulary(self.most)
        if self.common is not None:
            self._native.leave_out_above(self.common)

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        documents = counted(self.documents, "document")
        return f"Vocabulary({counted(len(self), 'feature')} of {documents})"

    @property
    def documents(self) -> int:
        """Number of documents that were counted."""
        return self._native.totals[0]

    def observe(
        self,
        source: _native.Source,
        threads: int,
        repeated: _native.RepeatedFeatures | None = None,
    ) -> None:
        """Count documents as the core reads them.

        With `repeated`, which has seen all documents, features of one document are not kept:
        unknown features count as those.
        """
        self._native.observe(source, threads, repeated)

    @classmethod
    def merge(cls, vocabularies: Iterable[Vocabulary]) -> Vocabulary:
        """Return the vocabulary of all collections together; exact if no feature was dropped."""
        parts = instances("vocabularies", vocabularies, Vocabulary, "a la.Vocabulary")
        if not parts:
            raise ArgumentError("there are no vocabularies to merge; expected at least one")
        if len({part.common for part in parts}) > 1:
            raise ArgumentError(
                "the vocabularies have different values of common; merge those that have the same"
            )
        merged = cls(max(part.most for part in parts), parts[0].common)
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
            **({} if self.common is None else {"common": self.common}),
            **dict(zip(VOCABULARY_ARRAYS, map(encode_array, arrays), strict=True)),
        }

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Vocabulary:
        """Return the vocabulary that `to_dict` described."""
        instance("description", description, dict, "what Vocabulary.to_dict returned")
        try:
            vocabulary = cls(description["most"], description.get("common"))
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
        kind: "uniform", "count", "log-count", "tfidf", "log-likelihood" or "idf" (default:
            "count").
        vocabulary: Vocabulary for the last three kinds, or for `common` (default: learned by
            `fit`).
        common: Largest number of documents of a feature that weighs anything (default: any, or as
            in the vocabulary).

    Examples:
        >>> la.SimHash(weights=la.Weights("log-count")).sign(["some text"]).shape
        (1, 8)
    """

    def __init__(
        self,
        kind: str = "count",
        vocabulary: Vocabulary | None = None,
        common: SupportsIndex | None = None,
    ) -> None:
        self.kind = one_of("the kind of weights", kind, _KINDS)
        self.common = most_common(common)
        if vocabulary is not None:
            instance("vocabulary", vocabulary, Vocabulary, "a la.Vocabulary or None")
            if common is not None and self.common != vocabulary.common:
                raise ArgumentError(
                    Said("common"),
                    f" is {self.common}, and that of the vocabulary is {vocabulary.common}; give "
                    "one of them",
                )
            self.common = vocabulary.common
        self.vocabulary = vocabulary

    def __repr__(self) -> str:
        learned = "" if self.vocabulary is None else f", {self.vocabulary!r}"
        common = "" if self.common is None else f", common={self.common}"
        return f"Weights({self.kind!r}{learned}{common})"

    @property
    def learns(self) -> bool:
        """Whether `fit` has to be called before these weights can be used."""
        return self.kind in LEARNED or self.common is not None

    def fit(
        self,
        documents: Any,
        features: FeatureKind,
        *,
        most_features: SupportsIndex = MOST_FEATURES,
        threads: SupportsIndex | None = None,
    ) -> Self:
        """Learn the vocabulary of any iterable of documents, replacing an earlier one."""
        vocabulary = Vocabulary(most_features, self.common)
        count = thread_count(threads)
        for source in as_features(features).sources(documents):
            vocabulary.observe(source, count)
        self.vocabulary = vocabulary
        return self

    def fit_whole(
        self,
        sources: Callable[[], Iterable[_native.Source]],
        *,
        expected: int,
        most: int = UNLIMITED,
        threads: int,
    ) -> Self:
        """Learn from documents that are read twice, as the core reads them; forget no feature.

        Memory holds the features that several documents have; all others count as in one document.

        Args:
            sources: Returns the documents, in parts.
            expected: Number of features, with repetitions, or a guess.
            most: Largest number of features in memory.
            threads: Number of threads.

        Raises:
            TooManyResults: There are more features than `most`.
        """
        repeated, vocabulary = (
            _native.RepeatedFeatures(expected),
            Vocabulary(UNLIMITED, self.common),
        )
        for source in sources():
            repeated.observe(source, threads)
        for source in sources():
            vocabulary.observe(source, threads, repeated)
            if len(vocabulary) > most:
                raise _native.TooManyResults
        self.vocabulary = vocabulary
        return self

    def common_features(self) -> NDArray[np.uint64]:
        """Return the known features of more than `common` documents, ascending."""
        if self.vocabulary is None or self.common is None:
            return np.empty(0, np.uint64)
        features, documents, _ = self.vocabulary._native.arrays()
        return np.sort(features[documents > self.common])

    @property
    def native_kind(self) -> _native.WeightKind:
        """The kind for the core."""
        return _KINDS[self.kind]

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
        common = {} if self.common is None else {"common": self.common}
        return {"kind": self.kind, "vocabulary": learned, **common}

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Weights:
        """Return the weights that `to_dict` described."""
        instance("description", description, dict, "what Weights.to_dict returned")
        learned = description.get("vocabulary")
        vocabulary = None if learned is None else Vocabulary.from_dict(learned)
        return cls(description.get("kind", ""), vocabulary, description.get("common"))


def most_common(common: SupportsIndex | None) -> int | None:
    """Return the largest number of documents of a feature that counts; None for any.

    A feature of one document is in no other, so that nothing could be compared by such ones.
    """
    return None if common is None else whole_number("common", common, at_least=2, at_most=UNLIMITED)


def refuse_common_cosine(measure: str) -> None:
    """Refuse `common` for a cosine, which counts how often features occur."""
    if measure == "cosine":
        raise ArgumentError(
            Said("common"),
            " does nothing for cosine, where features count as often as they occur; choose ",
            "another ",
            Said("measure"),
            ", or leave it out",
        )


def encode_array(array: NDArray[np.uint64]) -> str:
    """Return 64-bit words as text."""
    return base64.b64encode(array.astype("<u8").tobytes()).decode()


def decode_array(text: str) -> NDArray[np.uint64]:
    """Return the words that `encode_array` wrote."""
    return np.frombuffer(base64.b64decode(text, validate=True), "<u8").astype(np.uint64)
