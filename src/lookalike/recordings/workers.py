"""Recordings to worker processes and back, in order.

Decoders of libsndfile print messages, and may crash on a hostile file: each file is decoded in an
isolated process, with a hard limit on its memory and time.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.processes import Death, answers_or_deaths
from lookalike.recordings.audio_hash import AudioHash, Fingerprint
from lookalike.recordings.decode import Sound
from lookalike.recordings.worker import EXCERPT, WORDS

__all__ = ["LEAST_MEMORY", "Unreadable", "excerpt_of", "read_recordings"]

_MODULE = "lookalike.recordings.worker"
_AHEAD = 2
_SECONDS, _EXCERPT_SECONDS = 1800, 30
"""Of processor time that a file may take."""
_MEMORY = 384 << 20
"""Bytes that decoding a file may take; few files take a tenth of it."""
LEAST_MEMORY = _MEMORY + (64 << 20)
"""Bytes of one worker."""


@dataclass(frozen=True)
class Unreadable:
    """A file that has no words because it could not be read."""

    reason: str
    """Such as "cannot be decoded (Format not recognised.)": shown after its path."""


def read_recordings(
    files: Iterable[Path], hash: AudioHash, *, threads: int = 1
) -> Iterator[Fingerprint | Unreadable]:
    """Yield the words of each file, in order, by so many processes. No file raises."""
    hash.check_installed()
    waiting: deque[Future[Fingerprint | Unreadable]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for file in files:
                waiting.append(pool.submit(_read, file, hash))
                while len(waiting) > _AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def excerpt_of(file: Path, most: int) -> bytes | None:
    """Return some seconds of a file as MP3 of at most so many bytes, or None."""
    answer = _asked(file, EXCERPT, most, _EXCERPT_SECONDS)
    return answer if isinstance(answer, bytes) else None


def _read(file: Path, hash: AudioHash) -> Fingerprint | Unreadable:
    answer = _asked(file, WORDS, hash.kind, _SECONDS)
    if isinstance(answer, str):
        return Unreadable(answer)
    words, offsets, sound = answer
    return Fingerprint(
        np.frombuffer(words, np.uint32), np.frombuffer(offsets, np.int64), Sound(*sound)
    )


def _asked(file: Path, wanted: str, how: Any, seconds: int) -> Any:
    """Return what a worker answers; a reason if it did not survive the file."""

    def request(_: Any) -> Any:
        return wanted, seconds, _MEMORY, os.fsencode(file.absolute()), how

    (answer,) = answers_or_deaths(_MODULE, [file], request)
    if not isinstance(answer, Death):
        return answer
    if answer.out_of_time:
        return f"takes more than {seconds:,} s to be decoded"
    return f"takes the process down that decodes it (status {answer.status})"
