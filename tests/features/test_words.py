from __future__ import annotations

import sys
import unicodedata
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.features.stop_words import ENGLISH
from support.oracles import text as text_oracle
from support.oracles.text import Lengths

same_unicode = unicodedata.unidata_version == _native.unicode_version

SAMPLES = [
    "The quick brown fox, the lazy dog. THE END!",
    "naïve café CAFÉ cafe\u0301 ÇA ǅ İstanbul ΣΑΣ Straße",
    "Привет, мир! 123 ٤٥٦ ²³ ½ Ⅷ",
    "日本語のテキスト、mixed漢字and latin ー々〇",
    "สวัสดีชาวโลก ສະບາຍດີ ជំរាបសួរ မင်္ဂလာပါ",
    "नमस्ते दुनिया שָׁלוֹם עולם مَرْحَبًا",
    "한국어 텍스트 😀 emoji👩‍👩‍👧 family",
    "a\0b\0\0c under_score don't e-mail x\u200by \ufeffbom",
    "",
    "   \n\t ",
    "\u0301 leading mark",
    "𝐁𝐨𝐥𝐝 𠀀𠀁 𐐀𐐨",
]
texts = st.one_of(
    st.sampled_from(SAMPLES),
    st.text(max_size=60),
    st.text("aB1 é\u0301漢かไล์Σß_", max_size=60),
    st.text("abcdeFGH12 ,.", min_size=50, max_size=300),
    st.text("abcdeFGHIJKLMNOP1234567890 é", min_size=50, max_size=300),
    st.lists(st.sampled_from("the a of Cat dogs running 漢字 x1".split()), max_size=20).map(
        " ".join
    ),
)


lengths = st.integers(1, 6) | st.sets(st.integers(1, 7), min_size=2, max_size=4).map(
    lambda several: tuple(sorted(several))
)


def wrong(value: Any) -> Any:
    """Return a value that the type checker would not let through."""
    return value


def extracted(kind: Any, documents: list[str]) -> list[list[int]]:
    """Return the features the core finds, document by document."""
    batch = _native.Documents.from_list(documents, 0)
    offsets, features = kind._reader.extract(batch)
    return [features[a:b].tolist() for a, b in pairwise(offsets)]


@pytest.mark.skipif(not same_unicode, reason="Python has tables of another Unicode version")
@pytest.mark.parametrize("lowercase", [False, True])
def test_every_character_is_what_python_says(lowercase: bool) -> None:
    characters = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
    found = extracted(la.Words(lowercase=lowercase), [f"x {c} y" for c in characters])
    for character, features in zip(characters, found, strict=True):
        expected = ["x", "y"]
        if character.isalnum():
            expected.insert(1, text_oracle.lower(character) if lowercase else character)
        assert features == [text_oracle.xxh64(word) for word in expected], hex(ord(character))


@pytest.mark.parametrize("around", ["", "é", ".", "é é"])
def test_words_of_every_length_at_every_place(around: str) -> None:
    """ASCII is read 64 bytes at a time; a word may begin and end anywhere in them."""
    alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
    word = "".join(alphabet[at * 7 % 36] for at in range(200))
    cases = [(place, length) for place in range(70) for length in [*range(1, 36), 63, 64, 65, 150]]
    documents = [f"{' ' * place}{word[:length]} {around} x" for place, length in cases]
    hashes = {length: text_oracle.xxh64(word[:length]) for _, length in cases}
    others = [text_oracle.xxh64(each) for each in (*around.replace(".", "").split(), "x")]
    found = extracted(la.Words(), documents)
    assert found == [[hashes[length], *others] for _, length in cases]


@pytest.mark.skipif(not same_unicode, reason="Python has tables of another Unicode version")
@given(
    st.lists(texts, max_size=5),
    lengths,
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from([None, "english", ["cat", "DOGS", "漢"]]),
)
def test_words_equal_the_oracle(
    documents: list[str], ngram: Lengths, lowercase: bool, min_length: int, stopwords: Any
) -> None:
    kind = la.Words(ngram, lowercase, stopwords, min_length=min_length)
    stop = ENGLISH if stopwords == "english" else stopwords or ()
    if lowercase:
        stop = [text_oracle.lower(word) for word in stop]
    expected = [
        text_oracle.word_features(
            text, ngram, lowercase=lowercase, stopwords=stop, min_length=min_length
        )
        for text in documents
    ]
    assert extracted(kind, documents) == expected
    assert kind.counts(documents).tolist() == [len(features) for features in expected]


@given(st.lists(texts, max_size=5), lengths, st.booleans())
def test_characters_equal_the_oracle(documents: list[str], ngram: Lengths, lowercase: bool) -> None:
    kind = la.Chars(ngram, lowercase)
    expected = [text_oracle.char_features(text, ngram, lowercase) for text in documents]
    if same_unicode or not lowercase:
        assert extracted(kind, documents) == expected
    assert kind.counts(documents).tolist() == [len(features) for features in expected]


@given(
    st.lists(st.text("aB ", max_size=40) | st.text("é漢😀", max_size=3), max_size=8).map("".join),
    st.integers(1, 40),
    st.booleans(),
)
def test_runs_of_ascii_between_other_characters_equal_the_oracle(
    text: str, ngram: int, lowercase: bool
) -> None:
    expected = text_oracle.char_features(text, ngram, lowercase)
    assert extracted(la.Chars(ngram, lowercase), [text]) == [expected]


@pytest.mark.parametrize("language", ["english", "german", "russian"])
def test_stems_equal_those_of_snowball(language: str) -> None:
    documents = ["Running runners ran; connections connected", "Häuser und Hauses", "книги книгами"]
    stemmer = Stemmer.Stemmer(language)
    for ngram in (1, 2):
        kind = la.Words(ngram, stem=language)
        for _ in range(2):  # the second time all stems are known
            sources = list(kind.sources(documents))
            assert [len(source) for source in sources] == [3]
            expected = [
                text_oracle.word_features(text, ngram, stem=stemmer.stemWord) for text in documents
            ]
            assert extracted(kind, documents) == expected


def test_each_distinct_word_is_stemmed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = la.Words(stem="english")
    stemmed: list[str] = []

    class Recorder:
        def stemWords(self, words: list[str]) -> list[str]:  # noqa: N802
            stemmed.extend(words)
            return words

    monkeypatch.setattr(kind, "_stemmer", Recorder())
    kind.counts(["one two two", "two three one"] * 10_000)
    assert sorted(stemmed) == ["one", "three", "two"]


def test_stems_are_forgotten_before_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lookalike.features.text._MOST_STEMS", 100)
    documents = [f"walking{i} talks{i} cats" for i in range(20_000)]
    limited = la.SimHash(features=la.Words(stem="english")).sign(documents)
    monkeypatch.undo()
    kind = la.Words(stem="english")
    assert np.array_equal(limited, la.SimHash(features=kind).sign(documents))


def test_invalid_utf8_ends_words_and_nothing_worse() -> None:
    import pyarrow as pa

    raw = [
        b"good \xff bad",
        b"cut \xe2\x82",
        b"over\xc0\xafong",
        b"sur\xed\xa0\x80rogate",
        b"\xf4\x90\x80\x80",
        b"\xf0\x9f",
        b"\x80\x80x",
    ]
    column = pa.Array.from_buffers(
        pa.string(),
        len(raw),
        [
            None,
            pa.py_buffer(np.cumsum([0, *map(len, raw)]).astype(np.int32).tobytes()),
            pa.py_buffer(b"".join(raw)),
        ],
    )
    long = pa.array([b"\xff" * 200_000] * 3, pa.binary()).view(pa.string())
    assert la.Chars(3, lowercase=True).counts(long).tolist() == [199_998] * 3
    counts = la.Words().counts(column)
    assert counts.tolist() == [2, 1, 2, 2, 0, 0, 1]
    assert (la.Chars(3).counts(column) > 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: la.Words(ngram=0), "ngram is 0"),
        (lambda: la.Words(ngram=wrong(1.5)), "ngram is 1.5 of type float"),
        (lambda: la.Words(ngram=(1, 0)), "ngram is 0"),
        (lambda: la.Words(ngram=()), "expected a list of whole numbers"),
        (lambda: la.Chars(ngram=wrong("1,2")), "ngram is '1,2' of type str"),
        (lambda: la.Words(min_length=0), "min_length is 0"),
        (lambda: la.Words(stopwords="klingon"), r"expected a language \(english, german, "),
        (lambda: la.Words(stopwords=wrong([1, 2])), r"stopwords are \[1, 2\]"),
        (lambda: la.Words(stopwords=wrong(5)), "stopwords are 5"),
        (
            lambda: la.Words(stopwords=["the", "a\ud800"]),
            r"the stop word 'a\\ud800' has half of a surrogate pair",
        ),
        (lambda: la.Words(stem="klingon"), "stem is 'klingon'; expected one of: .*english"),
        (lambda: la.Chars(0), "ngram is 0"),
    ],
)
def test_settings_that_make_no_sense_are_named(make: Any, message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        make()


def test_a_missing_stemmer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(la.errors.MissingDependencyError, match=r"pip install 'lookalike\[stem\]'"):
        la.Words(stem="english")


def test_equal_settings_are_equal_kinds() -> None:
    assert la.Words(stopwords=["b", "a", "a"]) == la.Words(stopwords=["a", "b"])
    assert la.Words() != la.Words(ngram=2)
    assert la.Words(ngram=[2, 1, 2]) == la.Words(ngram=(1, 2)) != la.Words(ngram=2)
    assert la.Chars([3]) == la.Chars(3) and la.Chars(range(2, 4)).ngram == (2, 3)
    assert la.Words() != la.Chars()
    assert len({la.Words(), la.Words(), la.Chars()}) == 2
    assert repr(la.Chars(3)) == "Chars(ngram=3, lowercase=False)"
