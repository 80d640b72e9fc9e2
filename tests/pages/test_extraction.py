"""What is read from a page: its main text, and nothing that surrounds it."""

from __future__ import annotations

import codecs
from itertools import combinations

import numpy as np
import pytest
from benchmarks.pages.layouts import LAYOUTS, make_article, make_page
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.pages import FIELDS, RawPage
from lookalike.pages.extract import read_page
from lookalike.pages.marks import split_marks, without_marks
from support.cases.web_pages import page

SHINGLES = la.Words(5)


def text_of(html: str | bytes, charset: str | None = None) -> str:
    data = html.encode() if isinstance(html, str) else html
    return read_page(RawPage(data, charset), ["text"]).text or ""


def test_an_article_is_the_same_in_every_layout() -> None:
    for seed in range(4):
        article = make_article(seed)
        texts = [text_of(make_page(article, layout, seed)) for layout in LAYOUTS]
        for text in texts:
            assert la.jaccard(article.text, text, SHINGLES) >= 0.9
        for one, two in combinations(texts, 2):
            assert la.jaccard(one, two, SHINGLES) >= 0.9
        one, two = (make_page(article, layout, seed) for layout in ("semantic", "table"))
        assert la.jaccard(one, two, SHINGLES) < 0.6  # which is what it is for


def test_what_surrounds_the_text_is_gone() -> None:
    found = read_page(RawPage(page("Words that matter.", title="A &amp; B").encode()), FIELDS)
    assert found.title == "A & B"
    assert found.text is not None
    assert "Words that matter." in found.text
    for word in ("styled", "scripted", "Homepage", "Footnotes", "<"):
        assert word not in found.text


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        (page("naïve café").encode(), None),
        (codecs.BOM_UTF8 + page("naïve café").encode().replace(b"utf-8", b"latin1"), None),
        (codecs.BOM_UTF16_LE + page("naïve café").encode("utf-16-le"), None),
        (page("naïve café").encode("utf-16-be"), "utf-16be"),
        (page("naïve café").replace("utf-8", "ISO-8859-1").encode("latin-1"), None),
        (page("naïve café").encode("latin-1"), "windows-1252"),
        (page("naïve café").encode(), "no-such-charset"),
        (page("naïve café").replace("utf-8", "cp1252").encode("cp1252"), "no-such-charset"),
        (page("naïve café").encode("utf-16-le"), None),
        (page("naïve café").encode("utf-16-be"), "iso-8859-1"),
        (page("naïve café").encode(), "utf-16"),
        (page("naïve café").replace('<meta charset="utf-8">', "").encode(), None),
        (page("naïve café " * 9).replace('<meta charset="utf-8">', "").encode("cp1252"), None),
    ],
)
def test_the_encoding_is_found_out(data: bytes, charset: str | None) -> None:
    assert "naïve café" in text_of(data, charset)


def test_languages_are_told() -> None:
    for language, words in (
        ("en", "The quick brown fox jumps over the lazy dog and runs away into the old forest."),
        ("de", "Der schnelle braune Fuchs springt über den faulen Hund und läuft in den Wald."),
        ("fr", "Le renard brun saute par-dessus le chien paresseux et s'enfuit dans la forêt."),
    ):
        assert read_page(RawPage(page(words).encode()), ["language"]).language == language
    assert read_page(RawPage(b"<p>hi"), ["language"]).language is None


def test_links_lead_where_they_lead() -> None:
    links = (
        '<p>See <a href="/a?x=1&amp;y=2">one <b>and</b> more</a>, <a href="b.html">two</a>, '
        '<a href="//other.example/c">three</a>, <a href="https://full.example/">four</a>, '
        '<a href="#top">no</a> <a href="JavaScript:x()">no</a> <a href="mailto:a@b">no</a> '
        '<a href="http://[broken">five</a> <a>no</a></p>'
    )
    html = page("Some words.", links=links).encode()
    found = read_page(RawPage(html, None, "http://example.org/dir/page"), ["links"]).links
    assert found == [
        ("http://example.org/home", "Homepage"),
        ("http://example.org/a?x=1&y=2", "one and more"),
        ("http://example.org/dir/b.html", "two"),
        ("http://other.example/c", "three"),
        ("https://full.example/", "four"),
        ("http://[broken", "five"),
    ]
    based = html.replace(b"<title>", b'<base href="https://base.example/x/"><title>')
    found = read_page(RawPage(based, None, "http://example.org/"), ["links"]).links
    assert found is not None
    assert ("https://base.example/x/b.html", "two") in found


def test_marked_text_has_the_words_of_the_text_and_its_links() -> None:
    links = '<p>Before it <a href="http://x.example/ü?a=1">the anchor</a> after it.</p>'
    found = read_page(RawPage(page("Some words here.", links=links).encode()), FIELDS)
    assert found.marked is not None
    assert found.text is not None
    parts = split_marks(found.marked)
    assert parts[1] == "http://x.example/ü?a=1"
    assert parts[2] == "the anchor"
    for kind in (la.Words(), la.Words(5), la.Words(2, stopwords="english")):
        assert la.jaccard(found.text, found.marked, kind) == 1
        assert np.array_equal(kind.counts([found.text]), kind.counts([found.marked]))
    assert without_marks(found.marked).split() == found.text.split()


PIECES = st.sampled_from(
    ["<div>", "</div>", "<p>", "<b>", "</b>", "<a href='x'>", "</a>", "<table>", "<td>", "<script>",
     "</script>", "<!--", "-->", "<svg>", "<title>", "</title>", "&amp;", "&#xD800;", "&#0;",
     "word ", "ümläut ", "\x00", "\U0010f200", "<", ">", '"', "<img alt='", "<meta charset=utf-16>"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=300), st.lists(PIECES, max_size=60).map("".join)),
       st.sampled_from([None, "utf-8", "utf-16", "gbk", "bogus", "\x00"]))  # fmt: skip
def test_any_bytes_are_a_page(html: bytes | str, charset: str | None) -> None:
    data = html.encode("utf-8", "surrogatepass") if isinstance(html, str) else html
    found = read_page(RawPage(data, charset, "http://example.org/"), FIELDS)
    again = read_page(RawPage(data, charset, "http://example.org/"), FIELDS)
    assert found == again
    assert found.text is not None
    assert found.marked is not None
    strings = [found.text, found.title or "", found.marked]
    strings += [part for link in found.links or () for part in link]
    for string in strings:
        assert string.encode().decode() == string
        assert "\0" not in string
    assert len(split_marks(found.marked)) % 3 == 1
