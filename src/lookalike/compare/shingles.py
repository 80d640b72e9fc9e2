"""Which features two texts share, and what these look like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.compare.spans import word_spans
from lookalike.features import FeatureKind, Words, containment
from lookalike.features.choice import unit_text
from lookalike.features.text import Lengths

__all__ = ["SharedShingles", "shared_shingles"]

_MOST_CHARACTERS = 1_000_000
"""Of a text that examples are taken from."""


@dataclass(frozen=True)
class SharedShingles:
    """Different features, n-grams of words usually: how many both texts have, and how many only
    one of them.
    """

    ngram: Lengths | None
    """Words or characters of each, one length or several; None where features are something else.
    """
    shared: int
    only_a: int
    only_b: int
    examples: dict[str, list[str]]
    """Some of each, by the names above, in the order of the text; they do not overlap. Of words of
    one length as they stand in the text; of other features there are none.
    """
    unit: str = "features"
    """What was counted, in words."""


def shared_shingles(a: str, b: str, features: FeatureKind, *, examples: int = 3) -> SharedShingles:
    """Compare the sets of features of two texts; linear but for sorting their hashes."""
    ngram = features.ngram if isinstance(features, Words) else None
    if not isinstance(features, Words) or not isinstance(ngram, int) or features != Words(ngram):
        return _only_counts(a, b, features)
    left, right = _hashes(a, features), _hashes(b, features)
    in_b, in_a = np.isin(left, right), np.isin(right, left)
    return SharedShingles(
        ngram,
        shared=len(np.unique(left[in_b])),
        only_a=len(np.unique(left[~in_b])),
        only_b=len(np.unique(right[~in_a])),
        examples={
            "shared": _examples(a, in_b, ngram, examples),
            "only_a": _examples(a, ~in_b, ngram, examples),
            "only_b": _examples(b, ~in_a, ngram, examples),
        },
        unit=unit_text(features),
    )


def _only_counts(a: str, b: str, features: FeatureKind) -> SharedShingles:
    one, two = features.counts([a, b], distinct=True).tolist()
    shared = round(containment(a, b, features) * min(one, two))
    return SharedShingles(
        getattr(features, "ngram", None),
        shared,
        one - shared,
        two - shared,
        {"shared": [], "only_a": [], "only_b": []},
        unit_text(features),
    )


def _hashes(text: str, words: Words) -> NDArray[np.uint64]:
    """Return the shingles of a text in their order."""
    documents = _native.Documents.from_list([text], 0)
    return words._reader.extract(documents)[1]


def _examples(text: str, chosen: NDArray[np.bool_], ngram: int, most: int) -> list[str]:
    """Return the text of some of the shingles that are chosen."""
    spans = word_spans(text[:_MOST_CHARACTERS])
    if len(text) > _MOST_CHARACTERS:
        spans = spans[:-1]  # a word that may be cut
    if not spans:
        return []
    wide = min(ngram, len(spans))
    found: list[str] = []
    free = 0
    for first in np.flatnonzero(chosen).tolist():
        if len(found) == most or first + wide > len(spans):
            break
        if first >= free:
            found.append(" ".join(text[spans[first][0] : spans[first + wide - 1][1]].split()))
            free = first + wide
    return found
