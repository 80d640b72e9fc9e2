"""The process that decodes recordings: a hostile file can harm this process and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

from lookalike.errors import DocumentError
from lookalike.processes import reserved_bytes, serve, set_memory_limit, time_limit
from lookalike.recordings.audio_hash import AudioHash
from lookalike.recordings.decode import excerpt

__all__ = ["EXCERPT", "WORDS", "main"]

WORDS, EXCERPT = "words", "excerpt"


def main() -> None:
    """Answer requests: what is wanted, the limits for a file, its path, and how it is wanted."""
    reserved = reserved_bytes()

    def answers_to(request: Any) -> Iterator[Any]:
        wanted, seconds, memory, path, how = request
        file = Path(os.fsdecode(path))
        set_memory_limit(reserved, memory)
        with time_limit(seconds):
            yield excerpt(file, how) if wanted == EXCERPT else _words(AudioHash(how), file, memory)

    serve(answers_to)


def _words(hash: AudioHash, path: Path, memory: int) -> Any:
    """Return words, places and what is known, or the reason why there are none."""
    try:
        found = hash.read(path)
    except MemoryError:
        return f"takes more than {memory >> 20:,} MiB of memory to be decoded"
    except DocumentError as error:
        return str(error)
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    return found.words.tobytes(), found.offsets.tobytes(), astuple(found.sound)
