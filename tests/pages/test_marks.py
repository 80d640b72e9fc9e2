"""Text with marks: links see them, nobody else does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.corpora import Problems, open_corpus
from lookalike.pages import Page, RawPage
from lookalike.pages.marks import has_marks, split_marks, without_marks
from lookalike.pages.workers import read_pages
from support.cases.web_pages import crawl, page, response

SNIPPETS = [
    "foo<a href='/x'>bar</a>baz end",
    "foo<a href='/x'> bar </a>baz end",
    "foo <a href='/x'>bar <a href='/y'>inner</a> x</a> baz end",
    "if a &lt; b and &lt;a href=&quot;http://e.org/&quot;&gt;c&lt;/a&gt; then",
    "foo \U0010f200\U0010f141\U0010f201evil\U0010f202\U0010f203 <a href='/x'>l</a>",
    "foo <a href='/x?a=1&amp;b=&lt;2'>bar</a> &amp;amp; baz",
]


def read(words: str) -> Page:
    raw = RawPage(page(words).encode(), "utf-8", "http://example.org/")
    (found,) = read_pages([raw], ["text", "marked"])
    assert isinstance(found, Page)
    return found


@pytest.mark.parametrize("words", SNIPPETS)
@pytest.mark.parametrize("kind", [la.Words(), la.Words(2), la.Chars(3), la.Words((1, 2))])
def test_others_beside_links_read_the_text_alone(kind: la.features.FeatureKind, words: str) -> None:
    found = read(words)
    marked = found.marked or ""
    assert without_marks(marked).split() == cleaned(found.text).split()
    links = la.Links()
    for combined in (la.Combined(kind, links), la.Combined(links, kind)):
        counted = combined.counts([marked]) - links.counts([marked])
        assert counted == kind.counts([without_marks(marked)])


def test_functions_beside_links_are_given_the_text_alone() -> None:
    marked = read(SNIPPETS[0]).marked or ""

    def whole(text: str) -> list[str]:
        return [text]

    links = la.Links(around=0)
    assert links.counts([marked]) == 2
    plain = without_marks(marked)
    assert plain != marked
    assert la.jaccard(marked, plain, la.Combined(whole, links)) == 1 / 3


def cleaned(text: str | None) -> str:
    return "".join(one if not 0x10F100 <= ord(one) <= 0x10F203 else " " for one in text or "")


def test_the_text_of_a_page_is_not_parsed_again() -> None:
    tags = page("&lt;a href=&quot;http://e.org/&quot;&gt;shown as source&lt;/a&gt;").replace(
        '<a href="/home">', "<a>"
    )
    (found,) = read_pages([RawPage(tags.encode())], ["marked"])
    assert isinstance(found, Page)
    assert found.marked is not None and has_marks(found.marked)
    assert la.Links().counts([found.marked]) == 0
    assert len(split_marks(found.marked)) == 1
    assert without_marks(found.marked).endswith('<a href="http://e.org/">shown as source</a>')


def test_a_page_full_of_signs_does_not_end_the_work(tmp_path: Path) -> None:
    signs = page("&lt;" * 100_001 + " words")
    path = crawl(
        tmp_path / "c.warc",
        [response(f"http://e.org/{at}", one.encode()) for at, one in enumerate([signs, page("w")])],
    )
    assert la.dedup(path, features="words,links").counts.documents == 2


def test_a_text_cut_off_within_marks_has_none_left() -> None:
    marked = read("some <a href='/x'>words here</a> and more").marked
    assert marked is not None
    for end in range(len(marked) + 1):
        assert all(ord(one) < 0x10F000 for one in without_marks(marked[:end]))


@pytest.mark.parametrize("features", ["links", "words,links", "chars,links"])
def test_nobody_is_shown_marks(features: str, tmp_path: Path) -> None:
    link = "<p>See <a href='http://e.org/long/address'>the link</a></p>"
    pages = [page(f"many words that are the same{at * ' now'}", links=link) for at in range(2)]
    path = crawl(
        tmp_path / "c.warc",
        [response(f"http://e.org/{at}", one.encode()) for at, one in enumerate(pages)],
    )
    result = la.dedup(path, against=path, features=features, threshold=0.3)
    shown = [result.text(0), result.text(1), result.old_text(1)]
    result.report(tmp_path / "report.html")
    shown.append((tmp_path / "report.html").read_text())
    for text in shown:
        assert "the link" in text
        assert not any(0x10F100 <= ord(one) <= 0x10F203 for one in text)


def test_words_are_counted_alike_with_and_without_links(tmp_path: Path) -> None:
    path = crawl(
        tmp_path / "c.warc",
        [response("http://e.org/", page("f<a href='/x'>o</a>o bar").encode())],
    )
    for features in ("words", "words,links"):
        for least, kept in ((3, 1), (4, 0)):
            result = la.dedup(path, features=features, min_words=least)
            assert result.counts.documents == kept


def test_texts_beside_pages_have_the_links_that_are_urls_in_them(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(page("no link but that to home"))
    (tmp_path / "b.txt").write_text("two: http://e.org/1 and http://e.org/2 <b>")
    result = la.dedup(tmp_path, min_links=2)
    assert (result.counts.documents, result.documents.left_out) == (1, {"few links": 1})
    corpus = open_corpus(tmp_path)
    marked = [row for batch in corpus.read(["marked_text"], Problems()) for row in batch[0]]
    assert la.Links().counts([str(one) for one in marked]).tolist() == [0, 0]


def test_documents_of_a_corpus_are_compared_by_their_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = "<p>As <a href='http://e.org/{}'>it</a> says</p>"
    pages = [page("words " * 9, links=link.format(at)) for at in range(2)]
    for at, one in enumerate(pages):
        (tmp_path / f"{at}.html").write_text(one)
    path = crawl(
        tmp_path / "c.warc",
        [response(f"http://e.org/{at}", one.encode()) for at, one in enumerate(pages)],
    )
    asked = [
        ["--in", str(path), "http://e.org/0", "http://e.org/1"],
        [str(tmp_path / "0.html"), str(tmp_path / "1.html")],
    ]
    for named in asked:
        assert main(["compare", *named, "--features", "links", "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["shingles"]["only_a"] == answer["shingles"]["only_b"] == 1
        assert answer["bytes"] == [len("Title\n\n" + "words " * 9 + "\n\nAs it says")] * 2


def test_a_collection_of_links_has_each_text_once(tmp_path: Path) -> None:
    path = crawl(tmp_path / "c.warc", [response("http://e.org/", page("some words").encode())])
    signer = la.SimHash(64, features=la.Combined(la.Words(), la.Links()))
    with la.open_collection(tmp_path / "docs.db", signer=signer) as docs:
        docs.import_file(path)
        found = docs.get("http://e.org/")
    assert found is not None
    assert "some words" in (found.text or "")
    assert set(found.metadata) == {"url", "date", "status", "title", "links"}
