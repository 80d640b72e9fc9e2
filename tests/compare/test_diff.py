"""The words that differ: exactly those, and never in time that long texts run away with."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.test_shingles import texts
from lookalike.compare import diff
from lookalike.compare.diff import WORDS_AT_A_TIME, difference
from lookalike.compare.texts import shared_shingles
from lookalike.features import Words

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


@given(texts, texts)
def test_nothing_but_white_space_is_lost(left: str, right: str) -> None:
    found = difference(left, right)
    assert found.complete
    left_words, removed = split(left, [change.left for change in found.changes])
    right_words, added = split(right, [change.right for change in found.changes])
    assert "".join(left_words) == "".join(right_words)
    assert all(gone or came for gone, came in zip(removed, added, strict=True))


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


def test_signs_are_no_part_of_words() -> None:
    assert changed("He hid.", "He hid, and slept.") == [("", ", and slept")]
    assert changed("f(old)", "f(new)") == [("old", "new")]
    assert changed("a.b", "a . b") == []


def test_a_mark_belongs_to_its_letter() -> None:
    assert changed("une e\u0301tude", "une a\u0301tude") == [("e\u0301tude", "a\u0301tude")]
    thai = "ภาษาไทย" * 30
    assert changed(f"{thai}ง่{thai}", f"{thai}ย่{thai}") == [("ง่", "ย่")]


def test_the_work_is_bounded() -> None:
    a = " ".join(f"w{number * 7 % 101}" for number in range(200_000))
    b = " ".join(f"w{number * 9 % 101}" for number in range(200_000))
    start = time.perf_counter()
    assert not difference(a, b).complete
    assert difference("same " * 1_000_000, "same " * 1_000_000).complete
    assert difference("a" + " " * 1_000_000 + "b", "c" + " " * 1_000_000 + "b").complete
    shared_shingles(a * 2, b * 2, Words(5))
    assert time.perf_counter() - start < 60  # quadratic would be hours


def test_a_long_common_beginning_and_end_are_no_obstacle() -> None:
    same = "x y z " * 20_000
    left, right = f"{same} old {same}", f"{same} new {same}"
    assert changed(left, right) == [("old", "new")]
