"""Words of sounds, against the oracle; pieces, loudness, silence."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.recordings.sounds import music, resampled, with_noise
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookalike.recordings.bands import BandWords
from support.oracles.sound import band_words

RATE = 8000
PIECE = music(1, 8, RATE)


def words_of(
    samples: NDArray[np.float32], rate: int = RATE, cuts: list[int] | None = None
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    words = BandWords(rate)
    for piece in np.split(samples, sorted(cuts or [])):
        words.feed(piece)
    return words.finish()


def bits_apart(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> float:
    return float(np.bitwise_count(one ^ other).mean())


@pytest.mark.parametrize("rate", [4000, 8000, 11025, 22050, 44100])
@pytest.mark.parametrize("seed", [1, 2])
def test_words_are_those_of_the_definition(rate: int, seed: int) -> None:
    samples = resampled(with_noise(music(seed, 4, 8000), 30, seed), 8000, rate)
    samples[: rate // 2] = 0
    expected = band_words(samples, rate)
    words, offsets = words_of(samples, rate)
    assert offsets.tolist() == list(expected)
    for word, (true, doubtful) in zip(words.tolist(), expected.values(), strict=True):
        assert (word ^ true) & ~doubtful == 0
    assert len(words) > 40
    assert np.mean([doubtful.bit_count() for _, doubtful in expected.values()]) < 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, len(PIECE)), max_size=40))
def test_pieces_do_not_show(cuts: list[int]) -> None:
    whole = words_of(PIECE)
    cut = words_of(PIECE, cuts=cuts)
    np.testing.assert_array_equal(cut[0], whole[0])
    np.testing.assert_array_equal(cut[1], whole[1])


def test_single_samples_are_pieces() -> None:
    words = BandWords(4000)
    samples = music(2, 1.2, 4000)
    for sample in samples:
        words.feed(np.array([sample]))
    np.testing.assert_array_equal(words.finish()[0], words_of(samples, 4000)[0])


def test_loudness_does_not_show() -> None:
    np.testing.assert_array_equal(words_of(PIECE / np.float32(16))[0], words_of(PIECE)[0])
    assert bits_apart(words_of(PIECE * np.float32(0.3))[0], words_of(PIECE)[0]) < 0.05


def test_rates_hardly_show() -> None:
    words = words_of(PIECE)[0]
    for rate in (5513, 16000, 44100):
        others = words_of(resampled(PIECE, RATE, rate), rate)[0]
        assert bits_apart(others[: len(words)], words[: len(others)]) < 1


def test_frames_begin_anywhere() -> None:
    words = words_of(PIECE)[0]
    for late in (50, 100, 199):  # samples: up to half a frame's distance
        others = words_of(PIECE[late:])[0]
        assert bits_apart(others, words[: len(others)]) < 3


@pytest.mark.parametrize("level", [0.0, 1e-5, 1e-4])
def test_silence_has_no_words(level: float) -> None:
    noise = np.random.default_rng(1).standard_normal(8 * RATE).astype(np.float32)
    assert len(words_of(noise * np.float32(level))[0]) == 0
    assert len(words_of(noise * np.float32(0.01))[0]) == 145


def test_a_steady_tone_has_no_words() -> None:
    time = np.arange(4 * RATE) / RATE
    tone = np.sin(2 * np.pi * 440 * time).astype(np.float32)
    assert len(words_of(tone)[0]) == 0


def test_silence_between_sounds_leaves_a_gap() -> None:
    quiet = np.zeros(4 * RATE, np.float32)
    _, offsets = words_of(np.concatenate([PIECE, quiet, PIECE]))
    gap = np.diff(offsets).max()
    assert 3000 <= gap <= 5000
    assert offsets[-1] == 20_000 - 800


@pytest.mark.parametrize("count", [0, 1, 6399])
def test_what_is_shorter_than_a_word_has_none(count: int) -> None:
    assert len(words_of(PIECE[:count])[0]) == 0
    assert len(words_of(PIECE[:6400])[0]) == 1


def test_what_is_held_does_not_grow() -> None:
    words = BandWords(RATE)
    held = []
    for _ in range(60):
        words.feed(np.zeros(RATE, np.float32))
        held.append(sum(map(len, words._pieces)))
    assert max(held[30:]) == max(held[:30]) < 4 * RATE
