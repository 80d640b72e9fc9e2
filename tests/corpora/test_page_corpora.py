"""Pages in files and in columns, and which documents are wanted."""

from __future__ import annotations

import csv
import json
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.corpora import Problems, open_corpus
from lookalike.corpora.base import limited
from lookalike.corpora.columns import Filters, without_urls
from support.cases.web_pages import crawl, page, response
from support.running.refusals import refused

WORDS = (
    "The quick brown fox jumps over the lazy dog and then runs away into the forest again, where "
    "it sleeps until the sun comes up"
)
GERMAN = "Der schnelle braune Fuchs springt über den faulen Hund und läuft dann in den alten Wald"
BODIES = [WORDS, f"{WORDS} today", GERMAN, "Short one"]
PAGES = [page(words, title=f"Page {at}") for at, words in enumerate(BODIES)]


def rows_of(source: Any, **how: Any) -> list[dict[str, Any]]:
    corpus = open_corpus(source, **how)
    return [row for batch in corpus.rows(Problems()) for row in batch.to_pylist()]


def page_text(html: str) -> str:
    """Return what a page of ours says, without tags and entities."""
    return unescape(re.sub("<[^>]*>", "", html))


def table(path: Path) -> Path:
    """Write the pages as a column, in the format of the name."""
    rows = [{"url": f"http://e.org/{at}", "html": one, "n": at} for at, one in enumerate(PAGES)]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["url", "html", "n"])
            writer.writeheader()
            writer.writerows(rows)
    return path


def site(folder: Path) -> Path:
    """Write the pages as files, one of them deeper, and a text beside them."""
    (folder / "more").mkdir(parents=True)
    for at, one in enumerate(PAGES):
        (folder / ("more" if at == 2 else "") / f"{at}.{'htm' if at == 1 else 'html'}").write_text(
            one
        )
    (folder / "notes.txt").write_text("plain notes")
    return folder


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "csv"])
def test_a_column_of_pages(suffix: str, tmp_path: Path) -> None:
    made = rows_of(table(tmp_path / f"pages.{suffix}"), html="html")
    assert [int(row["n"]) for row in made] == [0, 1, 2, 3]
    assert list(made[0]) == ["url", "n", "title", "language", "text", "links"]
    for at, row in enumerate(made):
        assert row["title"] == f"Page {at}"
        assert BODIES[at] in row["text"]
        assert row["links"][0] == {"url": "http://e.org/home", "text": "Homepage"}
    assert [row["language"] for row in made[:3]] == ["en", "en", "de"]


def test_a_column_of_pages_keeps_what_has_its_names() -> None:
    made = rows_of([{"text": "old", "title": "mine", "html": PAGES[0]}], html="html")
    assert (made[0]["text"], made[0]["title"]) == ("old", "mine")
    assert WORDS in made[0]["page_text"]
    result = la.dedup([{"text": "old", "html": one} for one in PAGES], html="html", threshold=0.7)
    assert result.keep.tolist() == [True, False, True, True]
    assert result.kept().num_rows == 3
    binary = rows_of([{"html": PAGES[2].replace("utf-8", "latin1").encode("latin-1")}], html="html")
    assert GERMAN in binary[0]["text"]


def test_files_are_pages_unless_told_otherwise(tmp_path: Path) -> None:
    folder = site(tmp_path / "site")
    made = rows_of(folder)
    assert [row["path"] for row in made] == [
        "0.html",
        "1.htm",
        "3.html",
        "more/2.html",
        "notes.txt",
    ]
    assert made[0]["title"] == "Page 0"
    assert "<" not in made[0]["text"]
    assert made[4]["text"] == "plain notes"
    assert "<html>" in rows_of(folder, format="files")[0]["text"]
    assert len(rows_of(folder, format="html")) == 4
    assert rows_of(folder / "0.html")[0]["title"] == "Page 0"
    assert len(rows_of([folder / "0.html", folder / "1.htm"])) == 2


def test_what_stays_is_rows_or_the_files(tmp_path: Path) -> None:
    folder = site(tmp_path / "site")
    (folder / "deep.html").write_text("<div>" * 5000)
    result = la.dedup(folder, threshold=0.7)
    assert result.counts.left_out == 1
    assert "unreadable pages" in result.summary()
    assert result.write(tmp_path / "kept") == 4
    kept = sorted(
        str(one.relative_to(tmp_path / "kept")) for one in (tmp_path / "kept").rglob("*.*")
    )
    assert kept == ["0.html", "3.html", "more/2.html", "notes.txt"]
    assert (tmp_path / "kept" / "0.html").read_text() == PAGES[0]
    assert result.write(tmp_path / "kept.jsonl") == 4
    first = json.loads((tmp_path / "kept.jsonl").read_text().splitlines()[0])
    assert set(first) == {"path", "title", "language", "text", "links", "bytes"}
    report = tmp_path / "report.html"
    result.report(report)
    assert "unreadable pages" in report.read_text()
    assert "deep.html: has elements nested more than 1,000 levels deep" in report.read_text()
    with pytest.raises(la.errors.ArgumentError, match="is not an output format"):
        result.write(tmp_path / "kept.html")


def test_a_crawl_comes_out_as_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [response(f"http://e.org/{at}", one.encode()) for at, one in enumerate(PAGES)]
    path = crawl(tmp_path / "crawl.warc.gz", found)
    out = tmp_path / "out.jsonl"
    given = ["dedup", str(path), "--threshold", "0.7", "-o", str(out), "--json"]
    assert main(given) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["kept"] == 3
    made = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["url"] for row in made] == [f"http://e.org/{at}" for at in (0, 2, 3)]
    keys = ["id", "url", "date", "status", "title", "language", "text", "links"]
    assert list(made[0]) == keys
    for name in ("out.warc.gz", "out.html"):
        wrong = refused(["dedup", str(path), "-o", str(tmp_path / name)], capsys)
        assert "is not an output format" in wrong
    before = path.read_bytes()
    assert "has web pages" in refused(["dedup", str(path), "--in-place"], capsys)
    assert path.read_bytes() == before


def test_answers_do_not_depend_on_threads(tmp_path: Path) -> None:
    many = [page(f"{WORDS} {at}") if at % 7 else "<div>" * 3000 for at in range(300)]
    source = [{"html": one, "n": at} for at, one in enumerate(many)]
    made = []
    for threads in (1, 2, 3):
        with limited(None, threads):
            made.append(rows_of(source, html="html"))
    assert made[0] == made[1] == made[2]
    assert [row["n"] for row in made[0]] == [at for at in range(300) if at % 7]


def test_jobs_are_resumed(tmp_path: Path) -> None:
    path, work = table(tmp_path / "pages.jsonl"), tmp_path / "work"
    how: dict[str, Any] = {"html": "html", "work": work, "threshold": 0.7, "min_words": 5}
    first = la.dedup(path, **how)
    again = la.dedup(path, **how)
    assert "read" in again.reused
    assert again.counts == first.counts
    assert first.counts.left_out == 1
    assert again.write(tmp_path / "out.jsonl") == 2
    other = la.dedup(path, **{**how, "min_words": 4})
    assert "read" not in other.reused
    plain = la.dedup(path, text="html", work=work, threshold=0.7)
    assert "read" not in plain.reused


@pytest.mark.parametrize(
    ("filters", "kept", "kind"),
    [
        ({"min_words": 10}, [0, 1, 2], "too short"),
        ({"language": "en"}, [0, 1], "other language"),
        ({"language": "de,en"}, [0, 1, 2], "other language"),
        ({"min_links": 2}, [], "few links"),
        ({"min_bytes": len(PAGES[0].encode())}, [0, 1], "too small"),
    ],
)
def test_filters_leave_out_count_and_name(
    filters: dict[str, Any], kept: list[int], kind: str, tmp_path: Path
) -> None:
    path = table(tmp_path / "pages.jsonl")
    result = la.dedup(path, html="html", threshold=1, **filters)
    assert result.counts.documents == len(kept)
    assert result.documents.left_out == {kind: 4 - len(kept)}
    assert kind in result.summary()
    result.report(tmp_path / "report.html")
    (name, value), *_ = filters.items()
    written = page_text((tmp_path / "report.html").read_text())
    assert f", {name}={value!r}, html='html', " in written
    assert result.write(tmp_path / "out.jsonl") == len(kept)
    made = [json.loads(line)["n"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert made == kept


def test_filtered_lines_stay_as_they_are(tmp_path: Path) -> None:
    """Also with columns added, a function that keeps, and tables of every kind."""
    texts = [WORDS, "short", f"see https://e.org/x?y=1. {WORDS}", "two words", f"{GERMAN} end"]
    lines = [f'{{ "text":{json.dumps(text)}, "n" : {at}}}\n' for at, text in enumerate(texts)]
    path, out = tmp_path / "c.jsonl", tmp_path / "out.jsonl"
    path.write_text("".join(lines))
    result = la.dedup(path, min_words=5, strip_urls=True, threshold=0.9)
    assert result.keep.tolist() == [True, False, True]
    result.write(out)
    assert out.read_text() == lines[0] + lines[4]
    result.write_annotated(out)
    made = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["n"], row["duplicate_of"]) for row in made] == [(0, None), (2, 0), (4, None)]
    chosen = la.dedup(path, min_words=5, strip_urls=True, threshold=0.9, keep=lambda rows: rows[-1])
    assert chosen.keep.tolist() == [False, True, True]
    assert la.dedup(texts, min_words=5).kept() == [texts[0], texts[2], texts[4]]
    assert la.dedup(path, threshold=0.9).keep.all()
    with pytest.raises(la.errors.ArgumentError, match="language is 'english'"):
        la.dedup(texts, language="english")


def test_urls_go_and_what_ends_a_sentence_stays() -> None:
    assert (
        without_urls("see https://e.org/x?y=1. And www.b.example/c, (ftp://d)") == "see . And , ()"
    )
    assert without_urls("no urls: a.b and c/d") == "no urls: a.b and c/d"
    assert not Filters().any
    assert Filters(min_words=np.int64(3)).min_words == 3  # type: ignore[arg-type]


def test_links_are_features_of_pages(tmp_path: Path) -> None:
    same = '<p>Read <a href="http://x.example/">this</a></p>'
    made = [page(words, links=same) for words in (WORDS, GERMAN)] + [page(WORDS)]
    path = tmp_path / "pages.jsonl"
    path.write_text("".join(json.dumps({"html": one}) + "\n" for one in made))
    links = la.Links(around=1)
    by_links = la.dedup(path, html="html", features=links, exact=True, threshold=0.5)
    assert by_links.keep.tolist() == [True, False, True]
    by_words = la.dedup(path, html="html", exact=True, threshold=0.7)
    assert by_words.keep.tolist() == [True, True, False]
    assert by_links.write(tmp_path / "out.jsonl") == 2
    assert "\U0010f200" not in (tmp_path / "out.jsonl").read_text()


def test_every_command_reads_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table(Path("pages.jsonl"))
    signed = ["sign", "pages.jsonl", "--html", "html", "--method", "simhash", "-o", "s.lookalike"]
    assert main([*signed, "--min-words", "5", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["documents"], summary["left_out"]) == (3, {"too short": 1})
    searched = [
        "search",
        "s.lookalike",
        "--file",
        "pages.jsonl",
        "--html",
        "html",
        "--json",
        "-k",
        "1",
    ]
    assert main([*searched, "--in", "pages.jsonl", "--columns", "title"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["results"][0]["columns"] == {"title": "Page 0"}
    assert main(["collection", "create", "docs.db"]) == 0
    imported = ["collection", "import", "docs.db", "pages.jsonl", "--html", "html", "--id", "url"]
    assert main([*imported, "--language", "en", "--quiet"]) == 0
    with la.open_collection("docs.db") as docs:
        document = docs.get("http://e.org/1")
        assert document is not None
        assert document.metadata["title"] == "Page 1"
        assert WORDS in (document.text or "")
        assert docs.count() < 4
    assert main(["compare", "0", "1", "--in", "pages.jsonl", "--html", "html", "--rows"]) == 0
    capsys.readouterr()
    with open("pages.jsonl", "rb") as stream:
        monkeypatch.setattr(
            sys, "stdin", type("Input", (), {"buffer": stream, "isatty": lambda _: False})()
        )
        assert main(["dedup", "-", "--html", "html", "--threshold", "0.7", "-o", "out.jsonl"]) == 0
    assert len(Path("out.jsonl").read_text().splitlines()) == 3


def test_what_is_wrong_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path / "pages.jsonl")
    with pytest.raises(
        la.errors.ArgumentError, match="no column 'htm' for the HTML.*did you mean 'html'"
    ):
        la.dedup(path, html="htm")
    with pytest.raises(la.errors.DocumentError, match="is of type int64; expected HTML"):
        la.dedup([{"html": 3}], html="html")
    with pytest.raises(la.errors.ArgumentError, match="has no web pages; leave page_limits out"):
        la.dedup(["a"], page_limits=la.pages.PageLimits())
    limited = ["dedup", str(path), "--html", "html", "--page-limits"]
    assert "'depth=many' is not a page limit" in refused([*limited, "depth=many"], capsys)
    assert "depth is 2; expected" in refused([*limited, "depth=2"], capsys)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table(tmp_path / "pages.jsonl")
    monkeypatch.setitem(sys.modules, "resiliparse.parse.html", None)
    monkeypatch.setitem(sys.modules, "fastwarc.warc", None)
    with pytest.raises(la.errors.MissingDependencyError, match=r"pip install 'lookalike\[html\]'"):
        la.dedup(path, html="html")
    crawl(tmp_path / "c.warc", [])
    with pytest.raises(la.errors.MissingDependencyError, match=r"pip install 'lookalike\[html\]'"):
        la.dedup(tmp_path / "c.warc")


def test_links_can_be_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pages.jsonl"
    same = '<p>Read <a href="http://x.example/">this</a> before all others.</p>'
    made = [page(words, links=same) for words in (WORDS, f"Before it: {GERMAN}")]
    path.write_text("".join(json.dumps({"html": one}) + "\n" for one in made))
    given = ["dedup", str(path), "--html", "html", "--features", "links", "--json"]
    assert main([*given, "--threshold", "0.3", "--exact"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["kept"] == 1
    assert "--ngram does not go with links" in refused([*given, "--ngram", "3"], capsys)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_pages_that_are_too_long_are_left_out(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"pages.{suffix}"
    rows = [{"html": PAGES[0]}, {"html": "x" * 90_000}, {"html": PAGES[2]}, {"html": "y" * 9_000}]
    if suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    result = la.dedup(path, html="html", max_document=4_000)
    assert result.counts.documents == 2
    assert result.documents.left_out == {"unreadable pages": 2}
    assert result.write(tmp_path / "out.jsonl") == 2
    assert la.dedup(path, html="html").counts.documents == 4
    site(tmp_path / "site")
    (tmp_path / "site" / "large.html").write_text("z" * 9_000)
    assert la.dedup(tmp_path / "site", max_document=4_000).documents.left_out == {
        "unreadable pages": 1
    }


def test_texts_are_measured_in_bytes_of_utf8(tmp_path: Path) -> None:
    texts = ["ü" * 10, "u" * 19, "u" * 20, "", "ü" * 9 + "u"]
    result = la.dedup(texts, min_bytes=20)
    assert result.counts.documents == 2 and result.documents.left_out == {"too small": 3}
    site(tmp_path / "site")  # pages by their HTML, also in a folder, beside texts
    least = len(PAGES[0].encode())
    result = la.dedup(tmp_path / "site", min_bytes=least)
    assert result.counts.documents == 2 and result.documents.left_out == {"too small": 3}
    written = tmp_path / "kept"
    assert result.write(written) in (1, 2)
    assert main(["dedup", str(tmp_path / "site"), "--min-bytes", str(least), "--quiet"]) == 0
