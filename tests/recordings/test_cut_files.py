"""Files that other programs have cut, joined or streamed: what is there of them is read."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from benchmarks.recordings.sounds import music

import lookalike as la
from lookalike.recordings.decode import page_checksum, with_counted_positions
from lookalike.recordings.workers import excerpt_of

RATE = 16000
SECONDS = 8
PIECE = music(3, SECONDS, RATE)


def encoded(**settings: Any) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, PIECE, RATE, **settings)
    return file.getvalue()


def ogg_pages(data: bytes) -> list[bytearray]:
    pages, at = [], 0
    while at < len(data):
        count = data[at + 26]
        end = at + 27 + count + sum(data[at + 27 : at + 27 + count])
        pages.append(bytearray(data[at:end]))
        at = end
    return pages


def position(page: bytes | bytearray) -> int:
    return int.from_bytes(page[6:14], "little", signed=True)


def joined(pages: list[bytearray], shift: int = 0) -> bytes:
    """Return pages numbered from 0, with positions that are less by `shift`."""
    made = []
    for number, page in enumerate(pages):
        new = bytearray(page)
        if position(page) > 0:
            new[6:14] = (position(page) - shift).to_bytes(8, "little", signed=True)
        new[18:22] = number.to_bytes(4, "little")
        new[22:26] = bytes(4)
        new[22:26] = page_checksum(bytes(new))
        made.append(new)
    return b"".join(made)


def test_checksums_of_pages_are_those_of_ogg() -> None:
    data = encoded(format="OGG", subtype="VORBIS")
    pages = ogg_pages(data)
    assert joined(pages) == data and len(pages) > 5


def seconds(data: bytes) -> float:
    return la.AudioHash().fingerprint(data).info.seconds


def is_part_of_the_piece(data: bytes) -> bool:
    index = la.RecordingIndex()
    index.add("piece", (PIECE, RATE))
    return bool(index.search(data))


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
@pytest.mark.parametrize("first", [1, 2, 3])
def test_ogg_cut_without_encoding(subtype: str, first: int) -> None:
    """Positions of a part begin where it was cut out, or anywhere else."""
    pages = ogg_pages(encoded(format="OGG", subtype=subtype))
    headers = [page for page in pages if position(page) == 0]
    sound = [page for page in pages if position(page) != 0]
    begin = position(sound[first - 1])
    rate = 48000 if subtype == "OPUS" else RATE
    whole = (position(sound[-1]) - begin) / rate
    for shift in (0, begin, begin + 300, begin // 2):
        part = joined(headers + sound[first:], shift)
        assert whole - 0.3 < seconds(part) < whole + 0.3, shift
        assert is_part_of_the_piece(part)


def test_opus_whose_positions_jump(tmp_path: Path) -> None:
    """Programs that convert streams with gaps leave a position too late, then one as it was."""
    pages = ogg_pages(encoded(format="OGG", subtype="OPUS"))
    late = pages[len(pages) // 2]
    late[6:14] = (position(late) + 488).to_bytes(8, "little")
    data = joined(pages)
    with pytest.raises(RuntimeError):
        soundfile.read(io.BytesIO(data))
    assert seconds(data) == pytest.approx(SECONDS, abs=0.05)
    (tmp_path / "jumps.opus").write_bytes(data)
    assert excerpt_of(tmp_path / "jumps.opus", 100_000)


def test_files_in_order_are_not_changed() -> None:
    opus = encoded(format="OGG", subtype="OPUS")
    assert with_counted_positions(opus) is None
    for other in (b"", b"OggS", opus[:1000], opus[:-1], encoded(format="OGG", subtype="VORBIS")):
        with_counted_positions(other)  # whatever it is
    rng = np.random.default_rng(3)
    for _ in range(200):
        damaged = bytearray(opus[:4000])
        for place in rng.integers(0, len(damaged), 4).tolist():
            damaged[place] = int(rng.integers(256))
        with_counted_positions(bytes(damaged))


def with_total(flac: bytes, total: int) -> bytes:
    """Return a FLAC file whose header has that number of samples; 0: unknown."""
    fields = int.from_bytes(flac[18:26], "big") >> 36 << 36 | total
    return flac[:18] + fields.to_bytes(8, "big") + flac[26:]


@pytest.mark.parametrize("total", [0, len(PIECE) * 3])
def test_flac_whose_header_does_not_know_its_length(total: int, tmp_path: Path) -> None:
    flac = encoded(format="FLAC")
    assert with_total(flac, len(PIECE)) == flac
    data = with_total(flac, total)
    assert seconds(data) == SECONDS
    np.testing.assert_array_equal(la.AudioHash().sign(data), la.AudioHash().sign(flac))
    (tmp_path / "stream.flac").write_bytes(data)
    assert excerpt_of(tmp_path / "stream.flac", 100_000)
    with pytest.raises(la.errors.FileError, match="cannot be decoded"):
        seconds(data[: len(data) // 2])


def test_mp3_without_a_header_of_its_length() -> None:
    """Its length is estimated; one with a header that was cut is still refused."""
    data = encoded(format="MP3", bitrate_mode="CONSTANT", compression_level=0.3)
    assert b"Xing" in data[:200] or b"Info" in data[:200]
    second = data.index(data[:2], 4)
    bare = data[second:]
    assert seconds(bare) == pytest.approx(SECONDS, abs=0.2)
    assert is_part_of_the_piece(bare)
    tag = b"ID3\x04\0\0" + bytes([0, 0, 2, 0]) + bytes(256)
    assert seconds(tag + bare) == pytest.approx(SECONDS, abs=0.2)
    assert seconds(tag + data) == pytest.approx(SECONDS, abs=0.2)
    for cut in (data, tag + data):
        with pytest.raises(la.errors.FileError, match="is truncated: "):
            seconds(cut[: len(cut) // 2])


@pytest.mark.parametrize("length", [2**32 - 1, 2**31 - 1])
def test_wave_streams(length: int) -> None:
    """A program that writes to a pipe cannot say how long the file will be."""
    wave = encoded(format="WAV", subtype="PCM_16")
    at = wave.index(b"data") + 4
    stream = wave[:4] + struct.pack("<I", length) + wave[8:at]
    assert seconds(stream + struct.pack("<I", length) + wave[at + 4 :]) == SECONDS
