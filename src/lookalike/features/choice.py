"""What documents are compared by, as people say it: words, characters or both, or their own
features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lookalike.errors import ArgumentError, Said
from lookalike.features.base import FeatureKind, as_features
from lookalike.features.combined import Combined, kinds_of
from lookalike.features.text import Chars, Lengths, Words
from lookalike.shown import brief
from lookalike.suggestions import did_you_mean

__all__ = [
    "CHARS_NGRAM",
    "FEATURES",
    "FeatureChoice",
    "chosen_features",
    "chosen_names",
    "chosen_words",
    "typed_lengths",
    "unit_text",
]

FEATURES = ("words", "chars", "links")

CHARS_NGRAM = Chars().ngram
"""Whatever the method; beside words, too."""

FeatureChoice = str | FeatureKind | Callable[[str], Iterable[Any]]
"""Some of the words above with commas between them, an object such as `la.Words(...)`, or a
function from a text on.
"""


def chosen_features(
    features: FeatureChoice,
    *,
    ngram: Lengths | None,
    words_ngram: int,
    stop_words: str | Iterable[str] | None,
    stem: str | None,
) -> FeatureKind:
    """Return the features; what would not change them is refused.

    `ngram` is `words_ngram` of words unless told, 5 of characters; where there are both, it is that
    of words. Features that are an object or a function say all of it themselves.
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
    names = chosen_names(features)
    lengths: dict[str, Lengths] = {"words": words_ngram, "chars": CHARS_NGRAM}
    if ngram is not None and names != ["links"]:
        lengths["words" if "words" in names else "chars"] = ngram
    if names == ["links"]:
        _refuse(given, "links, only with words")
    elif "words" not in names:
        del given["ngram"]
        _refuse(given, "characters, only with words")
    makers: dict[str, Callable[[], FeatureKind]] = {
        "words": lambda: Words(lengths["words"], stopwords=stop_words, stem=stem),
        "chars": lambda: Chars(lengths["chars"]),
        "links": _links,
    }
    kinds = [makers[name]() for name in FEATURES if name in names]
    return kinds[0] if len(kinds) == 1 else Combined(*kinds)


def _links() -> FeatureKind:
    from lookalike.features.links import Links  # takes some time to import

    return Links()


def chosen_names(features: str) -> list[str]:
    """Return the words that were chosen, or raise an error that names them.

    Which comes first does not matter.
    """
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
    """Return the words among features; None if there are none."""
    return next((kind for kind in kinds_of(features) if isinstance(kind, Words)), None)


def typed_lengths(text: str) -> Lengths:
    """Return the lengths of n-grams that "5" or "1,2" stands for; raise `ValueError`."""
    lengths = tuple(int(part) for part in text.split(","))
    return lengths[0] if len(lengths) == 1 else lengths


def _refuse(given: dict[str, object], what: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(Said(name), f" does not go with {what}, or leave it out")


def unit_text(features: FeatureKind) -> str:
    """Return in a few words what documents are compared by."""
    if isinstance(features, Combined):
        return " and ".join(map(unit_text, features.kinds))
    if isinstance(features, Chars):
        return _runs_text("character", features.ngram)
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
