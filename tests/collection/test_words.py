"""Search by words, beside a slow BM25: bags of words, the index in memory, and collections."""

from __future__ import annotations

import copy
import math
import sqlite3
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.collection.search import postings
from lookalike.collection.search import words as word_search
from lookalike.collection.search.postings import WordIndex
from lookalike.collection.search.words import words_of_query
from lookalike.collection.stores.entries import Entries
from lookalike.collection.stores.words import bags_of
from lookalike.signatures.estimates import chance_distance
from support.oracles import words as oracle

KINDS = ("porter", "plain", "trigram")
VOCABULARY = (
    "the of fox foxes jumping jumped jumps relational x 狐 2024 été naïve ß TopSig TCPSockets utf8 "
    "狐は 走る狐 กา กา์ Éte"
).split()
texts = st.lists(
    st.one_of(st.sampled_from(VOCABULARY[:3]), st.sampled_from(VOCABULARY)), max_size=12
).map(" ".join)
queries = st.lists(st.sampled_from([*VOCABULARY, "unknown"]), max_size=6).map(" ".join)
SCRIPTS = "aZé9_ -.\n狐走るはกา\u0e4c\u0301한Σßİ"
ENDINGS = (
    "s sses ies ss eed ed ing at bl iz y ational tional enci anci izer abli alli entli eli ousli "
    "ization ation ator alism iveness fulness ousness aliti iviti biliti icate ative alize iciti "
    "ical ful ness al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize "
    "e ll"
).split()
word_parts = st.lists(
    st.one_of(st.text("aeioubcdlstyz", max_size=5), st.sampled_from(ENDINGS)), max_size=4
)


def hashes(*words: str) -> Any:
    return np.array([oracle.hash_of(word) for word in words], np.uint64)


def known_as(text: str, kind: str = "plain") -> tuple[Any, set[int]]:
    return oracle.bag(text, kind), oracle.all_pieces(text, kind)


# Words


@given(word_parts)
@settings(max_examples=600)
def test_stems_are_those_of_porter(parts: list[str]) -> None:
    word = "".join(parts)
    found, hashed, *_ = words_of_query(word, "porter")
    assert found == ([word] if word else [])
    assert hashed.tolist() == (hashes(oracle.stemmed(word)).tolist() if word else [])


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        ("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("agreed", "agre"),
        ("plastered", "plaster"), ("motoring", "motor"), ("hopping", "hop"), ("filing", "file"),
        ("happy", "happi"), ("relational", "relat"), ("vietnamization", "vietnam"),
        ("hopefulness", "hope"), ("adoption", "adopt"), ("controlling", "control"), ("as", "as"),
    ],
)  # fmt: skip
def test_examples_of_porter(word: str, stem: str) -> None:
    assert words_of_query(word, "porter")[1].tolist() == hashes(stem).tolist()


@given(st.one_of(st.text(), texts, st.text(SCRIPTS, max_size=60)), st.sampled_from(KINDS))
@settings(max_examples=400)
def test_bags_of_words(text: str, kind: str) -> None:
    (bag,) = bags_of([text], kind)
    assert bag == oracle.packed(*known_as(text, kind))
    query = words_of_query(text, kind)
    words = oracle.query_words(text, kind)
    assert query.hashes.tolist() == [oracle.hash_of(word) for word in words]
    ends = query.offsets.tolist()
    pieces = [query.pieces[begin:end].tolist() for begin, end in pairwise(ends)]
    assert pieces == oracle.query_pieces(text, kind)


@pytest.mark.parametrize(
    ("text", "kind", "counts"),
    [
        ("UTF8 in TopSig", "plain", {"utf8": 2, "utf": 1, "8": 1, "in": 2, "topsig": 2, "top": 1,
                                     "sig": 1}),
        ("音楽の", "plain", {"音": 2, "楽": 2, "の": 2, "音楽": 2, "楽の": 2}),
        ("Foxes a", "trigram", {"fox": 2, "oxe": 2, "xes": 2, "a": 2}),
        ("word " * 20, "plain", {"word": 35}),
    ],
)  # fmt: skip
def test_what_counts(text: str, kind: str, counts: dict[str, int]) -> None:
    assert bags_of([text], kind) == [oracle.packed(counts, oracle.all_pieces(text, kind))]


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("MP3 Player", "porter", ["mp3", "player"]),
        ("音楽再生 fox", "porter", ["fox", "音楽", "楽再", "再生"]),
        ("音", "porter", ["音"]),
        ("音楽再生 ab foxy", "trigram", ["ab", "fox", "oxy", "音楽再", "楽再生"]),
        ("音楽", "trigram", ["音楽"]),
    ],
)  # fmt: skip
def test_what_a_query_looks_for(text: str, kind: str, words: list[str]) -> None:
    assert words_of_query(text, kind).words == words


def test_counts_end_at_255() -> None:
    (bag,) = bags_of(["word " * 300], "plain")
    assert bag == oracle.packed({"word": 255}, oracle.word_pieces("word"))
    assert bags_of(["", "?!"], "plain") == [b"", b""]


def test_pieces_end_at_1024() -> None:
    text = " ".join(f"word{at}x" for at in range(2000))
    (bag,) = bags_of([text], "plain")
    assert len(oracle.all_pieces(text, "plain")) == 1024
    assert bag == oracle.packed(*known_as(text))


# The index in memory


def found(index: WordIndex, query: list[str], k: int) -> list[tuple[int, int]]:
    answer = index.search(words_of_query(" ".join(query), "plain"), k)
    return list(zip(answer.scores.tolist(), answer.numbers.tolist(), strict=True))


def expected(known: dict[int, str], query: list[str]) -> list[tuple[int, int]]:
    text = " ".join(query)
    words, pieces = oracle.query_words(text, "plain"), oracle.query_pieces(text, "plain")
    return oracle.ranked({at: known_as(one) for at, one in known.items()}, words, pieces)


@given(st.data())
@settings(max_examples=150)
def test_an_index_beside_the_oracle(data: st.DataObject) -> None:
    index, known, number = WordIndex(), dict[int, str](), 1
    for _ in range(data.draw(st.integers(1, 8))):
        added = data.draw(st.lists(texts, max_size=12))
        if added:
            ids = [str(place) for place in range(len(added))]
            index.add(Entries.of(number, ids, bags_of(added, "plain")))
            known.update(zip(range(number, number + len(added)), added, strict=True))
            number += len(added) + data.draw(st.integers(0, 3))
        gone = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True)) if known else []
        before = copy.copy(index)
        if gone:
            index.remove(np.array(gone, np.int64))
        query = asked = list(dict.fromkeys(data.draw(queries).split()))
        k = data.draw(st.integers(0, 40))
        assert found(before, query, k) == expected(known, query)[:k]
        known = {one: text for one, text in known.items() if one not in gone}
        assert len(index) == len(known)
        assert found(index, query, k) == expected(known, query)[:k]
        query = oracle.query_words(" ".join(query), "plain")
        answer = index.search(words_of_query(" ".join(asked), "plain"), k)
        for one, has in zip(answer.numbers.tolist(), answer.has.tolist(), strict=True):
            bag = oracle.bag(known[one], "plain")
            assert [bool(has >> at & 1) for at in range(len(query))] == [w in bag for w in query]
        bags = [oracle.bag(text, "plain") for text in known.values()]
        assert answer.weights.tolist() == oracle.weights(bags, query)
        assert answer.frequencies.tolist() == [sum(w in bag for bag in bags) for w in query]


def test_many_documents_go_through_many_windows() -> None:
    rng = np.random.default_rng(3)
    words = np.array([f"w{at}" for at in range(60)])
    chosen = np.minimum(rng.geometric(0.12, (40_000, 9)), 60) - 1
    known = {at: " ".join(words[row]) for at, row in enumerate(chosen)}
    index = WordIndex()
    for begin in range(0, 40_000, 13_000):
        some = [known[at] for at in range(begin, min(begin + 13_000, 40_000))]
        index.add(Entries.of(begin, [str(at) for at in range(len(some))], bags_of(some, "plain")))
    gone = rng.choice(40_000, 500, replace=False)
    index.remove(gone)
    for at in gone.tolist():
        del known[at]
    for query in (["w0"], ["w0", "w1", "w2"], ["w40", "w0", "w7"], ["w50", "w49", "w1", "w0"]):
        truth = expected(known, query)
        for k in (1, 10, 1000, 50_000):
            assert found(index, query, k) == truth[:k]


def test_an_index_is_saved_and_opened(tmp_path: Path) -> None:
    path = tmp_path / "words.lookalike"
    bags = bags_of(["ax ay", "ay", "az"], "plain")
    index = WordIndex.build([Entries.of(5, ["a", "b", "c"], bags)])
    index.remove(np.array([5]))
    index.save(path, {"uid": "u"})
    again = WordIndex.load(path)
    assert again.notes == {"uid": "u"} and len(again) == 2
    assert found(again, ["ay", "az"], 9) == found(index, ["ay", "az"], 9)
    with pytest.raises(la.errors.CorruptIndexError, match="number 5"):
        again.remove(np.array([5]))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(la.errors.CorruptIndexError):
        WordIndex.load(path)
    la.ScanIndex(np.zeros((2, 8), np.uint8)).save(path)
    with pytest.raises(la.errors.FormatError, match="not a keyword index"):
        WordIndex.load(path)
    WordIndex().save(path, {})
    assert len(WordIndex.load(path)) == 0


def test_arrays_that_do_not_fit_reach_no_pointer() -> None:
    good: list[Any] = list(_native.build_words(*_arrays(["x y", "y"])))
    _native.WordSegment(*good)
    for place, value in (
        (1, good[1][:1]),
        (3, good[3][:-1]),
        (4, good[4] + 9),
        (5, good[5][:1]),
        (6, good[6][:-1]),
        (6, good[6] + 99),
    ):
        bad = [*good[:place], value, *good[place + 1 :]]
        with pytest.raises(_native.BorderError):
            _native.WordSegment(*bad)
    with pytest.raises(_native.BorderError, match="bag"):
        _native.build_words(np.array([1]), np.array([0, 5]), np.zeros(5, np.uint8))


def test_entries_of_another_format_are_refused() -> None:
    bag = bags_of(["some words"], "plain")[0]
    for data in (bag[:-1], bag[2:], bag[:2], b"\xff\xff" + bag[2:], bag + bag):
        with pytest.raises(la.errors.CollectionError, match=r"another format.*repair\(\)"):
            WordIndex.build([Entries.of(1, ["a"], [data])])


def _arrays(some: list[str]) -> tuple[Any, Any, Any]:
    bags = Entries.of(1, [str(at) for at in range(len(some))], bags_of(some, "plain"))
    return bags.numbers, bags.offsets, bags.data


# Collections

TEXTS = {
    "fox": "The quick brown fox jumps over the lazy dog",
    "owl": "An owl sleeps by day and sees in the dark",
    "foxes": "Foxes and owls are animals; a fox is not an owl",
    "same": "The quick brown fox jumps over the lazy dog",
    "none": "...",
}


def opened(url: str, **options: Any) -> la.Collection:
    return la.open_collection(
        url, "texts", signer=la.SimHash(bits=64), **{"words": "porter", **options}
    )


def filled(url: str, **options: Any) -> la.Collection:
    docs = opened(url, **options)
    docs.add([*TEXTS], [*TEXTS.values()], metadata=[{"n": at} for at in range(len(TEXTS))])
    return docs


def told(answer: la.results.Answer) -> list[tuple[int, str]]:
    return list(zip(answer.distances, answer.ids, strict=True))


@pytest.mark.parametrize("words", KINDS)
def test_a_few_words_find_documents(url: str, words: str) -> None:
    with filled(url, words=words) as docs:
        for query in ("fox", "jumping foxes", "the owl of the day", "quick unknown", "", "?!"):
            answer = docs.search(query)
            assert answer.by == "words" and answer.exact and answer.version == 1
            assert told(answer) == oracle.nearest(TEXTS, query, words)
            for k in (1, 2, 3):
                assert told(docs.search(query, k)) == told(answer)[:k]
        assert docs.verify().ok
        assert docs.stats()["words"] == words


def test_matches_say_what_they_share(url: str) -> None:
    with filled(url) as docs:
        answer = docs.search("Jumping FOXES blorp", 1, text=True)
        (match,) = answer
        assert match.words == ("jumping", "foxes") and match.text == TEXTS["fox"]
        assert match.metadata == {"n": 0} and answer.unknown == ("blorp",)
        assert answer.searched == 3 and not answer.no_match
        weights = oracle.weights(
            [oracle.bag(text, "porter") for text in TEXTS.values()], ["jump", "fox", "blorp"]
        )
        assert match.score == sum(weights[:2]) / sum(weights)
        assert docs.search("owl").distances[0] > 0
        assert "distance" not in repr(docs.search("owl")[0])  # it is not one of signatures
        assert "distance=" in repr(docs.search("owl", by="similar")[0])


def test_similar_words_come_first(url: str) -> None:
    """A word that no document has counts by its pieces, among documents that have another."""
    with opened(url) as docs:
        docs.add(["speech", "noise", "no"], ["audio of speech", "audio of noise", "noisy films"])
        answer = docs.search("audio denoiser")
        assert answer.ids == ["noise", "speech"] and answer.unknown == ("denoiser",)
        assert [match.words for match in answer] == [("audio",), ("audio",)]
        assert docs.search("denoiser").no_match == "no match: no document has 'denoiser'"


def test_no_match_is_an_answer(url: str) -> None:
    listed = "no match: no document has 'q1' or 'q2' or 'q3' or 'q4' or 'q5'"
    with filled(url) as docs:
        for query, said in (
            ("zxqv blorp", "no match: no document has 'zxqv' or 'blorp'"),
            ("?!", "no match: the query has no words"),
            ("q1 q2 q3 q4 q5 q6", f"{listed} or the others"),
        ):  # fmt: skip
            answer = docs.search(query)
            assert answer.ids == [] and answer.no_match == said
        answer = docs.search("fox zxqv", where={"n": 99})
        assert answer.no_match == "no match: no document that may be found has a word of the query"
        assert answer.unknown == ("zxqv",)
        assert not docs.search(TEXTS["fox"], by="similar").no_match


def test_what_is_searched_by_words(url: str) -> None:
    long = " ".join(f"word{at}" for at in range(33))
    with filled(url) as docs:
        assert docs.search("fox").by == "words"
        assert docs.search(long).by == "similar"
        assert docs.search(long, by="words").by == "words"
        assert docs.search("x" * 2001).by == "similar"
        for options in ({"radius": 5}, {"mask": False}, {"mask": True}, {"by": "similar"}):
            assert docs.search("fox", **options).by == "similar"
        row = docs.get("fox").signature  # type: ignore[union-attr]
        assert docs.search(row).by == "similar"
        assert docs.within("fox", 64).by == docs.duplicates_of("fox", 9).by == "similar"
        mixed = docs.search_many(["fox", long, long, "owl", long])
        assert [one.by for one in mixed] == ["words", "similar", "similar", "words", "similar"]
        assert mixed[0] == docs.search("fox") and mixed[2] == docs.search(long)
        assert mixed[3] == docs.search("owl") and docs.search_many([]) == []
        with pytest.raises(la.errors.ArgumentError, match="needs texts"):
            docs.search(row, by="words")
        for options in ({"radius": 5}, {"mask": True}):
            with pytest.raises(la.errors.ArgumentError, match="leave it out to search by words"):
                docs.search("fox", by="words", **options)
        for by in ("auto", "words"):
            with pytest.raises(la.errors.DocumentError, match="surrogate"):
                docs.search("\ud800", by=by)
        with pytest.raises(la.errors.ArgumentError, match="by is 'word'; expected one of"):
            docs.search("fox", by="word")  # type: ignore[arg-type]


def test_the_first_64_words_of_a_query_count(url: str) -> None:
    many = " ".join(f"word{at}" for at in range(70))
    with opened(url) as docs:
        docs.add(["first", "last"], ["word0", "word69"])
        answer = docs.search(many, by="words")
        assert answer.ids == ["first"] and answer.searched == 64


@pytest.mark.parametrize("keep_text", [True, False])
def test_documents_come_and_go(
    url: str, keep_text: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(word_search.WordSearch, "save_after", 1)
    monkeypatch.setattr(word_search, "_GROWTH", 2)
    rng, known = np.random.default_rng(5), dict[str, str]()
    docs = opened(url, keep_text=keep_text)
    other = opened(url, keep_text=keep_text)
    for step in range(30):
        some = [f"d{at}" for at in rng.choice(20, rng.integers(1, 6), replace=False)]
        written = {id: " ".join(rng.choice(VOCABULARY, rng.integers(0, 7))) for id in some}
        if step % 4 == 3:
            docs.delete(some)
            known = {id: text for id, text in known.items() if id not in some}
        else:
            docs.upsert([*written], [*written.values()])
            known = {id: text for id, text in known.items() if id not in some} | written
        if step % 7 == 5:
            assert docs.repair().ok
            known = dict(sorted(known.items()))  # texts are read by id
        if step % 5 == 2:
            docs.close()
            docs = opened(url, keep_text=keep_text)
        if step == 20:
            docs.snapshot(tmp_path / "copy.db")
            docs.upsert(["passing"], ["fox"])
            la.restore_collection(tmp_path / "copy.db", url, replace=True)
        for query in ("the fox jumps", " ".join(rng.choice(VOCABULARY, 3))):
            truth = oracle.nearest(known, query, "porter")
            for handle in (docs, other):
                assert told(handle.search(query, 50)) == truth
            left_out = [id for _, id in truth][:2]
            some_found = [one for one in truth if one[1] not in left_out][:3]
            assert told(docs.search(query, 3, exclude=left_out)) == some_found
        report = other.verify()
        assert report.ok, report.problems
    docs.close()
    other.close()


def test_conditions_go_on_until_there_are_enough(url: str) -> None:
    with opened(url) as docs:
        ids = [f"d{at:03}" for at in range(300)]
        docs.add(ids, ["fox"] * 300, metadata=[{"n": at % 100} for at in range(300)])
        assert docs.search("fox", 2, where={"n": 77}).ids == ["d077", "d177"]
        assert docs.search("fox", 5).ids == ids[:5]


def test_ties_are_not_all_read(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents of equal scores are found in the order in which they were written."""
    ids = [f"d{at:04}" for at in np.random.default_rng(1).permutation(3000)]
    read = []
    fetch = word_search._WordFetcher._documents

    def counted(self: Any, numbers: list[int], each: int | None) -> Any:
        read.append(len(numbers))
        return fetch(self, numbers, each)

    monkeypatch.setattr(word_search._WordFetcher, "_documents", counted)
    with opened(url) as docs:
        docs.add(ids, ["the same fox"] * 3000)
        for plan in ("native", "sql"):
            for k in (1, 10, 100):
                read.clear()
                assert docs.search("the fox", k, plan=plan).ids == ids[:k]
                assert sum(read) == k
        assert docs.search("the fox", 5, exclude=ids[:9]).ids == ids[9:14]
        docs.upsert([ids[0]], ["the same fox"])
    with opened(url) as docs:
        assert docs.search("the fox", 5000).ids == [*ids[1:], ids[0]]


def test_documents_without_texts_are_in_the_index(url: str) -> None:
    with opened(url) as docs:
        row = np.zeros((1, 8), np.uint8)
        docs.add(["a"], signatures=row)
        docs.add(["b"], ["fox"], signatures=row)
        docs.add(["c"], [None], signatures=row)  # type: ignore[list-item]
        assert docs.search("fox").ids == ["b"]
        assert docs.verify().ok and docs.repair().ok
        assert docs.search("fox").ids == ["b"]


# Similar documents, by chance


def test_chance() -> None:
    for bits, count in ((8, 1), (64, 1), (64, 10**6), (128, 120_000), (128, 0), (1024, 10**6)):
        distance = chance_distance(bits, count)
        share = [sum(math.comb(bits, at) for at in range(far + 1)) for far in range(distance + 2)]
        assert 100 * max(1, count) * share[distance] <= 2**bits or distance == -1
        assert 100 * max(1, count) * share[distance + 1] > 2**bits
    assert chance_distance(8, 1000) == -1 and chance_distance(128, 120_000) == 34


def test_the_nearest_may_be_so_by_chance(url: str) -> None:
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 256, (2000, 16), np.uint8)
    with la.open_collection(url, bits=128) as docs:
        docs.add([f"d{at}" for at in range(2000)], signatures=rows)
        near = rows[7].copy()
        near[:2] ^= 255
        assert docs.search(near).ids[0] == "d7" and not docs.search(near).by_chance
        for plan in ("native", "sql"):
            answers = docs.search_many(rng.integers(0, 256, (20, 16), np.uint8), plan=plan)
            assert all(len(answer) == 10 and answer.by_chance for answer in answers)
            assert "as far away as random signatures" in answers[0].no_match
        assert not docs.search(rows[0] ^ 255, radius=100).by_chance


# Older collections, repair and damage


def execute(path: Path | str, *statements: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_a_collection_without_words_gets_them(url: str) -> None:
    with la.open_collection(url, "texts", signer=la.SimHash(bits=64)) as docs:
        docs.add([*TEXTS], [*TEXTS.values()])
        other = la.open_collection(url, "texts")
        assert docs.search("fox").by == "similar" and docs.stats()["words"] is None
        with pytest.raises(
            la.errors.ArgumentError, match=r"build it with repair\(words='porter'\)"
        ):
            docs.search("fox", by="words")
        assert docs.repair(words="porter").ok
        assert told(docs.search("fox")) == oracle.nearest(TEXTS, "fox", "porter")
        assert other.search("fox", by="words") == docs.search("fox")  # opened before
        other.add(["new"], ["another fox"])
        other.close()
        known = {**TEXTS, "new": "another fox"}
        assert told(docs.search("fox")) == oracle.nearest(known, "fox", "porter")
        assert docs.verify().ok and docs.repair(words="plain").ok
        assert told(docs.search("foxes")) == oracle.nearest(known, "foxes", "plain")
    with pytest.raises(la.errors.ArgumentError, match="has the keyword index 'plain', not"):
        opened(url)


def test_a_keyword_index_is_for_texts(tmp_path: Path) -> None:
    path = str(tmp_path / "docs.db")
    with la.open_collection(path, "mute", signer=la.SimHash(bits=64), keep_text=False) as docs:
        docs.add(["a"], ["fox"])
        with pytest.raises(la.errors.ArgumentError, match="does not store texts"):
            docs.repair(words="porter")
    with opened(path, keep_text=False) as docs:
        docs.add(["a"], ["fox"])
        assert docs.repair().ok and docs.search("fox").ids == ["a"]
        with pytest.raises(la.errors.ArgumentError, match="remains 'porter'"):
            docs.repair(words="plain")
    with pytest.raises(la.errors.ArgumentError, match="words is 'english'; expected one of"):
        opened(path, words="english")
    for signer in (la.ImageHash(), la.Projection(64, 8), la.PassageHash()):
        with pytest.raises(la.errors.ArgumentError, match="keyword index is for texts"):
            la.open_collection(path, "other", signer=signer, words="porter")
        with pytest.raises(la.errors.ArgumentError, match="purpose is 'search'"):
            la.open_collection(path, "other", signer=signer, purpose="search")
    with (
        la.open_collection(path, "parts", bits=32, parts=True) as docs,
        pytest.raises(la.errors.ArgumentError, match="has no keyword index, which is for"),
    ):
        docs.search(np.zeros((1, 4), np.uint8), by="words")


def test_purposes(tmp_path: Path) -> None:
    path = str(tmp_path / "docs.db")
    for purpose, words in (("search", "porter"), ("duplicates", None)):
        with la.open_collection(path, purpose, purpose=purpose) as docs:  # type: ignore[arg-type]
            assert docs.signer == la.SimHash(bits=128) and docs.stats()["words"] == words
        with la.open_collection(path, purpose, purpose="search") as docs:
            assert docs.stats()["words"] == words  # an existing one stays as it is
    with la.open_collection(path, "own", bits=64, words="plain", purpose="search") as docs:
        assert docs.signer is None and docs.stats()["words"] == "plain"
    with pytest.raises(la.errors.ArgumentError, match="purpose is 'reading'"):
        la.open_collection(path, "x", purpose="reading")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE lookalike_words_1 SET words = x'010000000000' WHERE id = 'fox'",
        "UPDATE lookalike_words_1 SET words = 'x' WHERE id = 'fox'",
        "UPDATE lookalike_words_1 SET id = 'other' WHERE id = 'fox'",
        "UPDATE lookalike_words_1 SET hash = hash + 1 WHERE id = 'fox'",
        "UPDATE lookalike_words_1 SET number = 99 WHERE id = 'fox'",
        "DELETE FROM lookalike_words_1 WHERE id = 'fox'",
    ],
)  # fmt: skip
def test_damage_is_found_and_repaired(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "docs.db"
    filled(str(path)).close()
    execute(path, damage)
    with la.open_collection(path, "texts", cache=False) as docs:
        assert not docs.verify().ok
        with pytest.raises(la.errors.CollectionError, match="damaged"):
            docs.search("fox")
        assert docs.repair().ok
        assert told(docs.search("fox")) == oracle.nearest(TEXTS, "fox", "porter")


def test_words_of_another_text_are_found(tmp_path: Path) -> None:
    """A row that is intact, but does not belong to the text."""
    path = tmp_path / "docs.db"
    with filled(str(path)) as docs:
        wrong = Entries.of(1, ["fox"], bags_of(["owl"], "porter"))
        before = Entries.of(1, ["fox"], bags_of([TEXTS["fox"]], "porter"))
        ((_, _, bag, value),) = wrong.rows()
        changed = wrong.digest() ^ before.digest()
        (digest,) = [docs._state().words_digest ^ changed]
    execute(
        path,
        f"UPDATE lookalike_words_1 SET words = x'{bag.hex()}', hash = {value} WHERE id = 'fox'",
        f"UPDATE lookalike_collections SET words_digest = {digest}",
    )
    with la.open_collection(path, "texts", cache=False) as docs:
        assert "other words than the document 'fox'" in str(docs.verify().problems)
        assert docs.repair().ok


def test_a_document_that_is_not_there_is_not_returned(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    with filled(str(path)) as docs:
        docs.search("fox")
        execute(path, "DELETE FROM lookalike_documents_1 WHERE id = 'fox'")
        with pytest.raises(la.errors.CollectionError, match="damaged"):
            docs.search("fox")


def test_the_saved_index_is_used_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_search.WordSearch, "save_after", 1)
    path = tmp_path / "docs.db"
    with filled(str(path)) as docs:
        docs.search("fox")
    (cache,) = tmp_path.rglob("*-words.lookalike")
    with opened(str(path)) as docs:
        monkeypatch.setattr(WordIndex, "build", _refused)
        assert told(docs.search("fox")) == oracle.nearest(TEXTS, "fox", "porter")
        assert docs.verify().cache is None
    monkeypatch.undo()
    cache.write_bytes(cache.read_bytes()[:-1])
    with opened(str(path)) as docs:
        assert "rebuilt" in str(docs.verify().cache)
        assert told(docs.search("fox")) == oracle.nearest(TEXTS, "fox", "porter")
    la.drop_collection(path, "texts")
    assert not cache.exists()


def _refused(batches: Any) -> WordIndex:
    raise AssertionError("the index was built again")


def test_merges_keep_segments_few() -> None:
    index = WordIndex()
    for at in range(200):
        index.add(Entries.of(at, ["x"], bags_of(["some words of a text"], "plain")))
    assert len(index._segments) < 8 and len(index) == 200
    index.remove(np.arange(0, 200, 2))
    assert len(index) == 100
    assert sum(len(one.removed) for one in index._segments) <= 50
    assert postings.MOST_QUERY_WORDS == 64


def test_a_new_handle_of_every_kind(new_url: Callable[[], str]) -> None:
    """Words are committed with their documents: another handle sees both or none."""
    url = new_url()
    with opened(url) as one, opened(url) as two:
        for at in range(5):
            one.add([f"d{at}"], [f"fox number {at}"])
            assert two.search("fox").ids == [f"d{n}" for n in range(at + 1)]
            assert two.search("number 3").version == at + 1


def test_an_answer_shows_percentages_and_why_nothing_matches(tmp_path: Path) -> None:
    with la.open_collection(tmp_path / "docs.db", purpose="search") as docs:
        docs.add(["a", "b"], ["the quick brown fox", "a slow fox"])
        found = docs.search("quick fox")
        percent = [f"{match.score:.0%}" for match in found]
        assert repr(found) == f"Answer({{'a': {percent[0]}, 'b': {percent[1]}}}, exact=True)"
        assert percent[0] == "100%" != percent[1]
        nothing = docs.search("zxqv")
        assert repr(nothing) == f"Answer({{}}, exact=True, no_match={nothing.no_match!r})"
        similar = docs.search("the quick brown fox", by="similar", k=1)
        assert repr(similar) == "Answer({'a': 100%}, exact=True)"


def test_a_table_of_matches_begins_with_similarities(tmp_path: Path) -> None:
    texts = ["the quick brown fox jumps over it", "the quick brown fox jumps", "no such thing"]
    signer = la.SimHash(bits=128)
    with la.open_collection(tmp_path / "docs.db", purpose="search", signer=signer) as docs:
        docs.add(["a", "b", "c"], texts)
        words = docs.search("quick fox jumps")
        assert list(words.to_pandas())[:3] == ["id", "similarity", "words"]
        assert words.to_pandas()["similarity"].tolist() == [match.score for match in words]
        signed = signer.sign(texts)
        for query in (texts[1], signed[1]):
            found = docs.search(query, by="similar")
            far = [
                int(np.bitwise_count(signed[1] ^ signed["abc".index(id)]).sum()) for id in found.ids
            ]
            expected = la.estimated_similarity(signer, far, bits=128).tolist()
            assert found.similarities == found.to_pandas()["similarity"].tolist() == expected
            percent = [f"'{id}': {one:.0%}" for id, one in zip(found.ids, expected, strict=True)]
            assert repr(found) == f"Answer({{{', '.join(percent)}}}, exact=True)"
        many = docs.search_many(texts[:2], by="similar")
        assert many.to_pandas()["similarity"].tolist() == [
            share for answer in many for share in answer.similarities
        ]
    assert found.similarities == expected  # also when the collection is closed


def test_bits_alone_are_shares_of_equal_bits(tmp_path: Path) -> None:
    rows = np.array([[0, 0], [0, 3], [255, 255]], np.uint8)
    with la.open_collection(tmp_path / "docs.db", bits=16) as docs:
        docs.add(["a", "b", "c"], signatures=rows)
        found = docs.search(rows[0])
        assert found.similarities == [1.0, 1 - 2 / 16, 0.0]
