"""`lookalike audio`: index, search, and what goes wrong with either."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile
from benchmarks.recordings.sounds import music, with_noise

import lookalike as la
from lookalike.cli import main
from lookalike.cli.commands.audio import clock
from support.running.refusals import refused

RATE = 16000
PIECE = music(11, 20, RATE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli-music")
    (folder / "in").mkdir()
    soundfile.write(folder / "in" / "a\x1b[31m.flac", PIECE, RATE)
    soundfile.write(folder / "in" / "b.ogg", music(12, 20, RATE), RATE)
    soundfile.write(folder / "in" / "silence.wav", np.zeros(RATE), RATE)
    (folder / "in" / "broken.mp3").write_bytes(b"no sound")
    (folder / "in" / "notes.txt").write_text("notes")
    snippet = with_noise(PIECE[5 * RATE : 15 * RATE], 20, 1)
    soundfile.write(folder / "snippet.mp3", snippet, RATE)
    soundfile.write(folder / "other.wav", music(13, 10, RATE), RATE)
    return folder


@pytest.fixture(scope="module")
def index(folder: Path) -> str:
    path = folder / "music.parts"
    assert main(["audio", "index", str(folder / "in"), "-o", str(path)]) == 0
    return str(path)


def test_index_says_what_it_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "again.parts"
    assert main(["audio", "index", str(folder / "in"), "-o", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"3 recordings with 770 words are in {path}, in ")
    assert "\n  1 silent, or too short to be found\n" in printed.out
    assert "\n  1 left out: could not be read\n" in printed.out
    assert "\n  1 other file, not looked at\n" in printed.out
    assert printed.err == (
        "lookalike: warning: 1 row or file was left out\n"
        f"lookalike: left out: {folder}/in/broken.mp3: is not a recording: its first "
        "bytes are not those of one\n"
    )
    assert main(["audio", "index", str(folder / "in"), "-o", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    del told["seconds"]
    assert told == {
        "output": str(path), "recordings": 3, "words": 770, "silent": 1, "other_files": 1,
        "left_out": [{"path": f"{folder}/in/broken.mp3",
                      "reason": "is not a recording: its first bytes are not those of one"}],
    }  # fmt: skip
    assert len(la.RecordingIndex.load(path)) == 3
    assert main(["audio", "index", str(folder / "other.wav"), "-o", str(path)]) == 0
    assert re.match(r"1 recording with \d+ words is in ", capsys.readouterr().out)


def test_search_says_recording_and_place(
    folder: Path, index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    snippet, other = str(folder / "snippet.mp3"), str(folder / "other.wav")
    assert main(["audio", "search", snippet, "--index", index]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("     00:05   0.")
    assert printed.endswith("a\\x1b[31m.flac\n")
    assert main(["audio", "search", other, snippet, "--index", index, "--json", "-k", "1"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {"snippet": other, "found": []}
    (found,) = lines[1]["found"]
    assert found["recording"] == "a\x1b[31m.flac"
    assert found["offset"] == pytest.approx(5, abs=0.06)
    assert 0.3 < found["score"] <= 1
    assert found["votes"] == round(found["score"] * 185)
    assert main(["audio", "search", other, snippet, "--index", index, "--min-score", "1"]) == 0
    assert capsys.readouterr().out == (
        f"{other}\n  no recording has it\n{snippet}\n  no recording has it\n"
    )


def test_silent_and_broken_snippets(
    folder: Path, index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    silent, broken = str(folder / "in" / "silence.wav"), str(folder / "in" / "broken.mp3")
    assert main(["audio", "search", silent, "--index", index]) == 0
    printed = capsys.readouterr()
    assert printed.out == "  no recording has it\n"
    assert printed.err.endswith("is silent or shorter than 0.8 s; there is nothing to search for\n")
    assert "cannot be decoded" in refused(["audio", "search", broken, "--index", index], capsys)
    assert main(["audio", "search", broken, silent, "--index", index]) == 1
    assert "1 of 2 snippets could not be read" in capsys.readouterr().err


def test_what_is_refused(folder: Path, index: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    snippet = str(folder / "snippet.mp3")
    search = ["audio", "search", snippet, "--index", index]
    assert "-k is 0; expected a whole number" in refused([*search, "-k", "0"], capsys)
    assert "--min-score is 2.0" in refused([*search, "--min-score", "2"], capsys)
    assert "--threads is -1" in refused([*search, "--threads", "-1"], capsys)
    none = refused([*search[:-1], str(folder / "none.parts")], capsys)
    assert "none.parts; build one with `lookalike audio index FOLDER`" in none
    assert "there is no such" in refused(["audio", "index", str(folder / "im")], capsys)
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    out = ["-o", str(folder / "x.parts")]
    assert "there are no recordings in" in refused(["audio", "index", str(empty), *out], capsys)
    assert "does not exist" in refused(
        ["audio", "index", str(folder), "-o", str(folder / "no" / "x")], capsys
    )
    assert "--hash is 'x'" in refused(["audio", "index", str(folder), "--hash", "x"], capsys)
    assert not (folder / "x.parts").exists()
    assert "is also an input; choose another name" in refused(
        ["audio", "index", snippet, "-o", snippet], capsys
    )


def test_dedup_takes_a_folder_of_recordings(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    music_folder = tmp_path / "music"
    music_folder.mkdir()
    for name in ("a.flac", "a.mp3", "a.ogg"):
        soundfile.write(music_folder / name, PIECE, RATE)
    lists = ["-o", str(tmp_path / "stay.txt"), "--dropped", str(tmp_path / "go.csv")]
    assert main(["dedup", str(music_folder), *lists, "--threshold", "0.9"]) == 0
    printed = capsys.readouterr()
    assert "has mostly recordings" in printed.err
    assert "the same over 90% of the longer one" in printed.out
    assert (tmp_path / "stay.txt").read_text() == f"{music_folder}/a.flac\n"
    dropped = (tmp_path / "go.csv").read_text().splitlines()
    assert len(dropped) == 3
    assert "seconds" in dropped[0] and "lossless" in dropped[0]


def test_covers_are_indexed_and_found(
    folder: Path, index: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    random = np.random.default_rng(3)
    notes = random.integers(0, 15, 100)
    (folder / "pieces").mkdir()
    for name, own, up in (("a", notes, 0), ("b", random.integers(0, 15, 100), 0), ("c", notes, 3)):
        time = np.arange(RATE // 2) / RATE
        sound = np.concatenate([np.sin(2765 * 2 ** ((one + up) / 12) * time) for one in own])
        soundfile.write(
            folder / ("" if name == "c" else "pieces") / f"{name}.flac", sound / 2, RATE
        )
    capsys.readouterr()
    assert main(["audio", "index", "pieces", "--cover"]) == 0
    assert capsys.readouterr().out.startswith("2 recordings with 184 words are in covers.parts, in")
    assert isinstance(la.load_index("covers.parts"), la.CoverIndex)
    assert main(["audio", "search", "c.flac", "--cover"]) == 0
    printed = capsys.readouterr().out
    assert re.fullmatch(r" +00:00   0\.[67]\d   \+3 semitones  1\.00x  a\.flac\n", printed)
    assert (
        main(["audio", "search", "c.flac", "in/silence.wav", "--index", "covers.parts", "--json"])
        == 0
    )
    printed_too = capsys.readouterr()
    lines = [json.loads(line) for line in printed_too.out.splitlines()]
    (found,) = lines[0]["found"]
    assert list(found) == [
        "recording", "offset", "score", "query_offset", "seconds", "semitones", "tempo"
    ]  # fmt: skip
    assert (found["recording"], found["semitones"], found["tempo"]) == ("a.flac", 3, 1)
    assert lines[1]["found"] == []
    assert "is silent or shorter than 4.4 s; there is nothing to search for" in printed_too.err
    assert main(["audio", "search", "other.wav", "--cover"]) == 0
    assert capsys.readouterr().out == "  no recording plays it\n"
    search = ["audio", "search", "c.flac", "--cover", "--index"]
    assert "music.parts was not built with --cover; build" in refused([*search, index], capsys)
    none = refused([*search, "none.parts"], capsys)
    assert "build one with `lookalike audio index FOLDER --cover`" in none
    both = ["audio", "index", "pieces", "--cover", "--hash", "bands"]
    assert "--cover has its own hash; leave one out" in refused(both, capsys)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "00:00"), (65.4, "01:05"), (3600, "1:00:00"), (7322, "2:02:02"), (-4, "-00:04")],
)
def test_places_are_said_as_clocks_do(seconds: float, said: str) -> None:
    assert clock(seconds) == said
