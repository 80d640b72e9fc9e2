"""A medium of another package works in dedup, collections, reports, commands and the service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.media import MEDIA, medium_of_files
from support.running.refusals import refused
from support.services.running import running

CHORDS = {"a": "0f0f", "b": "0f0e", "c": "f000", "d": "0f0f", "e": "zzzz"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("music").mkdir()
    for name, notes in CHORDS.items():
        Path(f"music/{name}.chord").write_text(f"CHORD {notes}")
    return Path("music")


def test_files_are_recognized(folder: Path) -> None:
    assert medium_of_files([folder]) == "chords"
    assert MEDIA["chords"].name == "chords"


def test_dedup(folder: Path) -> None:
    for result in (
        la.dedup(folder),
        la.dedup(folder, kind="chords", radius=2),
        la.dedup(folder, kind=MEDIA["chords"]()),
    ):
        assert isinstance(result, la.results.MediaResult) and result.kind == "chords"
        assert [path.name for path in result.kept()] == ["a.chord", "c.chord"]
        assert [path.name for path in result.dropped()] == ["b.chord", "d.chord"]
        (problem,) = result.problems
        assert problem.path.name == "e.chord" and "not hexadecimal" in problem.reason
        assert "at most 2 of 16 notes differ" in result.summary()
    assert la.dedup(folder, kind="chords", radius=0).counts.kept == 3
    with pytest.raises(la.errors.ArgumentError, match="bits does nothing for chords; leave it out"):
        la.dedup(folder, kind="chords", bits=64)
    with pytest.raises(la.errors.ArgumentError, match=r"did you mean 'chords'\?"):
        la.dedup(folder, kind="chord")


def test_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = ["-o", "kept", "--dropped", "dropped.csv", "--report", "report.html"]
    assert main(["dedup", "music", "--radius", "1", *outputs]) == 0
    printed = capsys.readouterr()
    assert "music has mostly chords" in printed.err and "1 of 16 notes differ" in printed.out
    assert sorted(path.name for path in Path("kept").iterdir()) == ["a.chord", "c.chord"]
    assert Path("dropped.csv").read_text().count("\n") == 3
    page = Path("report.html").read_text()
    assert "4 chords" in page and "img-src data:" in page
    assert main(["dedup", "music", "--kind", "chords", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"] == {"radius": 2, "keep": "best"}
    said = refused(["dedup", "music", "--kind", "chords", "--threshold", "0.5"], capsys)
    assert said == "--threshold does nothing for chords; leave it out"


def test_collections(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collection", "create", "music.db", "--kind", "chords"]) == 0
    assert main(["collection", "import", "music.db", "music", "--skip-bad"]) == 0
    with la.open_collection("music.db") as docs:
        assert len(docs) == 4
        found = docs.within("music/b.chord", radius=1)
        assert sorted(match.id for match in found) == ["a.chord", "b.chord", "d.chord"]
        assert docs.within(b"CHORD f000", radius=0)[0].id == "c.chord"
        docs.reads_files = False  # as the service does
        with pytest.raises(la.errors.ArgumentError, match="are not opened by path"):
            docs.within("music/b.chord", radius=1)
        assert docs.within(b"CHORD f000", radius=0)[0].id == "c.chord"


def test_sign_and_search(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sign", "music", "-o", "m.lookalike", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["chords"], told["signatures"], told["bits"], told["left_out"]) == (4, 4, 16, 1)
    saved = la.load_signatures("m.lookalike")
    assert type(saved.signer).__name__ == "ChordHash"
    assert main(["sign", "music", "-o", "m.npy"]) == 0
    printed = capsys.readouterr()
    assert "  4 chords in " in printed.out and "e.chord: has notes" in printed.err
    assert main(["search", "m.lookalike", "music/b.chord", "--radius", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(one["id"], one["distance"]) for one in answer["results"]] == [
        ("music/b.chord", 0),
        ("music/a.chord", 1),
        ("music/d.chord", 1),
    ]
    said = refused(["sign", "music", "-o", "n.lookalike", "--fit"], capsys)
    assert said == "--fit does nothing for chords; leave it out"
    said = refused(["sign", "music", "-o", "n.lookalike", "--bits", "64"], capsys)
    assert said == "--bits does nothing for chords; leave it out"
    Path("texts.jsonl").write_text('{"text": "some words that are a text"}\n')
    assert main(["sign", "texts.jsonl", "-o", "t.lookalike", "--quiet"]) == 0
    assert "is a chord" in refused(["search", "t.lookalike", "music/a.chord"], capsys)
    said = refused(["search", "m.lookalike", "--file", "texts.jsonl"], capsys)
    assert "texts.jsonl is not a chord, but the index has chords" in said


def test_the_service(tmp_path: Path) -> None:
    place, run = tmp_path / "served", tmp_path / "run"
    place.mkdir()
    run.mkdir()
    signer = MEDIA["chords"]().signer
    documents = [
        {"id": name, "signature": signer.sign([f"CHORD {notes}".encode()]).tobytes().hex()}
        for name, notes in CHORDS.items()
        if notes != "zzzz"
    ]
    with running(place, run) as served:
        made = served.good(
            "POST", "/v1/collections", {"name": "music", "signer": {"method": "chords"}}
        )
        assert (made["bits"], made["signer"], made["measure"]) == (16, signer.to_dict(), None)
        described = {"name": "again", "description": signer.to_dict()}
        assert served.good("POST", "/v1/collections", described)["signer"] == made["signer"]
        wrong = {"name": "wide", "signer": {"method": "chords", "bits": 64}}
        message = served.refused(422, "bad_argument", "POST", "/v1/collections", wrong)
        assert message == "bits has no effect with chords; leave it out"
        music = "/v1/collections/music"
        written = served.good("PUT", f"{music}/documents", {"documents": documents})
        assert written["added"] == 4
        text = {"documents": [{"id": "e", "text": "music/e.chord"}]}
        refusal = served.refused(422, "bad_argument", "PUT", f"{music}/documents", text)
        assert "are not opened by path" in refusal
        asked = {"signature": documents[1]["signature"], "radius": 1}
        found = served.good("POST", f"{music}/query", asked)["matches"]
        assert [(match["id"], match["distance"]) for match in found] == [
            ("b", 0), ("a", 1), ("d", 1),
        ]  # fmt: skip
        found = served.good("POST", f"{music}/query", {"id": "a", "radius": 0})["matches"]
        assert [(match["id"], match["similarity"]) for match in found] == [("d", 1.0)]
        assert served.good("GET", f"{music}/groups?radius=1")["groups"][0]["size"] == 3
        assert served.good("GET", f"{music}/map")["regions"]
        job = served.job(f"{music}/dedup", {"radius": 1})
        assert (job["state"], job["summary"]["duplicates"]) == ("done", 2)
    with la.open_collection(place / "music.db", "music") as docs:
        assert docs.signer == signer and docs.within(b"CHORD f000", radius=0).ids == ["c"]
