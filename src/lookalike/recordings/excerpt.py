"""A few seconds of a recording, small enough for a page."""

from __future__ import annotations

import io
from contextlib import closing
from pathlib import Path
from typing import Any

from lookalike.errors import DocumentError
from lookalike.lazy import LazyModule
from lookalike.recordings.decode import one_channel
from lookalike.storage.plain_files import open_plain

__all__ = ["excerpt"]

_soundfile = LazyModule("soundfile", "reading recordings", extra="audio")
_SECONDS = 8
_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
"""Those that MP3 has."""
_SMALLEST = 0.95
"""How much MP3 leaves out, from 0 to 1."""


def excerpt(file: Path, most: int) -> bytes | None:
    """Return some seconds from the middle of a file, or all of a short one, as MP3 of one channel
    and at most so many bytes; None where that cannot be done.
    """
    try:
        with (
            open_plain(file) as opened,
            closing(_soundfile.SoundFile(opened.fileno(), closefd=False)) as sound,
        ):
            return _excerpt(sound, most)
    except (OSError, RuntimeError, ValueError, TypeError, DocumentError):
        return None


def _excerpt(sound: Any, most: int) -> bytes | None:
    rate = int(sound.samplerate)
    if rate not in _RATES:
        return None
    wanted = _SECONDS * rate
    if sound.frames > wanted:
        sound.seek((sound.frames - wanted) // 2)
    samples = one_channel(sound.read(wanted, dtype="float32", always_2d=True))
    while len(samples):
        target = io.BytesIO()
        _soundfile.write(target, samples, rate, format="MP3", compression_level=_SMALLEST)
        if len(target.getvalue()) <= most:
            return target.getvalue()
        samples = samples[: len(samples) // 2 if len(samples) > rate else 0]
    return None
