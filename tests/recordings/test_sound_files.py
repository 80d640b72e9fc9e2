"""Files of sound: every format, and whatever else comes with such a name."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from benchmarks.recordings.sounds import music

import lookalike as la
from lookalike.recordings.decode import decode, is_audio
from lookalike.recordings.workers import excerpt_of, read_recordings

RATE = 16000
PIECE = music(3, 6, RATE)
FORMATS = {"a.wav": "WAV", "a.flac": "FLAC", "a.ogg": "OGG", "a.mp3": "MP3", "a.aiff": "AIFF"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same piece in each format."""
    folder = tmp_path_factory.mktemp("sounds")
    for name in FORMATS:
        soundfile.write(folder / name, PIECE, RATE)
    soundfile.write(folder / "opus.ogg", PIECE, RATE, format="OGG", subtype="OPUS")
    soundfile.write(folder / "bare.au", PIECE, RATE)
    return folder


def read(path: Path) -> la.results.Fingerprint | la.errors.DocumentError:
    (found,) = read_recordings([path], la.AudioHash())
    return found


def reason(path: Path) -> str:
    found = read(path)
    assert isinstance(found, la.errors.DocumentError), found
    with pytest.raises(la.errors.FileError) as raised:  # and the same where no process is between
        la.AudioHash().sign(path)
    assert str(found) in str(raised.value) or "cannot be read" in str(found)
    return str(found)


def test_every_format_has_nearly_the_same_words(folder: Path) -> None:
    words = la.AudioHash().fingerprint((PIECE, RATE)).words
    for file in sorted(folder.iterdir()):
        found = la.AudioHash().fingerprint(file)
        assert is_audio(file.read_bytes()[:64]), file
        count = min(len(words), len(found.words))
        assert abs(len(words) - len(found.words)) <= 3
        assert np.bitwise_count(found.words[:count] ^ words[:count]).mean() < 3
        sound = found.info
        assert (sound.rate, sound.channels) == ((48000 if "opus" in file.name else RATE), 1) or (
            sound.rate,
            sound.channels,
        ) == (RATE, 1)
        assert abs(sound.seconds - 6) < 0.1
        assert sound.lossless == (file.suffix not in (".mp3", ".ogg"))


def test_processes_answer_what_is_read_here(folder: Path) -> None:
    files = sorted(folder.iterdir())
    for threads in (1, 3):
        for file, found in zip(
            files, read_recordings(files, la.AudioHash(), threads=threads), strict=True
        ):
            assert isinstance(found, la.results.Fingerprint)
            here = la.AudioHash().fingerprint(file)
            np.testing.assert_array_equal(found.words, here.words)
            np.testing.assert_array_equal(found.offsets, here.offsets)
            assert found.info == here.info


def test_bytes_and_names_that_lie(folder: Path, tmp_path: Path) -> None:
    data = (folder / "a.mp3").read_bytes()
    lying = tmp_path / "song.wav"
    lying.write_bytes(data)
    expected = la.AudioHash().sign(folder / "a.mp3")
    np.testing.assert_array_equal(la.AudioHash().sign(data), expected)
    np.testing.assert_array_equal(la.AudioHash().sign(lying), expected)


def test_broken_files_are_named(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"")
    assert reason(broken) == "is empty"
    for content in (b"x", b"hello " * 1000, b"RIFF\xff\xff\xff\xffWAVE", b"fLaC" + b"\0" * 60):
        broken.write_bytes(content)
        assert reason(broken).startswith(("cannot be decoded", "has no samples"))
    broken.write_bytes((folder / "a.flac").read_bytes()[:20_000])
    assert reason(broken).startswith("cannot be decoded")
    data = (folder / "a.mp3").read_bytes()
    broken.write_bytes(data[: len(data) // 2])
    assert reason(broken).startswith("is truncated: ")
    assert "cannot be read" in reason(tmp_path / "none")
    assert "cannot be read" in reason(tmp_path)


def test_headers_that_lie_cost_nothing(tmp_path: Path) -> None:
    def wave(claimed: int, rate: int, channels: int, data: bytes, bits: int = 16) -> bytes:
        align = channels * bits // 8 % 65536
        format = struct.pack("<HHIIHH", 1, channels, rate, rate * align % 2**32, align, bits)
        chunks = b"fmt " + struct.pack("<I", 16) + format
        chunks += b"data" + struct.pack("<I", claimed) + data
        return b"RIFF" + struct.pack("<I", claimed) + b"WAVE" + chunks

    samples = (PIECE * 30_000).astype("<i2").tobytes()
    huge = tmp_path / "huge.wav"
    huge.write_bytes(wave(2**32 - 1, RATE, 1, samples))
    found = read(huge)  # what is there is read
    assert isinstance(found, la.results.Fingerprint)
    assert found.info.seconds == 6
    huge.write_bytes(wave(len(samples), 2**31 - 1, 1, samples))
    assert "samples per second; expected 4,000 to 768,000" in reason(huge)
    huge.write_bytes(wave(len(samples), 100, 1, samples))
    assert "has 100 samples per second" in reason(huge)
    for channels, bits in ((65535, 16), (0, 16), (1, 65535)):
        huge.write_bytes(wave(len(samples), RATE, channels, samples, bits))
        assert reason(huge).startswith("cannot be decoded")


def test_many_channels_and_odd_rates(tmp_path: Path) -> None:
    path = tmp_path / "many.wav"
    soundfile.write(path, np.repeat(PIECE[:, None], 24, axis=1), RATE, subtype="FLOAT")
    found = la.AudioHash().fingerprint(path)
    assert found.info.channels == 24
    expected = la.AudioHash().fingerprint((PIECE, RATE)).words
    assert np.bitwise_count(found.words ^ expected).mean() < 0.1
    soundfile.write(path, PIECE, 7919)
    assert la.AudioHash().fingerprint(path).info.rate == 7919
    for count in (1, 2, 100):
        soundfile.write(path, PIECE[:count], RATE)
        assert len(la.AudioHash().sign(path)) == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_samples_that_are_no_sound(tmp_path: Path, value: float) -> None:
    samples = PIECE.copy()
    samples[4000] = value
    path = tmp_path / "nan.wav"
    soundfile.write(path, samples, RATE, subtype="FLOAT")
    assert reason(path) == "has samples that are not finite, or far beyond full scale"
    with pytest.raises(la.errors.DocumentError, match="not finite"):
        la.AudioHash().sign((samples, RATE))


_HOURS = """
import resource, sys
from pathlib import Path
import lookalike as la
found = la.AudioHash().fingerprint(sys.argv[1])
print(len(found.words), found.info.seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_ten_hours_of_silence_take_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "silence.flac"
    with soundfile.SoundFile(path, "w", 4000, 1, compression_level=0) as file:
        hour = np.zeros(3600 * 4000, np.int16)
        for _ in range(10):
            file.write(hour)
    assert path.stat().st_size < 4 << 20
    peak = {}
    for name, given in (("silence", path), ("nothing", tmp_path / "one.wav")):
        if name == "nothing":
            soundfile.write(given, PIECE, RATE)
        done = subprocess.run(
            [sys.executable, "-c", _HOURS, str(given)], capture_output=True, text=True, check=True
        )
        words, seconds, peak[name] = done.stdout.split()
        assert (float(seconds), int(words) == 0) == (
            (36000.0, True) if name == "silence" else (6.0, False)
        )
    assert int(peak["silence"]) < int(peak["nothing"]) + (40 << 10)  # KiB, of 550 MiB of samples


def test_what_is_longer_than_a_day_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookalike.recordings.decode.LONGEST", 3600)
    path = tmp_path / "long.flac"
    soundfile.write(path, np.zeros(3601 * 4000, np.int16), 4000)
    with pytest.raises(la.errors.FileError, match="is longer than 1 hours"):
        la.AudioHash().sign(path)


def test_a_process_that_dies_is_the_files_fault_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lookalike import processes

    dying = "import os; os._exit(7)"
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_COMMAND", dying)
        patch.setattr(processes, "_IDLE", [])
        found = read(folder / "a.wav")
    assert str(found) == "crashes the process that decodes it (status 7)"
    assert isinstance(read(folder / "a.wav"), la.results.Fingerprint)


def test_decoding_stops_where_words_cannot_be_made(folder: Path) -> None:
    def words_at(rate: int) -> object:
        raise la.errors.DocumentError(f"not at {rate}")

    with pytest.raises(la.errors.DocumentError, match="not at 16000"):
        decode(folder / "a.wav", words_at)  # type: ignore[arg-type]


def test_excerpts_are_as_small_as_asked(folder: Path, tmp_path: Path) -> None:
    for file in (folder / "a.wav", folder / "a.ogg"):
        for most in (30_000, 8000):
            found = excerpt_of(file, most)
            assert found is not None
            assert len(found) <= most
            assert la.AudioHash().fingerprint(found).info.format == "MP3"
        assert excerpt_of(file, 10) is None
    assert excerpt_of(tmp_path / "none", 10_000) is None
    soundfile.write(tmp_path / "odd.wav", PIECE, 7919)
    assert excerpt_of(tmp_path / "odd.wav", 100_000) is None


def test_beginnings_of_other_files_are_no_sound() -> None:
    texts = (b"", b"\xff", b"\xff\xfe<\0h\0t\0m\0", b"%PDF-1.7", b"ID")
    pictures = (b"\xff\xd8\xff\xe0", b"RIFF1234WEBPVP8 ", b"RIFF1234AVI LIST")
    for head in (*texts, *pictures, b"OggS" + b"\0" * 24 + b"\x80theora"):
        assert not is_audio(head), head
