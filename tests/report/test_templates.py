"""Templates escape every value, and say when one is missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from lookalike.report.drawing import bar, element, label, svg
from lookalike.report.frame import page
from lookalike.report.markup import Markup, escape_html, pieces, rendered
from support.running.page_reader import read_page

EVIL = "</style><script>alert(1)</script>\"'>&\x1b[2J\u202e"


def safe(text: str) -> bool:
    return not any(part in text for part in ("<script", "\x1b", "\u202e", "\"'>"))


def test_values_are_escaped_and_markup_is_not() -> None:
    macros = pieces("report/pieces.html")
    for made in (
        macros.tile(EVIL, EVIL, EVIL, EVIL),
        macros.figure(EVIL, EVIL, EVIL),
        macros.remade(EVIL),
        macros.made(EVIL, EVIL),
        macros.table([EVIL], [[EVIL]], [0], EVIL, EVIL),
        label(1, 2, EVIL, EVIL),
        bar(EVIL, 1, 2, 3, EVIL),
        svg(EVIL, [element("<g>{}</g>", EVIL)]),
    ):
        assert isinstance(made, Markup)
        assert safe(made)
        assert "&lt;script&gt;" in made
    assert "<b>1</b>" in macros.figure("a", Markup("<b>1</b>"), "c")


def test_a_page_escapes_what_is_not_ready() -> None:
    text = page(EVIL, EVIL, [EVIL], [("one", EVIL, EVIL), ("two", "Two", "")], style=EVIL)
    assert safe(text)
    read_page(text)
    assert 'id="one"' in text
    assert 'id="two"' not in text  # nothing is in it
    assert "script-src 'none'" in text


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="title"):
        rendered(
            "report/page.html", brand="", about=[], sections=[], allowed="", style="", policy=""
        )


@given(st.text())
def test_shown_text_is_shown_once(text: str) -> None:
    assert escape_html(escape_html(text)) == escape_html(text)
    assert pieces("report/pieces.html").remade(escape_html(text)) == (
        pieces("report/pieces.html").remade(text)
    )
