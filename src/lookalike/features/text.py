"""Features of text: `Words` and `Chars`, read in one native pass over UTF-8.

A feature is a 64-bit hash: XXH64 of a word's or n-gram's UTF-8 bytes; for several words,
`fmix64(w1 * P**(n-1) + ... + wn)` modulo 2**64 over the hashes of the words, where fmix64 is the
finalizer of MurmurHash3 and P is 0x9fb21c651e98df25.

A text of fewer than n words (or characters) has one feature, all of them together; a text without
any has none. Of several n, the least one decides.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, SupportsIndex

from lookalike import _native
from lookalike.checks import flag, instance, optional_module, whole_number, whole_numbers
from lookalike.errors import ArgumentError
from lookalike.features.base import TextKind
from lookalike.features.stop_words import STOP_LISTS
from lookalike.shown import brief

Lengths = int | tuple[int, ...]  # one length of n-grams, or several in ascending order
_MOST_STEMS = 1 << 20
_LONGEST_LANGUAGE = 100
_LONGEST_NGRAM = 1024


class Words(TextKind):
    """Words, or shingles of `ngram` consecutive words.

    A word is a run of letters and digits of any script (`str.isalnum`), with the combining marks
    that follow them. In Han, Kana, Thai, Lao, Khmer and Myanmar, which are written without spaces,
    each character is a word.

    Args:
        ngram: Number of words, or several: (1, 2) means words and pairs of words (default: 1).
        lowercase: Apply `str.lower` to each character (default: yes).
        stopwords: A language ("english", "german", "french", "spanish", "italian", "portuguese",
            "dutch"), or a list of words to leave out before n-grams are made.
        stem: Language of Snowball, such as "english"; needs the extra `stem`.
        min_length: Smallest number of characters of a word (default: 1).

    Examples:
        >>> la.jaccard("To be or not", "to be or", la.Words(ngram=2))
        0.6666666666666666
    """

    def __init__(
        self,
        ngram: SupportsIndex | Iterable[SupportsIndex] = 1,
        lowercase: bool = True,
        stopwords: str | Iterable[str] | None = None,
        stem: str | None = None,
        min_length: SupportsIndex = 1,
    ) -> None:
        self.ngram = ngram_lengths("ngram", ngram)
        self.lowercase = flag("lowercase", lowercase)
        self.stem = stem if stem is None else instance("stem", stem, str, "a language or None")
        self.min_length = whole_number("min_length", min_length, at_least=1)
        self.stopwords = stopwords if isinstance(stopwords, str) else _word_list(stopwords)
        self._stemmer = _stemmer(stem)
        lengths, lowered, stops = several(self.ngram), self.lowercase, self._stop_list()
        self._reader = _native.TextFeatures(
            False, lengths, lowered, self.min_length, stops, stem is not None
        )
        self._learning = threading.Lock()

    def batch_source(self, batch: _native.Documents, position: int) -> _native.Source:
        """Return the words of texts."""
        self._learn_stems(batch)
        return _native.Source.of_texts(batch, self._reader)

    def _learn_stems(self, batch: _native.Documents) -> None:
        """Stem new words; forget all stems if there are too many."""
        if self._stemmer is None:
            return
        with self._learning:
            words = self._reader.unknown_words(batch)
            if self._reader.known_stems + len(words) > _MOST_STEMS:
                self._reader.forget_stems()
                words = self._reader.unknown_words(batch)
            if words:
                self._reader.add_stems(words, self._stemmer.stemWords(words))

    def _stop_list(self) -> list[str]:
        words = [] if self.stopwords is None else self.stopwords
        if isinstance(words, str):
            if words not in STOP_LISTS:
                raise ArgumentError(
                    f"stopwords is {brief(words)}; expected a language "
                    f"({', '.join(STOP_LISTS)}), a list of words or None"
                )
            return list(STOP_LISTS[words])
        if not self.lowercase:
            return words
        return ["".join(letter.lower()[0] for letter in word) for word in words]


class Chars(TextKind):
    """N-grams of `ngram` consecutive characters (code points), including spaces.

    Args:
        ngram: Number of characters, or several (default: 5).
        lowercase: Apply `str.lower` to each character (default: no).

    Examples:
        >>> la.jaccard("color", "colors", la.Chars(ngram=2))
        0.8
    """

    def __init__(
        self, ngram: SupportsIndex | Iterable[SupportsIndex] = 5, lowercase: bool = False
    ) -> None:
        self.ngram = ngram_lengths("ngram", ngram)
        self.lowercase = flag("lowercase", lowercase)
        lengths = several(self.ngram)
        self._reader = _native.TextFeatures(True, lengths, self.lowercase, 1, [], False)

    def batch_source(self, batch: _native.Documents, position: int) -> _native.Source:
        """Return the n-grams of texts."""
        return _native.Source.of_texts(batch, self._reader)


def ngram_lengths(name: str, ngram: SupportsIndex | Iterable[SupportsIndex]) -> Lengths:
    """Return one length, or several in a tuple in ascending order; or raise."""
    if not isinstance(ngram, Iterable) or isinstance(ngram, str | bytes):
        return whole_number(name, ngram, at_least=1, at_most=_LONGEST_NGRAM)  # type: ignore[arg-type]
    lengths = whole_numbers(name, ngram, at_least=1, at_most=_LONGEST_NGRAM)
    return lengths[0] if len(lengths) == 1 else tuple(lengths)


def several(ngram: Lengths) -> list[int]:
    """Return one length or several as a list."""
    return [ngram] if isinstance(ngram, int) else list(ngram)


def _word_list(words: Iterable[str] | None) -> list[str] | None:
    if words is None:
        return None
    try:
        unique = sorted(set(words))
    except TypeError:
        unique = None
    if unique is None or not all(isinstance(word, str) for word in unique):
        raise ArgumentError(
            f"stopwords are {brief(words)}; expected a language such as 'english', a list of str "
            "or None"
        )
    for word in unique:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ArgumentError(
                f"the stop word {brief(word)} has half of a surrogate pair, which is not a "
                "character; correct it, or leave it out"
            ) from None
    return unique


def _stemmer(language: str | None) -> Any:
    """Return PyStemmer's stemmer for a language, or None."""
    if language is None:
        return None
    if len(language) > _LONGEST_LANGUAGE or not language.isascii():
        raise ArgumentError(f"stem is {brief(language)}; expected a language such as 'english'")
    module = optional_module("Stemmer", f"stem={language!r}", extra="stem")
    try:
        return module.Stemmer(language)
    except (KeyError, TypeError):
        raise ArgumentError(
            f"stem is {language!r}; expected one of: {', '.join(module.algorithms())}"
        ) from None
