"""Recordings: alike are those that sound the same over most of their length, however encoded."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, SupportsFloat, SupportsIndex

import numpy as np

from lookalike.checks import instance, share
from lookalike.dedup.context import memory_bytes
from lookalike.dedup.media.medium import Medium, Problem, Read, Tell, memory_for_decoders
from lookalike.dedup.pairs.verify import VerifiedPairs
from lookalike.recordings.alike import alike_pairs
from lookalike.recordings.audio_hash import AudioHash, Fingerprint
from lookalike.recordings.decode import SUFFIXES, Sound, is_sound
from lookalike.recordings.workers import LEAST_MEMORY, Unreadable, excerpt_of, read_recordings

__all__ = ["RecordingMedium"]

_SAMPLES = 1 << 36
"""More than any recording has in a second."""
_SECONDS = 1 << 20
"""More than any recording has."""
_PLAYER = '<audio controls preload="none" src="data:audio/mpeg;base64,{}"></audio>'


class RecordingMedium(Medium[list[Fingerprint]]):
    """Files of sound. Of those alike, a lossless one stays before a lossy one, then the one of
    most whole seconds, of most samples a second, and of most bytes.
    """

    name: ClassVar[str] = "recordings"
    noun: ClassVar[str] = "recording"
    suffixes: ClassVar[frozenset[str]] = SUFFIXES
    facts: ClassVar[dict[str, str]] = {
        "seconds": "float64",
        "rate": "int64",
        "channels": "int64",
        "format": "string",
        "lossless": "bool",
    }
    policy: ClassVar[str] = "media-src data:"

    def __init__(
        self,
        signer: AudioHash | None = None,
        threshold: SupportsFloat = 0.8,
        memory_limit: SupportsIndex | None = None,
    ) -> None:
        self.signer = instance("signer", signer or AudioHash(), AudioHash, "la.AudioHash()")
        self.threshold = share("threshold", threshold)
        self.memory_limit = memory_bytes(memory_limit)

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Return whether a file that begins so is one of sound."""
        return is_sound(head)

    def settings(self) -> dict[str, Any]:
        """Return how words are made, and how much two recordings have to share."""
        return {"signer": self.signer.to_dict(), "threshold": self.threshold}

    def criterion(self) -> str:
        """Return in words when two are alike."""
        return f"the same over {self.threshold:.0%} of the longer one"

    def read(self, files: Sequence[Path], *, threads: int, tell: Tell) -> Read[list[Fingerprint]]:
        """Decode files, by so many processes."""
        good: list[tuple[Path, Fingerprint]] = []
        problems = []
        memory = memory_for_decoders(self.memory_limit, len(files), LEAST_MEMORY)
        if memory is not None:
            threads = min(threads, memory // LEAST_MEMORY)
        found = read_recordings(files, self.signer, threads=threads)
        for done, (file, one) in enumerate(zip(files, found, strict=True), 1):
            if isinstance(one, Unreadable):
                problems.append(Problem(file, one.reason))
            else:
                good.append((file, one))
            tell(done / len(files))
        sounds = [one.sound for _, one in good]
        silent = sum(len(one.words) == 0 for _, one in good)
        return Read(
            files=[file for file, _ in good],
            merit=np.array([_merit(sound) for sound in sounds], np.int64),
            facts={name: [getattr(sound, name) for sound in sounds] for name in self.facts},
            described=[_described(sound) for sound in sounds],
            content=[one for _, one in good],
            problems=problems,
            notices=[("silent", silent, "or shorter than 0.8 s: alike only to equal files")],
        )

    def pairs(self, read: Read[list[Fingerprint]], *, threads: int, tell: Tell) -> VerifiedPairs:
        """Return which recordings are the same over enough of the longer one."""
        found = list(
            alike_pairs(read.content, self.signer, self.threshold, threads=threads, tell=tell)
        )
        return VerifiedPairs(
            np.array([one.left for one in found], np.int64),
            np.array([one.right for one in found], np.int64),
            np.array([one.share for one in found], np.float64),
            np.full(len(found), -1, np.int32),
        )

    def likeness(self, similarity: float, distance: int) -> str:
        """Return over how much of its length a pair is the same."""
        return f"the same over {int(100 * similarity)}% of the longer one"

    def shown(self, file: Path, most: int) -> str | None:
        """Return a player of some seconds of the file, as MP3."""
        room = (most - len(_PLAYER)) * 3 // 4 - 3
        sound = excerpt_of(file, room) if room > 0 else None
        return None if sound is None else _PLAYER.format(base64.b64encode(sound).decode("ascii"))


def _merit(sound: Sound) -> int:
    samples = min(_SAMPLES - 1, sound.rate * sound.channels)
    return (_SECONDS * sound.lossless + round(sound.seconds)) * _SAMPLES + samples


def _described(sound: Sound) -> str:
    minutes, seconds = divmod(round(sound.seconds), 60)
    channels = {1: "mono", 2: "stereo"}.get(sound.channels, f"{sound.channels} channels")
    return f"{minutes}:{seconds:02}, {sound.format}, {sound.rate / 1000:g} kHz, {channels}"
