"""Collections whose documents have many parts: recordings, passages, and parts that are given."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
import soundfile
from benchmarks.recordings.sounds import music
from numpy.typing import NDArray

import lookalike as la
from lookalike.collection import signing
from lookalike.collection.search import votes as vote_search
from support.oracles.part_collections import Entry, expected, told

RATE = 8000
WORDS = [f"word{number}" for number in range(400)]


def some_text(seed: int, words: int = 200) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, words))


def rows_of(*values: int) -> NDArray[np.uint8]:
    return np.array(values, "<u4").view(np.uint8).reshape(-1, 4)


def opened(url: Any, **given: Any) -> la.Collection:
    return la.open_collection(url, bits=32, parts=True, **given)


def test_passages_are_found_where_they_are(url: str) -> None:
    texts = {f"t{number}": some_text(number) for number in range(20)}
    signer = la.PassageHash(la.SimHash(64), words=20, step=5)
    with la.open_collection(url, signer=signer) as docs:
        described = [{"even": number % 2 == 0} for number in range(20)]
        docs.add([*texts], [*texts.values()], metadata=described)
        query = " ".join(texts["t7"].split()[60:100])
        found = docs.search(query, 1, text=True)[0]
        assert (found.id, found.offset, found.text) == ("t7", 60, texts["t7"])
        assert found.votes is not None and found.votes >= 4
        assert docs.search(query, where={"even": True}).ids == []
        many = docs.search_many([query, some_text(3)], 1)
        assert [answer.ids for answer in many] == [["t7"], ["t3"]]
        assert docs.search("").ids == docs.search("", radius=64).ids == []
        assert docs.search_many(query) == [docs.search(query)]
    with la.open_collection(url) as docs:
        assert docs.signer == signer and docs.parts
        assert docs.search(query, 1)[0].offset == 60
        parts = signer.sign_parts(texts["t7"])
        assert np.array_equal(docs.parts_of("t7").signatures, parts.signatures)
        assert np.array_equal(docs.parts_of("t7").offsets, parts.offsets)
        with pytest.raises(la.errors.NotFoundError, match="no document 'x'"):
            docs.parts_of("x")


def test_learned_weights_are_kept(tmp_path: Path) -> None:
    texts = [some_text(number) for number in range(9)]
    signer = la.PassageHash(la.TopSig(256).fit(texts), words=30, step=10)
    with la.open_collection(tmp_path / "docs.db", signer=signer) as docs:
        docs.add([str(number) for number in range(9)], texts)
    with la.open_collection(tmp_path / "docs.db") as docs:
        assert docs.signer == signer
        assert docs.search(" ".join(texts[4].split()[50:100]), 1).ids == ["4"]


def test_recordings_are_found_by_a_snippet(tmp_path: Path) -> None:
    songs = {f"s{number}": music(number, 8, RATE) for number in range(3)}
    for name, song in songs.items():
        soundfile.write(tmp_path / f"{name}.flac", song, RATE)
    (tmp_path / "broken.flac").write_bytes(b"fLaC and nothing else")
    snippet = songs["s1"][3 * RATE : 7 * RATE]
    soundfile.write(tmp_path / "snippet.wav", snippet, RATE)
    files = [str(tmp_path / f"{name}.flac") for name in songs]
    with la.open_collection(tmp_path / "songs.db", signer=la.AudioHash()) as docs:
        with pytest.raises(la.errors.BatchError, match=r"item 1 \('b'\): the recording cannot"):
            docs.add(["a", "b"], [files[0], str(tmp_path / "broken.flac")])
        assert docs.count() == 0
        given = [*files, str(tmp_path / "nowhere.wav")]
        written = docs.add([*songs, "none"], given, on_error="skip")
        assert written.added == 3 and [error.position for error in written.errors] == [3]
        words = la.AudioHash().fingerprint(tmp_path / "snippet.wav")
        asked: tuple[Any, ...] = (
            *(tmp_path / "snippet.wav", str(tmp_path / "snippet.wav"), (snippet, RATE), words),
            *((tmp_path / "snippet.wav").read_bytes(), (words.signatures, words.offsets)),
        )
        index = la.RecordingIndex()
        for name, file in zip(songs, files, strict=True):
            index.add(name, file)
        for query in asked:
            (found,) = docs.search(query)
            (truth,) = index.search(words)
            assert found.id == truth.recording == "s1"
            assert (found.offset, found.votes) == (round(1000 * truth.offset), truth.votes)
            assert found.score == truth.score
        assert docs.search((np.zeros(RATE * 2, np.float32), RATE)).ids == []
        with pytest.raises(la.errors.FileError, match="No such file"):
            docs.search("nowhere.wav")
        docs.reads_files = False
        for call in (lambda: docs.search(files[0]), lambda: docs.upsert(["x"], [files[0]])):
            with pytest.raises(
                la.errors.ArgumentError, match="recordings of the collection .* are not opened"
            ):
                call()
        assert docs.search(words, 1).ids == ["s1"]


def test_ties_are_decided_by_id_however_many_there_are(url: str) -> None:
    """They are numbered in the order of digests, which is none of ids."""
    names = [f"n{number:03}" for number in range(300)]
    with opened(url) as docs:
        docs.add(names, signatures=[(rows_of(77, 78), [at, at + 1]) for at in range(300)])
        for k in (1, 5, 50, 299, 300, 301):
            assert docs.search(rows_of(77, 78), k).ids == names[:k]
        odd = names[1::2]
        met = docs.search(rows_of(77, 78), 3, where=lambda m: True, exclude=names[:1] + odd[:9])
        assert met.ids == [name for name in names[1:] if name not in odd[:9]][:3]


def test_what_everybody_has_is_left_out(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of documents that have the same parts, one counts: as in an index of what is different."""
    silence = np.zeros((50, 4), np.uint8)
    known = {}
    for number in range(12):
        own = rows_of(*range(100 * (number % 6), 100 * (number % 6) + 5))
        rows = np.concatenate([silence, own])
        known[f"d{number:02}"] = Entry(rows, tuple(range(55)), {})
    query = np.concatenate([silence[:10], rows_of(*range(300, 305))])
    with opened(url) as docs:
        docs.add([*known], signatures=[entry.rows for entry in known.values()])
        monkeypatch.setattr(vote_search, "MOST_NEAR", 400)
        answer = docs.search(query, radius=0, explain=True)
        different = {id: entry for id, entry in known.items() if id < "d06"}
        truth = expected(different, query, None, 32, radius=0, most_near=400)
        first, second = told(answer)
        assert answer.left_out == 9 and truth == [first]  # of ten of silence, near 300 each
        assert (first[0], second[0]) == ("d03", "d09") and first[1:] == second[1:]
        # Scores are shares of the six that were asked: of 15, five are less than half.
        for score in (0.5, 5 / 6, 1.0):
            assert told(docs.search(query, radius=0, explain=True, min_score=score)) == [
                first,
                second,
            ]


def test_signatures_that_are_given(url: str) -> None:
    rows = rows_of(1, 2, 3)
    with opened(url) as docs:
        given: list[Any] = [rows, (rows, None), (rows, [5, 6, 7]), np.array([1, 2], np.uint32)]
        docs.add(["a", "b", "c", "d"], signatures=[*given])
        assert docs.stats()["signatures"] == 3
        assert np.array_equal(docs.parts_of("c").offsets, [5, 6, 7])
        document, same = docs.get_many(["a", "b"])
        assert document is not None and same is not None
        assert np.array_equal(document.signature, same.signature) and len(same.signature) == 32
        assert docs.search((rows, [0, 1, 2])).ids == ["a", "b", "c", "d"]
        wrong: list[tuple[Any, str]] = [
            ([np.zeros((1, 5), np.uint8)], "item 0: signatures have 40 bits"),
            ([rows, (rows, [1])][1:], "item 0: offsets are"),
            ([(rows, [1, 2, 2**60])], r"item 0: offsets are .*2\*\*59"),
            (["text"], "item 0"),
            ("text", "is a str"),
            ([], "1 ids and 0 signatures"),
        ]
        for signatures, message in wrong:
            with pytest.raises(la.LookalikeError, match=message):
                docs.upsert(["x"], signatures=signatures)
        with pytest.raises(
            la.errors.ArgumentError, match="has no signer; pass .signatures, offsets"
        ):
            docs.add(["x"], ["some text"])
        with pytest.raises(
            la.errors.ArgumentError, match="has no signer; pass .signatures, offsets"
        ):
            docs.search("some text")
        assert docs.count() == 4


def test_what_compares_single_signatures_is_refused(url: str) -> None:
    with opened(url) as docs:
        docs.add(["a"], signatures=[rows_of(1, 2)])
        calls: list[Callable[[], object]] = [
            lambda: docs.within(rows_of(1), 3),
            lambda: docs.within_many([rows_of(1)], 3),
            lambda: docs.duplicates_of("a", 3),
            lambda: docs.pairs(3),
        ]
        for call in calls:
            with pytest.raises(la.errors.ArgumentError, match="many signatures each.*use search"):
                call()
        with pytest.raises(la.errors.ArgumentError, match="plan is 'sql'.*only in memory"):
            docs.search(rows_of(1), plan="sql")
        with pytest.raises(la.errors.ArgumentError, match="mask=True is for documents of one"):
            docs.search(rows_of(1), mask=True)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"plan": "sql"}, "plan is 'sql'"),
        ({"bits": 64}, "has 32 bits"),
        ({"signer": la.AudioHash()}, "another signer"),
        ({"name": "x", "signer": la.SimHash(), "parts": True}, "needs a signer of parts"),
        ({"name": "x", "bits": 32, "parts": True, "slice_bits": 9}, "slice_bits is for"),
    ]
    for given, message in wrong:
        with pytest.raises(la.errors.ArgumentError, match=message):
            la.open_collection(url, **given)
    with la.open_collection(url, "plain", bits=32) as docs:
        for name in ("tolerance", "min_votes", "min_score"):
            settings: dict[str, Any] = {name: 1}
            with pytest.raises(
                la.errors.ArgumentError, match=f"{name} is only for documents of many parts"
            ):
                docs.search(rows_of(1), **settings)
        with pytest.raises(la.errors.ArgumentError, match="have one signature each; use get"):
            docs.parts_of("a")
    with pytest.raises(la.errors.ArgumentError, match="have one signature each; leave parts out"):
        la.open_collection(url, "plain", parts=True)
    la.drop_collection(url, "documents")
    assert la.list_collections(url) == ["plain"]


def test_too_many_parts_are_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing, "MOST_PARTS_BYTES", 100)
    with la.open_collection(url, signer=la.PassageHash(la.SimHash(64), words=3, step=1)) as docs:
        texts = ["one two three four", some_text(1)]
        with pytest.raises(
            la.errors.BatchError, match=r"item 1 \('b'\): the text has 198 parts, which"
        ):
            docs.add(["a", "b"], texts)
        assert docs.add(["a", "b"], texts, on_error="skip").added == 1
        many = np.zeros((7, 8), np.uint8)
        with pytest.raises(
            la.errors.ArgumentError, match="item 1: has 7 parts.*split it into pieces"
        ):
            docs.add(["c", "d"], signatures=[many[:6], many])


def test_another_sort_of_collection_in_its_place_is_noticed(url: str) -> None:
    with opened(url) as docs:
        docs.add(["a"], signatures=[rows_of(1, 2)])
        la.drop_collection(url, "documents")
        with la.open_collection(url, bits=32) as other:
            other.add(["a"], signatures=rows_of(1))
            with pytest.raises(
                la.errors.CollectionError, match="replaced by one with another signer"
            ):
                docs.search(rows_of(1, 2))


def test_exported_and_imported(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as docs, opened(tmp_path / "b.db") as copy:
        docs.add(
            [f"d{number:03}" for number in range(200)],
            signatures=[(rows_of(number % 9, 5), [number % 7, 3]) for number in range(200)],
            metadata=[{"n": number} for number in range(200)],
        )
        docs.add(["none"], signatures=[rows_of()])
        files = ("all.jsonl", "all.parquet", "all.csv", "all.tsv")
        for number_of_files, name in enumerate(files, 1):
            assert docs.export(tmp_path / name) == 201
            done = copy.import_file(tmp_path / name, replace=True)
            assert done.added + done.updated == 201
            assert copy.version == 2 * number_of_files  # some at a time, since they may be long
            for number in range(9):
                query = rows_of(number, 5)
                assert copy.search(query, 300, min_votes=1) == docs.search(query, 300, min_votes=1)
        (tmp_path / "bad.jsonl").write_text(
            '{"id": "ok", "signature": "' + "00" * 12 + '"}\n{"id": "x", "signature": "0011"}\n'
            '{"id": "far", "signature": "' + "7f" * 12 + '"}\n{"id": "y", "signature": null}\n'
        )
        done = copy.import_file(tmp_path / "bad.jsonl", skip_bad=True)
        assert (done.added, done.bad) == (1, 3)
        assert "expected parts, as export writes them" in done.examples[0]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE lookalike_parts_1 SET parts = zeroblob(length(parts)) WHERE number = 2",
        "UPDATE lookalike_parts_1 SET parts = substr(parts, 1, 11) WHERE number = 2",
        "UPDATE lookalike_parts_1 SET parts = 'text' WHERE number = 2",
        "DELETE FROM lookalike_parts_1 WHERE number = 2",
        "UPDATE lookalike_signatures_1 SET signature = zeroblob(32) WHERE number = 2",
        "UPDATE lookalike_collections SET parts = 0",
        "UPDATE lookalike_collections SET parts = 2",
        "UPDATE lookalike_collections SET slice_bits = 26",
    ],
)
def test_parts_that_have_changed_by_themselves_are_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "docs.db"
    with opened(path, cache=False) as docs:
        docs.add(["a", "b", "c"], signatures=[rows_of(n, n + 1) for n in (10, 20, 30)])
    with sqlite3.connect(path) as connection:
        connection.execute(damage)
    connection.close()
    with (
        pytest.raises(la.errors.CollectionError, match="damaged"),
        opened(path, cache=False) as docs,
    ):
        docs.search(rows_of(10, 11))
    if "collections" not in damage:
        with opened(path, cache=False) as docs:
            assert not docs.verify().ok


def test_parts_that_belong_to_nothing_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    with opened(path, cache=False) as docs:
        docs.add(["a"], signatures=[rows_of(1, 2)])
        with sqlite3.connect(path) as connection:
            connection.execute("INSERT INTO lookalike_parts_1 VALUES (9, x'00')")
        connection.close()
        assert any("parts belong to no signature" in one for one in docs.verify().problems)


def test_a_saved_index_is_used_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).integers(0, 2**32, 3000, dtype=np.uint32)
    with opened(tmp_path / "docs.db") as docs:
        docs.add([str(n) for n in range(1500)], signatures=[rows[n : n + 40] for n in range(1500)])
        truth = docs.search(rows[700:705], 50, explain=True)
        cache = docs.stats()["cache"]
    assert cache is not None
    for spoilt in (False, True):
        if spoilt:
            data = bytearray(Path(cache).read_bytes())
            data[len(data) // 2] ^= 1
            Path(cache).write_bytes(data)
        with opened(tmp_path / "docs.db") as docs:
            report = docs.verify()
            assert report.ok and (report.cache is not None) == spoilt
            docs.delete(["3"])
            assert told(docs.search(rows[700:705], 50, explain=True)) == told(truth)
            assert docs.search(rows[3:43], 1).ids == ["2"]
            docs.upsert(["3"], signatures=[rows[3:43]])


def test_few_documents_of_many_parts_are_saved(tmp_path: Path) -> None:
    """Of 20 recordings, building the index again takes longer than reading it."""
    rows = np.random.default_rng(1).integers(0, 2**32, (21, 300), dtype=np.uint32)
    for count in (19, 21):
        with opened(tmp_path / "docs.db") as docs:
            docs.upsert([str(n) for n in range(count)], signatures=list(rows[:count]))
            assert docs.search(rows[5, 9:50], 1).ids == ["5"]
            docs.close()
            assert (docs._native.file(docs._opened) is not None) == (count == 21)


def _write(url: str, who: int) -> None:
    with opened(url) as docs:
        for turn in range(9):
            name = f"{who}-{turn % 4}"
            at = 50 * who + turn
            docs.upsert([name], signatures=[(rows_of(at, at + 1, at + 2), [turn, 5, 9])])
            if turn % 3 == 2:
                docs.delete([f"{who}-{(turn + 1) % 4}"])
            docs.search(rows_of(at), 3)


def test_several_processes_write(url: str) -> None:
    with opened(url) as docs:
        processes = [
            multiprocessing.get_context("spawn").Process(target=_write, args=(url, who))
            for who in range(2)
        ]
        for process in processes:
            process.start()
        while any(process.is_alive() for process in processes):
            docs.search(rows_of(1, 2), 3)
            time.sleep(0.01)  # writers want the locks too
        for process in processes:
            process.join()
            assert process.exitcode == 0
        known = {}
        for document in docs:
            parts = docs.parts_of(document.id)
            known[document.id] = Entry(parts.signatures, tuple(parts.offsets.tolist()), {})
        assert len(known) == 6
        for at in (0, 3, 8, 52, 55, 58):
            query = rows_of(at, at + 1, at + 2)
            found = docs.search((query, [0, 3, 9]), tolerance=2, min_votes=1, explain=True)
            truth = expected(known, query, [0, 3, 9], 32, tolerance=2, min_votes=1)
            assert told(found) == truth
        assert docs.verify().ok


def test_databases_from_before_take_parts(kind: str, url: str) -> None:
    with la.open_collection(url, bits=64) as docs:
        docs.add(["old"], signatures=np.arange(8, dtype=np.uint8)[None])
    prefix = "lookalike_" if kind == "sqlite" else "lookalike."
    connection: Any = sqlite3.connect(url) if kind == "sqlite" else psycopg.connect(url)
    columns = (
        "parts", "words", "next_words", "words_digest", "dimensions", "vectors", "next_vectors",
        "vectors_digest",
    )  # fmt: skip
    for column in columns:  # as version 2 was
        connection.execute(f"ALTER TABLE {prefix}collections DROP COLUMN {column}")
    connection.execute(f"UPDATE {prefix}schema SET version = 2")
    connection.commit()
    connection.close()
    with la.open_collection(url) as docs, opened(url, name="parts") as parts:
        assert not docs.parts and docs.search(np.arange(8, dtype=np.uint8), 1).ids == ["old"]
        parts.add(["new"], signatures=[rows_of(1, 2)])
        assert parts.parts and parts.search(rows_of(1, 2)).ids == ["new"]
        assert docs.verify().ok and parts.verify().ok


def test_threads_of_one_handle_see_whole_versions(tmp_path: Path) -> None:
    query = rows_of(1, 2, 3)
    seen: list[tuple[int, list[Any]]] = []
    done = threading.Event()
    with opened(tmp_path / "docs.db") as docs:

        def ask() -> None:
            while not done.is_set():
                answer = docs.search(query, 20, min_votes=1, tolerance=1, explain=True)
                seen.append((answer.version, told(answer)))

        known: dict[str, Entry] = {}
        past = {0: dict(known)}
        with ThreadPoolExecutor(3) as pool:
            asking = [pool.submit(ask) for _ in range(3)]
            random = np.random.default_rng(5)
            try:
                for turn in range(60):
                    id = f"d{turn % 7}"
                    rows = rows_of(*random.integers(0, 5, 4).tolist())
                    offsets = tuple(random.integers(0, 6, 4).tolist())
                    if turn % 5 == 4:
                        docs.delete([id])
                        known.pop(id, None)
                    else:
                        docs.upsert([id], signatures=[(rows, offsets)])
                        known[id] = Entry(rows, offsets, {})
                    past[docs.version] = dict(known)
                    # A writer that never rests may leave readers of SQLite no turn at all.
                    while turn % 6 == 0 and (not seen or seen[-1][0] < docs.version):
                        assert not any(one.done() for one in asking)
                        time.sleep(0.001)
            finally:
                done.set()
            for one in asking:
                one.result()
    assert len({version for version, _ in seen}) > 5
    for version, found in seen:
        truth = expected(past[version], query, None, 32, k=20, min_votes=1, tolerance=1)
        assert found == truth
