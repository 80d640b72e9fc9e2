"""How documents are signed and clusters described, checked before anything is read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, SupportsIndex

from lookalike.checks import one_of, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.features import Weights, Words
from lookalike.features.choice import FeatureChoice, chosen_names, chosen_words
from lookalike.features.text import Lengths
from lookalike.features.weights import WEIGHT_KINDS
from lookalike.signatures.methods import Method
from lookalike.signatures.signer import WeightedSigner

TOPIC_METHODS = ("topsig", "simhash")
BITS = 4096
"""Documents of one subject share few words, which only many bits show."""
NGRAM = 1
ROUNDS, SAMPLE = 20, 400
"""Of `la.cluster`: more than an index needs, and still a second or two."""
MOST_CLUSTERS = 50
"""By default."""


def usual_clusters(documents: int) -> int:
    """Return the default number of clusters for a number of documents."""
    return min(MOST_CLUSTERS, max(1, round(math.sqrt(documents / 2))), documents)


@dataclass(frozen=True, kw_only=True)
class TopicSettings:
    """The settings of `la.cluster_documents`."""

    method: str
    bits: SupportsIndex | None
    ngram: Lengths | None
    features: FeatureChoice
    stop_words: str | Iterable[str] | None
    stem: str | None
    seed: SupportsIndex
    weights: str
    words: SupportsIndex
    central: SupportsIndex

    def __post_init__(self) -> None:
        if self.method not in TOPIC_METHODS:
            raise ArgumentError(
                Said("method"),
                f" is {self.method!r}; expected one of {', '.join(TOPIC_METHODS)}: clusters have a "
                "majority of bits in the middle, which means something of their signatures",
            )
        one_of("weights", self.weights, WEIGHT_KINDS)
        object.__setattr__(self, "words", whole_number("words", self.words, at_least=0))
        object.__setattr__(self, "central", whole_number("central", self.central, at_least=0))
        self.signing  # noqa: B018  # raises if it makes no sense

    @cached_property
    def signing(self) -> Method:
        """How documents are signed."""
        ngram = self.ngram
        if ngram is None and isinstance(self.features, str):
            ngram = NGRAM if "words" in chosen_names(self.features) else None
        method = Method.of(
            self.method,
            features=self.features,
            ngram=ngram,
            stop_words=self.stop_words,
            stem=self.stem,
            bits=whole_number(
                "bits", BITS if self.bits is None else self.bits, at_least=8, at_most=1 << 16
            ),
            seed=self.seed,
        )
        method.new_signer()  # raises if its numbers make no sense
        return method

    def signer(self) -> WeightedSigner:
        """Return a new signer that has not learned weights yet."""
        signer = self.signing.new_signer()
        if not isinstance(signer, WeightedSigner):
            raise ArgumentError(Said("method"), f" is {self.method!r}")
        signer.weights = Weights(self.weights)
        return signer

    def shown_words(self) -> Words:
        """Return the words that describe clusters: those documents are signed by, one by one."""
        words = chosen_words(self.signing.features)
        return Words() if words is None else Words(**{**words.settings(), "ngram": 1})

    def to_dict(self) -> dict[str, Any]:
        """Return all settings in plain values."""
        by_name = isinstance(self.features, str)
        features, words = self.signing.features, chosen_words(self.signing.features)
        return {one.name: getattr(self, one.name) for one in fields(self)} | {
            "bits": self.signing.bits,
            "ngram": self.signing.ngram if by_name else self.ngram,
            "features": self.features if by_name else features.to_dict(),
            "stop_words": words.stopwords if by_name and words is not None else self.stop_words,
        }
