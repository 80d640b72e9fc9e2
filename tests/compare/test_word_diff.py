from __future__ import annotations

from itertools import pairwise

from hypothesis import given

from compare.test_shingles import texts
from lookalike.compare.texts import word_diff


@given(texts, texts)
def test_a_diff_has_both_texts_in_it(a: str, b: str) -> None:
    diff = word_diff(a, b)
    assert diff.complete
    squeezed = {"a": "", "b": ""}
    for part in diff.parts:
        text = "".join(part.text.split())
        squeezed["a"] += text if part.kind != "insert" else ""
        squeezed["b"] += text if part.kind != "delete" else ""
        assert part.text.strip()
    assert squeezed == {"a": "".join(a.split()), "b": "".join(b.split())}
    assert all(one.kind != two.kind for one, two in pairwise(diff.parts))
    if a == b:
        assert {part.kind for part in diff.parts} <= {"equal"}


def test_a_diff_of_words() -> None:
    diff = word_diff("The quick fox ran.\n\nIt hid. Far away", "The slow fox ran. So it hid.")
    assert [(part.kind, part.text) for part in diff.parts] == [
        ("equal", "The "),
        ("delete", "quick "),
        ("insert", "slow"),
        ("equal", " fox ran. "),
        ("delete", "It "),
        ("insert", "So it"),
        ("equal", " hid. "),
        ("delete", "Far away"),
    ]


def test_signs_are_no_part_of_words() -> None:
    diff = word_diff("It hid.", "It hid, and slept.")
    assert [(part.kind, part.text) for part in diff.parts] == [
        ("equal", "It hid"),
        ("insert", ", and slept"),
        ("equal", "."),
    ]


def test_the_work_is_bounded() -> None:
    a = " ".join(f"w{number * 7 % 101}" for number in range(200_000))
    b = " ".join(f"w{number * 9 % 101}" for number in range(200_000))
    diff = word_diff(a, b)
    assert not diff.complete
    assert sum(len(part.text) for part in diff.parts) < 100_000
    for same in (" ".join(f"w{number}" for number in range(200_000)), "x y z " * 20_000):
        diff = word_diff(f"{same} old {same}", f"{same} new {same}")
        assert diff.complete
        assert [part.kind for part in diff.parts] == ["equal", "delete", "insert", "equal"]
