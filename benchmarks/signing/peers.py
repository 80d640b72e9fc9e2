"""The other ways to sign text that are compared, each by its best documented way.

Peers are imported by name and when they are made, because they have no types and the benchmarks of
searching do not need them. `benchmarks/__init__.py` has limited them to one thread before.
"""

from __future__ import annotations

import re
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DataSketch",
    "DataSketchCrc",
    "Gaoya",
    "PythonSets",
    "Rensa",
    "RensaRho",
    "RensaSplit",
    "SigningPeer",
    "SimHashText",
    "SimHashWords",
]

PERMUTATIONS = 128
SHINGLE = 5
WORD = re.compile(r"[^\W_]+")
"""The same words that `la.Words` finds, up to rare combining marks; as fast as plain \\w+."""


class SigningPeer(ABC):
    """One way to turn texts into signatures, with one thread."""

    name: ClassVar[str]
    most: ClassVar[int]
    """How many texts it is given, for about half a second; its time is scaled up."""

    @abstractmethod
    def sign(self, texts: Sequence[str]) -> object:
        """Sign all texts and keep the signatures, in whatever form is the cheapest."""

    @abstractmethod
    def values(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return the signatures as rows of values, which are equal the more similar texts are."""


class SimHashWords(SigningPeer):
    """PyPI's simhash, 64 bits, of our words and their counts: it takes these as a mapping."""

    name = "simhash, given our words"
    most = 2000

    def __init__(self) -> None:
        self._make = import_module("simhash").Simhash

    def sign(self, texts: Sequence[str]) -> list[int]:
        """Sign one by one; it has no other way."""
        return [self._make(self.features(text), f=64).value for text in texts]

    def values(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return single bits."""
        words = np.array(self.sign(texts), np.uint64)[:, None]
        return np.unpackbits(words.view(np.uint8), axis=1)

    def features(self, text: str) -> Counter[str] | str:
        """Return what is given to it for a text."""
        return Counter(WORD.findall(text.lower()))


class SimHashText(SimHashWords):
    """The same as its documentation uses it: given text, it takes runs of 4 letters by itself."""

    name = "simhash"
    most = 500

    def features(self, text: str) -> str:
        """Return the text itself."""
        return text


class Rensa(SigningPeer):
    """RMinHash of all shingles, into one matrix: the way it recommends for many documents.

    Shingles are made as it asks for them, which is faster for it than a list of all, and keeps its
    reading and its hashing in one thread.
    """

    name = "rensa"
    most = 10_000

    def __init__(self) -> None:
        self._minhash = import_module("rensa").RMinHash

    def sign(self, texts: Sequence[str]) -> Any:
        """Return rensa's matrix."""
        return self._minhash.digest_matrix_from_token_sets(self.shingles(texts), PERMUTATIONS, 42)

    def values(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return the matrix as an array."""
        return np.array(self.sign(texts).to_rows())

    def shingles(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """Yield the shingles of each text."""
        return map(word_shingles, texts)


class RensaSplit(Rensa):
    """The same, words parted at spaces only: other words, but many do it so and it is faster."""

    name = "rensa, str.split()"

    def shingles(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """Yield the shingles of each text."""
        return (join_shingles(text.lower().split()) for text in texts)


class RensaRho(Rensa):
    """Its rho sketch: passes over shingles of longer texts, so it does less than the others."""

    name = "rensa rho, samples shingles"

    def sign(self, texts: Sequence[str]) -> Any:
        """Return rensa's matrix."""
        make = self._minhash.digest_matrix_from_token_sets_rho
        return make(self.shingles(texts), PERMUTATIONS, 42)


class Gaoya(SigningPeer):
    """Its index of one band, into which documents are put: shingles, signature and little else.

    Asking it for signatures (`tokenize_and_minhash`) is slower, since it makes a list of numbers.
    Words are parted at punctuation and spaces, in Rust; texts of fewer than 5 words have nothing.
    """

    name = "gaoya"
    most = 10_000

    def __init__(self) -> None:
        self._make = import_module("gaoya").minhash.MinHashStringIndex

    def sign(self, texts: Sequence[str]) -> Any:
        """Return gaoya's index with all texts."""
        index = self._index()
        for number, text in enumerate(texts):
            index.insert_document(number, text)
        return index

    def values(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return the signatures that the index would keep; this call leaves case as it is."""
        index = self._index().minhash_index
        return np.array([index.tokenize_and_minhash(text.lower()) for text in texts])

    def _index(self) -> Any:
        return self._make(
            hash_size=32,
            num_bands=1,
            band_size=PERMUTATIONS,
            analyzer="word",
            lowercase=True,
            ngram_range=(SHINGLE, SHINGLE),
            id_container="smallvec",
        )


class DataSketch(SigningPeer):
    """MinHash.bulk, which calls update_batch on copies of one MinHash."""

    name = "datasketch"
    most = 2000
    hash_function: ClassVar[Callable[[bytes], int] | None] = None
    """None: SHA-1, its default."""

    def __init__(self) -> None:
        self._minhash = import_module("datasketch").MinHash

    def sign(self, texts: Sequence[str]) -> list[Any]:
        """Return datasketch's objects."""
        shingles = ([each.encode() for each in word_shingles(text)] for text in texts)
        found: list[Any] = self._minhash.bulk(
            shingles, num_perm=PERMUTATIONS, hashfunc=type(self).hash_function
        )
        return found

    def values(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return the objects' values."""
        return np.stack([each.hashvalues for each in self.sign(texts)])


class DataSketchCrc(DataSketch):
    """The same with a cheap hash, as its documentation advises; it mixes the bits itself."""

    name = "datasketch, crc32"
    hash_function = zlib.crc32


class PythonSets(SigningPeer):
    """Jaccard similarity of sets of words, of each text and the next: no signatures at all."""

    name = "Python sets"
    most = 5000

    def sign(self, texts: Sequence[str]) -> list[float]:
        """Return similarities; each text is read once."""
        sets = [set(WORD.findall(text.lower())) for text in texts]
        return [
            len(left & right) / len(left | right)
            for left, right in zip(sets, [*sets[1:], sets[0]], strict=True)
            if left or right
        ]

    def values(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return the similarities."""
        return np.array(self.sign(texts))


def word_shingles(text: str) -> list[str]:
    """Return the shingles of 5 words of a text, repeated ones too: a set would cost more."""
    return join_shingles(WORD.findall(text.lower()))


def join_shingles(words: list[str]) -> list[str]:
    """Return runs of 5 words joined by spaces; of fewer words, one run of all.

    The quickest of the ways that were tried in Python.
    """
    if len(words) < SHINGLE:
        return [" ".join(words)] if words else []
    return list(map(" ".join, zip(*(words[start:] for start in range(SHINGLE)), strict=False)))
