"""Titles of texts: headings are found, and lines that many documents begin with are not titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike.topics.titles import Headings

NOTHING = Headings(frozenset())


def memo(number: int, author: str, title: str) -> str:
    """Return a text with a header in two columns, and its title in the middle of a line."""
    return f"""



Network Working Group                                         {author}
Request for Comments: {number}                            An Institute
                                                          Some Street
Category: Informational                                   March 1990


{title}

Status of this Memo

   This memo provides information for the community.
"""


MEMOS = {
    "Transmission Control": memo(793, "J. Postel", "          Transmission Control"),
    "The Opaque Option": memo(794, "K. Other", "             The Opaque Option"),
    "A Framework for Multicast": memo(795, "L. Third", "       A Framework\n    for Multicast"),
    "Echo": memo(796, "M. Fourth", "                           Echo"),
}


@pytest.mark.parametrize("title", MEMOS)
def test_boilerplate_is_not_a_title(title: str) -> None:
    headings = Headings.of(MEMOS.values())
    assert headings.of_text(MEMOS[title]) == title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# A title #\n\nSome text.", "A title"),
        ("Title\n=====\n\nText text.", "Title"),
        ("A short line\nand a paragraph that\nfollows it", "A short line"),
        ("----\n\n42\n\n* The first words", "The first words"),
        ("one two " * 20, ("one two " * 20).strip()),
        ("a long line " * 6 + "\ngoes on", "a long line " * 6 + "goes on"),
        ("   \n\t ", ""),
        ("?!", ""),
        (".. _anchor:\n\n:Author: A. Person\n\nThe Title\n=====", "The Title"),
        ("Obsoletes RFCs: 758, 755\n\n     A Title", "A Title"),
        ("A Board                         P. Person\n\n   A Title", "A Title"),
        ("Date: 1 March\nSubject: The Subject\n\nText", "Date: 1 March"),
        ("Subject: The Subject\nDate: 1 March\n\nText", "The Subject"),
        ("", ""),
    ],
)
def test_headings_of_texts(text: str, title: str) -> None:
    assert NOTHING.of_text(text) == title


def test_titles_may_begin_equally() -> None:
    texts = [f"# Coming from {name}\n\nText." for name in ("one", "two", "three", "four")]
    assert Headings.of(texts).of_text(texts[2]) == "Coming from three"


def test_a_title_under_a_heading() -> None:
    pages = [f"NAME\n       {name} - do {name}\n\nSYNOPSIS\n       {name}" for name in "abcd"]
    assert Headings.of(pages).of_text(pages[1]) == "b - do b"


def test_fields_that_many_documents_have_are_not_titles() -> None:
    texts = [f"Format: {at}x\nFiles: *\n\nThe license of {name}" for at, name in enumerate("abcd")]
    assert Headings.of(texts).of_text(texts[2]) == "The license of c"


def test_a_text_of_boilerplate_alone_has_no_title() -> None:
    same = "The same line"
    assert Headings.of([same] * 5).of_text(same) == ""


@given(st.lists(st.text(max_size=80), max_size=6), st.text(max_size=200))
def test_any_title_is_one_line(others: list[str], text: str) -> None:
    title = Headings.of(others).of_text(text)
    assert title == " ".join(title.split())
    assert title in " ".join(text.split())
