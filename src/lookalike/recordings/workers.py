"""Decode recordings in isolated worker processes, in order, with limits on memory and time."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.checks import optional_module
from lookalike.errors import DocumentError
from lookalike.processes import Failure, Stop, Task, keep_freed_memory, run, run_in_order
from lookalike.recordings.audio_hash import AudioHash, Fingerprint
from lookalike.recordings.chromaprint import find_program
from lookalike.recordings.decode import AudioInfo, decode, excerpt
from lookalike.recordings.signer import Heard, RecordingSigner
from lookalike.signatures.signer import signer_from_dict
from lookalike.storage.file_cache import Kept, packed, unpacked

_SECONDS, _EXCERPT_SECONDS = 1800, 30  # processor time that a file may take
_MEMORY = 384 << 20  # bytes that decoding a file may take; few files take a tenth of it
LEAST_MEMORY = _MEMORY + (64 << 20)
"""Bytes of one worker."""


def read_recordings(
    files: Iterable[Path | bytes], hash: RecordingSigner[Heard], *, threads: int = 1
) -> Iterator[Heard | DocumentError]:
    """Yield what the signer takes from each file, or why it could not be read.

    Files are decoded by `threads` processes.
    """
    hash.check_installed()
    described = json.dumps(hash.to_dict())

    def read(file: Path | bytes, stop: Stop) -> Iterator[Heard | DocumentError]:
        in_memory = isinstance(file, bytes)
        task = Task(
            "lookalike.recordings.workers:_hasher", (described, in_memory), seconds=_SECONDS,
            memory=_MEMORY + (2 * len(file) if isinstance(file, bytes) else 0),
        )  # fmt: skip
        item = file if isinstance(file, bytes) else os.fsencode(file.absolute())
        for found in run(task, [item], stop):
            if isinstance(found, Failure | str):
                yield DocumentError(found if isinstance(found, str) else task.reason(found))
            else:
                rows = np.frombuffer(found[0], hash._row_type)
                offsets = np.frombuffer(found[1], np.int64)
                yield hash._heard_type(rows, offsets, AudioInfo(*found[2]))

    return run_in_order(read, files, threads=threads)


def kept_of_recordings(hash: AudioHash) -> Kept[Fingerprint]:
    """Return what is kept of recordings, so that unchanged files need not be read again."""
    library = optional_module("soundfile", "reading recordings", extra="audio")
    versions = library.__version__, library.__libsndfile_version__
    made_by: list[Any] = ["recordings", versions, hash.to_dict()]
    if hash.kind == "chromaprint":
        program = Path(find_program())
        made_by.append([str(program), program.stat().st_mtime_ns])

    def pack(one: Fingerprint) -> bytes:
        return zlib.compress(packed(facts_of(one.info), one.words, one.offsets), 1)

    def unpack(data: bytes) -> Fingerprint:
        info, (words, offsets) = unpacked(zlib.decompress(data))
        return Fingerprint(words, offsets, AudioInfo(*info))

    return Kept(made_by, pack, unpack)


def facts_of(info: AudioInfo) -> tuple[Any, ...]:
    """Return plain facts about a file, without its waveform, from which `AudioInfo` is made."""
    return astuple(replace(info, waveform=b""))[:-1]


def excerpt_of(file: Path, most: int) -> bytes | None:
    """Return a few seconds of a file as an MP3 of at most `most` bytes, or None."""
    task = Task(
        "lookalike.recordings.workers:_cutter", (most,), seconds=_EXCERPT_SECONDS, memory=_MEMORY
    )
    (found,) = run(task, [os.fsencode(file.absolute())])
    return found if isinstance(found, bytes) else None


def _hasher() -> Callable[[bytes, str, bool], Any]:
    """Return a function that returns rows, offsets and facts about a file, or a reason."""
    keep_freed_memory()

    def hash(item: bytes, described: str, in_memory: bool) -> Any:
        signer: Any = signer_from_dict(json.loads(described))
        source = item if in_memory else Path(os.fsdecode(item))
        try:
            rows, offsets, info = decode(source, signer._words_at)
        except DocumentError as error:
            return str(error)
        except OSError as error:
            return f"cannot be read ({error.strerror or error})"
        return rows.tobytes(), offsets.tobytes(), astuple(info)

    return hash


def _cutter() -> Callable[[bytes, int], bytes | None]:
    return lambda path, most: excerpt(Path(os.fsdecode(path)), most)
