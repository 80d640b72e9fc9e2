"""Which copy of a recording is kept: the best one, not the one of most bytes."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from benchmarks.recordings.sounds import music
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike.recordings.decode import AudioInfo
from lookalike.recordings.medium import Copy, best_first

RATE = 44100
SECONDS = 5
BEST_MP3: dict[str, Any] = {"compression_level": 0.0, "bitrate_mode": "CONSTANT"}
Samples = NDArray[np.float64]


def wide(seconds: float = SECONDS, rate: int = RATE) -> Samples:
    """Return music with soft noise up to the highest frequency."""
    tune = music(9, seconds, rate).astype(np.float64)
    noise = np.random.default_rng(4).normal(0, 0.004, len(tune))
    return 0.7 * tune + noise


def resampled(samples: Samples, rate: int, target: int) -> Samples:
    """Return samples at another rate, by way of their spectrum."""
    length = len(samples) * target // rate
    spectrum = np.fft.rfft(samples)
    kept = np.zeros(length // 2 + 1, complex)
    count = min(len(kept), len(spectrum)) - 1
    kept[:count] = spectrum[:count]
    return np.fft.irfft(kept, length) * (length / len(samples))


class Folder:
    """Files in the order in which they were made, a minute apart."""

    def __init__(self, path: Path) -> None:
        self.path = path / "music"
        self.path.mkdir()
        self.age = 1_700_000_000

    def write(self, name: str, samples: Samples, rate: int = RATE, **settings: Any) -> Path:
        path = self.path / name
        soundfile.write(path, samples, rate, **settings)
        self.age += 60
        os.utime(path, (self.age, self.age))
        return path

    def transcode(self, source: Path, name: str, **settings: Any) -> Path:
        samples, rate = soundfile.read(source)
        return self.write(name, samples, rate, **settings)

    def kept(self) -> list[str]:
        result = la.dedup(self.path, kind="recordings", threads=2)
        assert result.counts.groups == 1 and not result.problems
        return [path.name for path in result.kept()]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.parametrize("codec", ["VORBIS", "OPUS"])
def test_an_original_is_kept_before_a_larger_transcode(folder: Folder, codec: str) -> None:
    rate = 48000 if codec == "OPUS" else RATE
    original = folder.write("b.ogg", wide(rate=rate), rate, format="OGG", subtype=codec)
    copy = folder.transcode(original, "a.mp3", **BEST_MP3)
    assert copy.stat().st_size > 2 * original.stat().st_size
    assert folder.kept() == ["b.ogg"]


def test_bandwidth_counts_more_than_age_and_bytes(folder: Folder) -> None:
    """The usual MP3 file ends at 17 kHz, the Ogg file at 19."""
    narrow = folder.write("a.mp3", wide())
    original = folder.write("b.ogg", wide(), compression_level=0.5)
    os.utime(narrow, (1, 1))
    assert original.stat().st_size < 2 * narrow.stat().st_size
    found = la.dedup(folder.path, kind="recordings")
    ends = {file.name: end for file, end in zip(found.files, found.facts["bandwidth"], strict=True)}
    assert ends["a.mp3"] < 18_000 < ends["b.ogg"]
    assert folder.kept() == ["b.ogg"]


def test_lossless_counts_more_than_age(folder: Folder) -> None:
    folder.write("a.ogg", wide())
    folder.write("b.mp3", wide(), **BEST_MP3)
    folder.write("c.flac", wide())
    assert folder.kept() == ["c.flac"]


def test_a_lossless_copy_of_a_lossy_file_is_no_original(folder: Folder) -> None:
    small = folder.write("b.mp3", wide())
    copy = folder.transcode(small, "a.flac")
    folder.write("c.ogg", wide())
    assert copy.stat().st_size > 2 * small.stat().st_size
    assert folder.kept() == ["c.ogg"]


def test_higher_sampling_rates_add_nothing(folder: Folder) -> None:
    """What passed through 8 kHz has 4 kHz of sound, whatever its rate is now."""
    telephone = resampled(wide(rate=16000), 16000, 8000)
    folder.write("a.wav", resampled(telephone, 8000, RATE), RATE, subtype="PCM_24")
    folder.write("b.ogg", wide(rate=16000), 16000)
    assert folder.kept() == ["b.ogg"]


def test_an_upsampled_copy_is_no_better_than_its_source(folder: Folder) -> None:
    telephone = resampled(wide(rate=16000), 16000, 8000)
    folder.write("b.flac", telephone, 8000)
    folder.write("a.flac", resampled(telephone, 8000, RATE), RATE)
    assert folder.kept() == ["b.flac"]


def test_padding_does_not_make_a_copy_longer(folder: Folder) -> None:
    original = folder.write("b.ogg", wide(4.495))
    copy = folder.transcode(original, "a.mp3", **BEST_MP3)
    samples, _ = soundfile.read(copy)
    soundfile.write(copy, np.concatenate([samples, np.zeros(2000)]), RATE, **BEST_MP3)
    assert folder.kept() == ["b.ogg"]


def test_a_whole_recording_is_kept_before_a_part_of_it(folder: Folder) -> None:
    folder.write("a.ogg", wide(12)[RATE * 2 :])
    folder.write("b.ogg", wide(12))
    assert folder.kept() == ["b.ogg"]


def test_of_one_codec_the_higher_bit_rate_is_kept() -> None:
    low, high = (
        Copy(AudioInfo(60.0, 48000, 2, "OGG", False, "OPUS", 20_000), size, modified)
        for size, modified in ((240_000, 1), (960_000, 2))
    )
    assert best_first([low, high]) == [1, 0]


copies = st.builds(
    Copy,
    st.builds(
        AudioInfo,
        st.sampled_from([10.0, 10.4, 11.2, 14.0]),
        st.sampled_from([8000, 44100, 48000]),
        st.just(1),
        st.just("OGG"),
        st.booleans(),
        st.sampled_from(["VORBIS", "OPUS", "MPEG_LAYER_III"]),
        st.sampled_from([0, 4000, 16_000, 17_000, 19_400, 20_100]),
    ),
    st.sampled_from([100_000, 105_000, 200_000]),
    st.integers(1, 1000),
)


@given(
    st.lists(copies, min_size=1, max_size=8, unique_by=lambda copy: copy.modified),
    st.randoms(use_true_random=False),
)
@settings(max_examples=100, deadline=None)
def test_the_order_does_not_depend_on_that_of_files(
    given_copies: list[Copy], shuffle: random.Random
) -> None:
    shuffled = shuffle.sample(given_copies, len(given_copies))
    ordered = [given_copies[place] for place in best_first(given_copies)]
    assert ordered == [shuffled[place] for place in best_first(shuffled)]
    widest = max(copy.info.bandwidth for copy in ordered)
    lossless = [copy.info.lossless and copy.info.bandwidth >= 0.9 * widest for copy in ordered]
    assert lossless == sorted(lossless, reverse=True)
    best = [copy for copy, one in zip(ordered, lossless, strict=True) if one == lossless[0]]
    longest = max(copy.info.seconds for copy in best)
    assert ordered[0].info.seconds >= longest - 2 * 1.0  # a chain of lengths that count as equal
