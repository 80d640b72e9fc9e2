"""Files that are web pages, where a command takes a file for one text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import lookalike as la
from lookalike.cli import main
from support.cases.web_pages import page
from support.running.refusals import refused

WORDS = "The ferry to the islands will run every hour this summer"


@pytest.fixture
def pages(tmp_path: Path) -> list[str]:
    one = tmp_path / "one.html"
    one.write_text(page(WORDS))
    two = tmp_path / "two.htm.gz"
    two.write_bytes(gzip.compress(f"<title>x</title><h1>Title</h1><p>{WORDS}</p>".encode("utf-16")))
    return [str(one), str(two)]


def compared(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(["compare", *arguments, "--json"]) == 0
    answer: dict[str, object] = json.loads(capsys.readouterr().out)
    return answer


def test_compare_takes_the_text_of_pages(
    pages: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(f"Title\n\n{WORDS}")
    for other in (pages[1], str(text)):
        assert compared([pages[0], other], capsys)["equal"]
    source = compared([pages[0], pages[0], "--format", "files"], capsys)
    assert source["bytes"] == [len(page(WORDS))] * 2
    text.write_text(page(WORDS))
    assert compared([pages[0], str(text), "--format", "html"], capsys)["equal"]


def test_compare_says_why_a_page_has_no_text(
    pages: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deep.html").write_text("<div>" * 5000)
    for name, why in [("deep.html", "levels deep"), ("no.html", "No such file")]:
        assert why in refused(["compare", pages[0], str(tmp_path / name)], capsys)
    wrong = refused(["compare", *pages, "--html", "files"], capsys)
    assert "--html needs --in" in wrong


def test_collections_take_the_text_of_pages(
    pages: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = str(tmp_path / "docs.db")
    for command in (
        ["create", database],
        ["add", database, "one", "--file", pages[0]],
        ["get", database, "one", "--json"],
        ["search", database, "--file", pages[1], "--json", "--by", "similar"],
    ):
        capsys.readouterr()
        assert main(["collection", *command]) == 0
        if command[0] == "get":
            assert json.loads(capsys.readouterr().out)["text"] == f"Title\n\n{WORDS}"
    assert json.loads(capsys.readouterr().out)["distance"] == 0


def test_pages_are_not_written_over_by_their_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "pages.jsonl"
    rows.write_text("".join(json.dumps({"html": page(WORDS), "n": at}) + "\n" for at in range(2)))
    before = rows.read_bytes()
    for more in ([], ["--min-words", "1"]):
        wrong = refused(["dedup", str(rows), "--html", "html", "--in-place", *more], capsys)
        assert "has web pages" in wrong
    assert rows.read_bytes() == before


@pytest.mark.parametrize("column", [False, True])
@pytest.mark.parametrize("by_command", [False, True])
def test_limits_hold_for_old_pages_too(
    column: bool, by_command: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deep = "<html><body>" + "<div>" * 50 + f"<p>{WORDS}</p>" + "</div>" * 50
    flat = page(WORDS)
    sources = []
    for name, html in (("new", flat), ("old", deep)):
        path = tmp_path / (f"{name}.jsonl" if column else f"{name}.html")
        path.write_text(json.dumps({"html": html}) + "\n" if column else html)
        sources.append(path)
    new, old = sources
    for depth, longest, left_out in ((20, None, 1), (1000, None, 0), (1000, 600, 1)):
        if by_command:
            options = [*(["--html", "html"] * column), "--page-limits", f"depth={depth}"]
            options += ["--max-document", str(longest)] if longest else []
            assert main(["dedup", str(new), "--against", str(old), "--json", *options]) == 0
            counted = json.loads(capsys.readouterr().out)["counts"]["left_out"]
        else:
            counted = la.dedup(
                new,
                against=old,
                html="html" if column else None,
                page_limits=la.pages.PageLimits(depth=depth),
                max_document=longest,
            ).counts.left_out
        assert counted == left_out
