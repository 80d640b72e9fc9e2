"""CoverHash: words of chroma, by which other performances of a piece are found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from lookalike.display import TableColumns, Tabular
from lookalike.parts.signer import SignedParts, VoteSettings
from lookalike.recordings import chroma
from lookalike.recordings.chroma import NOTES, ChromaFrames
from lookalike.recordings.decode import AudioInfo
from lookalike.recordings.signer import Recording, RecordingSigner

STEP = 500
"""Milliseconds from one word to the next."""
_STEPS = 8  # of a word
_RANKS = 3, 6  # a note has a bit for each: whether it is among so many strongest ones
_LEAST_HEARD = 6  # steps of a word that are not silent
_NAMES = "C C# D D# E F F# G G# A A# B".split()
_RADIUS, _TOLERANCE, _LEAST_VOTES, _LEAST_SCORE = 40, 1500, 8, 0.3


@dataclass(frozen=True, eq=False, repr=False)
class Chroma(Tabular):
    """How strong each note is over time; the table has `offset` and a column for each note."""

    values: NDArray[np.uint8]
    """`uint8[frames, 12]`, from C to B; the strongest note of a frame has 255. Silence has 0."""
    offsets: NDArray[np.int64]
    """Millisecond at which each frame begins, ascending."""
    info: AudioInfo
    """Facts about the recording."""

    def _columns(self, begin: int, end: int) -> TableColumns:
        rows = self.values[begin:end]
        notes = {name: rows[:, note].astype(np.int64) for note, name in enumerate(_NAMES)}
        return {"offset": self.offsets[begin:end], **notes}

    def _row_count(self) -> int:
        return len(self.offsets)


class CoverHash(RecordingSigner[Chroma]):
    """Words of the notes that are heard, by which other performances of a piece are found.

    A word has 192 bits, for 4 s of sound, and begins every 0.5 s. For each half second and each of
    the twelve notes, two bits say whether it is among the three, and the six, strongest. So words
    depend on melody and harmony, hardly on instruments or loudness. A `la.CoverIndex` searches them
    in all keys and at other tempos.

    A recording is given as for `la.AudioHash`. Silence has no words, nor has a recording shorter
    than 4.4 s.

    Examples:
        >>> import lookalike as la
        >>> import numpy as np
        >>> chord = sum(np.sin(np.arange(160_000) * pitch / 2500) for pitch in (262, 330, 392)) / 8
        >>> la.CoverHash().sign((chord, 16000)).shape
        (12, 24)
    """

    bits = _STEPS * NOTES * len(_RANKS)
    votes_decide = False
    _heard_type = Chroma
    _row_type = np.dtype((np.uint8, (NOTES,)))

    def __init__(self) -> None:
        super().__init__(0)

    @property
    def votes(self) -> VoteSettings:
        """Settings for searching in one key and at one tempo."""
        length = _STEPS * STEP
        return VoteSettings(_RADIUS, _TOLERANCE, _LEAST_VOTES, _LEAST_SCORE, length)

    def _words_at(self, rate: int) -> ChromaFrames:
        """Return an object that makes the chroma of samples of this rate."""
        return ChromaFrames(rate)

    def chroma(self, recording: Recording) -> Chroma:
        """Return how strong each note of one recording is over time, with facts about it.

        Raises:
            FileError: The file cannot be read.
            DocumentError: The samples are not valid.
        """
        return self._heard(recording)

    def _parts_of(self, heard: Chroma) -> SignedParts:
        """Return the words of a recording as it was played."""
        bits, offsets = note_bits(heard)
        return SignedParts(transposed(bits, 0), offsets)


def note_bits(heard: Chroma, tempo: float = 1.0) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return the bits of words, `bool[words, steps, ranks, notes]`, and where they begin.

    They are those of a recording that is played `tempo` times as fast as another one, in the time
    of the other one.
    """
    step = STEP / chroma.HOP / tempo  # frames
    count = int(len(heard.values) / step)
    if count < _STEPS:
        return np.empty((0, _STEPS, len(_RANKS), NOTES), bool), np.empty(0, np.int64)
    sums = np.concatenate([np.zeros((1, NOTES)), np.cumsum(heard.values, axis=0, dtype=np.float64)])
    edges = np.minimum(np.arange(count + 1) * step, len(heard.values))
    whole = np.minimum(edges.astype(np.int64), len(heard.values) - 1)
    at = sums[whole] + (edges - whole)[:, None] * heard.values[whole]
    strength = np.diff(at, axis=0)
    rank = np.argsort(np.argsort(-strength, axis=1, kind="stable"), axis=1)
    among = np.stack([(rank < most) & (strength > 0) for most in _RANKS], axis=1)
    words = np.moveaxis(sliding_window_view(among, _STEPS, axis=0), -1, 1)
    told = among.any(axis=(1, 2))
    kept = sliding_window_view(told, _STEPS).sum(axis=1) >= _LEAST_HEARD
    return words[kept], np.flatnonzero(kept).astype(np.int64) * STEP


def transposed(bits: NDArray[np.bool_], semitones: int) -> NDArray[np.uint8]:
    """Return the words of `note_bits` as signatures, this number of semitones higher."""
    moved = np.roll(bits, semitones, axis=-1)
    return np.packbits(moved.reshape(len(bits), CoverHash.bits), axis=1)
