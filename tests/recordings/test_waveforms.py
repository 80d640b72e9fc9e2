"""Waveforms: the loudest sample of each stretch, however the samples come."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike.recordings.decode import Waveform


def drawn(samples: NDArray[np.float32], cuts: list[int]) -> bytes:
    waveform = Waveform()
    for piece in np.split(samples, sorted(cuts)):
        waveform.feed(piece)
    return waveform.finish()


@given(st.integers(0, 900_000), st.lists(st.integers(0, 900_000), max_size=5), st.integers(0, 9))
def test_pieces_do_not_matter(length: int, cuts: list[int], seed: int) -> None:
    samples = np.random.default_rng(seed).normal(0, 0.1, length).astype(np.float32)
    whole = drawn(samples, [])
    assert drawn(samples, [cut for cut in cuts if cut < length]) == whole
    assert len(whole) <= 200
    assert (max(whole, default=0) == 255) == bool(np.abs(samples).max(initial=0) > 0)


@given(st.integers(1, 600_000), st.floats(0, 1), st.integers(0, 5))
def test_a_loud_moment_is_where_it_was(length: int, share: float, seed: int) -> None:
    samples = np.random.default_rng(seed).uniform(-0.01, 0.01, length).astype(np.float32)
    at = min(length - 1, int(share * length))
    samples[at] = -1
    peaks = drawn(samples, [])
    loudest = peaks.index(255)
    assert peaks.count(255) == 1
    # A stretch begins up to one peak earlier or later: a two-thousandth of the recording or less.
    slack = max(64, length / 2048) * len(peaks) / length
    assert loudest - slack <= at * len(peaks) / length <= loudest + 1 + slack


def test_silence_is_flat_and_files_have_waveforms() -> None:
    assert drawn(np.zeros(100_000, np.float32), []) == bytes(200)
    assert drawn(np.zeros(0, np.float32), []) == b""
    sound = np.concatenate([np.zeros(8000), 0.5 * np.sin(np.arange(8000) / 4)])
    info = la.AudioHash().fingerprint((sound, 8000)).info
    half = len(info.waveform) // 2
    assert set(info.waveform[: half - 1]) == {0}
    assert min(info.waveform[half + 1 :]) > 200
    assert "waveform" not in repr(info)
