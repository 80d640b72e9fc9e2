"""From documents to weighted features: words, characters, or whatever the caller has."""

from lookalike.features.base import FeatureKind, as_features, feature_kind_from_dict
from lookalike.features.choice import Combined
from lookalike.features.ready import FeatureFunction, Features
from lookalike.features.similarity import (
    MEASURES,
    containment,
    containment_pairs,
    cosine,
    cosine_pairs,
    jaccard,
    jaccard_pairs,
    similarity,
    similarity_pairs,
    unrounded,
    weighted_jaccard,
    weighted_jaccard_pairs,
)
from lookalike.features.text import Chars, Words
from lookalike.features.weights import Vocabulary, Weights

__all__ = [
    "MEASURES",
    "Chars",
    "Combined",
    "FeatureFunction",
    "FeatureKind",
    "Features",
    "Vocabulary",
    "Weights",
    "Words",
    "as_features",
    "containment",
    "containment_pairs",
    "cosine",
    "cosine_pairs",
    "feature_kind_from_dict",
    "jaccard",
    "jaccard_pairs",
    "similarity",
    "similarity_pairs",
    "unrounded",
    "weighted_jaccard",
    "weighted_jaccard_pairs",
]
