"""The sound of videos: a second witness, but not a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

import lookalike as la
from lookalike.errors import DocumentError
from lookalike.videos.decode import Reading, read_frames
from lookalike.videos.workers import read_videos
from support.cases.videos import RATE, film

SOUND_RATE = 22050
Pixels = NDArray[np.uint8]


def melody(seed: int, seconds: float) -> NDArray[np.float32]:
    """Return notes of a fifth of a second, in two voices."""
    random = np.random.default_rng(seed)
    step = SOUND_RATE // 5
    notes = random.uniform(300, 1900, (2, round(5 * seconds)))
    phases = np.cumsum(np.repeat(notes, step, axis=1) * 2 * np.pi / SOUND_RATE, axis=1)
    mixed: NDArray[np.float32] = (np.sin(phases).sum(axis=0) / 4).astype(np.float32)
    return mixed + random.normal(0, 0.01, len(mixed)).astype(np.float32)


def write(
    path: Path,
    pixels: Pixels,
    sound: NDArray[np.float32],
    codec: str = "aac",
    rate: int = SOUND_RATE,
) -> Path:
    """Encode a film with sound."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("mpeg4", rate=RATE)
        stream.height, stream.width = pixels.shape[1:3]
        stream.pix_fmt, stream.bit_rate = "yuv420p", 600_000
        audio: Any = container.add_stream(codec, rate=rate, layout="mono")
        for one in pixels:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(one), format="gray")
            container.mux(stream.encode(frame.reformat(format="yuv420p")))
        container.mux(stream.encode())
        for begin in range(0, len(sound), 1024):
            piece = np.ascontiguousarray(sound[None, begin : begin + 1024])
            heard = av.AudioFrame.from_ndarray(piece, "fltp", "mono")
            heard.sample_rate, heard.pts = rate, begin
            container.mux(audio.encode(heard))
        container.mux(audio.encode())
    return path


def groups(folder: Path, **options: Any) -> tuple[set[frozenset[str]], la.results.MediaResult]:
    result = la.dedup(folder, kind="videos", **options)
    assert isinstance(result, la.results.MediaResult)
    return {frozenset(result.files[row].stem for row in each) for each in result.groups()}, result


def test_words_of_sound_have_the_times_of_frames(tmp_path: Path) -> None:
    path = write(tmp_path / "film.mp4", film(1, 6), melody(1, 6))
    found = read_frames(path, Reading(sound=True))
    assert found.sound is not None and found.sound.info.codec == "aac"
    assert abs(found.sound.info.seconds - 6) < 0.2
    alone = la.AudioHash().fingerprint((melody(1, 6), SOUND_RATE))
    both, own, other = np.intersect1d(
        np.rint(found.sound.offsets / 50), np.rint(alone.offsets / 50), return_indices=True
    )
    differ = np.bitwise_count(found.sound.words[own] ^ alone.words[other])
    assert len(both) > 90 and differ.mean() < 4
    assert read_frames(path).sound is None
    (isolated,) = read_videos([path], Reading(sound=True, orientations=8))
    assert not isinstance(isolated, DocumentError) and isolated.sound is not None
    assert np.array_equal(isolated.sound.words, found.sound.words)
    assert np.array_equal(isolated.sound.offsets, found.sound.offsets)
    assert isolated.turned.shape == (7, *found.signatures.shape)


def test_sound_decides_if_pictures_change_together(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    music, pixels = melody(1, 12), film(1, 12)
    write(folder / "film.mp4", pixels, music)
    write(folder / "mirrored.mp4", pixels[:, :, ::-1], music)
    write(folder / "other film.mp4", film(2, 12), melody(2, 12))
    found, result = groups(folder)
    assert found == {frozenset({"film", "mirrored"})}
    assert not result.related


def test_the_same_music_does_not_join_films(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    music = melody(1, 12)
    for seed in (1, 2, 3):
        # Cuts of the made-up films are at whole seconds; here they are elsewhere.
        pixels = film(seed, 14)[seed * 3 : seed * 3 + 12 * RATE]
        write(folder / f"{seed}.mp4", np.repeat(pixels, seed, axis=0)[: 12 * RATE], music)
    found, result = groups(folder)
    assert found == set()
    names = {tuple(sorted(file.stem for file in pair)) for pair in result.related}
    assert names == {("1", "2"), ("1", "3"), ("2", "3")}
    assert "same sound" in result.summary() and "not duplicates" in result.summary()


def test_mirrored_and_turned_copies(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    pixels = film(1, 8)
    silence = np.zeros(8 * SOUND_RATE, np.float32)
    write(folder / "film.mp4", pixels, silence)
    write(folder / "mirrored.mp4", pixels[:, :, ::-1], silence)
    write(folder / "turned.mp4", np.rot90(pixels, axes=(1, 2)), silence)
    write(folder / "other.mp4", film(2, 8), silence)
    assert groups(folder)[0] == set()
    turned, result = groups(folder, rotated=True)
    assert turned == {frozenset({"film", "mirrored", "turned"})}
    assert "in any orientation" in result.summary()


@pytest.mark.parametrize("codec", ["pcm_s16le", "flac", "libopus", "libvorbis"])
def test_sound_that_is_damaged_does_not_hide_the_pictures(codec: str, tmp_path: Path) -> None:
    try:
        av.codec.Codec(codec, "w")
    except (av.error.FFmpegError, ValueError):
        pytest.skip(f"this PyAV has no {codec}")
    path = tmp_path / "film.mkv"
    rate = 48000 if codec == "libopus" else SOUND_RATE
    data = bytearray(write(path, film(1, 4), melody(1, 8), codec, rate).read_bytes())
    random = np.random.default_rng(len(codec))
    for round_ in range(8):
        changed = data.copy()
        for place in random.integers(4096, len(data), 60):
            changed[place] = int(random.integers(256))
        path.write_bytes(changed)
        (found,) = read_videos([path], Reading(sound=True))
        assert isinstance(found, DocumentError) or len(found.offsets) > 0, round_
