"""Features of documents: words, characters, links, or the caller's own."""

from lookalike.features.base import FeatureKind, as_features, feature_kind_from_dict
from lookalike.features.choice import Combined
from lookalike.features.ready import FeatureFunction, Features
from lookalike.features.short import ShortText
from lookalike.features.similarity import (
    MEASURES,
    RARITY_MEASURES,
    containment,
    cosine,
    jaccard,
    similarity,
    similarity_pairs,
    unrounded,
    weighted_containment,
    weighted_jaccard,
)
from lookalike.features.text import Chars, Words
from lookalike.features.weights import Vocabulary, Weights

__all__ = [
    "MEASURES",
    "RARITY_MEASURES",
    "Chars",
    "Combined",
    "FeatureFunction",
    "FeatureKind",
    "Features",
    "ShortText",
    "Vocabulary",
    "Weights",
    "Words",
    "as_features",
    "containment",
    "cosine",
    "feature_kind_from_dict",
    "jaccard",
    "similarity",
    "similarity_pairs",
    "unrounded",
    "weighted_containment",
    "weighted_jaccard",
]
