"""`la.clean`: every repeated run is removed, and nothing else, compared with all windows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.cleaning import repeats
from lookalike.cleaning.result import CleanResult
from support.oracles.cleaning import (
    Run,
    in_any_chain,
    in_passages,
    kept_words,
    repeated,
    words_of,
)

_SEPARATORS = st.sampled_from([" ", " ", " ", ", ", ". ", ".\n", "\n\n", " (", ") ", "-", "! "])
_LETTERS = st.sampled_from(["a", "b", "A", "c1"])


@st.composite
def corpora(draw: st.DrawFn, words: st.SearchStrategy[str] = _LETTERS) -> list[str]:
    """Return texts of few different words, with copies of parts of each other."""
    made: list[list[str]] = []
    for _ in range(draw(st.integers(1, 5))):
        document = draw(st.lists(words, max_size=25))
        for source in draw(st.lists(st.sampled_from(made), max_size=2)) if made else []:
            begin = draw(st.integers(0, len(source)))
            end = draw(st.integers(begin, len(source)))
            at = draw(st.integers(0, len(document)))
            document = document[:at] + source[begin:end] + document[at:]
        made.append(document)
    return ["".join(word + draw(_SEPARATORS) for word in document) for document in made]


def every_text(result: CleanResult) -> list[str]:
    return [result.text(row) for row in range(len(result.documents))]


def without_ranges(texts: Sequence[str], result: CleanResult) -> list[str]:
    """Return the texts without the ranges of the table, which are in characters."""
    left = [list(text) for text in texts]
    table = result.to_arrow().to_pylist()
    for row in table:
        for at in range(row["begin"], row["end"]):
            left[row["id"]][at] = ""
    return ["".join(one) for one in left]


@given(corpora(), st.integers(2, 6), st.booleans())
def test_exactly_the_repeated_words_are_removed(texts: list[str], size: int, every: bool) -> None:
    remove = "all" if every else "copies"
    result = la.clean(texts, words=size, boundary="word", remove=remove, min_left=0)
    expected = kept_words(texts, size, every=every)
    cleaned = every_text(result)
    assert [words_of(text) for text in cleaned] == [[word for _, word in one] for one in expected]
    assert without_ranges(texts, result) == cleaned
    removed = sum(map(len, map(words_of, texts))) - sum(map(len, expected))
    assert result.counts.words == removed
    again = la.clean(cleaned, words=size, boundary="word", remove=remove, min_left=0)
    assert every_text(again) == cleaned


@given(corpora(), st.integers(2, 6), st.sampled_from(["auto", "line", "sentence", "paragraph"]))
def test_other_boundaries(texts: list[str], size: int, boundary: str) -> None:
    result = la.clean(texts, words=size, boundary=boundary, min_left=0)
    cleaned = every_text(result)
    assert without_ranges(texts, result) == cleaned
    if boundary == "auto":
        covered, _ = repeated(list(map(words_of, cleaned)), size, every=False)
        assert not any(covered)
    again = la.clean(cleaned, words=size, boundary=boundary, min_left=0)
    assert every_text(again) == cleaned


@st.composite
def edited_corpora(draw: st.DrawFn) -> list[str]:
    """Return texts with copies of parts of each other, in which some words are changed."""
    made: list[list[str]] = []
    for _ in range(draw(st.integers(1, 4))):
        document = draw(st.lists(_LETTERS, max_size=6))
        for source in draw(st.lists(st.sampled_from(made), max_size=2)) if made else []:
            copy = list(source)
            for at in draw(st.lists(st.integers(0, len(copy)), max_size=3)):
                copy[at : at + draw(st.integers(0, 2))] = draw(st.lists(_LETTERS, max_size=2))
            at = draw(st.integers(0, len(document)))
            document = document[:at] + copy[:30] + document[at:]
        made.append(document + [f"w{at}" for at in range(draw(st.sampled_from([0, 5, 12])))])
    return ["".join(word + draw(_SEPARATORS) for word in document) for document in made]


@given(
    st.one_of(edited_corpora(), corpora()),
    st.integers(2, 16),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([1, 2, 8]),
    st.sampled_from(
        [
            None,
            {"_BUDGET": 64, "_MOST_BITS": 3, "_TEXTS": 2, "_RANGE_BYTES": 16},
            {"HASH_BITS": 2},
        ]
    ),
)
def test_exactly_the_edited_copies_are_removed(
    texts: list[str], size: int, gap: int, every: bool, most: int, files: dict[str, int] | None
) -> None:
    remove = "all" if every else "copies"
    expected = kept_words(texts, size, every=every, gap=gap, most=most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "MOST_PLACES", most)

        def cleaned(given: list[str], threads: int) -> CleanResult:
            return la.clean(
                given,
                words=size,
                gap=gap,
                boundary="word",
                remove=remove,
                min_left=0,
                threads=threads,
            )

        result = cleaned(texts, 1)
        left = every_text(result)
        assert [words_of(text) for text in left] == [[word for _, word in one] for one in expected]
        assert without_ranges(texts, result) == left
        assert len(cleaned(left, 1)) == 0
        if result.rounds == 1:
            for number in range(len(result)):
                assert words_of(result.copied_text(number)) == words_of(result.removed_text(number))
        for name, value in (files or {}).items():
            patch.setattr(repeats, name, value)
        if files is not None:
            assert cleaned(texts, 3).to_arrow() == result.to_arrow()


_PLACES = st.integers(0, 12)


@given(
    st.lists(st.tuples(_PLACES, _PLACES, st.integers(2, 5)), max_size=7, unique=True),
    st.integers(2, 16),
    st.integers(0, 4),
)
def test_the_oracle_finds_all_chains(runs: list[Run], size: int, gap: int) -> None:
    assert in_passages(runs, size, gap) == in_any_chain(runs, size, gap)


@given(edited_corpora(), st.integers(2, 12), st.integers(1, 3), st.sampled_from(["auto", "line"]))
def test_edited_copies_and_other_boundaries(
    texts: list[str], size: int, gap: int, boundary: str
) -> None:
    result = la.clean(texts, words=size, gap=gap, boundary=boundary, min_left=0)
    left = every_text(result)
    assert without_ranges(texts, result) == left
    assert len(la.clean(left, words=size, gap=gap, boundary=boundary, min_left=0)) == 0


def test_an_edited_copy() -> None:
    words = [f"word{number}" for number in range(70)]
    edited = [*words[:20], "changed", *words[21:41], *words[42:54], "put in", *words[54:]]
    texts = [f"It is {' '.join(words)}.", f"Before. It {' '.join(edited)}. After."]
    kept = la.clean(texts, gap=2, boundary="word")
    assert kept.text(1) == "Before. It changed put in After."
    assert [row["words"] for row in kept.to_arrow().to_pylist()] == [20, 20, 12, 16]
    assert la.clean(texts, gap=2).text(1) == "Before. After."
    assert la.clean(texts, gap=1, boundary="word").counts.words == 20 + 20 + 12
    assert len(la.clean(texts)) == 0


def test_edited_copies_of_a_license() -> None:
    """Of equal windows, only some places are compared, so the work grows as the text does."""
    words = [f"word{number}" for number in range(200)]
    texts = [" ".join(words)]
    for number in range(2000):
        own = list(words)
        own[number % 17 :: 23] = [f"x{number}" for _ in own[number % 17 :: 23]]
        texts.append(f"Program {number}. {' '.join(own).capitalize()}.")
    result = la.clean(texts, gap=2)
    assert result.counts.changed == 2000
    assert result.text(2000) == "Program 1999."
    assert result.counts.rounds == 1


def test_the_number_of_compared_places_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often words occur, a window is compared with a few places."""
    compared = []
    native = _native.RepeatTexts

    class Counted(native):  # type: ignore[misc, valid-type]
        def copies(self, hashes: object, *more: object) -> object:
            (places, firsts), counts = super().copies(hashes, *more)
            compared.append((len(places), len(hashes)))  # type: ignore[arg-type]
            return (places, firsts), counts

    monkeypatch.setattr(_native, "RepeatTexts", Counted)
    texts = [f"{'the early bird gets the worm ' * 3} {at}" for at in range(400)]
    la.clean(texts, words=10, gap=1)
    assert max(windows for _, windows in compared) > 3000
    assert all(pairs <= (repeats.MOST_PLACES + 1) * windows for pairs, windows in compared)


_ODD = st.sampled_from(["a", "b", "字", "中", "é", "e\u0301", "\u0301", "İ", "ß", "😀", "अ"])


@given(corpora(_ODD), st.integers(2, 5))
def test_other_scripts(texts: list[str], size: int) -> None:
    result = la.clean(texts, words=size, boundary="word", min_left=0)
    cleaned = every_text(result)
    assert without_ranges(texts, result) == cleaned
    kept = [len(words_of(text)) for text in cleaned]
    assert sum(kept) == sum(len(words_of(text)) for text in texts) - result.counts.words
    covered, _ = repeated(list(map(words_of, cleaned)), size, every=False)
    assert not any(covered)


@given(corpora(), st.integers(2, 6), st.booleans())
def test_equal_hashes_of_different_words(texts: list[str], size: int, every: bool) -> None:
    remove = "all" if every else "copies"
    expected = la.clean(texts, words=size, remove=remove, min_left=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "HASH_BITS", 2)
        found = la.clean(texts, words=size, remove=remove, min_left=0)
    assert found.to_arrow() == expected.to_arrow()


@given(corpora(), st.integers(2, 6))
def test_small_files_and_many_threads(texts: list[str], size: int) -> None:
    expected = la.clean(texts, words=size, threads=1, min_left=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "_BUDGET", 64)
        patch.setattr(repeats, "_MOST_BITS", 3)
        patch.setattr(repeats, "_TEXTS", 2)
        found = la.clean(texts, words=size, threads=3, min_left=0)
    assert found.to_arrow() == expected.to_arrow()


@given(corpora(), st.integers(2, 5), st.sampled_from(["last", "longest", "shortest", "max:rank"]))
def test_the_order_decides_which_copy_is_kept(texts: list[str], size: int, keep: str) -> None:
    rows = [{"text": text, "rank": 7 * at % 5} for at, text in enumerate(texts)]
    keys = {
        "last": lambda at: -at,
        "longest": lambda at: (-len(texts[at].encode()), at),
        "shortest": lambda at: (len(texts[at].encode()), at),
        "max:rank": lambda at: (-(7 * at % 5), at),
    }
    order = sorted(range(len(texts)), key=keys[keep])
    result = la.clean(rows, words=size, boundary="word", keep=keep, min_left=0)
    expected = kept_words([texts[at] for at in order], size)
    found = [words_of(result.text(at)) for at in order]
    assert found == [[word for _, word in one] for one in expected]


@given(corpora(), st.integers(2, 6))
def test_a_removed_range_says_where_its_first_copy_is(texts: list[str], size: int) -> None:
    result = la.clean(texts, words=size, boundary="word", min_left=0)
    for number, row in enumerate(result.to_arrow().to_pylist()):
        words = words_of(result.removed_text(number))
        copy = texts[row["copy_of"]][row["copy_begin"] : row["copy_end"]]
        assert result.copied_text(number) == copy
        assert (row["copy_of"], row["copy_begin"]) < (row["id"], row["begin"])
        if result.rounds == 1:
            assert words_of(copy) == words


CUTS = [
    ("Kept. Bird gets the worm. More text.", "Kept. More text."),
    ("Kept (bird gets the worm) more", "Kept more"),
    ("Kept words bird gets the worm.\nMore", "Kept words\nMore"),
    ("First.\n\nBird gets the worm.\n\nMore", "First.\n\nMore"),
    ("First.\nBird gets the worm.\n\nMore", "First.\n\nMore"),
    ("First.\n\nBird gets the worm.", "First."),
    ("First.\n\nBird gets the worm.\n", "First.\n"),
    ("Bird gets the worm. More", "More"),
    ("- one\n- bird gets the worm\n- two", "- one\n- two"),
    ("word,bird gets the worm-next", "word,next"),
    ("bird gets the worm", ""),
    ("  bird gets the worm  ", ""),
    ("x\r\nbird gets the worm\r\ny", "x\r\ny"),
    ("“Bird gets the worm” — said", "— said"),
]


@pytest.mark.parametrize(("text", "expected"), CUTS)
def test_punctuation_and_space_around_removed_words(text: str, expected: str) -> None:
    result = la.clean(["The bird gets the worm!", text], words=4, boundary="word", min_left=0)
    assert result.text(1) == expected


def test_no_two_words_become_one() -> None:
    texts = ["中文字中文字", "abc中文字中文字def"]
    result = la.clean(texts, words=6, boundary="word", min_left=0)
    assert result.text(1) == "abc字def"


def test_the_rest_of_a_sentence_goes_unless_something_else_needs_it() -> None:
    run = "the early bird gets the worm"
    short = f"So it was. {run.capitalize()} today. Done."
    result = la.clean([f"{run}.", short], words=6, min_left=0)
    assert result.text(1) == "So it was. Done."
    # The words behind the run are the first copy of another one.
    third = "gets the worm today but nobody"
    texts = [f"{run}.", f"It {run} today but nobody. Done.", third]
    assert la.clean(texts, words=6, min_left=0).text(2) == ""
    cleaned = la.clean(texts, words=6, min_left=0).text(1)
    assert "today but nobody" in cleaned


def test_a_license_in_many_documents() -> None:
    license = " ".join(f"word{number}" for number in range(200))
    texts = [f"Program {at}. {license.capitalize()}. {at} ended." for at in range(3000)]
    result = la.clean(texts)
    assert result.counts.changed == 2999
    assert result.text(0) == texts[0]
    assert result.text(2999) == "Program 2999. 2999 ended."
    assert set(result.removals.copy_documents.tolist()) == {0}


def test_repetition_within_a_document_keeps_its_first_copy() -> None:
    text = "a b c d. " * 5
    assert la.clean([text], words=4, boundary="word").texts() == ["a b c d. "]
    assert la.clean(["a " * 9], words=3, boundary="word").texts() == ["a a a "]
    assert la.clean([text], words=4, remove="all").texts() == []


def test_rounds_remove_what_removing_text_has_made() -> None:
    run = "one two three four"
    # Without the run, the second document has the words of the third.
    texts = [run, f"alpha beta {run} gamma delta", "alpha beta gamma delta"]
    result = la.clean(texts, words=4, boundary="word", min_left=0)
    assert [result.text(at) for at in range(3)] == [run, "alpha beta gamma delta", ""]
    assert result.counts.rounds == 2


def test_documents_with_few_words_left_are_dropped() -> None:
    texts = ["the early bird gets the worm", "the early bird gets the worm", "x", "", "q"]
    assert la.clean(texts, words=4).texts() == [texts[0], "x", "", "q"]
    assert la.clean(texts, words=4, min_left=0).texts() == [texts[0], "", "x", "", "q"]
    more = ["the early bird gets the worm", "the early bird gets the worm. And more"]
    assert len(la.clean(more, words=4, min_left=2).texts()) == 2
    assert len(la.clean(more, words=4, min_left=3).texts()) == 1


def test_no_documents_and_short_ones() -> None:
    for texts in ([], [""], ["", ""], ["a"], ["...", "..."]):
        result = la.clean(texts)
        assert result.texts() == texts
        assert len(result) == 0
        assert result.to_arrow().num_rows == 0


BAD = [
    ({"words": 1}, "words"),
    ({"words": "x"}, "words"),
    ({"unit": "page"}, "unit"),
    ({"remove": "some"}, "remove"),
    ({"boundary": "letter"}, "boundary"),
    ({"unit": "line", "boundary": "word"}, "boundary"),
    ({"gap": -1}, "gap"),
    ({"unit": "line", "gap": 1}, "gap"),
    ({"max_documents": 3}, "max_documents"),
    ({"unit": "line", "max_documents": 0}, "max_documents"),
    ({"keep": "none"}, "keep"),
    ({"keep": "best"}, "keep"),
    ({"keep": "max:nothing"}, "nothing"),
    ({"min_left": -1}, "min_left"),
    ({"memory_limit": 1}, "memory_limit"),
]


@pytest.mark.parametrize(("options", "named"), BAD)
def test_wrong_options_are_refused(options: dict[str, object], named: str) -> None:
    with pytest.raises(la.LookalikeError, match=named):
        la.clean(["a b c"], **options)  # type: ignore[arg-type]
