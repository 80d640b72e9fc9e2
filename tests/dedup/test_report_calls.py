"""What reports say has to be typed to make them again: every call and command is run."""

from __future__ import annotations

import html
import json
import pathlib
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

import lookalike as la
from lookalike.cli import main
from support.cases.report_pages import corpus
from support.running.page_reader import read_page


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which things are typed."""
    monkeypatch.chdir(tmp_path)
    rows = corpus(3, 20)
    lines = [json.dumps({**row, "title": "a title", "size": at}) for at, row in enumerate(rows)]
    Path("corpus.jsonl").write_text("\n".join(lines))
    Path("other name.data").write_text("\n".join(lines))
    half = len(lines) // 2
    Path("one's.jsonl").write_text("\n".join(lines[:half]))
    Path("two.jsonl").write_text("\n".join(lines[half:]))
    Path("texts").mkdir()
    for at, row in enumerate(rows):
        Path(f"texts/{at}.txt").write_text(row["text"])
    Path("plain.txt").write_text("\n".join(row["text"] for row in rows))
    pages = [json.dumps({"url": row["id"], "page": f"<p>{row['text']}</p>"}) for row in rows]
    Path("pages.jsonl").write_text("\n".join(pages))
    return tmp_path


def typed(path: str = "report.html") -> str:
    """Return what a report says has to be typed."""
    return re.sub(r"\s+", " ", _typed_lines(Path(path).read_text()))


def _typed_lines(page: str) -> str:
    (line,) = re.findall(r'<p class="typed">(.*?)</p>', page, re.DOTALL)
    return html.unescape(line)


def without_times(page: str) -> str:
    """Return a report without what differs from run to run: when, and how long it took."""
    page = re.sub(r"Made on [^<]*", "", page)
    page = re.sub(r'<table class="timing">.*?</table>', "", page, flags=re.DOTALL)
    return re.sub(r'<span class="name">seconds</span>.*?</div>', "", page)


def run_again(**names: Any) -> None:
    """Run the call of report.html or topics.html, and compare the pages."""
    (name,) = [one for one in ("report.html", "topics.html") if Path(one).exists()]
    before = Path(name).read_text()
    call = typed(name)
    Path(name).unlink()
    exec(call, {"la": la, "pathlib": pathlib, **names})
    assert without_times(Path(name).read_text()) == without_times(before), call
    Path(name).unlink()


def longest_last(rows: list[dict[str, Any]]) -> int:
    return len(rows) - 1


def first_letters(text: str) -> list[str]:
    return [word[:5] for word in text.split()]


SETTINGS: list[dict[str, Any]] = [
    {},
    {"threshold": 0.5, "permutations": 64, "seed": 7},
    {"method": "simhash"},
    {"method": "simhash", "bits": 64, "radius": 9, "verify": False},
    {"method": "topsig", "threshold": 0.9, "ngram": 1},
    {"verify": False, "min_features": 3},
    {"exact": True, "keep": "longest"},
    {"exact": True, "measure": "cosine"},
    {"measure": "containment", "keep": "max:size"},
    {"grouping": "components", "max_group": 50, "keep": "last"},
    {"keep": "none", "ngram": (2, 3)},
    {"keep": longest_last},
    {"features": "chars", "ngram": 7},
    {"features": la.Words(3, stopwords="english")},
    {"features": la.Combined(la.Words(2), la.Chars(4))},
    {"features": first_letters},
    {"stop_words": "english"},
    {"stop_words": ["word1", "word2"]},
    {"min_words": 5, "strip_urls": True},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda one: " ".join(one) or "defaults")
def test_calls_of_dedup_give_the_same_report(folder: Path, settings: dict[str, Any]) -> None:
    la.dedup("corpus.jsonl", text="text", id="id", **settings).report("report.html")
    names = {name: settings[name] for name in ("keep", "features") if callable(settings.get(name))}
    run_again(**names)


SOURCES: list[Callable[[], tuple[Any, dict[str, Any]]]] = [
    lambda: ("other name.data", {"format": "jsonl", "text": "text"}),
    lambda: ([Path("one's.jsonl"), Path("two.jsonl")], {"text": "text"}),
    lambda: ("*.jsonl", {"text": "text", "skip_bad": True}),
    lambda: ("texts", {}),
    lambda: ("plain.txt", {}),
    lambda: ("pages.jsonl", {"html": "page", "id": "url"}),
    lambda: ("corpus.jsonl", {"text": "title"}),
]


@pytest.mark.parametrize("number", range(len(SOURCES)))
def test_calls_read_what_was_read(folder: Path, number: int) -> None:
    source, options = SOURCES[number]()
    if source == "*.jsonl":
        Path("pages.jsonl").unlink()  # it has other columns
    la.dedup(source, threshold=0.6, **options).report("report.html")
    run_again()


def test_calls_name_what_cannot_be_written_down(folder: Path) -> None:
    rows, old = corpus(4, 10), corpus(4, 3)
    la.dedup(rows, against=old).report("report.html")
    assert typed().startswith("la.dedup(source, text='text', id='id', against=against)")
    run_again(source=rows, against=old)


TOPICS: list[dict[str, Any]] = [
    {},
    {"k": 3, "seed": 2, "words": 4, "central": 2},
    {"ngram": (1, 2), "stop_words": ["word1"]},
    {"features": la.Words(2), "min_words": 3},
    {"features": first_letters},
]


@pytest.mark.parametrize("settings", TOPICS, ids=lambda one: " ".join(one) or "defaults")
def test_calls_of_topics_give_the_same_report(folder: Path, settings: dict[str, Any]) -> None:
    la.cluster_documents("corpus.jsonl", text="text", id="id", **settings).report("topics.html")
    run_again(features=first_letters)


def vectors() -> None:
    rows = np.random.default_rng(0).normal(size=(8, 4)).round(3).tolist() * 2
    lines = [json.dumps({"name": f"r{at}", "v": row, "size": at}) for at, row in enumerate(rows)]
    Path("vectors.jsonl").write_text("\n".join(lines))


@pytest.mark.parametrize(
    "settings",
    [{}, {"exact": True, "keep": "max:size"}, {"grouping": "components", "max_group": 5}],
)
def test_calls_of_vectors_give_the_same_report(folder: Path, settings: dict[str, Any]) -> None:
    vectors()
    la.dedup("vectors.jsonl", vectors="v", id="name", **settings).report("report.html")
    run_again()


def photos() -> None:
    Path("photos").mkdir()
    for number in range(3):
        noise = np.random.default_rng(number).integers(0, 256, (9, 12), np.uint8)
        image = Image.fromarray(noise).resize((120, 90))
        image.save(f"photos/{number}.png")
        image.resize((60, 45)).save(f"photos/{number} small.png")
        image.save(f"photos/{number} copy.png")


@pytest.mark.parametrize(
    "settings", [{}, {"bits": 64, "radius": 5, "hash": "gradient", "rotated": True}]
)
def test_calls_of_images_give_the_same_report(folder: Path, settings: dict[str, Any]) -> None:
    photos()
    la.dedup("photos", **settings).report("report.html")
    run_again()
    several = ["photos/0.png", "photos/0 copy.png"]
    la.dedup(several).report("report.html")
    run_again(source=several)


def test_calls_of_recordings_give_the_same_report(folder: Path) -> None:
    Path("music").mkdir()
    sound = np.random.default_rng(0).normal(0, 0.1, 3 * 8000)
    soundfile.write("music/one.wav", sound, 8000)
    soundfile.write("music/two.flac", sound, 8000)
    la.dedup("music", threshold=0.7).report("report.html")
    assert "signer=la.AudioHash(" in typed()
    run_again()


@pytest.mark.parametrize(
    "command",
    [
        "dedup corpus.jsonl --text text --threshold 0.6 --report report.html",
        'dedup "one\'s.jsonl" two.jsonl --text text --grouping components --report report.html',
        "dedup two.jsonl --text text --against corpus.jsonl --no-verify --report report.html",
        "dedup photos --radius 9 --report report.html",
        "dedup vectors.jsonl --vectors v --threshold 0.9 --report report.html",
        "cluster corpus.jsonl -k 3 --text text --report report.html",
    ],
)
def test_commands_give_the_same_report(
    folder: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    photos()
    vectors()
    assert main(shlex.split(command)) in (0, None)
    before = Path("report.html").read_text()
    said = shlex.split(typed())
    assert said[0] == "lookalike" and said[1:] == shlex.split(command)
    Path("report.html").unlink()
    assert main(said[1:]) in (0, None)
    assert without_times(Path("report.html").read_text()) == without_times(before)
    read_page(before)
