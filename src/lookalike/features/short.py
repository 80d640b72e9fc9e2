"""Features of short texts: characters that remember the numbers and codes of their text.

Two lines that differ by a typo are of the same item; two that differ by a number, a unit or an
initial are not. Runs of characters alone cannot tell one from the other, so the numbers and codes
of a text are a part of each of its features: texts that differ in them have no feature in common.

A feature is that of `Chars` with `lowercase`, after runs of punctuation and spaces became a space,
and with a space before and after the text, so that its first and last letters count as much as
others. It is XORed with the sum of the hashes of the numbers and codes in the text, modulo 2**64.
The hash of a number is fmix64(fmix64(c1) + fmix64(c2) * P + fmix64(c3) * P**2 ...) over its digits,
as code points; after 64 digits, the powers of P begin again. That of a code is fmix64 of its word.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.features.base import TextKind
from lookalike.features.text import ngram_lengths, several

_Hashes = NDArray[np.uint64]

# The zero of each script that has decimal digits: equal on every machine, whatever its Unicode.
_ZEROS = np.array(
    [
        *(0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6),
        *(0xD66, 0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0),
        *(0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0),
        *(0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0),
        *(0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50),
        *(0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6),
        *(0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0),
    ],
    np.uint32,
)
_NINE = _ZEROS[0] + 9
# Punctuation, the first and last of each run: without + and #, which tell C from C++ and C#.
_PUNCTUATION = (
    *((0x00, 0x22), (0x24, 0x2A), (0x2C, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0xA9)),
    *((0xAB, 0xB1), (0xB4, 0xB4), (0xB6, 0xB8), (0xBB, 0xBB), (0xBF, 0xBF), (0xD7, 0xD7)),
    *((0xF7, 0xF7), (0x60C, 0x60C), (0x61B, 0x61B), (0x61F, 0x61F), (0x66A, 0x66D), (0x6D4, 0x6D4)),
    *((0x964, 0x965), (0x2000, 0x200B), (0x2010, 0x205F), (0x2E00, 0x2E2E), (0x2E30, 0x2E5D)),
    *((0x3000, 0x3004), (0x3008, 0x3020), (0x3030, 0x3030), (0x30FB, 0x30FB), (0xFF01, 0xFF0F)),
    *((0xFF1A, 0xFF20), (0xFF3B, 0xFF40), (0xFF5B, 0xFF65)),
)
_SPACES = {code: " " for first, last in _PUNCTUATION for code in range(first, last + 1)}
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_CONSONANTS = "bcdfghjklmnpqrstvwxz"
# Words of one or two consonants are units, sizes and initials; "s" and "t" are of "it's", "don't".
_CODES = {*_ROMAN, *_CONSONANTS, *map("".join, product(_CONSONANTS, repeat=2))} - {"s", "t"}
_CODE_HASHES = np.sort(
    np.array([_native.xxh64(np.frombuffer(one.encode(), np.uint8)) for one in _CODES], np.uint64)
)
_BASE, _PLACES = 0x9FB21C651E98DF25, 64
_POWERS = np.array([pow(_BASE, place, 1 << 64) for place in range(_PLACES)], np.uint64)


class ShortText(TextKind):
    """Character n-grams for names, titles, addresses and product lines.

    Case and punctuation do not count. Texts with different numbers or codes have no feature in
    common. A number is a run of digits of any script. A code is a Roman numeral from "i" to "xii",
    or a word of one or two Latin consonants, such as an initial or a unit. "s" and "t" are not.

    Args:
        ngram: Number of characters, or several (default: 3).

    Examples:
        >>> short = la.ShortText()
        >>> round(la.jaccard("USB cable, white, 2 m", "usb cabel white 2 m", short), 2)
        0.65
        >>> la.jaccard("USB cable, white, 2 m", "USB cable, white, 3 m", short)
        0.0
    """

    usual_threshold: ClassVar[float] = 0.75
    memory_factor: ClassVar[int] = 8

    def __init__(self, ngram: SupportsIndex | Iterable[SupportsIndex] = 3) -> None:
        self.ngram = ngram_lengths("ngram", ngram)
        self._characters = _native.TextFeatures(True, several(self.ngram), True, 1, [], False)
        self._words = _native.TextFeatures(False, [1], True, 1, [], False)

    def batch_source(self, batch: _native.Documents, position: int) -> _native.Source:
        """Return the n-grams of texts."""
        texts = batch.to_list()
        plain = [" ".join(["", *text.translate(_SPACES).split(), ""]) for text in texts]
        plain = [text.rstrip() and text for text in plain]
        offsets, features = self._characters.extract(_native.Documents.from_list(plain, position))
        remembered = _numbers(texts) + self._codes(batch)
        features ^= np.repeat(remembered, np.diff(offsets))
        return _native.Source.of_features(offsets, features, np.ones(len(features)))

    def _codes(self, batch: _native.Documents) -> _Hashes:
        """Return the sum of the hashes of the codes in each text."""
        offsets, words = self._words.extract(batch)
        nearest = np.minimum(np.searchsorted(_CODE_HASHES, words), len(_CODE_HASHES) - 1)
        at = np.flatnonzero(_CODE_HASHES[nearest] == words)
        return _sums(_mixed(words[at]), at, offsets)


def _numbers(texts: list[str]) -> _Hashes:
    """Return the sum of the hashes of the numbers in each text."""
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1)
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    # What is between two texts is not a digit.
    codes = np.frombuffer("\n".join([*texts, ""]).encode("utf-32-le"), "<u4")
    is_digit = (codes >= _ZEROS[0]) & (codes <= _NINE)
    wide = np.flatnonzero(codes >= _ZEROS[1])
    zeros = _ZEROS[np.searchsorted(_ZEROS, codes[wide], "right") - 1]
    is_digit[wide] = codes[wide] - zeros <= 9
    digits = np.flatnonzero(is_digit)
    firsts = np.flatnonzero(np.diff(digits, prepend=-2) > 1)
    if not len(firsts):
        return np.zeros(len(texts), np.uint64)
    lengths = np.diff(firsts, append=len(digits))
    places = np.arange(len(digits)) - np.repeat(firsts, lengths)
    hashes = _mixed(codes[digits].astype(np.uint64)) * _POWERS[places % _PLACES]
    return _sums(_mixed(np.add.reduceat(hashes, firsts)), digits[firsts], offsets)


def _sums(hashes: _Hashes, at: NDArray[np.int64], offsets: NDArray[np.int64]) -> _Hashes:
    """Return the sum of hashes in each text, given where they are and where texts begin and end."""
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return np.diff(sums[np.searchsorted(at, offsets)])


def _mixed(values: _Hashes) -> _Hashes:
    """Return fmix64 of values: the finalizer of MurmurHash3."""
    shift = np.uint64(33)
    values = (values ^ (values >> shift)) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> shift)) * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ (values >> shift)
