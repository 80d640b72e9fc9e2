"""Images on the command line: `dedup photos/`, `sign photos/`, `search` for an image."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from benchmarks.images.scenes import CHANGES, scene
from PIL import Image

import lookalike as la
from lookalike.cli import main
from support.running.page_reader import read_page
from support.running.refusals import refused


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = Path("photos")
    folder.mkdir()
    for number in range(3):
        scene(number, 160).save(folder / f"{number}.png")
    CHANGES["half the size"](scene(1, 160)).save(
        folder / "<script>alert(1)</script>.png".replace("/", "")
    )
    Image.new("RGB", (50, 50), "white").save(folder / "white.png")
    (folder / "broken\x1b[31m.jpg").write_bytes(b"\xff\xd8\xff\0nothing")
    (folder / "notes.txt").write_text("words")
    return folder


def test_a_folder_of_images(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "-o",
        "kept",
        "--dropped",
        "gone.txt",
        "--pairs",
        "pairs.csv",
        "--report",
        "r.html",
    ]
    assert main(["dedup", "photos", *arguments]) == 0
    printed = capsys.readouterr()
    assert "images                        5" in printed.out
    assert "near-duplicates               1  the same picture" in printed.out
    assert "without features              1" in printed.out
    assert "dropped files: gone.txt" in printed.out
    assert "photos has mostly images; --kind text" in printed.err
    assert "left out: photos/broken\\x1b[31m.jpg: is not an image in a known format" in printed.err
    assert "\x1b" not in printed.err
    assert Path("gone.txt").read_text() == "photos/<script>alert(1)<script>.png\n"
    assert sorted(path.name for path in Path("kept").iterdir()) == [
        *("0.png", "1.png", "2.png", "white.png"),
    ]
    assert len(Path("pairs.csv").read_text().splitlines()) == 2
    assert len(list(photos.iterdir())) == 7


def test_the_page(photos: Path) -> None:
    """One file, nothing from elsewhere, names as they are, and a picture for each that is shown."""
    assert main(["dedup", "photos", "--kind", "images", "--quiet", "--report", "r.html"]) == 0
    text = Path("r.html").read_text()
    page = read_page(text)
    assert "<script" not in text and "http" not in text.replace("http-equiv", "")
    policy = next(
        meta.attributes["content"]
        for meta in page.all("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy == (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'none'; img-src data:"
    )
    pictures = page.all("img")
    assert len(pictures) == 2
    for picture in pictures:
        assert (picture.attributes["src"] or "").startswith("data:image/jpeg;base64,")
    shown = page.all("div", "file")
    assert [("kept" in one.classes) for one in shown] == [True, False]
    assert "<script>alert(1)<script>.png" in shown[1].text
    assert "of 256 bits" in shown[1].text and "80 × " in shown[1].text
    left_out = page.by_id("left-out")
    assert left_out is not None and "broken␛[31m.jpg" in left_out.text


def test_json_and_settings(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dedup", "photos", "--json", "--bits", "64", "--radius", "5", "--rotated"]) == 0
    told = json.loads(capsys.readouterr().out)
    expected = {"bits": 64, "hash": "dct", "radius": 5, "rotated": True, "threshold": "normal"}
    assert {name: told["settings"][name] for name in expected} == expected
    assert told["kind"] == "images" and told["counts"]["kept"] == 4
    assert main(["dedup", "photos", "--kind", "text", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["documents"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--threshold", "0.5"], "--threshold is 0.5; expected one of: strict, normal, loose"),
        (["--no-verify"], "--no-verify does nothing for images"),
        (["--in-place"], "--in-place does nothing for images"),
        (["--encoding", "latin-1"], "--encoding does nothing for images"),
        (["--kind", "images", "--vectors", "v"], "--vectors does nothing for images"),
        (["--kind", "images", "--engine", "spark"], "--engine does nothing for images"),
        (["--bits", "100"], "--bits is 100; expected 64 or 256"),
        (["--annotate"], "--annotate needs a file"),
        (["-o", "-"], "--output is -; expected a file, or a new folder"),
        (["-o", "photos/kept"], "is in the input folder"),
        (["--dropped", "list.zip"], "the format of a list of files is not known"),
        (["--report", "a", "--pairs", "a"], "not a table format|same name"),
    ],
)
def test_what_makes_no_sense(
    photos: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert re.search(message, refused(["dedup", "photos", *options], capsys))


def test_a_memory_limit_leaves_out_what_does_not_fit(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.new("RGB", (4, 4)).save(photos / "large.bmp")
    data = bytearray((photos / "large.bmp").read_bytes())
    data[18:26] = (12_000).to_bytes(4, "little") + (9_000).to_bytes(4, "little")
    (photos / "large.bmp").write_bytes(data)  # 412 MiB in memory
    main(["dedup", str(photos), "--kind", "images", "--memory-limit", "630MB", "--json"])
    told = json.loads(capsys.readouterr().out)
    (reason,) = [one["reason"] for one in told["left_out"] if "large.bmp" in one["path"]]
    assert reason.startswith("needs up to 428 MiB of memory to be decoded (12,000 × 9,000 pixels, ")
    assert main(["dedup", str(photos), "--kind", "images", "--memory-limit", "100MB"]) != 0
    assert "a job needs at least 629,145,600" in capsys.readouterr().err


def test_vectors_are_not_looked_for_in_images(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dedup", "photos", "--vectors", "embedding"]) == 1
    said = capsys.readouterr()
    assert "photos has no column 'embedding'" in said.err and not said.out


def test_options_of_images_do_nothing_for_documents(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in (["--rotated"], ["--hash", "dct"], ["--dropped", "x.csv"]):
        said = refused(["dedup", "photos", "--kind", "text", *option], capsys)
        assert said.startswith(f"{option[0]} does nothing for text; leave it out (it goes with ")


def test_sign_index_and_search(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sign", "photos", "-o", "p.lookalike", "--bits", "256", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["signatures"], told["without_features"], told["left_out"]) == (4, 1, 1)
    assert la.load_signatures("p.lookalike").signer == la.ImageHash(256)
    assert main(["index", "p.lookalike", "-o", "i.lookalike", "--quiet"]) == 0
    scene(2, 160).resize((90, 70)).save("query.jpg")
    assert main(["search", "i.lookalike", "query.jpg", "-k", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["results"][0]["id"] == "photos/2.png"
    assert main(["search", "i.lookalike", "photos/white.png"]) == 0
    assert "is of (nearly) one color; there is nothing to search for" in capsys.readouterr().err
    assert "no such file" in refused(["search", "i.lookalike", "some words"], capsys)
    said = refused(["sign", "photos", "-o", "q.lookalike", "--fit"], capsys)
    assert said == "--fit does nothing for images; leave it out"
    Path("texts.jsonl").write_text('{"text": "some words that are a text"}\n')
    assert main(["sign", "texts.jsonl", "-o", "t.lookalike", "--quiet"]) == 0
    assert "is an image" in refused(["search", "t.lookalike", "query.jpg"], capsys)


def test_hashes_of_other_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("h.csv").write_text(
        "path,phash,dhash\na,8f373714acfcf4d0,00ff00ff00ff00ff\nb,0f373714acfcf4d0,11ff00ff00ff00ff\n"
    )
    assert "say which with --signature" in refused(["index", "h.csv", "-o", "i.lookalike"], capsys)
    assert main(["index", "h.csv", "--signature", "phash", "-o", "i.lookalike"]) == 0
    assert "the signer is not known" in capsys.readouterr().out
    assert main(["search", "i.lookalike", "8f373714acfcf4d0", "--radius", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["results"]
    assert [(one["id"], one["distance"]) for one in found] == [("a", 0), ("b", 1)]
    Path("q.txt").write_text("0f373714acfcf4d0\n")
    assert main(["search", "i.lookalike", "--signatures", "q.txt", "-k", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["id"] == "b"


def test_lists_of_pdq_hashes(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sign", "photos", "--hash", "pdq", "-o", "list.csv", "--quiet"]) == 0
    lines = Path("list.csv").read_text().splitlines()
    assert len(lines) == 5  # also the white image: its quality tells
    assert re.fullmatch("[0-9a-f]{64},[0-9]+,photos/0.png", lines[0])
    assert main(["index", "list.csv", "--hash", "pdq", "-o", "list.lookalike", "--quiet"]) == 0
    scene(1, 160).save("query.jpg", quality=80)
    capsys.readouterr()
    assert main(["search", "list.lookalike", "query.jpg", "--radius", "31", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "photos/1.png" in json.dumps(found)
    assert "index --hash pdq" in refused(["search", "list.csv", "query.jpg"], capsys)
    index = ["index", "list.csv", "-o", "x.lookalike", "--hash"]
    assert "expected one of: dct, gradient, pdq" in refused([*index, "phash"], capsys)
    index[1] = "list.lookalike"
    assert "--hash does nothing" in refused([*index, "pdq"], capsys)
    Path("texts.jsonl").write_text('{"text": "words"}\n')
    assert ".lookalike or .npy" in refused(["sign", "texts.jsonl", "-o", "x.csv"], capsys)
