"""Folders of recordings: those that sound the same, however they were encoded."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from benchmarks.recordings.sounds import music, with_noise

import lookalike as la
from lookalike.dedup.result import MediaResult
from lookalike.media import medium_of_files
from lookalike.recordings.medium import RecordingMedium, same_share, similar_pairs

RATE = 16000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("music")
    for number in range(4):
        piece = music(70 + number, 14, RATE)
        soundfile.write(folder / f"{number}.flac", piece, RATE)
        if number < 2:
            soundfile.write(folder / f"{number}.mp3", piece, RATE)
            soundfile.write(folder / f"{number}.ogg", piece * 0.3, RATE)
    first, last = music(70, 14, RATE), music(73, 14, RATE)
    soundfile.write(folder / "0 cut.mp3", first[2 * RATE :], RATE)
    soundfile.write(folder / "0 noisy.ogg", with_noise(first, 20, 1), RATE)
    soundfile.write(folder / "half.mp3", first[: 7 * RATE], RATE)
    soundfile.write(folder / "mixed.flac", np.concatenate([last[: 7 * RATE], first]), RATE)
    shutil.copy(folder / "3.flac", folder / "3 copy.flac")
    soundfile.write(folder / "silence.wav", np.zeros(5 * RATE), RATE)
    soundfile.write(folder / "short silence.wav", np.zeros(RATE), RATE)
    (folder / "empty.mp3").touch()
    (folder / "no sound.wav").write_text("hello")
    (folder / "cover.txt").write_text("a text")
    return folder


@pytest.fixture(scope="module")
def result(folder: Path) -> MediaResult:
    found = la.dedup(folder, threads=2)
    assert isinstance(found, MediaResult)
    return found


def test_the_same_recording_stays_once(result: MediaResult) -> None:
    groups = [sorted(result.names[row] for row in group) for group in result.groups()]
    assert groups == [
        ["0 cut.mp3", "0 noisy.ogg", "0.flac", "0.mp3", "0.ogg"],
        ["1.flac", "1.mp3", "1.ogg"],
        ["3 copy.flac", "3.flac"],
    ]
    stays = [path.name for path in result.kept()]
    assert sorted(stays) == [
        "0.flac", "1.flac", "2.flac", "3 copy.flac", "half.mp3", "mixed.flac",
        "short silence.wav", "silence.wav",
    ]  # fmt: skip
    share = dict(zip(result.names, result.similarity.tolist(), strict=True))
    assert share["0.mp3"] == 1
    assert share["0 cut.mp3"] == pytest.approx((12 - 0.8) / (14 - 0.8), abs=0.01)


def test_what_cannot_be_read_is_named(result: MediaResult) -> None:
    assert [(one.path.name, one.reason) for one in result.problems] == [
        ("empty.mp3", "is empty"),
        ("no sound.wav", "is not a recording: its first bytes are not those of one"),
    ]
    assert result.counts.other_files == 1
    assert result.counts.without_features == 2
    assert "silent, or shorter than 0.8 s" in result.summary()


def test_threads_do_not_show(folder: Path, result: MediaResult) -> None:
    again = la.dedup(folder, threads=1)
    np.testing.assert_array_equal(again.duplicate_of, result.duplicate_of)
    np.testing.assert_array_equal(again.similarity, result.similarity)


def test_a_lower_threshold_takes_halves(folder: Path) -> None:
    result = la.dedup(folder, kind="recordings", threshold=0.4, threads=2)
    pairs = result.different_pairs
    halves = [
        {result.id(left), result.id(right)}
        for left, right in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
    ]
    assert {"half.mp3", "0.flac"} in halves
    assert {"half.mp3", "mixed.flac"} not in halves


def test_folders_of_recordings_are_recognized(folder: Path, tmp_path: Path) -> None:
    assert medium_of_files([folder]) == "recordings"
    (tmp_path / "a.txt").write_text("text")
    assert medium_of_files([tmp_path]) is None


def test_the_page_plays_them(result: MediaResult, tmp_path: Path) -> None:
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.count('<audio controls preload="none" src="data:audio/mpeg;base64,') >= 5
    assert "media-src data:" in page
    assert "the same over 84% of the longer one" in page


def test_pairs_are_those_of_brute_force() -> None:
    """All pairs laid beside each other at all distances, against what words propose."""
    random = np.random.default_rng(2)
    pieces = [music(80 + number, 9, 8000) for number in range(4)]
    sounds = list(pieces)
    for piece in pieces:
        begin, end = sorted(random.integers(0, len(piece), 2).tolist())
        sounds += [with_noise(piece, 25, begin), np.concatenate([piece[begin:], piece[:end]])]
    hash = la.AudioHash()
    prints = [hash.fingerprint((sound, 8000)) for sound in sounds]
    for least in (0.5, 0.8):
        expected = {
            (left, right)
            for left in range(len(prints))
            for right in range(left + 1, len(prints))
            if max(
                same_share(prints[left], prints[right], offset, hash.hop)
                for offset in range(-16_000, 16_000, 150)
            )
            >= least
        }
        found = similar_pairs(prints, hash, least)
        assert set(zip(found.left.tolist(), found.right.tolist(), strict=True)) == expected
        assert len(expected) >= 4


def test_settings_are_checked() -> None:
    for threshold in (0, 1.5, "x", float("nan")):
        with pytest.raises(la.errors.ArgumentError, match="threshold"):
            RecordingMedium(threshold=threshold)  # type: ignore[arg-type]
    with pytest.raises(la.errors.ArgumentError, match="signer"):
        RecordingMedium(la.SimHash())  # type: ignore[arg-type]
