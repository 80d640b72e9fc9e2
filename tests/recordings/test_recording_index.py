"""Recordings found by snippets: at their place, after what happens to sound, and nothing else."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
from benchmarks.recordings.sounds import encoded, music, resampled, speech, with_noise
from numpy.typing import NDArray

import lookalike as la

RATE = 16000
SECONDS = 40
PIECES = [music(seed, SECONDS, RATE) for seed in range(50, 58)]
SNIPPET = 10

Samples = NDArray[np.float32]
CHANGES: dict[str, Callable[[Samples], Samples]] = {
    "nothing": lambda sound: sound,
    "MP3": lambda sound: encoded(sound, RATE, "MP3", 0.9),
    "Ogg": lambda sound: encoded(sound, RATE, "OGG", 0.9),
    "noise 20 dB below": lambda sound: with_noise(sound, 20, 1),
    "softer by 26 dB": lambda sound: sound * np.float32(0.05),
    "8 kHz and back": lambda sound: resampled(resampled(sound, RATE, 8000), 8000, RATE),
}


@pytest.fixture(scope="module")
def index() -> la.RecordingIndex:
    index = la.RecordingIndex()
    for number, piece in enumerate(PIECES):
        index.add(f"piece {number}", (piece, RATE))
    return index


@pytest.mark.parametrize("change", CHANGES)
def test_snippets_are_found_at_their_place(index: la.RecordingIndex, change: str) -> None:
    random = np.random.default_rng(5)
    for number, piece in enumerate(PIECES):
        begin = int(random.integers(len(piece) - SNIPPET * RATE))
        snippet = CHANGES[change](piece[begin : begin + SNIPPET * RATE])
        found = index.search((snippet, RATE))
        assert [one.recording for one in found] == [f"piece {number}"]
        assert abs(found[0].offset - begin / RATE) <= 0.075
        assert 0.12 <= found[0].score <= 1
        assert found[0].votes == round(found[0].score * len(index.hash.sign((snippet, RATE))))


def test_what_is_not_there_is_not_found(index: la.RecordingIndex) -> None:
    for seed in range(900, 912):
        assert index.search((music(seed, SNIPPET, RATE), RATE)) == []
    noise = np.random.default_rng(1).standard_normal(SNIPPET * RATE).astype(np.float32)
    assert index.search((noise / 4, RATE)) == []
    assert index.search((np.zeros(SNIPPET * RATE, np.float32), RATE)) == []
    assert index.search((PIECES[0][:1000], RATE)) == []


def test_silence_matches_nothing() -> None:
    index = la.RecordingIndex()
    quiet = np.zeros(20 * RATE, np.float32)
    index.add("silence", (quiet, RATE))
    index.add("piece", (np.concatenate([quiet, PIECES[0]]), RATE))
    assert index.search((quiet, RATE)) == []
    (found,) = index.search((np.concatenate([quiet[: 3 * RATE], PIECES[0][: 8 * RATE]]), RATE))
    assert found.recording == "piece"
    assert found.offset == pytest.approx(17, abs=0.06)


def test_a_snippet_that_begins_before_the_recording(index: la.RecordingIndex) -> None:
    other = music(999, 4, RATE)
    (found,) = index.search((np.concatenate([other, PIECES[2][: 6 * RATE]]), RATE))
    assert found.recording == "piece 2"
    assert found.offset == pytest.approx(-4, abs=0.06)


def test_speech_is_found_where_there_is_some(index: la.RecordingIndex) -> None:
    words = "It was a bright cold day in spring, and every clock in town was wrong. "
    sound = speech(words * 2, RATE)
    if sound is None:  # then noise that comes and goes takes its place
        loud = np.abs(np.sin(np.arange(12 * RATE) * (7 / RATE))) ** 3
        noise = np.random.default_rng(3).standard_normal(12 * RATE) * loud
        sound = (noise / 8).astype(np.float32)
    assert index.search((sound, RATE)) == []
    spoken = la.RecordingIndex()
    spoken.add(7, (sound, RATE))
    (found,) = spoken.search((with_noise(sound[RATE:], 25, 1)[: 6 * RATE], RATE))
    assert found.recording == 7
    assert found.offset == pytest.approx(1, abs=0.06)


def test_saved_and_loaded(index: la.RecordingIndex, tmp_path: Path) -> None:
    path = tmp_path / "music.parts"
    index.save(path)
    loaded = la.RecordingIndex.load(path)
    assert (len(loaded), loaded.hash) == (len(PIECES), la.AudioHash())
    snippet = PIECES[3][5 * RATE : 15 * RATE], RATE
    assert loaded.search(snippet) == index.search(snippet)
    assert la.load_signer(path) == la.AudioHash()
    assert la.PartIndex.load(path).signer == la.AudioHash()
    plain = la.PartIndex()
    plain.add("x", np.zeros((1, 4), np.uint8))
    plain.save(path)
    with pytest.raises(la.errors.FormatError, match="not an index of recordings"):
        la.RecordingIndex.load(path)


def test_files_are_added_and_broken_ones_named(tmp_path: Path) -> None:
    good, silent, broken = tmp_path / "a" / "good.ogg", tmp_path / "silent.wav", tmp_path / "x.mp3"
    good.parent.mkdir()
    soundfile.write(good, PIECES[0], RATE)
    soundfile.write(silent, np.zeros(RATE), RATE)
    broken.write_bytes(b"ID3" + b"\0" * 100)
    index = la.RecordingIndex()
    told: list[tuple[str, float]] = []
    added = index.add_files(
        [good, silent, broken], folder=tmp_path, progress=lambda *step: told.append(step)
    )
    assert [(one.file, one.words > 0) for one in added] == [
        (good, True), (silent, False), (broken, False)
    ]  # fmt: skip
    assert [one.reason is None for one in added] == [True, True, False]
    assert told[-1] == ("read", 1.0)
    assert sorted(index.parts.items(), key=str) == ["a/good.ogg", "silent.wav"]
    (found,) = index.search(good)
    assert found.recording == "a/good.ogg"
    index.remove("a/good.ogg")
    assert index.search(good) == []


def test_names_of_any_bytes(tmp_path: Path) -> None:
    folder = bytes(tmp_path)
    name = folder + b"/caf\xe9.wav"
    sound = io.BytesIO()
    soundfile.write(sound, PIECES[0][: 3 * RATE], RATE, format="WAV")
    with open(name, "wb") as file:
        file.write(sound.getvalue())
    index = la.RecordingIndex()
    (file_name,) = tmp_path.iterdir()
    index.add_files([file_name], folder=tmp_path)
    assert index.parts.items() == ["caf\\xe9.wav"]
    index.save(tmp_path / "out.parts")
    spelled = tmp_path / "caf\\xe9.wav"  # the same name as text: the other files are added
    spelled.write_bytes(sound.getvalue())
    index = la.RecordingIndex()
    both = index.add_files([file_name, spelled], folder=tmp_path)
    assert [one.reason for one in both] == [
        None, "has the name 'caf\\\\xe9.wav', which an earlier file has"
    ]  # fmt: skip
    assert len(index) == 1


def test_hashes_are_signers() -> None:
    hash = la.AudioHash()
    assert hash.to_dict() == {"signer": "AudioHash", "version": 1, "kind": "bands"}
    assert la.signatures.signer_from_dict(hash.to_dict()) == hash != la.AudioHash("chromaprint")
    assert repr(hash) == "AudioHash(kind='bands')"
    signatures, offsets = hash.sign_parts((PIECES[0], RATE))
    assert signatures.shape == (785, 4)
    np.testing.assert_array_equal(offsets, np.arange(785) * 50)
    np.testing.assert_array_equal(signatures, hash.sign((PIECES[0], RATE)))
    stereo = np.stack([PIECES[0], PIECES[0]], axis=1)
    np.testing.assert_array_equal(hash.sign((stereo, RATE)), signatures)
    whole = (PIECES[0] * 32767).astype(np.int16)
    assert la.hamming(hash.sign((whole, RATE)), signatures).mean() < 0.5


def test_no_samples_are_no_words() -> None:
    for shape in ((0,), (0, 2)):
        assert la.AudioHash().sign((np.zeros(shape, np.float32), RATE)).shape == (0, 4)


def test_what_is_no_recording_is_refused() -> None:
    hash = la.AudioHash()
    with pytest.raises(
        la.errors.ArgumentError, match="kind is 'x'; expected one of: bands, chromaprint"
    ):
        la.AudioHash("x")
    for samples in (np.zeros((2, 2, 2)), np.zeros((5, 0)), np.array(["a"]), np.array(5.0)):
        with pytest.raises(la.errors.DocumentError, match="samples are"):
            hash.sign((samples, RATE))
    for rate in (3999, 10**6, 0.5, "x"):
        with pytest.raises(la.errors.ArgumentError, match="rate is"):
            hash.sign((np.zeros(5), rate))  # type: ignore[arg-type]
    with pytest.raises(
        la.errors.ArgumentError, match=r"expected a path, bytes, or \(samples, rate\)"
    ):
        hash.sign((np.zeros(5), 8000, 1))  # type: ignore[arg-type]
    with pytest.raises(la.errors.FileError, match="cannot be decoded"):
        hash.sign(b"nothing")


def test_chromaprint_gets_samples_and_gives_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a program in its place, which says what it has got."""
    program = tmp_path / "fpcalc"
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$*" > {tmp_path}/arguments; wc -c > {tmp_path}/bytes\n'
        """echo '{"duration": 1.0, "fingerprint": [5, 627964279, 4294967295]}'\n"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = la.AudioHash("chromaprint").fingerprint((PIECES[0][: 2 * RATE], RATE))
    assert found.words.tolist() == [5, 2**32 - 1]  # silence has none
    assert found.offsets.tolist() == [0, 248]
    assert int((tmp_path / "bytes").read_text()) == 4 * RATE
    assert (tmp_path / "arguments").read_text() == (
        f"-raw -json -length 0 -format s16le -rate {RATE} -channels 1 -\n"
    )
    program.write_text("#!/bin/sh\ncat > /dev/null; echo nonsense\n")
    with pytest.raises(la.errors.DocumentError, match="cannot be read by fpcalc"):
        la.AudioHash("chromaprint").fingerprint((PIECES[0][:RATE], RATE))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(la.errors.MissingDependencyError, match="libchromaprint-tools"):
        la.AudioHash("chromaprint").fingerprint((PIECES[0][:RATE], RATE))


def test_scores_are_shares_of_the_words_that_were_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that everybody has are left out, and count neither for nor against a recording."""
    sound = la.AudioHash().fingerprint((PIECES[0], RATE)).info

    def words(*values: NDArray[np.int64]) -> la.results.Fingerprint:
        all = np.concatenate(values).astype(np.uint32)
        return la.results.Fingerprint(all, 50 * np.arange(len(all)), sound)

    common, own = np.arange(80) << 20, np.arange(1, 21) * 0x01010100
    index = la.RecordingIndex()
    for number in range(9):
        index.add(f"piece {number}", words(np.roll(common, number)))
    index.add("wanted", words(own, common))
    monkeypatch.setattr(index.parts, "search", partial(index.parts.search, most_near=20))
    found = index.search(words(own, common), radius=0, min_score=0.9)
    assert [(one.recording, one.score, one.votes) for one in found] == [("wanted", 1.0, 20)]
