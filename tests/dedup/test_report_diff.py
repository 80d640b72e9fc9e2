"""Differences as they are shown: marked, bounded, and honest about what is left out."""

from __future__ import annotations

import html
import re
import time

import pytest

from lookalike.dedup.report.diff_view import excerpt, side_by_side


@pytest.mark.parametrize(
    "left, right",
    [
        ("a " * 3_000_000, "a " * 1_500_000 + "b " + "a " * 1_500_000),
        ("a b " * 500_000, "b a a " * 300_000),
        ("x" * 8_000_000, "x" * 4_000_000 + "y" + "x" * 4_000_000),
        ("\n" * 4_000_000 + "a", " " * 4_000_000 + "b"),
        (" ".join(map(str, range(500_000))), " ".join(map(str, range(500_000, 0, -1)))),
        ("<" * 5_000_000, "&" * 5_000_000),
        ("".join(map(chr, range(0x4E00, 0x9FFF))) * 50, "中" * 1_000_000),
    ],
)
def test_long_and_repetitive_texts_take_bounded_time_and_room(left: str, right: str) -> None:
    begin = time.process_time()
    assert len(side_by_side(left, right)) < 150_000
    assert time.process_time() - begin < 10


def test_what_is_not_compared_is_said() -> None:
    left = " ".join(f"left{number}" for number in range(5000))
    right = " ".join(f"right{number}" for number in range(5000))
    assert "was not compared" in side_by_side(left, right)
    assert "was not compared" not in side_by_side("a b c", "a b d")
    assert "was not compared" in side_by_side("a b c", "a b d", cut=True)


def marks(page: str, tag: str) -> list[str]:
    return [html.unescape(text) for text in re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)]


def test_short_texts_are_shown_whole_with_the_changes_marked() -> None:
    page = side_by_side("The quick <brown> fox jumps", "The slow <brown> fox & I jump")
    assert marks(page, "del") == ["quick", "jumps"]
    assert marks(page, "ins") == ["slow", "& I jump"]
    assert "The <del>quick</del> &lt;brown&gt; fox <del>jumps</del>" in page


def test_of_long_texts_the_surroundings_of_changes_are_shown() -> None:
    words = [f"w{number}" for number in range(5000)]
    edited = words.copy()
    edited[1000], edited[4000] = "here", "there"
    page = side_by_side(" ".join(words), " ".join(edited))
    assert marks(page, "del") == ["w1000", "w4000"]
    assert marks(page, "ins") == ["here", "there"]
    assert page.count("characters with the same words") == 3
    assert "w990 " in page and " w1010" in page and "w500 " not in page and "w2500 " not in page


def test_many_changes_are_counted_not_shown() -> None:
    words = [f"w{number}" for number in range(4000)]
    edited = [f"x{n}" if n % 100 == 50 else word for n, word in enumerate(words)]
    page = side_by_side(" ".join(words), " ".join(edited))
    assert len(marks(page, "ins")) == 6
    assert "34 more changes" in page


def test_equal_words_are_said_to_be_equal() -> None:
    page = side_by_side("the  same\nwords", "the same words")
    assert "the same words" in page
    assert not marks(page, "del") and not marks(page, "ins")


def test_an_excerpt_shows_the_first_change() -> None:
    other = " ".join(f"w{number}" for number in range(300))
    assert excerpt(other, other, 100, cut=False) is None
    late = excerpt(other.replace("w200 ", "<new> "), other, 100, cut=False) or ""
    assert late.startswith("…") and late.endswith("…")
    assert marks(late, "ins") == ["<new>"] and marks(late, "del") == ["w200"]
    # What is different only because the text was cut is not marked.
    assert excerpt(other[:500], other[:507], 600, cut=True) is None
    assert marks(excerpt("a b c", "a b d", 600, cut=False) or "", "ins") == ["c"]
