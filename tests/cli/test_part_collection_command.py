"""`lookalike collection` with documents that have many parts, and what a service does with them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import soundfile
from benchmarks.recordings.sounds import music

from lookalike.cli import main
from support.running.refusals import refused

RATE = 8000
TALE = (
    "It was the best of times it was the worst of times it was the age of wisdom it was the age of "
    "foolishness it was the epoch of belief it was the epoch of incredulity"
)
PIECE = "it was the worst of times it was the age of wisdom it was the age of foolishness"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def books(capsys: pytest.CaptureFixture[str]) -> str:
    create = ["--kind", "passages", "--passage-words", "12", "--passage-step", "4"]
    assert main(["collection", "create", "books.db", *create]) == 0
    assert "parts of 64 bits by passagehash (words 12, step 4) of" in capsys.readouterr().out
    rows = [{"id": "tale", "text": TALE, "year": 1859}, {"id": "odd", "text": "one two", "year": 1}]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["collection", "import", "books.db", "rows.jsonl"]) == 0
    capsys.readouterr()
    return "books.db"


def test_passages(books: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("piece.txt").write_text(PIECE)
    for query in ([PIECE], ["--file", "piece.txt"]):
        assert main(["collection", "search", books, *query]) == 0
        assert capsys.readouterr().out == '       6   1.00  tale  {"year": 1859}\n'
    assert main(["collection", "search", books, PIECE, "--json", "--explain"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["id"], found["offset"], found["votes"], found["score"]) == ("tale", 6, 7, 1.0)
    assert len(found["parts"]) == 7 and found["metadata"] == {"year": 1859}
    assert main(["collection", "search", books, PIECE, "--where", '{"year": 1}']) == 0
    assert main(["collection", "search", books, "tale", "--by-id"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["collection", "search", books, "two words"]) == 0
    assert "is a single passage; with 16 words or more" in capsys.readouterr().err
    assert main(["collection", "search", books, "", "--columns", "year"]) == 0
    assert "has no parts" in capsys.readouterr().err


def test_all_other_actions(books: str, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("stats", "verify", "repair"):
        assert main(["collection", action, books]) == 0
    assert main(["collection", "get", books, "tale", "--json"]) == 0
    assert main(["collection", "export", books, "all.jsonl"]) == 0
    assert main(["collection", "snapshot", books, "copy.db"]) == 0
    assert main(["collection", "restore", "copy.db", books, "--name", "again"]) == 0
    assert main(["collection", "delete", books, "tale"]) == 0
    assert main(["collection", "import", books, "all.jsonl", "--replace"]) == 0
    capsys.readouterr()
    for name in ("again", "documents"):
        assert main(["collection", "search", books, PIECE, "--name", name]) == 0
        assert "tale" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plan", "sql"], "--plan is 'sql'"),
        (["--threshold", "0.8"], "--threshold does nothing: documents of"),
        (["--compare"], "--compare does nothing: documents of"),
        (["--mask", "yes"], "--mask does nothing: documents of"),
        (["--hex"], "--hex is one signature"),
        (["--min-score", "2"], "--min-score is 2"),
    ],
)
def test_what_is_for_single_signatures_is_refused(
    books: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(["collection", "search", books, PIECE, *arguments], capsys)


def test_what_is_for_parts_is_refused_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collection", "create", "plain.db"]) == 0
    capsys.readouterr()
    search = ["collection", "search", "plain.db", "text", "--min-score", "0.5"]
    for more in ([], ["--compare", "--threshold", "0.8"]):
        assert "--min-score is only for documents of many parts" in refused(
            [*search, *more], capsys
        )
    create = ["collection", "create", "new.db"]
    for more in (["--passage-words", "5"], ["--kind", "recordings", "--bits", "64"]):
        assert "does nothing with --kind" in refused([*create, *more], capsys)
    assert "--passage-words is 0" in refused(
        [*create, "--kind", "passages", "--passage-words", "0"], capsys
    )


def test_recordings(capsys: pytest.CaptureFixture[str]) -> None:
    Path("music/more").mkdir(parents=True)
    songs = [music(number, 8, RATE) for number in range(3)]
    soundfile.write("music/a.flac", songs[0], RATE)
    soundfile.write("music/more/b.ogg", songs[1], RATE)
    Path("music/notes.txt").write_text("words")
    Path("music/broken\x1b[31m.flac").write_bytes(b"fLaC")
    soundfile.write("snippet.wav", songs[1][2 * RATE : 6 * RATE], RATE)
    assert main(["collection", "create", "music.db", "--kind", "recordings"]) == 0
    assert main(["collection", "import", "music.db", "music"]) == 1
    printed = capsys.readouterr()
    assert "the recording cannot be decoded" in printed.err and "\x1b" not in printed.err
    assert main(["collection", "import", "music.db", "music", "--skip-bad"]) == 0
    assert "added 2, replaced 0, left out 1" in capsys.readouterr().out
    assert main(["collection", "import", "music.db", "music/a.flac", "--replace"]) == 0
    for query in (["snippet.wav"], ["--file", "snippet.wav"]):
        assert main(["collection", "search", "music.db", *query]) == 0
        place, score, name = capsys.readouterr().out.split()[-3:]
        assert (place, name) == ("00:02", "more/b.ogg") and float(score) > 0.5
    assert main(["collection", "search", "music.db", "nowhere.wav"]) == 1
    assert "nowhere.wav cannot be read (No such file" in capsys.readouterr().err
    words = ["collection", "import", "music.db", "music", "--text", "title"]
    assert "--text does nothing" in refused(words, capsys)
    assert main(["collection", "add", "music.db", "c", "music/notes.txt"]) == 1
    assert "the recording" in capsys.readouterr().err
    Path("odd").mkdir()
    shutil.copy(b"music/a.flac", b"odd/\xff.flac")
    shutil.copy("music/a.flac", "odd/ü.flac")
    assert main(["collection", "import", "music.db", "odd"]) == 0
    printed = capsys.readouterr()
    assert "added 1, replaced 0, left out 1" in printed.out
    assert "odd/\\xff.flac: its name is not UTF-8; rename the file" in printed.out + printed.err
    Path("empty").mkdir()
    assert main(["collection", "import", "music.db", "empty"]) == 1
    assert "no recordings found in empty" in capsys.readouterr().err
