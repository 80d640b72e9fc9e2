"""What topics are made of and how they are described, checked before anything is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, SupportsIndex

from lookalike.checks import seed_number, whole_number
from lookalike.features import FeatureKind, Words
from lookalike.features.choice import FeatureChoice, chosen_features, chosen_words
from lookalike.features.text import Lengths
from lookalike.features.weights import most_common

NGRAM = 1


@dataclass(frozen=True, kw_only=True)
class TopicSettings:
    """The settings of `la.cluster_documents`."""

    ngram: Lengths | None
    features: FeatureChoice
    stop_words: str | Iterable[str] | None
    stem: str | None
    seed: SupportsIndex
    words: SupportsIndex
    central: SupportsIndex
    common: SupportsIndex | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", seed_number(self.seed))
        object.__setattr__(self, "words", whole_number("words", self.words, at_least=0))
        object.__setattr__(self, "central", whole_number("central", self.central, at_least=0))
        object.__setattr__(self, "common", most_common(self.common))
        self.feature_kind  # noqa: B018  # raises if it makes no sense

    @cached_property
    def feature_kind(self) -> FeatureKind:
        """The features that documents are clustered by."""
        return chosen_features(
            self.features,
            ngram=self.ngram,
            words_ngram=NGRAM,
            stop_words=self.stop_words,
            stem=self.stem,
        )

    @cached_property
    def shown_words(self) -> Words:
        """The words that describe clusters: those that documents are clustered by, one by one."""
        words = chosen_words(self.feature_kind)
        return Words() if words is None else Words(**{**words.settings(), "ngram": 1})

    @property
    def used_ngram(self) -> Lengths | None:
        """Words in a feature, or characters if there are no words; None for other features."""
        return getattr(chosen_words(self.feature_kind) or self.feature_kind, "ngram", None)

    def to_dict(self) -> dict[str, Any]:
        """Return all settings in plain values."""
        by_name = isinstance(self.features, str)
        words = chosen_words(self.feature_kind)
        return {one.name: getattr(self, one.name) for one in fields(self)} | {
            "ngram": self.used_ngram if by_name else self.ngram,
            "features": self.features if by_name else self.feature_kind.to_dict(),
            "stop_words": words.stopwords if by_name and words is not None else self.stop_words,
        }
