"""A few seconds of a recording, small enough for a page."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from lookalike.errors import DocumentError
from lookalike.lazy import LazyModule
from lookalike.recordings.decode import LONGEST, one_channel, opened_sound

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
    for from_middle in (True, False):  # the header may say more than there is
        try:
            with opened_sound(file) as (sound, _):
                found = _excerpt(sound, most, from_middle)
        except (OSError, DocumentError):
            found = None
        if found is not None:
            return found
    return None


def _excerpt(sound: Any, most: int, from_middle: bool) -> bytes | None:
    rate = int(sound.samplerate)
    if rate not in _RATES:
        return None
    wanted = _SECONDS * rate
    middle = (sound.frames - wanted) // 2
    if from_middle and 0 < middle < LONGEST * rate:
        sound.seek(middle)
    samples = one_channel(sound.read(wanted, dtype="float32", always_2d=True))
    while len(samples):
        target = io.BytesIO()
        _soundfile.write(target, samples, rate, format="MP3", compression_level=_SMALLEST)
        if len(target.getvalue()) <= most:
            return target.getvalue()
        samples = samples[: len(samples) // 2 if len(samples) > rate else 0]
    return None
