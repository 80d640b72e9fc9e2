"""Words that do not tell topics: in repeated lines, in names, function words and numbers."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.features.stop_words import STOP_LISTS
from lookalike.topics.boilerplate import Boilerplate, names_of_persons, without_repeated_lines
from lookalike.topics.function_words import meaningless_words
from lookalike.topics.listed import Listed

SENTENCES = {
    "english": "the cat is on the roof and it waits until we are there with a fish",
    "german": "die katze ist auf dem dach und sie wartet bis wir mit einem fisch da sind",
    "french": "le chat est sur le toit et il attend que nous soyons là avec un poisson",
    "spanish": "el gato está en el tejado y espera hasta que estemos allí con un pescado",
    "italian": "il gatto è sul tetto e aspetta che noi siamo lì con un pesce per lui",
    "portuguese": "o gato está no telhado e espera até que nós estejamos lá com um peixe",
    "dutch": "de kat is op het dak en ze wacht tot wij er zijn met een vis voor haar",
}


def hashed(words: list[str]) -> set[int]:
    documents = _native.Documents.from_list(words, 0)
    return set(la.Words()._reader.extract(documents)[1].tolist())


def meaningless(texts: list[str]) -> set[int]:
    listed = Listed.of(la.Words(), _native.Documents.from_list(texts, 0), 1)
    return set(meaningless_words(la.Words(), listed).tolist())


@pytest.mark.parametrize("language", STOP_LISTS)
def test_the_languages_of_a_corpus_are_recognized(language: str) -> None:
    found = meaningless([SENTENCES[language]] * 3 + ["galaxy telescope"] * 20)
    assert hashed(sorted(STOP_LISTS[language])) <= found
    assert not hashed(["galaxy", "cat", "katze", "chat", "gato", "gatto", "kat"]) & found
    if language in ("english", "german"):
        other = "german" if language == "english" else "english"
        own = STOP_LISTS[language]
        assert not hashed([word for word in STOP_LISTS[other] if word not in own]) & found


def test_numbers_are_meaningless_and_dumps_of_bytes_are_recognized() -> None:
    assert hashed(["7", "42", "1999", "9a", "ff00"]) <= meaningless(["galaxy"])
    assert not hashed(["cd", "mp3", "ipv6", "face"]) & meaningless(["galaxy"])
    dump = " ".join(f"{byte:02x}" for byte in range(256))
    assert hashed(["fd", "ba", "ee"]) <= meaningless([dump])


def test_names_beside_initials_and_addresses() -> None:
    assert names_of_persons("By J. Doe, A.B. Coe and Jane Roe <roe@x.org>; see Poe, E. A.") == [
        *("Doe", "Coe", "Jane Roe", "Poe")
    ]
    assert names_of_persons("Max\n  Muster  <max AT x DOT org>") == ["Max\n  Muster"]
    assert names_of_persons("The Session Initiation Protocol, see above. In general") == []
    assert names_of_persons("Max Muster (MM) <mm@x.org>") == ["Max Muster"]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("Copyright (C) 2001-2005, 2007 Jane Roe", ["Jane Roe"]),
        ("Copyright: 1999 by Jane Roe and Max Muster", ["Jane Roe and Max Muster"]),
        ("© 2010, Jane Roe, Example Inc", ["Jane Roe, Example Inc"]),
        ("           2012 Jane Roe", ["Jane Roe"]),
        ("(c) 1998 Anna-Maria O'Neil.", ["Anna-Maria O'Neil"]),
        ("the year 2012 Max was born", []),
        ("Copyright law of 1998", []),
        ("version 2012 is here", []),
    ],
)
def test_names_after_the_years_of_a_copyright(line: str, names: list[str]) -> None:
    assert names_of_persons(line) == names


def test_names_and_addresses_are_found_in_documents_that_have_them() -> None:
    """Two of 100 documents have them; none of the twelve that are looked at anyway."""
    texts = ["galaxy telescope"] * 100
    texts[50] = "galaxy\nCopyright 2012 Jane Roe\nsee jroe@example.org"
    texts[51] = "telescope, Jane Roe <jroe@example.org>"
    look = Boilerplate(
        la.Words(), _native.Documents.from_list(texts, 0), np.zeros(100, np.int64), 1
    )
    words = ["galaxy", "telescope", "roe", "jane", "jroe", "example"]
    ranked = [[(next(iter(hashed([word]))), 1.0) for word in words]]
    assert look.without(0, ranked) == [ranked[0][:2]]


@pytest.mark.parametrize(
    "part",
    [
        *("A. ", "A.A.", "A", "a", "Ab ", "Ab-", "Ab <a", "<a", " ", "Ab, ", "a@", "\n", "1999,"),
        *("1999 Ab ", "1999 Ab and ", "© ", "(c) ", "Ab (", "Ab (a) ", "a.", "\n1999-"),
    ],
)
def test_any_text_is_read_in_a_time_in_proportion_to_its_length(part: str) -> None:
    text = part * (200_000 // len(part))
    began = time.process_time()
    names_of_persons(text)
    without_repeated_lines(text)
    assert time.process_time() - began < 10


@given(st.lists(st.sampled_from(["one", "two", "page 1", "page 2", "page 3", ""])))
def test_repeated_lines_are_kept_once(lines: list[str]) -> None:
    text = "\n".join(lines)
    lines = text.splitlines()
    keys = [line.rstrip("123 ") for line in lines]
    expected = [
        line
        for at, (line, key) in enumerate(zip(lines, keys, strict=True))
        if keys.count(key) < 3 or key not in keys[:at]
    ]
    some = any(keys.count(key) >= 3 for key in keys if key)
    assert without_repeated_lines(text) == ("\n".join(expected) if some else text)


def test_words_of_headers_and_names_are_left_out() -> None:
    body = [f"filler{at}" for at in range(590)]
    page = "Rosen & Fern        Standards Track      [Page {}]\n"
    text = " ".join(body) + "\nsignal signal signal\n" + "".join(map(page.format, range(5)))
    text += "Written by J. Doe.\nSee Doe, J.\nDoe, J., A Title\n"
    texts = _native.Documents.from_list([text] * 3, 0)
    look = Boilerplate(la.Words(), texts, np.zeros(3, np.int64), 1)
    words = ["rosen", "fern", "standards", "track", "page", "signal", "doe"]
    ranked = [[(next(iter(hashed([word]))), 1.0) for word in words]]
    assert look.without(0, ranked) == [
        [pair for pair in ranked[0] if pair[0] in hashed(["signal"])]
    ]


def test_names_of_footers_are_compared_with_their_other_occurrences() -> None:
    """A footer without initials on each page does not hide that a word is a name."""
    text = "J. Doe wrote this page about whales. See Doe, J., Whales, and Doe on whales.\n"
    text += "".join(f"whales whales\nDoe & Roe   [Page {number}]\n" for number in range(40))
    texts = _native.Documents.from_list([text] * 3, 0)
    look = Boilerplate(la.Words(), texts, np.zeros(3, np.int64), 1)
    ranked = [[(next(iter(hashed([word]))), 1.0) for word in ("doe", "whales")]]
    kept = look.without(0, ranked)[0]
    assert next(iter(hashed(["doe"]))) not in [word for word, _ in kept]
