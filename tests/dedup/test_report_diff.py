"""The words that differ: exactly those, and never in time that long texts run away with."""

from __future__ import annotations

import html
import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.dedup.report import diff
from lookalike.dedup.report.diff import WORDS_AT_A_TIME, difference
from lookalike.dedup.report.diff_view import excerpt, side_by_side

WORD = st.text("abc", min_size=1, max_size=2)
SPACE = st.sampled_from([" ", "  ", "\n", "\t\n  ", "\u2003"])
TEXT = st.lists(st.tuples(SPACE, WORD), max_size=40).map(
    lambda parts: "".join(space + word for space, word in parts)
)


def split(text: str, changes: list[slice]) -> tuple[list[str], list[list[str]]]:
    """Return the words outside of changes, and those inside of each."""
    outside, at = [], 0
    for change in changes:
        assert at <= change.start <= change.stop <= len(text)
        outside += text[at : change.start].split()
        at = change.stop
    return outside + text[at:].split(), [text[change].split() for change in changes]


def changed(left: str, right: str) -> list[tuple[str, str]]:
    """Return what became what."""
    found = difference(left, right)
    assert found.complete
    assert (found.left_end, found.right_end) == (len(left), len(right))
    return [(left[change.left], right[change.right]) for change in found.changes]


@given(TEXT, TEXT)
def test_what_is_outside_of_changes_is_the_same_on_both_sides(left: str, right: str) -> None:
    found = difference(left, right)
    assert found.complete
    left_words, removed = split(left, [change.left for change in found.changes])
    right_words, added = split(right, [change.right for change in found.changes])
    assert left_words == right_words
    for gone, came in zip(removed, added, strict=True):
        assert gone or came
        assert gone != came


@given(st.integers(5, 12), st.lists(st.integers(0, 20), max_size=80), st.data())
def test_windows_agree_on_what_is_outside_of_changes(
    window: int, words: list[int], data: st.DataObject
) -> None:
    places = data.draw(st.sets(st.integers(0, max(0, len(words) - 1)), max_size=8))
    edits = st.sampled_from(["", "new", "new 3", "5 5 5", "x" * 70])
    left = " ".join(map(str, words))
    right = " ".join(
        data.draw(edits) if place in places else str(word) for place, word in enumerate(words)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diff, "WORDS_AT_A_TIME", window)
        found = difference(left, right)
    if found.complete:
        assert (found.left_end, found.right_end) == (len(left), len(right))
    left_words, _ = split(left[: found.left_end], [change.left for change in found.changes])
    right_words, _ = split(right[: found.right_end], [change.right for change in found.changes])
    assert left_words == right_words


@given(st.lists(WORD, max_size=30), SPACE, SPACE)
def test_white_space_makes_no_difference(words: list[str], one: str, two: str) -> None:
    assert changed(one.join(words), two.join(words) + two) == []


@settings(max_examples=50)
@given(
    st.integers(0, 2 * WORDS_AT_A_TIME),
    st.integers(0, 2 * WORDS_AT_A_TIME),
    st.sampled_from([("old", "new"), ("old", ""), ("", "new"), ("one two three", "four")]),
    st.integers(0, 10_000),
)
def test_one_change_is_marked_exactly(
    before: int, after: int, change: tuple[str, str], seed: int
) -> None:
    rng = random.Random(seed)
    first = " ".join(f"w{rng.randrange(500)}" for _ in range(before))
    last = " ".join(f"w{rng.randrange(500)}" for _ in range(after))
    left, right = (" ".join([first, middle, last]) for middle in change)
    assert changed(left, right) == [change]


def test_every_tenth_word_of_a_long_text() -> None:
    words = [f"w{number}" for number in range(1500)]
    edited = [f"x{word}" if number % 10 == 5 else word for number, word in enumerate(words)]
    expected = [(word, f"x{word}") for number, word in enumerate(words) if number % 10 == 5]
    assert changed(" ".join(words), " ".join(edited)) == expected


def test_scripts_without_spaces_are_compared_by_character() -> None:
    assert changed("東京は大きい都市です。", "東京は小さい都市です。") == [("大き", "小さ")]
    assert changed("ภาษาไทยง่าย", "ภาษาไทยยาก") == [("ง่", "ย"), ("ย", "ก")]


def test_of_a_very_long_word_only_a_piece_is_marked() -> None:
    ((gone, came),) = changed("x" * 10_000 + "y" + "x" * 100, "x" * 10_000 + "z" + "x" * 100)
    assert "y" in gone and "z" in came
    assert len(gone) == len(came) <= 128


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
    assert not difference(left, right).complete
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
    assert excerpt(other, other, 100, cut=False).startswith("w0 w1")
    late = excerpt(other.replace("w200 ", "<new> "), other, 100, cut=False)
    assert late.startswith("…") and late.endswith("…")
    assert marks(late, "ins") == ["<new>"]
    # What is different only because the text was cut is not marked.
    assert marks(excerpt(other[:500], other[:507], 600, cut=True), "ins") == []
    assert marks(excerpt("a b c", "a b d", 600, cut=False), "ins") == ["c"]
