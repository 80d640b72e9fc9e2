"""`la.clean(unit=...)`: lines, sentences and paragraphs, compared with a slow count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.cleaning import repeats
from lookalike.cleaning.settings import UNITS
from support.oracles.cleaning import units_removed, words_of

_WORDS = st.lists(st.sampled_from(["Ab", "Cd", "Ef", "gh", "..."]), min_size=0, max_size=3)
_SENTENCES = st.builds(lambda words, end: " ".join(words) + end, _WORDS, st.sampled_from(".!?"))
_TEXTS = st.lists(
    st.tuples(_SENTENCES, st.sampled_from([" ", "\n", "\n\n", " \n \n", "  "])), max_size=6
).map(lambda parts: "".join(text + end for text, end in parts))


def units_of(text: str, unit: str) -> list[str]:
    """Return the units of a text."""
    begins = _native.units(_native.Documents.from_list([text], 0), UNITS.index(unit)).tolist()
    if not text:
        return []
    data = text.encode()
    ends = [*begins[1:], len(data)]
    return [data[begin:end].decode() for begin, end in zip(begins, ends, strict=True)]


@given(
    st.lists(_TEXTS, max_size=6),
    st.sampled_from(UNITS),
    st.integers(1, 3),
    st.integers(1, 2),
    st.booleans(),
)
def test_units_are_removed_as_counted(
    texts: list[str], unit: str, most: int, least: int, every: bool
) -> None:
    options = {"unit": unit, "max_documents": most, "words": least, "min_left": 0}
    result = la.clean(texts, remove="all" if every else "copies", **options)  # type: ignore[arg-type]
    units = [units_of(text, unit) for text in texts]
    removed = units_removed(units, most=most, least=least, every=every)
    for row, (own, gone) in enumerate(zip(units, removed, strict=True)):
        left = [words_of(one) for one, away in zip(own, gone, strict=True) if not away]
        assert words_of(result.text(row)) == [word for one in left for word in one]
    cleaned = [result.text(row) for row in range(len(texts))]
    if not every:
        again = la.clean(cleaned, **options)  # type: ignore[arg-type]
        assert [again.text(row) for row in range(len(texts))] == cleaned
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "HASH_BITS", 1)
        other = la.clean(texts, remove="all" if every else "copies", **options)  # type: ignore[arg-type]
    assert other.to_arrow() == result.to_arrow()


def test_lines_and_their_counts() -> None:
    texts = [f"Page {at}\nAccept cookies\nBody {at}\n" for at in range(5)]
    result = la.clean(texts, unit="line")
    assert result.texts() == [texts[0], *(f"Page {at}\nBody {at}\n" for at in range(1, 5))]
    (unit,) = result.units()
    assert (unit.text, unit.documents, unit.copies) == ("Accept cookies", 5, 5)
    assert la.clean(texts, unit="line", max_documents=5).texts() == texts
    assert "Accept" not in "".join(la.clean(texts, unit="line", remove="all").texts())


def test_a_line_twice_in_one_document() -> None:
    assert la.clean(["a\nb\na\n"], unit="line", max_documents=9).texts() == ["a\nb\n"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("See Fig. 3 by J. Smith et al. Next. It", ["See Fig. 3 by J. Smith et al. Next. ", "It"]),
        ("It is 3.5 m. and more. So", ["It is 3.5 m. and more. ", "So"]),
        ("He said “Go.” She went.", ["He said “Go.” ", "She went."]),
        ("One\n\ntwo", ["One\n\n", "two"]),
        ("一。二！三", ["一。", "二！", "三"]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert units_of(text, "sentence") == expected


def test_paragraphs_and_lines() -> None:
    text = "\n\na\nb\n \nc\n\n"
    assert units_of(text, "paragraph") == ["\n\na\nb\n \n", "c\n\n"]
    assert units_of("a\n\nb", "line") == ["a\n", "\n", "b"]
