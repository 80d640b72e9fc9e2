"""Which recordings are the same over most of their length?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike.parts import PartIndex
from lookalike.recordings.audio_hash import AudioHash, Fingerprint

__all__ = ["Alike", "alike_pairs", "same_share"]

_ASKED = 1024
"""Words of a recording that look for others, from all over it."""
_RADIUS = 1
"""Of a whole recording, enough words survive within one bit; more would take longer to find."""
_LEAST_VOTES = 0.02
_TOGETHER = 64
"""Recordings that are looked for at a time."""
_STRETCH = 1000
"""Milliseconds that are the same or not."""
_SAME_BITS = 0.3
"""Of the bits of a stretch, may differ; of different recordings, half do."""


@dataclass(frozen=True)
class Alike:
    """Two recordings by their positions, left before right."""

    left: int
    right: int
    share: float
    """Of the longer one's words: what the other has at the same places."""


def alike_pairs(
    recordings: Sequence[Fingerprint],
    hash: AudioHash,
    least: float,
    *,
    threads: int = 1,
    tell: Callable[[float], None] | None = None,
) -> Iterator[Alike]:
    """Yield the pairs that are the same over at least this share of the longer one, by position.

    Words propose: those that some recording shares, at one distance, with another. All words of
    both, laid beside each other at that distance, decide.
    """
    proposed = _proposed(recordings, hash, threads, tell)
    for left, right in sorted(proposed):
        offset = proposed[left, right]
        share = same_share(recordings[left], recordings[right], offset, hash.hop)
        if share >= least:
            yield Alike(left, right, share)


def _proposed(
    recordings: Sequence[Fingerprint],
    hash: AudioHash,
    threads: int,
    tell: Callable[[float], None] | None,
) -> dict[tuple[int, int], int]:
    """Return pairs that either of the two has proposed, and how much later the left one's words
    are in the right one.
    """
    index = PartIndex(AudioHash.bits)
    told = [place for place, one in enumerate(recordings) if len(one.words)]
    index.add_many(
        told,
        [recordings[place].signatures for place in told],
        [recordings[place].offsets for place in told],
    )
    proposed: dict[tuple[int, int], int] = {}
    for start in range(0, len(told), _TOGETHER):
        some = told[start : start + _TOGETHER]
        asked = [slice(None, None, -(-len(recordings[one].words) // _ASKED)) for one in some]
        answers = index.search_many(
            [recordings[one].signatures[own] for one, own in zip(some, asked, strict=True)],
            [recordings[one].offsets[own] for one, own in zip(some, asked, strict=True)],
            radius=_RADIUS,
            tolerance=math.ceil(hash.hop),
            k=len(told),
            threads=threads,
        )
        for one, answer in zip(some, answers, strict=True):
            for match in answer:
                other = int(match.item)
                if other != one and match.score >= _LEAST_VOTES:
                    later = match.offset if one < other else -match.offset
                    proposed.setdefault((min(one, other), max(one, other)), later)
        if tell is not None:
            tell(min(1.0, (start + _TOGETHER) / len(told)))
    return proposed


def same_share(one: Fingerprint, other: Fingerprint, offset: int, hop: float) -> float:
    """Return what share of the words of the longer recording the other has, where its words are
    laid so many milliseconds later, or one hop earlier or later than that.
    """
    places = np.rint(one.offsets / hop).astype(np.int64)
    others = np.rint(other.offsets / hop).astype(np.int64)
    shift = round(offset / hop)
    best = max(
        _same_words(one.words, places + moved, other.words, others, hop)
        for moved in (shift - 1, shift, shift + 1)
    )
    return best / max(len(one.words), len(other.words))


def _same_words(
    words: NDArray[np.uint32],
    places: NDArray[np.int64],
    other_words: NDArray[np.uint32],
    other_places: NDArray[np.int64],
    hop: float,
) -> int:
    """Return how many words lie in stretches that are the same."""
    shared, left, right = np.intersect1d(
        places, other_places, assume_unique=True, return_indices=True
    )
    if len(shared) == 0:
        return 0
    differ = np.bitwise_count(words[left] ^ other_words[right]).astype(np.float64)
    stretch = (shared - shared[0]) * hop // _STRETCH
    stretch = stretch.astype(np.int64)
    counts = np.bincount(stretch)
    bits = np.bincount(stretch, differ)
    return int(counts[bits <= _SAME_BITS * AudioHash.bits * counts].sum())
