"""The medium "recordings": those that sound the same over most of their length are similar."""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import instance, share
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.media import Read, SignedFile, SignedItems, SimilarPairs, Tell, readable
from lookalike.parts.medium import PartMedium, either_way, thinned, votes_of_pairs
from lookalike.parts.signer import SignedParts
from lookalike.recordings.audio_hash import AudioHash, Fingerprint
from lookalike.recordings.cover_hash import CoverHash
from lookalike.recordings.decode import SUFFIXES, AudioInfo, is_audio
from lookalike.recordings.workers import (
    LEAST_MEMORY,
    excerpt_of,
    kept_of_recordings,
    read_recordings,
)
from lookalike.storage.file_cache import FileCache, Kept

_THRESHOLD = 0.8
# Smaller differences (in seconds, or as factors) are due to padding and filters.
_SAME_SECONDS, _SAME_BANDWIDTH, _SAME_BIT_RATE = 1.0, 1.05, 1.1
# A lossless file with less of the bandwidth of another was made from a lossy one.
_LEAST_BANDWIDTH = 0.9
_ASKED = 1024  # words of a recording, from all over it, that propose others
_RADIUS = 1  # enough words of a whole recording survive within one bit; more bits would take longer
_LEAST_VOTES = 0.02
_STRETCH = 1000  # milliseconds that are compared as a whole
_SAME_BITS = 0.3  # share of bits in which equal stretches may differ; in others, half of them do
_PLAYER = '<audio controls preload="none" src="data:audio/mpeg;base64,{}"></audio>'


class RecordingMedium(PartMedium[Fingerprint]):
    """Recordings, of which the best copy is kept; see `best_first`."""

    name: ClassVar[str] = "recordings"
    noun: ClassVar[str] = "recording"
    no_features: ClassVar[str] = "silent, or shorter than 0.8 s: only equal files are similar"
    signer: AudioHash
    suffixes: ClassVar[frozenset[str]] = SUFFIXES
    facts: ClassVar[dict[str, str]] = {
        "seconds": "float64",
        "rate": "int64",
        "channels": "int64",
        "format": "string",
        "lossless": "bool",
        "bandwidth": "int64",
    }
    policy: ClassVar[str] = "media-src data:"
    least_memory: ClassVar[int] = LEAST_MEMORY

    def __init__(
        self, signer: AudioHash | None = None, threshold: SupportsFloat | None = None
    ) -> None:
        if isinstance(signer, CoverHash):
            raise ArgumentError(
                "dedup compares recordings word by word, which CoverHash() does not allow: "
                "pieces that differ have similar words. Pass signer=la.AudioHash(), or find other "
                "performances with la.CoverIndex"
            )
        self.signer = instance("signer", signer or AudioHash(), AudioHash, "la.AudioHash()")
        self.threshold = share("threshold", _THRESHOLD if threshold is None else threshold)

    @classmethod
    def recognizes(cls, head: bytes) -> bool:
        return is_audio(head)

    @classmethod
    def sign_file(
        cls, signer: AudioHash, file: Path | bytes, *, preview: bool, query: bool = False
    ) -> SignedFile:
        (found,) = read_recordings([file], signer)
        print = readable(found)
        info = print.info
        shown = {
            "format": info.format,
            "seconds": round(info.seconds, 3),
            "waveform": base64.b64encode(info.waveform).decode("ascii"),
        }
        return SignedFile(SignedParts(print.signatures, print.offsets), shown if preview else {})

    def settings(self) -> dict[str, Any]:
        return {"signer": self.signer.to_dict(), "threshold": self.threshold}

    def criterion(self) -> str:
        return f"the same over {self.threshold:.0%} of the longer one"

    def read_each(
        self, files: Sequence[Path], *, threads: int
    ) -> Iterator[Fingerprint | DocumentError]:
        return read_recordings(files, self.signer, threads=threads)

    def describe(self, one: Fingerprint) -> str:
        return _described(one.info)

    def can_be_compared(self, one: Fingerprint) -> bool:
        return len(one.words) > 0

    def best_first(self, files: Sequence[Path], copies: Sequence[Fingerprint]) -> list[int]:
        return best_first([_copy(file, one.info) for file, one in zip(files, copies, strict=True)])

    def kept(self) -> Kept[Fingerprint]:
        return kept_of_recordings(self.signer)

    def pairs(self, read: Read[list[Fingerprint]], *, threads: int, tell: Tell) -> SimilarPairs:
        return similar_pairs(read.content, self.signer, self.threshold, threads=threads, tell=tell)

    def signed_pairs(
        self,
        read: Read[list[Fingerprint]],
        signed: SignedItems,
        *,
        threads: int,
        memory: int | None = None,
        cache: FileCache | None = None,
    ) -> SimilarPairs:
        if signed.signer != self.signer:
            raise ArgumentError(
                Said("against"),
                f" is {signed.name}, which was not signed by ",
                self.signer.said(),
                ", as this job signs; expected the same signer",
            )
        unknown = AudioInfo(0.0, 0, 0, "", lossless=False)
        old = [
            Fingerprint(
                np.ascontiguousarray(rows).view("<u4").reshape(-1).astype(np.uint32),
                offsets,
                unknown,
            )
            for rows, offsets in signed.parts
        ]
        every = [*old, *read.content]
        pairs = similar_pairs(every, self.signer, self.threshold, threads=threads, old=len(old))
        return replace(pairs, right=pairs.right - len(old))

    def describe_pair(self, similarity: float, distance: int) -> str:
        return f"the same over {int(100 * similarity)}% of the longer one"

    def preview(self, file: Path, most: int, *, memory: int | None = None) -> str | None:
        room = (most - len(_PLAYER)) * 3 // 4 - 3
        sound = excerpt_of(file, room) if room > 0 else None
        return None if sound is None else _PLAYER.format(base64.b64encode(sound).decode("ascii"))


@dataclass(frozen=True)
class Copy:
    """A copy of a recording, with what decides which one is kept."""

    info: AudioInfo
    size: int  # bytes of the file
    modified: int  # time of the last change, in nanoseconds


def best_first(copies: Sequence[Copy]) -> list[int]:
    """Return the positions of copies of one recording, the best first.

    A lossless copy is better than a lossy one, then a longer one, then one with a wider bandwidth.
    If these are equal, copies with the codec of the oldest copy come first, then the highest bit
    rate, then the oldest. Sizes, sampling rates and bit rates of different codecs are not compared,
    since converting a copy can raise them.
    """
    widest = max(copy.info.bandwidth for copy in copies)
    lossless = [
        copy.info.lossless and copy.info.bandwidth >= _LEAST_BANDWIDTH * widest for copy in copies
    ]
    rates = [0.0 if copy.info.lossless else copy.size / copy.info.seconds for copy in copies]
    oldest: dict[str, int] = {}
    for copy in copies:
        codec = _codec(copy.info)
        oldest[codec] = min(copy.modified, oldest.get(codec, copy.modified))
    keys = zip(
        (not one for one in lossless),
        _levels([copy.info.seconds for copy in copies], lambda one: one - _SAME_SECONDS),
        _levels([copy.info.bandwidth for copy in copies], lambda one: one / _SAME_BANDWIDTH),
        (oldest[_codec(copy.info)] for copy in copies),
        (_codec(copy.info) for copy in copies),
        _levels(rates, lambda one: one / _SAME_BIT_RATE),
        (copy.modified for copy in copies),
        (-copy.info.rate for copy in copies),
        range(len(copies)),
        strict=True,
    )
    return [key[-1] for key in sorted(keys)]


def _levels(values: Sequence[float], least: Callable[[float], float]) -> list[int]:
    """Return levels from 0 on: a value is on that of the next larger if it is at least `least`."""
    order = sorted(range(len(values)), key=lambda place: -values[place])
    levels = [0] * len(values)
    for larger, place in pairwise(order):
        levels[place] = levels[larger] + (values[place] < least(values[larger]))
    return levels


def _codec(info: AudioInfo) -> str:
    return "lossless" if info.lossless else info.codec


def _copy(file: Path, info: AudioInfo) -> Copy:
    try:
        status = file.stat()
    except OSError:  # it was removed after it was read
        return Copy(info, 0, sys.maxsize)
    return Copy(info, status.st_size, status.st_mtime_ns)


def _described(info: AudioInfo) -> str:
    minutes, seconds = divmod(round(info.seconds), 60)
    channels = {1: "mono", 2: "stereo"}.get(info.channels, f"{info.channels} channels")
    rate, end = info.rate / 1000, info.bandwidth / 1000
    return f"{minutes}:{seconds:02}, {info.format}, {rate:g} kHz ({end:.1f} used), {channels}"


def similar_pairs(
    recordings: Sequence[Fingerprint],
    hash: AudioHash,
    least: float,
    *,
    threads: int = 1,
    tell: Tell | None = None,
    old: int = 0,
) -> SimilarPairs:
    """Return the pairs that are equal over at least this share of the longer recording.

    Words that two recordings share at one offset propose a pair; all words at that offset decide.
    With `old`, each pair has one of the first `old` recordings and one of the others.
    """
    proposed = proposed_by_sound(recordings, hash, threads=threads, tell=tell, old=old)
    pairs = np.array(sorted(proposed), np.int64).reshape(-1, 2)
    shares = np.array(
        [
            same_share(recordings[left], recordings[right], proposed[left, right], hash.hop)
            for left, right in pairs.tolist()
        ],
        np.float64,
    )
    similar = shares >= least
    left, right = pairs[similar].T.copy()
    return SimilarPairs(left, right, shares[similar], np.full(len(left), -1, np.int32))


def proposed_by_sound(
    recordings: Sequence[Fingerprint],
    hash: AudioHash,
    *,
    threads: int,
    tell: Tell | None = None,
    old: int = 0,
) -> dict[tuple[int, int], int]:
    """Return proposed pairs, and how much later the words of the left one are in the right one.

    With `old`, each pair has one of the first `old` recordings and one of the others.
    """
    parts = [SignedParts(one.signatures, one.offsets) for one in recordings]
    found = votes_of_pairs(
        parts,
        [thinned(one, _ASKED) for one in parts],
        AudioHash.bits,
        radius=_RADIUS,
        tolerance=math.ceil(hash.hop),
        is_enough=lambda one, match: match.score >= _LEAST_VOTES,
        threads=threads,
        tell=tell,
        old=old,
    )
    return either_way(found)


def same_share(
    one: Fingerprint, other: Fingerprint, offset: int, hop: float, of: str = "longer"
) -> float:
    """Return the share of the words of the longer, or shorter, recording that the other has.

    The words of the first are compared `offset` milliseconds later, plus or minus one hop.
    """
    places = np.rint(one.offsets / hop).astype(np.int64)
    others = np.rint(other.offsets / hop).astype(np.int64)
    shift = round(offset / hop)
    best = max(
        _same_words(one.words, places + moved, other.words, others, hop)
        for moved in (shift - 1, shift, shift + 1)
    )
    lengths = len(one.words), len(other.words)
    return best / (max(lengths) if of == "longer" else min(lengths))


def _same_words(
    words: NDArray[np.uint32],
    places: NDArray[np.int64],
    other_words: NDArray[np.uint32],
    other_places: NDArray[np.int64],
    hop: float,
) -> int:
    """Return the number of words in stretches that are the same."""
    shared, left, right = np.intersect1d(
        places, other_places, assume_unique=True, return_indices=True
    )
    if len(shared) == 0:
        return 0
    differ = np.bitwise_count(words[left] ^ other_words[right]).astype(np.float64)
    stretch = ((shared - shared[0]) * hop // _STRETCH).astype(np.int64)
    counts = np.bincount(stretch)
    bits = np.bincount(stretch, differ)
    return int(counts[bits <= _SAME_BITS * AudioHash.bits * counts].sum())
