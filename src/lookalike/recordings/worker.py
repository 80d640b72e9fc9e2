"""The process that decodes recordings: whatever a file does to libsndfile, it does it here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

from lookalike.errors import DocumentError
from lookalike.processes import serve, time_limit
from lookalike.recordings.audio_hash import AudioHash
from lookalike.recordings.excerpt import excerpt

__all__ = ["EXCERPT", "WORDS", "main"]

WORDS, EXCERPT = "words", "excerpt"


def main() -> None:
    """Answer requests: what is wanted, seconds for a file, its path, and how it is wanted."""
    serve(_answers_to)


def _answers_to(request: Any) -> Iterator[Any]:
    wanted, seconds, path, how = request
    file = Path(os.fsdecode(path))
    with time_limit(seconds):
        yield excerpt(file, how) if wanted == EXCERPT else _words(AudioHash(how), file)


def _words(hash: AudioHash, path: Path) -> Any:
    """Return words, places and what is known, or in words why there are none."""
    try:
        found = hash.read(path)
    except MemoryError:
        return "takes more memory to be read than there is"
    except DocumentError as error:
        return str(error)
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    return found.words.tobytes(), found.offsets.tobytes(), astuple(found.sound)
