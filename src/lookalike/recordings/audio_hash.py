"""AudioHash: fingerprints of recordings, in which a snippet is found by its words."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import (
    as_array,
    file_path,
    one_of,
    optional_module,
    thread_count,
    whole_number,
)
from lookalike.display import Column, TableColumns, Tabular
from lookalike.errors import ArgumentError, DocumentError, FileError
from lookalike.parts.signer import PartSigner, SignedParts, VoteSettings
from lookalike.recordings import bands, chromaprint
from lookalike.recordings.decode import FASTEST, PIECE, AudioInfo, Words, decode, words_in
from lookalike.shown import brief
from lookalike.storage.files import file_errors

KINDS = ("bands", "chromaprint")
LEAST_SCORE = {"bands": 0.12, "chromaprint": 0.2}
"""Minimum share of the words of a snippet at one offset of a recording; fewer are chance."""
_RADIUS = 2  # bits in which equal words may differ
_LEAST_VOTES = 8  # least number of words of a snippet at one place

Recording = str | os.PathLike[str] | bytes | tuple[ArrayLike, SupportsIndex]


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


class AudioHash(PartSigner):
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
    medium = "recordings"
    unit = "milliseconds"
    reads_files = True
    _seeded = False

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

    def sign(
        self, recording: Recording, *, threads: SupportsIndex | None = None
    ) -> NDArray[np.uint8]:
        """Return the words of one recording as signatures, `uint8[n, 4]`, with one thread."""
        return self.sign_query(recording, threads=threads).signatures

    def sign_parts(
        self, recording: Recording, *, threads: SupportsIndex | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the words of a recording as signatures, and the millisecond where each begins."""
        return self.sign_query(recording, threads=threads)

    def sign_each(
        self, things: Sequence[str], *, threads: SupportsIndex | None = None
    ) -> Iterator[SignedParts | DocumentError]:
        """Yield the words of each file, or an error, decoded by `threads` processes."""
        from lookalike.recordings.workers import read_recordings  # which imports this module

        for one in read_recordings(map(Path, things), self, threads=thread_count(threads)):
            yield (
                one if isinstance(one, DocumentError) else SignedParts(one.signatures, one.offsets)
            )

    def sign_query(
        self, thing: Recording | Fingerprint, *, threads: SupportsIndex | None = None
    ) -> SignedParts:
        """Return the words of a recording, decoded in this process, or of a fingerprint."""
        thread_count(threads)
        found = thing if isinstance(thing, Fingerprint) else self.fingerprint(thing)
        return SignedParts(found.signatures, found.offsets)

    def fingerprint(self, recording: Recording) -> Fingerprint:
        """Return the words of one recording with facts about it.

        Raises:
            FileError: The file cannot be read.
            DocumentError: The samples are not valid.
        """
        if isinstance(recording, tuple):
            return self._of_samples(recording)
        if isinstance(recording, bytes | bytearray | memoryview):
            source: Path | bytes = bytes(recording)
        else:
            source = file_path("recording", recording)
        name = "the recording" if isinstance(source, bytes) else source
        self.check_installed()
        try:
            with file_errors(name):
                return self.read(source)
        except DocumentError as error:
            raise FileError(f"{name} {error}") from error

    def check_installed(self) -> None:
        """Raise `MissingDependencyError` if files cannot be read."""
        optional_module("soundfile", "reading recordings", extra="audio")
        if self.kind == "chromaprint":
            chromaprint.find_program()

    def read(self, recording: os.PathLike[str] | str | bytes) -> Fingerprint:
        """Return the words of a file; raise `DocumentError`, without its name, or `OSError`."""
        return Fingerprint(*decode(recording, self._words_at))

    def _words_at(self, rate: int) -> Words:
        """Return an object that makes the words of samples of this rate."""
        if self.kind == "bands":
            return bands.BandWords(rate)
        return chromaprint.ChromaprintWords(rate)

    def _of_samples(self, recording: tuple[Any, ...]) -> Fingerprint:
        if len(recording) != 2:
            raise ArgumentError(
                f"recording is {brief(recording)}; expected a path, bytes, or (samples, rate)"
            )
        samples = as_array("recording", recording[0])
        rate = whole_number("rate", recording[1], at_least=bands.LEAST_RATE, at_most=FASTEST)
        if samples.ndim not in (1, 2) or samples.dtype.kind not in "fi" or 0 in samples.shape[1:]:
            raise DocumentError(
                f"samples are {samples.dtype} of shape {samples.shape}; expected float32 of shape "
                "(samples,) or (samples, channels)"
            )
        full = 1.0 if samples.dtype.kind == "f" else float(np.iinfo(samples.dtype).max) + 1
        columns = samples[:, None] if samples.ndim == 1 else samples
        channels = columns.shape[1]
        at_once = max(1, PIECE // channels)
        pieces = (
            (columns[start : start + at_once] / np.float32(full)).astype(np.float32)
            for start in range(0, len(columns), at_once)
        )
        try:
            words, offsets, seconds, bandwidth, waveform = words_in(pieces, rate, self._words_at)
        except DocumentError as error:
            raise DocumentError(f"recording {error}") from error
        info = AudioInfo(
            seconds, rate, channels, "samples", True, bandwidth=bandwidth, waveform=waveform
        )
        return Fingerprint(words, offsets, info)
