"""VideoFrames: the hashes of frames of a video, and vPDQ text."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path, whole_number
from lookalike.display import Column, TableColumns, Tabular
from lookalike.errors import FormatError
from lookalike.recordings.audio_hash import Fingerprint
from lookalike.shown import brief
from lookalike.signatures import signatures_from_hex, signatures_to_hex
from lookalike.storage.files import file_errors, whole_file

BYTES = 32  # of a hash
LEAST_QUALITY = 30
"""Minimum quality of a frame that votes: black and plain frames are alike in all films."""
_SAME = 6  # bits within which a frame repeats the last one
REPEATED = 1000  # milliseconds after which a frame that repeats the last one counts again
_FIELDS = 4  # of a line of vPDQ text


@dataclass(frozen=True)
class VideoInfo:
    """Facts about a video file."""

    seconds: float
    width: int
    height: int
    rate: float  # frames per second
    format: str  # container, such as "mp4"
    codec: str  # such as "h264"


@dataclass(frozen=True, eq=False, repr=False)
class VideoFrames(Tabular):
    """The hashes of frames of a video; the table has `offset`, `quality` and `hash`."""

    signatures: NDArray[np.uint8]
    """`uint8[n, 32]`: the PDQ of each frame."""
    offsets: NDArray[np.int64]
    """Millisecond of each frame, ascending."""
    quality: NDArray[np.uint8]
    """Quality of each hash, from 0 to 100."""
    info: VideoInfo
    """Facts about the video."""
    turned: NDArray[np.uint8] = field(
        default_factory=lambda: np.empty((0, 0, BYTES), np.uint8), repr=False
    )
    """`uint8[7, n, 32]`: the PDQ of each frame in the other orientations; `[0, n, 32]` if these
    were not asked for."""
    sound: Fingerprint | None = None
    """Words of the sound; None if there is none, or it was not asked for."""

    def oriented(self, number: SupportsIndex) -> NDArray[np.uint8]:
        """Return the signatures in an orientation by its number; 0 is upright."""
        place = whole_number("number", number, at_least=0, at_most=len(self.turned))
        return self.signatures if place == 0 else self.turned[place - 1]

    @property
    def voting(self) -> NDArray[np.bool_]:
        """Whether each frame votes: it is not plain, and does not repeat the one before it."""
        return voting_frames(self.signatures, self.offsets, self.quality)

    def write_vpdq(self, path: str | os.PathLike[str]) -> None:
        """Write a line for each frame, as vPDQ does: number, quality, hash and second."""
        rows = zip(
            self.quality.tolist(),
            signatures_to_hex(self.signatures),
            self.offsets.tolist(),
            strict=True,
        )
        with (
            whole_file(file_path("path", path)) as temporary,
            open(temporary, "w", encoding="ascii") as file,
        ):
            for number, (quality, hash, offset) in enumerate(rows):
                file.write(f"{number},{quality},{hash},{offset / 1000:.3f}\n")

    def _columns(self, begin: int, end: int) -> TableColumns:
        return {
            "offset": self.offsets[begin:end],
            "quality": self.quality[begin:end],
            "hash": Column(signatures_to_hex(self.signatures[begin:end]), str),
        }

    def _row_count(self) -> int:
        return len(self.offsets)


def voting_frames(
    signatures: NDArray[np.uint8], offsets: NDArray[np.int64], quality: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Return whether each frame votes; see `VideoFrames.voting`."""
    votes = quality >= LEAST_QUALITY
    last = -1
    for at in np.flatnonzero(votes).tolist():
        if last >= 0 and offsets[at] - offsets[last] < REPEATED:
            differ = np.bitwise_count(signatures[at] ^ signatures[last]).sum(dtype=np.int64)
            if differ <= _SAME:
                votes[at] = False
                continue
        last = at
    return votes


def read_vpdq(path: Path) -> VideoFrames:
    """Return the frames of a vPDQ text: lines of number, quality, hash and second."""
    rows: list[NDArray[np.uint8]] = []
    offsets: list[int] = []
    qualities: list[int] = []
    with file_errors(path), open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            fields = [field.strip() for field in line.split(",")]
            where = f"{path}, line {number}"
            if len(fields) != _FIELDS:
                raise FormatError(
                    f"{where} has {len(fields)} columns; expected frame, quality, hash and second"
                )
            _, quality, hash, second = fields
            qualities.append(int(_number(where, "quality", quality, 100)))
            if len(hash) != 2 * BYTES or not all(one in "0123456789abcdefABCDEF" for one in hash):
                raise FormatError(
                    f"{where}, column hash: {brief(hash)} is not a PDQ hash; expected 64 "
                    "hexadecimal digits"
                )
            rows.append(signatures_from_hex(hash)[0])
            offsets.append(round(1000 * _number(where, "second", second, 1e9)))
            if len(offsets) > 1 and offsets[-1] < offsets[-2]:
                raise FormatError(f"{where}, column second: {brief(second)} is before the last one")
    info = VideoInfo(offsets[-1] / 1000 if offsets else 0.0, 0, 0, 0.0, "vpdq", "")
    return VideoFrames(
        np.array(rows, np.uint8).reshape(-1, BYTES),
        np.array(offsets, np.int64),
        np.array(qualities, np.uint8),
        info,
    )


def _number(where: str, column: str, value: str, most: float) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:
        raise FormatError(
            f"{where}, column {column}: {brief(value)} is not a number from 0 to {most:,.0f}"
        )
    return number
