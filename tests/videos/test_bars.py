"""Black bars: which are found, that they stay, and that frames without them are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike.videos.bars import bars_of, without_bars, without_steady_bars
from support.cases.videos import RATE, film, write

HASH = la.VideoHash()
Gray = NDArray[np.uint8]


def framed(pixels: Gray, above: int, left: int) -> Gray:
    return np.pad(pixels, ((0, 0), (above, above), (left, left)))


@given(st.integers(0, 40), st.integers(0, 60), st.integers(0, 12), st.integers(0, 2**32))
def test_bars_are_as_wide_as_the_narrower_side(above: int, left: int, more: int, seed: int) -> None:
    inner = np.random.default_rng(seed).integers(60, 256, (100, 160)).astype(np.uint8)
    gray = np.pad(inner, ((above, above + more), (left + more, left)))
    rows, columns = gray.shape
    expected = above / rows, left / columns
    found = bars_of(gray)
    assert found is not None
    for own, wanted in zip(found, expected, strict=True):
        assert own == (wanted if 0.02 <= wanted <= 0.4 else 0)
    cropped = without_bars(gray, found)
    lines = [
        round(share * size) + 1 if share else 0
        for share, size in zip(found, gray.shape, strict=True)
    ]
    assert cropped.shape == (rows - 2 * lines[0], columns - 2 * lines[1])


def test_dark_frames_have_no_bars() -> None:
    assert bars_of(np.full((40, 60), 20, np.uint8)) is None
    specks = np.full((40, 64), 10, np.uint8)
    specks[::7, 3] = 255  # one pixel of a line is noise
    assert bars_of(specks) is None


@given(st.lists(st.sampled_from([0, 3, 8, None]), max_size=40))
@settings(deadline=None)
def test_bars_that_come_and_go_are_left_in(given: list[int | None]) -> None:
    frames = []
    for above in given:
        gray = np.full((40, 40), 0 if above is None else 200, np.uint8)
        if above:
            gray[:above] = gray[-above:] = 0
        frames.append(gray)
    found = list(without_steady_bars(enumerate(frames)))
    assert [number for number, _ in found] == list(range(len(frames)))
    for number, gray in found:
        near = [bars_of(one) for one in frames[max(0, number - 8) : number + 9]]
        steady = min((one[0] for one in near if one is not None), default=0.0)
        line = round(40 * steady) + 1 if steady else 0
        assert np.array_equal(gray, frames[number][line : 40 - line])


@pytest.mark.parametrize(("above", "left"), [(16, 0), (0, 24), (16, 24)])
def test_copies_with_bars_are_found_and_placed(above: int, left: int, tmp_path: Path) -> None:
    whole = film(3, 8)
    index = la.PartIndex(256)
    for seed in range(4):
        index.add(seed, *HASH.sign_query(write(tmp_path / f"{seed}.mp4", film(seed, 8))))
    clip = framed(whole[2 * RATE : 7 * RATE], above, left)
    path = write(tmp_path / "barred.mp4", clip)
    votes = HASH.votes
    found = index.search(*HASH.sign_parts(path), radius=votes.radius, tolerance=votes.tolerance)
    assert found[0].item == 3 and abs(found[0].offset - 2000) <= 250 and found[0].score > 0.8
    uncropped = la.VideoHash(crop_bars=False)
    assert uncropped != HASH
    far = index.search(*uncropped.sign_parts(path), radius=votes.radius, tolerance=votes.tolerance)
    assert not far or far[0].score < 0.5
    assert la.VideoHash.from_dict(uncropped.to_dict()) == uncropped
