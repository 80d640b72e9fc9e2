"""AudioHash: fingerprints of recordings, in which a snippet is found by its words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import one_of
from lookalike.display import Column, TableColumns, Tabular
from lookalike.parts.signer import SignedParts, VoteSettings
from lookalike.recordings import bands, chromaprint
from lookalike.recordings.decode import AudioInfo, Words
from lookalike.recordings.signer import Recording, RecordingSigner

KINDS = ("bands", "chromaprint")
LEAST_SCORE = {"bands": 0.12, "chromaprint": 0.2}
"""Minimum share of the words of a snippet at one offset of a recording; fewer are chance."""
_RADIUS = 2  # bits in which equal words may differ
_LEAST_VOTES = 8  # least number of words of a snippet at one place


@dataclass(frozen=True, eq=False, repr=False)
class Fingerprint(Tabular):
    """The words of a recording; the table has `offset` and `word` (in hexadecimal)."""

    words: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    """Millisecond at which each word begins, ascending."""
    info: AudioInfo
    """Facts about the recording."""

    @property
    def signatures(self) -> NDArray[np.uint8]:
        """The words as signatures, `uint8[n, 4]`."""
        return self.words.astype("<u4").view(np.uint8).reshape(-1, 4)

    def _columns(self, begin: int, end: int) -> TableColumns:
        words = [f"{word:08x}" for word in self.words[begin:end].tolist()]
        return {"offset": self.offsets[begin:end], "word": Column(words, str)}

    def _row_count(self) -> int:
        return len(self.words)


class AudioHash(RecordingSigner[Fingerprint]):
    """Fingerprints of recordings: words of 32 bits with their offsets, the signatures of parts.

    The words of "bands" describe how the energies of 33 bands between 300 and 2000 Hz change, every
    50 ms. Those of "chromaprint" are made by AcoustID's program fpcalc, every 124 ms; it must be
    installed. Silence has no words, nor has a recording shorter than a word.

    A recording is a path or the bytes of a file (WAV, FLAC, Ogg, MP3, AIFF: what libsndfile reads).
    It can also be samples and their rate, `(float32[n] or float32[n, channels], 44100)`, with full
    scale at 1, or integers of 16 or 32 bits. Memory does not grow with the length of a file. Words
    are floating-point sums, so single bits may differ on another processor.

    Args:
        kind: "bands" or "chromaprint" (default: "bands").

    Examples:
        >>> import lookalike as la
        >>> import numpy as np
        >>> noise = np.random.default_rng(0).normal(size=88200) / 8
        >>> la.AudioHash().sign((noise, 44100)).shape
        (25, 4)
    """

    bits = 32
    _heard_type = Fingerprint
    _row_type = np.uint32

    def __init__(self, kind: str = "bands") -> None:
        super().__init__(0)
        self.kind = one_of("kind", kind, KINDS)

    @property
    def hop(self) -> float:
        """Milliseconds from one word to the next."""
        return bands.HOP if self.kind == "bands" else chromaprint.HOP

    @property
    def votes(self) -> VoteSettings:
        """Settings for searching: words within one hop of each other vote together."""
        span = bands.SPAN if self.kind == "bands" else chromaprint.SPAN
        score = LEAST_SCORE[self.kind]
        return VoteSettings(_RADIUS, math.ceil(self.hop), _LEAST_VOTES, score, span)

    def _parts_of(self, heard: Fingerprint) -> SignedParts:
        """Return the words of a fingerprint as signatures, with their offsets."""
        return SignedParts(heard.signatures, heard.offsets)

    def fingerprint(self, recording: Recording) -> Fingerprint:
        """Return the words of one recording with facts about it.

        Raises:
            FileError: The file cannot be read.
            DocumentError: The samples are not valid.
        """
        return self._heard(recording)

    def check_installed(self) -> None:
        """Raise `MissingDependencyError` if files cannot be read."""
        super().check_installed()
        if self.kind == "chromaprint":
            chromaprint.find_program()

    def _words_at(self, rate: int) -> Words:
        """Return an object that makes the words of samples of this rate."""
        if self.kind == "bands":
            return bands.BandWords(rate)
        return chromaprint.ChromaprintWords(rate)
