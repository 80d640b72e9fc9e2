"""Several kinds of features combined, and features chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from lookalike import _native
from lookalike.checks import as_array, instance
from lookalike.errors import ArgumentError, Said
from lookalike.features.base import (
    FeatureKind,
    TextKind,
    as_features,
    feature_kind_from_dict,
    reads_links,
)
from lookalike.features.short import ShortText
from lookalike.features.text import Chars, Lengths, Words
from lookalike.pages.marks import without_marks
from lookalike.shown import brief
from lookalike.suggestions import did_you_mean

_LEAST_WEIGHT, _MOST_WEIGHT = 1e-6, 1e6


class Combined(TextKind):
    """Combine the features of several kinds, such as words and characters.

    Features of different kinds are always different: those of kind i > 0 are hashed as
    fmix64(feature ^ fmix64(D + i)) with D = 0x6c62272e07bb0142. So signatures depend on the order
    of kinds. Kinds that are `Combined` are taken apart.

    Args:
        kinds: Kinds of features, or functions from a text to its features.
        weights: Factor for the weights of each kind (default: 1 each). Sets (Jaccard, containment,
            MinHash) ignore weights.

    Examples:
        >>> signer = la.SimHash(features=la.Combined(la.Words(), la.Chars(), weights=[2, 1]))
        >>> signer.sign(["some text"]).shape
        (1, 8)
    """

    def __init__(
        self,
        *kinds: FeatureKind | Callable[[str], Iterable[Any]],
        weights: Iterable[float] | None = None,
    ) -> None:
        given = [as_features(kind) for kind in kinds]
        factors = _weights(weights, len(given))
        self.kinds = tuple(one for kind in given for one in kinds_of(kind))
        self.weights: tuple[float, ...] = tuple(
            factor * own
            for factor, kind in zip(factors, given, strict=True)
            for own in (kind.weights if isinstance(kind, Combined) else (1.0,))
        )
        self._check_kinds()

    def _check_kinds(self) -> None:
        if len(self.kinds) < 2:
            raise ArgumentError(
                f"there {'is one kind' if self.kinds else 'are no kinds'} of features to combine; "
                "expected at least two, such as la.Combined(la.Words(), la.Chars())"
            )
        for place, kind in enumerate(self.kinds):
            if not kind.is_document(""):
                raise ArgumentError(
                    f"features {place} are {kind!r}, which take no texts; expected kinds that do, "
                    "such as la.Words(), or a function from a text to its features"
                )
            if kind in self.kinds[:place]:
                raise ArgumentError(
                    f"features {place} are {kind!r} once more; give them a higher weight instead"
                )

    def batch_source(self, batch: _native.Documents, position: int) -> _native.Source:
        """Return the features of all kinds; only those that read links get marks of links."""
        plain = batch
        if any(map(reads_links, self.kinds)):
            texts = list(map(without_marks, batch.to_list()))
            plain = _native.Documents.from_list(texts, position)
        parts = [
            kind.batch_source(batch if reads_links(kind) else plain, position)
            for kind in self.kinds
        ]
        return _native.Source.of_kinds(parts, list(self.weights))

    def check_persistent(self) -> None:
        """Raise unless the descriptions of all kinds are persistent."""
        for kind in self.kinds:
            kind.check_persistent()

    def settings(self) -> dict[str, Any]:
        """Return the kinds and their weights, in plain values."""
        return {"kinds": [kind.to_dict() for kind in self.kinds], "weights": list(self.weights)}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Combined:
        """Return the kind that has these `settings`."""
        described = instance("kinds", settings.pop("kinds", None), list, "a list of descriptions")
        for one in described:
            if isinstance(one, dict) and one.get("kind") == cls.__name__:
                raise ArgumentError("a description has Combined features within Combined ones")
        return cls(*map(feature_kind_from_dict, described), **settings)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Combined, weights=self.weights), self.kinds  # functions, too, are pickled

    def _key(self) -> object:
        return self.kinds, self.weights

    def __repr__(self) -> str:
        return f"Combined({', '.join(map(repr, self.kinds))}, weights={self.weights!r})"


def kinds_of(features: FeatureKind) -> tuple[FeatureKind, ...]:
    """Return the kinds of combined features; of others, themselves."""
    return features.kinds if isinstance(features, Combined) else (features,)


def _weights(weights: Iterable[float] | None, count: int) -> tuple[float, ...]:
    if weights is None:
        return (1.0,) * count
    try:
        several = weights if isinstance(weights, np.ndarray) else list(weights)
    except TypeError:
        several = []
    numbers = as_array("weights", several)
    if numbers.shape != (count,) or numbers.dtype.kind not in "fiu":
        raise ArgumentError(
            Said("weights"), f" are {brief(weights)}; expected {count} numbers, one for each kind"
        )
    if not ((numbers >= _LEAST_WEIGHT) & (numbers <= _MOST_WEIGHT)).all():
        raise ArgumentError(
            Said("weights"),
            f" are {brief(weights)}; expected numbers from {_LEAST_WEIGHT:g} to {_MOST_WEIGHT:g}; "
            "leave out a kind that does not count",
        )
    return tuple(numbers.astype(np.float64).tolist())


FEATURES = ("words", "chars", "short", "links")
CHARS_NGRAM, SHORT_NGRAM = Chars().ngram, ShortText().ngram
FeatureChoice = str | FeatureKind | Callable[[str], Iterable[Any]]
"""Some of `FEATURES` with commas, an object such as `la.Words(...)`, or a function of a text."""


def chosen_features(
    features: FeatureChoice | None,
    *,
    ngram: Lengths | None,
    words_ngram: int,
    stop_words: str | Iterable[str] | None,
    stem: str | None,
) -> FeatureKind:
    """Return the chosen features, words by default; raise at options that would not change them.

    `ngram` is that of words, or of characters if there are no words. By default it is `words_ngram`
    for words, 5 for characters and 3 for short texts.
    """
    given: dict[str, object] = {"ngram": ngram, "stop_words": stop_words, "stem": stem}
    features = "words" if features is None else features
    if not isinstance(features, str):
        _refuse(given, "features that are made already; say it where they are made")
        kind = as_features(features)
        if not kind.is_document(""):
            raise ArgumentError(
                f"features are {kind!r}, which take no texts; expected 'words', 'chars', an object "
                "such as la.Words(...), or a function from a text to its features"
            )
        return kind
    names = chosen_names(features)
    lengths: dict[str, Lengths] = {
        "words": words_ngram,
        "chars": CHARS_NGRAM,
        "short": SHORT_NGRAM,
    }
    if ngram is not None and names != ["links"]:
        lengths[next(name for name in lengths if name in names)] = ngram
    if names == ["links"]:
        _refuse(given, "links, only with words")
    elif "words" not in names:
        del given["ngram"]
        _refuse(given, "characters, only with words")
    kinds: list[FeatureKind] = []
    if "words" in names:
        kinds.append(Words(lengths["words"], stopwords=stop_words, stem=stem))
    if "chars" in names:
        kinds.append(Chars(lengths["chars"]))
    if "short" in names:
        kinds.append(ShortText(lengths["short"]))
    if "links" in names:
        from lookalike.features.links import Links  # takes some time to import

        kinds.append(Links())
    return kinds[0] if len(kinds) == 1 else Combined(*kinds)


def chosen_names(features: str) -> list[str]:
    """Return the chosen names, or raise."""
    names = features.split(",")
    for name in names:
        if name not in FEATURES:
            raise ArgumentError(
                Said("features"),
                f" is {brief(features)}; expected one of: {', '.join(FEATURES)}; or several "
                f"with commas{did_you_mean(name, FEATURES)}",
            )
    if len(set(names)) < len(names):
        raise ArgumentError(Said("features"), f" is {brief(features)}; expected each but once")
    return names


def chosen_words(features: FeatureKind) -> Words | None:
    """Return the `Words` among features, or None."""
    return next((kind for kind in kinds_of(features) if isinstance(kind, Words)), None)


def typed_lengths(text: str) -> Lengths:
    """Return the lengths of n-grams in a text such as "5" or "1,2", or raise `ValueError`."""
    lengths = tuple(int(part) for part in text.split(","))
    return lengths[0] if len(lengths) == 1 else lengths


def _refuse(given: dict[str, object], what: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(Said(name), f" does not go with {what}, or leave it out")


def unit_text(features: FeatureKind) -> str:
    """Return the features that documents are compared by, in a few words."""
    if isinstance(features, Combined):
        return " and ".join(map(unit_text, features.kinds))
    if isinstance(features, Chars | ShortText):
        runs = _runs_text("character", features.ngram)
        return f"{runs} (numbers and codes equal)" if isinstance(features, ShortText) else runs
    if features.reads_links and not hasattr(features, "name"):
        return "links"
    if not isinstance(features, Words):
        name = getattr(features, "name", None)
        return f"features {name!r}" if name else "features"
    words = _runs_text("word", features.ngram)
    stemmed = f"stemmed {words}" if features.stem else words
    return f"{stemmed} without stop words" if features.stopwords else stemmed


def _runs_text(what: str, ngram: Lengths) -> str:
    if isinstance(ngram, tuple):
        return " and ".join(_runs_text(what, length) for length in ngram)
    return f"{what}s" if ngram == 1 else f"{what} {ngram}-grams"
