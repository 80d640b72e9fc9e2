"""Other performances of a piece: in all keys, at other tempos, with other sounds, and no others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from benchmarks.recordings.sounds import with_noise
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike.recordings.alignment import longest_paths, matching
from lookalike.recordings.chroma import ChromaFrames
from lookalike.recordings.cover_hash import note_bits, transposed
from lookalike.recordings.decode import AudioInfo
from lookalike.recordings.workers import read_recordings
from support.oracles.alignment import longest_path_of, matching_of

RATE = 8000
NOTES = 160
CHANCE = 0.55
ORGAN, FLUTE = (1.0, 0.6, 0.5, 0.3), (1.0, 0.1)

Samples = NDArray[np.float32]


def tune(seed: int) -> NDArray[np.int64]:
    """Return a melody and its chords, `int[notes, 3]` semitones above A."""
    random = np.random.default_rng([seed, 77])
    melody = random.integers(0, 15, NOTES)
    roots = np.repeat(random.integers(-12, 0, NOTES // 4), 4)
    return np.stack([melody, roots, roots + random.choice((3, 4), NOTES)], axis=1)


def played(
    notes: NDArray[np.int64],
    *,
    up: int = 0,
    tempo: float = 1.0,
    partials: tuple[float, ...] = ORGAN,
) -> Samples:
    """Return a tune of half a second a note, in another key, at another tempo."""
    time = np.arange(round(RATE / 2 / tempo)) / RATE
    fade = np.minimum(1, np.minimum(time, time[::-1]) / 0.02)
    sounds = []
    for chord in notes:
        pitches = 440 * 2 ** ((chord + up) / 12)
        parts = enumerate(partials, 1)
        waves = [
            loud * np.sin(2 * np.pi * pitch * number * time)
            for number, loud in parts
            for pitch in pitches
        ]
        sounds.append(fade * np.sum(waves, axis=0))
    return (np.concatenate(sounds) / 12).astype(np.float32)


@pytest.fixture(scope="module")
def index() -> la.CoverIndex:
    index = la.CoverIndex()
    for seed in range(12):
        index.add(f"tune {seed}", (played(tune(seed)), RATE))
    return index


def best_of(index: la.CoverIndex, sound: Samples) -> la.results.CoverMatch:
    """Return the best match. Random chords are alike by chance more often than music is."""
    found = index.search((sound, RATE))
    assert all(one.score < CHANCE for one in found[1:])
    return found[0]


@pytest.mark.parametrize("up", range(-5, 7))
def test_every_key_is_found_with_its_semitones(index: la.CoverIndex, up: int) -> None:
    seed = up % 12
    found = best_of(index, played(tune(seed), up=up, partials=FLUTE))
    assert (found.recording, found.semitones) == (f"tune {seed}", up)
    assert found.tempo == pytest.approx(1, abs=0.05)
    assert found.offset == pytest.approx(found.query_offset, abs=2)
    assert found.seconds > 60
    assert 0.6 < found.score < 1


@pytest.mark.parametrize("tempo", [0.8, 0.87, 0.93, 1.07, 1.13, 1.25])
def test_other_tempos_are_found(index: la.CoverIndex, tempo: float) -> None:
    found = best_of(index, played(tune(3), up=4, tempo=tempo))
    assert (found.recording, found.semitones) == ("tune 3", 4)
    assert found.tempo == pytest.approx(tempo, rel=0.08)
    assert found.offset == pytest.approx(found.query_offset * tempo, abs=4)


def test_octaves_noise_and_loudness_do_not_matter(index: la.CoverIndex) -> None:
    sound = played(tune(5), up=12, partials=FLUTE)
    found = best_of(index, with_noise(0.05 * sound, 15, 3))
    assert (found.recording, found.semitones) == ("tune 5", 0)


def test_a_stretch_is_found_at_its_place(index: la.CoverIndex) -> None:
    found = best_of(index, played(tune(2)[60:140], up=-3))
    assert (found.recording, found.semitones) == ("tune 2", -3)
    assert found.offset - found.query_offset == pytest.approx(30, abs=1.1)


def test_what_is_not_there_is_not_found(index: la.CoverIndex) -> None:
    for seed in range(100, 112):
        assert index.search((played(tune(seed)), RATE), min_score=CHANCE) == []
    noise = np.random.default_rng(1).standard_normal(60 * RATE).astype(np.float32) / 5
    silence = np.zeros(60 * RATE, np.float32)
    for nothing in (noise, silence, played(tune(1))[: 4 * RATE], silence[:10]):
        assert index.search((nothing, RATE)) == []


def test_tones_that_are_held_say_nothing(index: la.CoverIndex) -> None:
    held = np.repeat(tune(1)[:1], NOTES, axis=0)
    more = la.CoverIndex.from_bytes(index.to_bytes())
    more.add("held", (played(held), RATE))
    more.add("noise", (with_noise(played(held)[: 60 * RATE] * 0, 0, 1), RATE))
    assert more.search((played(held, up=2), RATE), min_score=0.1) == []


def test_an_index_of_one_recording() -> None:
    index = la.CoverIndex()
    assert index.search((played(tune(1)), RATE)) == []
    index.add(7, (played(tune(1)), RATE))
    (found,) = index.search((played(tune(1), up=1, tempo=1.1), RATE))
    assert (found.recording, found.semitones) == (7, 1)
    index.remove(7)
    assert index.search((played(tune(1)), RATE)) == []


def test_saved_copied_and_with_threads(index: la.CoverIndex, tmp_path: Path) -> None:
    query = played(tune(8), up=5, tempo=1.1), RATE
    expected = index.search(query, min_score=0.2, k=8)
    assert expected[0].recording == "tune 8"
    assert [one.score for one in expected] == sorted((one.score for one in expected), reverse=True)
    index.save(tmp_path / "covers.parts")
    for same in (
        la.load_index(tmp_path / "covers.parts"),
        la.CoverIndex.load(tmp_path / "covers.parts"),
        la.CoverIndex.from_bytes(index.to_bytes()),
    ):
        assert isinstance(same, la.CoverIndex) and len(same) == 12
        assert isinstance(same.signer, la.CoverHash)
        for threads in (1, 3):
            assert same.search(query, min_score=0.2, k=8, threads=threads) == expected
    assert index.search(query, min_score=0.2, k=1) == expected[:1]


def test_files_are_read_like_samples(index: la.CoverIndex, tmp_path: Path) -> None:
    sound = played(tune(4), up=2)
    soundfile.write(tmp_path / "a.flac", sound, RATE)
    (tmp_path / "b.flac").write_bytes(b"no sound")
    hash = la.CoverHash()
    good, bad = read_recordings([tmp_path / "a.flac", tmp_path / "b.flac"], hash)
    assert "cannot be decoded" in str(bad)
    assert isinstance(good, la.results.Chroma)
    here = hash.chroma(tmp_path / "a.flac")
    assert (good.values == here.values).all() and (good.offsets == here.offsets).all()
    assert good.info == here.info
    (found,) = index.search(tmp_path / "a.flac")
    assert found.recording == "tune 4"
    twin = la.CoverIndex()
    added = twin.add_files([tmp_path / "a.flac", tmp_path / "b.flac"], folder=tmp_path)
    assert [one.words for one in added] == [len(hash.sign(tmp_path / "a.flac")), 0]
    assert twin.search((sound, RATE))[0].recording == "a.flac"
    table = here.to_pandas()
    assert list(table.columns[:3]) == ["offset", "C", "C#"] and len(table) == len(here.values)


def test_what_is_refused(index: la.CoverIndex, tmp_path: Path) -> None:
    sound = played(tune(1)[:20]), RATE
    for wrong in ({"k": 0}, {"min_score": 0}, {"min_score": 1.5}, {"threads": -1}):
        with pytest.raises(la.errors.ArgumentError):
            index.search(sound, **wrong)
    with pytest.raises(la.errors.FileError):
        index.search(tmp_path / "none.wav")
    with pytest.raises(la.errors.ArgumentError, match="in the index already"):
        index.add("tune 1", sound)
    with pytest.raises(la.errors.ArgumentError, match="votes alone do not answer"):
        la.open_collection(tmp_path / "covers.db", signer=la.CoverHash())
    with pytest.raises(la.errors.ArgumentError, match="find other performances with la.CoverIndex"):
        la.dedup([str(tmp_path)], kind="recordings", signer=la.CoverHash())  # type: ignore[arg-type]
    snippets = la.RecordingIndex()
    snippets.save(tmp_path / "music.parts")
    with pytest.raises(la.errors.FormatError, match="is not an index of covers"):
        la.CoverIndex.load(tmp_path / "music.parts")
    index.save(tmp_path / "covers.parts")
    with pytest.raises(la.errors.FormatError, match="is not an index of recordings for snippets"):
        la.RecordingIndex.load(tmp_path / "covers.parts")


@pytest.mark.parametrize("rate", [8000, 11025, 44100])
@pytest.mark.parametrize("cents", [-40, 0, 30])
def test_chroma_knows_the_note_and_the_tuning(rate: int, cents: int) -> None:
    time = np.arange(2 * rate) / rate
    names = "C C# D D# E F F# G G# A A# B".split()
    for note in range(12):
        pitch = 440 * 2 ** ((note - 9) / 12 + cents / 1200)
        chroma = la.CoverHash().chroma((np.sin(2 * np.pi * pitch * time) / 4, rate))
        assert len(chroma.values) == 17
        assert (chroma.values.argmax(axis=1) == note).all(), names[note]
        assert (np.delete(chroma.values, note, axis=1) < 128).all()


@settings(max_examples=25)
@given(st.lists(st.integers(1, 30_000), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_pieces_do_not_change_chroma(lengths: list[int], seed: int) -> None:
    sound = np.random.default_rng(seed).standard_normal(sum(lengths)).astype(np.float32)
    whole, cut = ChromaFrames(RATE), ChromaFrames(RATE)
    whole.feed(sound)
    for piece in np.split(sound, np.cumsum(lengths)[:-1]):
        cut.feed(piece)
    one, begins = whole.finish()
    other, same = cut.finish()
    assert one.shape == other.shape and (begins == same).all()
    assert np.abs(one.astype(np.int64) - other).max(initial=0) <= 1


@given(st.integers(0, 2**32 - 1), st.integers(0, 130), st.integers(-11, 11))
@settings(max_examples=50)
def test_words_of_another_key_are_transposed_words(seed: int, count: int, up: int) -> None:
    values = np.random.default_rng(seed).permuted(
        np.tile(np.arange(0, 240, 20, dtype=np.uint8), (count, 1)), axis=1
    )
    offsets = np.arange(count) * 100
    info = AudioInfo(count / 10, RATE, 1, "samples", lossless=True)
    own = la.results.Chroma(values, offsets, info)
    higher = la.results.Chroma(np.roll(values, up, axis=1), offsets, info)
    bits, begins = note_bits(own)
    moved, same = note_bits(higher)
    assert (begins == same).all()
    assert len(begins) == max(0, count // 5 - 7)
    # Of sums that are equal, the one of the lower note counts.
    differ = np.bitwise_count(transposed(bits, up) ^ transposed(moved, 0)).sum()
    assert differ <= 0.05 * max(1, bits.size)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 14),
    st.integers(1, 4),
    st.integers(1, 14),
    st.sampled_from([0.1, 0.3, 0.6, 1.0]),
)
def test_paths_against_the_oracle(
    seed: int, count: int, pairs: int, others: int, share: float
) -> None:
    matches = np.random.default_rng(seed).random((count, pairs, others)) < share
    for pair, path in enumerate(longest_paths(matches)):
        assert path.length == longest_path_of(matches[:, pair])
        if path.length:
            assert matches[path.begin[0], pair, path.begin[1]]
            assert matches[path.end[0], pair, path.end[1]]
            inside = matches[path.begin[0] : path.end[0] + 1, pair, path.begin[1] : path.end[1] + 1]
            assert longest_path_of(inside) == path.length


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 30), st.sampled_from([1, 3]))
def test_matches_against_the_oracle(seed: int, count: int, others: int, different: int) -> None:
    random = np.random.default_rng(seed)
    words = random.integers(0, 1 << different, (count + others, 24)).astype(np.uint8)
    own, other = words[:count], words[count:]
    assert (matching(own, other) == matching_of(own, other)).all()
