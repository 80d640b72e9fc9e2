"""Decode recordings in isolated worker processes, in order.

Decoders of libsndfile print messages, and may crash on a hostile file: each file is decoded in an
isolated process, with a hard limit on its memory and time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.errors import DocumentError
from lookalike.processes import Failure, Stop, Task, run, run_in_order
from lookalike.recordings.audio_hash import AudioHash, Fingerprint
from lookalike.recordings.decode import Sound, excerpt

_SECONDS, _EXCERPT_SECONDS = 1800, 30
"""Processor time that a file may take."""
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
    """Yield the words of each file, in order, decoded by `threads` processes. No file raises."""
    hash.check_installed()
    task = Task(
        "lookalike.recordings.workers:_hasher", (hash.kind,), seconds=_SECONDS, memory=_MEMORY
    )

    def read(file: Path, stop: Stop) -> Iterator[Fingerprint | Unreadable]:
        for found in run(task, [os.fsencode(file.absolute())], stop):
            if isinstance(found, Failure):
                yield Unreadable(task.reason(found))
            elif isinstance(found, str):
                yield Unreadable(found)
            else:
                words, offsets, sound = found
                yield Fingerprint(
                    np.frombuffer(words, np.uint32), np.frombuffer(offsets, np.int64), Sound(*sound)
                )

    return run_in_order(read, files, threads=threads)


def excerpt_of(file: Path, most: int) -> bytes | None:
    """Return a few seconds of a file as MP3 of at most `most` bytes, or None."""
    task = Task(
        "lookalike.recordings.workers:_cutter", (most,), seconds=_EXCERPT_SECONDS, memory=_MEMORY
    )
    (found,) = run(task, [os.fsencode(file.absolute())])
    return found if isinstance(found, bytes) else None


def _hasher() -> Callable[[bytes, str], Any]:
    """Return what a worker does with a file whose words are wanted."""
    return _hash


def _hash(path: bytes, kind: str) -> Any:
    """Return words, places and what is known, or the reason why there are none."""
    try:
        found = AudioHash(kind).read(Path(os.fsdecode(path)))
    except DocumentError as error:
        return str(error)
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    return found.words.tobytes(), found.offsets.tobytes(), astuple(found.sound)


def _cutter() -> Callable[[bytes, int], bytes | None]:
    """Return what a worker does with a file of which an excerpt is wanted."""
    return _cut


def _cut(path: bytes, most: int) -> bytes | None:
    return excerpt(Path(os.fsdecode(path)), most)
