"""Recordings to worker processes and back, in order.

A process for each: libsndfile's decoders print what they think, and may not survive a hostile file.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.processes import Worker
from lookalike.recordings.audio_hash import AudioHash, Fingerprint
from lookalike.recordings.decode import Sound

__all__ = ["Unreadable", "read_recordings"]

_MODULE = "lookalike.recordings.worker"
_AHEAD = 2
_SECONDS = 1800
"""Of a processor that a file may take."""


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


def _read(file: Path, hash: AudioHash) -> Fingerprint | Unreadable:
    """Return what was found; a second worker is asked where the first did not survive: somebody
    else may have ended it.
    """
    death = 0
    for _ in range(2):
        worker = Worker.take(_MODULE)
        request = hash.kind, _SECONDS, os.fsencode(file.absolute())
        try:
            answers = list(worker.answers(request, 1))
        except BaseException:
            worker.end()
            raise
        if worker.death is None:
            worker.give_back()
            return _found(answers[0])
        death = worker.death
        if death == -signal.SIGPROF:
            return Unreadable(f"takes more than {_SECONDS:,} s to be decoded")
    return Unreadable(f"takes the process down that decodes it (status {death})")


def _found(answer: Any) -> Fingerprint | Unreadable:
    if isinstance(answer, str):
        return Unreadable(answer)
    words, offsets, sound = answer
    return Fingerprint(
        np.frombuffer(words, np.uint32), np.frombuffer(offsets, np.int64), Sound(*sound)
    )
