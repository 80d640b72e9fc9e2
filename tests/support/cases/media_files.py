"""Small files of each medium, with copies or snippets of them, as bytes."""

from __future__ import annotations

import io
import tempfile
from functools import cache
from pathlib import Path

import soundfile
from benchmarks.images.scenes import scene
from benchmarks.recordings.sounds import music

import lookalike as la
from support.cases.videos import RATE, film, write

SOUND_RATE = 8000
LATER = 3  # seconds of a recording or video before its snippet begins
SIGNERS: dict[str, la.signatures.Signer] = {
    "images": la.ImageHash(256),
    "recordings": la.AudioHash(),
    "videos": la.VideoHash(),
}


@cache
def whole(medium: str, number: int) -> bytes:
    """Return a file: a PNG, a FLAC of 8 s or an MP4 of 7 s."""
    made = io.BytesIO()
    if medium == "images":
        scene(number, 160).save(made, "PNG")
    elif medium == "recordings":
        soundfile.write(made, music(number, 8, SOUND_RATE), SOUND_RATE, format="FLAC")
    else:
        return _video(number, 0, 7)
    return made.getvalue()


@cache
def part(medium: str, number: int) -> bytes:
    """Return a smaller JPEG of an image, or 4 s of a recording or video from `LATER` on."""
    made = io.BytesIO()
    if medium == "images":
        image = scene(number, 160)
        image.resize((image.width // 2, image.height // 2)).save(made, "JPEG", quality=70)
    elif medium == "recordings":
        begin = LATER * SOUND_RATE
        sound = music(number, 8, SOUND_RATE)[begin : begin + 4 * SOUND_RATE]
        soundfile.write(made, 0.5 * sound, SOUND_RATE, format="OGG")
    else:
        return _video(number, LATER, 4)
    return made.getvalue()


def _video(number: int, begin: int, seconds: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        frames = film(number, 7)[begin * RATE : (begin + seconds) * RATE]
        return write(Path(folder, "film.mp4"), frames).read_bytes()
