"""From documents to weighted features: words, characters, or whatever the caller has."""

from lookalike.features.base import FeatureKind as FeatureKind
from lookalike.features.base import as_features as as_features
from lookalike.features.base import feature_kind_from_dict as feature_kind_from_dict
from lookalike.features.choice import Combined as Combined
from lookalike.features.ready import FeatureFunction as FeatureFunction
from lookalike.features.ready import Features as Features
from lookalike.features.similarity import MEASURES as MEASURES
from lookalike.features.similarity import containment as containment
from lookalike.features.similarity import containment_pairs as containment_pairs
from lookalike.features.similarity import cosine as cosine
from lookalike.features.similarity import cosine_pairs as cosine_pairs
from lookalike.features.similarity import jaccard as jaccard
from lookalike.features.similarity import jaccard_pairs as jaccard_pairs
from lookalike.features.similarity import similarity as similarity
from lookalike.features.similarity import similarity_pairs as similarity_pairs
from lookalike.features.similarity import unrounded as unrounded
from lookalike.features.similarity import weighted_jaccard as weighted_jaccard
from lookalike.features.similarity import weighted_jaccard_pairs as weighted_jaccard_pairs
from lookalike.features.text import Chars as Chars
from lookalike.features.text import Words as Words
from lookalike.features.weights import Vocabulary as Vocabulary
from lookalike.features.weights import Weights as Weights
