"""What documents are compared by, as people say it: words or characters, or their own features."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lookalike.checks import one_of
from lookalike.errors import ArgumentError, Said
from lookalike.features.base import FeatureKind, as_features
from lookalike.features.text import Chars, Words

__all__ = ["CHARS_NGRAM", "FEATURES", "FeatureChoice", "chosen_features", "unit_text"]

FEATURES = ("words", "chars", "links")

CHARS_NGRAM = Chars().ngram

FeatureChoice = str | FeatureKind | Callable[[str], Iterable[Any]]
"""One of the words above, an object such as `la.Words(...)`, or a function from a text on."""


def chosen_features(
    features: FeatureChoice,
    *,
    ngram: int | None,
    words_ngram: int,
    stop_words: str | Iterable[str] | None,
    stem: str | None,
) -> FeatureKind:
    """Return the features; what would not change them is refused.

    `ngram` is `words_ngram` of words unless told, 5 of characters. Features that are an object or a
    function say all of it themselves.
    """
    given: dict[str, object] = {"ngram": ngram, "stop_words": stop_words, "stem": stem}
    if not isinstance(features, str):
        _refuse(given, "features that are made already; say it where they are made")
        kind = as_features(features)
        if not kind.is_document(""):
            raise ArgumentError(
                f"features are {kind!r}, which take no texts; expected 'words', 'chars', an object "
                "such as la.Words(...), or a function from a text to its features"
            )
        return kind
    if one_of("features", features, FEATURES) == "words":
        return Words(words_ngram if ngram is None else ngram, stopwords=stop_words, stem=stem)
    if features == "links":
        from lookalike.features.links import Links  # takes some time to import

        _refuse(given, "links, only with words")
        return Links()
    del given["ngram"]
    _refuse(given, "characters, only with words")
    return Chars(CHARS_NGRAM if ngram is None else ngram)


def _refuse(given: dict[str, object], what: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(Said(name), f" does not go with {what}, or leave it out")


def unit_text(features: FeatureKind) -> str:
    """Return in a few words what documents are compared by."""
    if isinstance(features, Chars):
        return "characters" if features.ngram == 1 else f"character {features.ngram}-grams"
    if features.reads_links and not hasattr(features, "name"):
        return "links"
    if not isinstance(features, Words):
        name = getattr(features, "name", None)
        return f"features {name!r}" if name else "features"
    words = "words" if features.ngram == 1 else f"word {features.ngram}-grams"
    stemmed = f"stemmed {words}" if features.stem else words
    return f"{stemmed} without stop words" if features.stopwords else stemmed
