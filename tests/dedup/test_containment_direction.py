"""Old documents and containment: which direction drops a new document."""

from __future__ import annotations

import pytest

import lookalike as la

ITEM = "the quick brown fox jumps over the lazy dog near the old river bank today"
LONG = f"some training text that begins here {ITEM} and goes on with other words after it"
PART = "brown fox jumps over the lazy dog near the old river"


@pytest.mark.parametrize(
    ("direction", "kept"),
    [("contained", [LONG]), ("containing", [PART]), ("either", [])],
)
@pytest.mark.parametrize("exact", [False, True])
def test_direction(direction: str, kept: list[str], exact: bool) -> None:
    result = la.dedup(
        [LONG, PART, "something entirely different from all of that"],
        against=[ITEM],
        measure="containment",
        threshold=0.9,
        ngram=3,
        direction=direction,
        exact=exact,
    )
    assert result.kept() == [*kept, "something entirely different from all of that"]


def test_equal_documents_are_dropped_in_any_direction() -> None:
    for direction in ("contained", "containing", "either"):
        result = la.dedup(
            [ITEM], against=[ITEM], measure="containment", ngram=3, direction=direction
        )
        assert result.kept() == []


def test_the_direction_is_of_containment() -> None:
    with pytest.raises(la.LookalikeError, match="direction"):
        la.dedup(["a"], against=["a"], direction="either")
    with pytest.raises(la.LookalikeError, match="direction"):
        la.dedup(["a"], measure="containment", direction="up")
