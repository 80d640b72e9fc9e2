"""Small films, and calls of the hashes of videos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

import lookalike as la

RATE, ROWS, COLUMNS = 12, 96, 128
Pixels = NDArray[np.uint8]  # `[frames, rows, columns]`, gray


def film(seed: int, seconds: float, rows: int = ROWS, columns: int = COLUMNS) -> Pixels:
    """Return frames of shots of a second, in each of which a random pattern moves slowly."""
    random = np.random.default_rng(seed)
    frames = []
    y, x = np.mgrid[:rows, :columns] / rows
    count = round(seconds * RATE)
    for number in range(count):
        if number % RATE == 0:
            waves = random.normal(0, 9, (6, 2))
            phases, speeds = random.uniform(0, 6, 6), random.normal(0, 0.6, 6)
        now = number % RATE / RATE
        sums = sum(
            np.sin(down * y + across * x + phase + speed * now)
            for (down, across), phase, speed in zip(waves, phases, speeds, strict=True)
        )
        frames.append(np.clip(128 + 45 * sums, 0, 255).astype(np.uint8))
    return np.array(frames)


def write(
    path: Path, pixels: Pixels, *, codec: str = "mpeg4", rate: int = RATE, bit_rate: int = 600_000
) -> Path:
    """Encode a film."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=rate)
        stream.height, stream.width = pixels.shape[1:3]
        stream.pix_fmt, stream.bit_rate = "yuv420p", bit_rate
        for one in pixels:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(one), format="gray")
            container.mux(stream.encode(frame.reformat(format="yuv420p")))
        container.mux(stream.encode())
    return path


def video_calls(folder: Path) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Return a call that works of each public method."""
    path = write(folder / "film.mp4", film(1, 2))
    hash = la.VideoHash()
    frames = hash.frames(path)
    return {
        "VideoHash.frames": (hash.frames, {"video": path, "query": True}),
        "VideoHash.from_bytes": (la.VideoHash.from_bytes, {"data": hash.to_bytes()}),
        "VideoHash.from_dict": (la.VideoHash.from_dict, {"description": hash.to_dict()}),
        "VideoHash.save": (hash.save, {"path": folder / "VideoHash"}),
        "VideoHash.sign": (hash.sign, {"video": path}),
        "VideoHash.sign_parts": (hash.sign_parts, {"video": path}),
        "VideoHash.sign_query": (hash.sign_query, {"thing": path}),
        "VideoHash": (la.VideoHash, {"crop_bars": False}),
        "VideoFrames.oriented": (frames.oriented, {"number": 0}),
        "VideoFrames.write_vpdq": (frames.write_vpdq, {"path": folder / "frames.txt"}),
    }
