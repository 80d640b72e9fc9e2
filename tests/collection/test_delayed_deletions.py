"""Deletions that are decided first and done later: what was written in between is not lost.

At the moment at which a job deletes a document, another one that is near it must be there and stay.
That is checked against the database itself before and after each deletion, with writes of others in
between wherever the job tells how far it is.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.collection.care.duplicates import delete_unchanged
from lookalike.collection.documents import Seen
from lookalike.collection.reading import delete_meeting
from lookalike.collection.stores.sqlite import SqliteStore
from lookalike.service import job_process
from support.oracles import scan as oracle

EXAMPLES = min(300, int(os.environ.get("LOOKALIKE_STATES", "30")))
MOST_TURNS = 8
"""Times that others write while a job runs."""
IDS = "abcdefgh"
RADIUS = 6
_names = itertools.count()


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SQLite not wait for the disk: what survives a loss of power is not asked here."""
    connect = SqliteStore._connect

    def connected(store: SqliteStore) -> sqlite3.Connection:
        connection = connect(store)
        connection.execute("PRAGMA synchronous=OFF")
        return connection

    monkeypatch.setattr(SqliteStore, "_connect", connected)


class Job:
    """A job whose writes of others happen when it tells how far it is."""

    def __init__(self, folder: Path, meanwhile: Callable[[str], object], **order: Any) -> None:
        self.folder = folder
        self.order = {"radius": None, "threshold": None, "keep": "first", "delete": True,
                      "limit": 10_000, **order}  # fmt: skip
        self.tell = lambda step, share: meanwhile(step)


# Contents: signatures and texts of a few families, whose members are near each other


def _signature(family: int, member: int) -> bytes:
    row = np.random.default_rng(family).integers(0, 256, 8, dtype=np.uint8)
    row[member] ^= 1 << member  # two members differ in two bits, two families in many
    return row.tobytes()


def _text(family: int, member: int) -> str:
    words = [f"word{family}x{place}" for place in range(60)]
    words[member] = f"other{member}"
    return " ".join(words)


contents = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 1))
"""The family, the member of it, and a value of the metadata."""
writes = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(IDS), contents),
    st.tuples(st.just("delete"), st.sampled_from(IDS), st.none()),
    st.tuples(st.just("again"), st.none(), st.none()),
)


class Beside:
    """A collection, what others write to it, and the truth about it."""

    def __init__(self, url: str, by_texts: bool) -> None:
        self.url, self.name = url, f"c{next(_names)}"
        self.by_texts = by_texts
        self.model: dict[str, tuple[int, int, int]] = {}
        self.removed = 0
        self.turns = 0
        self.docs, self.other = self._opened(), self._opened()

    def _opened(self) -> la.Collection:
        kind: Any = {"signer": la.SimHash(64)} if self.by_texts else {"bits": 64}
        return la.open_collection(self.url, self.name, cache=False, **kind)

    def write(self, what: str, id: Any, content: Any) -> None:
        if what == "put":
            family, member, value = content
            given: dict[str, Any] = {"texts": [_text(family, member)]}
            if not self.by_texts:
                row = np.frombuffer(_signature(family, member), np.uint8)[None]
                given = {"signatures": row}
            self.other.upsert([id], metadata=[{"value": value}], **given)
            self.model[id] = content
        elif what == "delete":
            self.other.delete([id])
            self.model.pop(id, None)
        else:  # dropped, and made anew with other documents of the same ids
            self.other.close()
            la.drop_collection(self.url, self.name)
            self.other = self._opened()
            old, self.model = self.model, {}
            for one, (family, member, value) in old.items():
                self.write("put", one, ((family + 1) % 3, member, value))

    def there(self) -> dict[str, tuple[bytes, str | None, Any]]:
        return {
            one.id: (one.signature.tobytes(), one.text, one.metadata)
            for page in self.other.pages()
            for one in page
        }

    def near(self, one: str, other: str) -> bool:
        return self.model[one][0] == self.model[other][0]

    def check(self) -> None:
        found = self.there()
        assert sorted(found) == sorted(self.model)
        for id, (family, member, value) in self.model.items():
            signature, text, metadata = found[id]
            assert metadata == {"value": value}
            if self.by_texts:
                assert text == _text(family, member)
            else:
                assert signature == _signature(family, member)

    def delete(self, docs: la.Collection, duplicates: list[tuple[Seen, Seen]]) -> int:
        """Delete as a job does, and check that each deletion is right at that moment."""
        self.check()
        deleted = delete_unchanged(docs, duplicates)
        gone = set(self.model) - set(self.there())
        left = set(self.model) - gone
        assert len(gone) == deleted
        for id in gone:
            assert any(self.near(id, other) for other in left), (id, self.model, duplicates)
        for id in gone:
            del self.model[id]
        self.removed += deleted
        self.check()
        return deleted

    def close(self) -> None:
        self.docs.close()
        self.other.close()
        la.drop_collection(self.url, self.name)


def test_members_of_families_are_near_and_families_far() -> None:
    """What the other tests take for granted."""
    members = [(family, member) for family in range(3) for member in range(4)]
    for one, two in itertools.combinations(members, 2):
        rows = [np.frombuffer(_signature(*each), np.uint8)[None] for each in (one, two)]
        assert bool(oracle.distances(*rows)[0][0] <= RADIUS) is (one[0] == two[0])
        for length in (1, 3, 5):
            words = [_text(*each).split() for each in (one, two)]
            a, b = ({tuple(text[at : at + length]) for at in range(60)} for text in words)
            assert (len(a & b) / len(a | b) >= 0.6) is (one[0] == two[0])


@pytest.mark.parametrize(("by_texts", "examples"), [(False, EXAMPLES), (True, EXAMPLES // 3)])
def test_writes_beside_a_job_that_deletes_duplicates(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_texts: bool, examples: int
) -> None:
    """A random interleaving: nothing that was acknowledged is lost, and no group goes whole."""

    @settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck),
        database=None,
    )  # fmt: skip
    @given(st.data())
    def interleaved(data: st.DataObject) -> None:
        with closing(Beside(url, by_texts)) as beside:
            one_job(data, beside)

    def one_job(data: st.DataObject, beside: Beside) -> None:
        written = 0

        def meanwhile(step: str) -> None:
            nonlocal written
            beside.turns += 1
            if beside.turns > MOST_TURNS and step != "deleting":
                return
            some = data.draw(st.lists(writes, max_size=3 if step == "deleting" else 2), step)
            written += len(some)
            for one in some:
                beside.write(*one)

        for id in data.draw(st.lists(st.sampled_from(IDS), min_size=3, unique=True), "ids"):
            beside.write("put", id, data.draw(contents, id))
        keep = data.draw(st.sampled_from(["first", "oldest", "newest"]), "keep")
        how = {"threshold": 0.5} if by_texts else {"radius": RADIUS}
        with monkeypatch.context() as patch:
            patch.setattr(job_process, "_DELETED_AT_ONCE", data.draw(st.integers(1, 4), "batch"))
            patch.setattr(job_process, "delete_unchanged", beside.delete)
            job: Any = Job(tmp_path, meanwhile, keep=keep, **how)
            summary = job_process.deduplicate(job, beside.docs)
        beside.check()
        assert summary["deleted"] == beside.removed
        assert summary["deleted"] + summary["changed"] == summary["duplicates"]
        if not written:
            assert summary["changed"] == 0
            families = [family for family, _, _ in beside.model.values()]
            assert len(families) == len(set(families))

    interleaved()


@pytest.mark.parametrize("by_texts", [False, True])
def test_writers_in_other_threads_lose_nothing(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_texts: bool
) -> None:
    monkeypatch.setattr(job_process, "_DELETED_AT_ONCE", 5)
    count, bits = 120, 256
    rows = np.random.default_rng(0).integers(0, 256, (2 * count, bits // 8), dtype=np.uint8)
    kind: Any = {"signer": la.SimHash(bits)} if by_texts else {"bits": bits}
    docs = la.open_collection(url, cache=False, timeout=120, **kind)

    def content(number: int) -> dict[str, Any]:
        if by_texts:
            return {"texts": [" ".join(f"w{number}x{place}" for place in range(30))]}
        return {"signatures": rows[number : number + 1]}

    for place in range(count):  # pairs of equal documents
        docs.upsert([f"{place:03}"], **content(place // 2))
    going = threading.Event()
    acknowledged: list[str] = []

    def replace() -> None:
        with la.open_collection(url, cache=False, timeout=120) as other:
            for place in range(count - 1, 0, -2):  # those that the job wants to delete
                other.upsert([f"{place:03}"], **content(count + place))
                acknowledged.append(f"{place:03}")
                going.set()

    writer = threading.Thread(target=replace)

    def meanwhile(step: str) -> None:
        if step == "deleting" and not writer.is_alive() and not acknowledged:
            writer.start()
            going.wait(120)

    how = {"threshold": 0.9} if by_texts else {"radius": 0}
    job: Any = Job(tmp_path, meanwhile, **how)
    summary = job_process.deduplicate(job, docs)
    writer.join()
    assert summary["duplicates"] == count // 2
    assert summary["deleted"] + summary["changed"] == count // 2
    # All of the kept ones, and all that were replaced, whether before they were deleted or after.
    expected = {f"{place:03}" for place in range(0, count, 2)} | set(acknowledged)
    assert {one.id for one in docs} == expected and len(acknowledged) == count // 2
    assert docs.verify().ok
    docs.close()


def _seen(docs: la.Collection) -> dict[str, Seen]:
    return docs._read(lambda view: view.seen(list(IDS)))


def test_what_counts_as_a_change(url: str) -> None:
    """The text, the metadata, the time: whatever was written makes another version of it."""
    with la.open_collection(url, signer=la.SimHash(64)) as docs:
        docs.add(["a", "b", "c"], ["one two three"] * 3, metadata=[{"x": 1}] * 3)
        before = _seen(docs)
        changes: tuple[Callable[[], object], ...] = (
            lambda: docs.upsert(["b"], ["another text"], metadata=[{"x": 1}]),
            lambda: docs.upsert(["b"], ["one two three"], metadata=[{"x": 2}]),
            lambda: docs.upsert(["b"], ["one two three"], metadata=[{"x": 1}]),
            lambda: docs.delete(["b"]),
            lambda: docs.add(["b"], ["one two three"], metadata=[{"x": 1}]),
        )
        for change in changes:
            change()
            assert delete_unchanged(docs, [(before["b"], before["a"])]) == 0
            assert delete_unchanged(docs, [(before["c"], before["b"])]) == 0  # the kept one
        now = _seen(docs)
        # What is kept for one document is not deleted in favor of another at the same time.
        assert delete_unchanged(docs, [(now["c"], now["b"]), (now["b"], now["a"])]) == 1
        assert sorted(one.id for one in docs) == ["a", "b"]
        assert delete_unchanged(docs, [(now["b"], now["a"])]) == 1
        assert delete_unchanged(docs, [(now["b"], now["a"])]) == 0
        assert docs.verify().ok


def test_deleting_by_a_condition_decides_when_it_deletes(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(0).integers(0, 256, (6, 8), dtype=np.uint8)
    docs = la.open_collection(url, bits=64)
    docs.add(list(IDS[:6]), signatures=rows, metadata=[{"old": place < 4} for place in range(6)])
    writing = docs._writing
    other = la.open_collection(url)

    @contextmanager
    def later() -> Iterator[Any]:
        """Let others write between reading and deleting."""
        other.upsert(["a"], signatures=rows[:1], metadata=[{"old": False}])
        other.upsert(["f"], signatures=rows[:1], metadata=[{"old": True}])
        other.delete(["b"])
        with writing() as both:
            yield both

    monkeypatch.setattr(docs, "_writing", later)
    assert delete_meeting(docs, {"old": True}).deleted == 2  # c and d
    monkeypatch.undo()
    assert sorted(one.id for one in docs) == ["a", "e", "f"]
    assert delete_meeting(docs, {"old": True}).deleted == 1
    assert delete_meeting(docs, {"old": True}).deleted == 0
    docs.close()
    other.close()


def test_conditions_that_many_meet(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from lookalike.collection import reading

    monkeypatch.setattr(reading, "FILTERED_PAGE", 7)
    monkeypatch.setattr(reading, "_DELETED", 20)
    monkeypatch.setattr(reading, "_FILTERED", 3)
    rows = np.random.default_rng(0).integers(0, 256, (100, 8), dtype=np.uint8)
    with la.open_collection(url, bits=64) as docs:
        ids = [f"{place:03}" for place in range(100)]
        docs.add(ids, signatures=rows, metadata=[{"third": place % 3 == 0} for place in range(100)])
        assert delete_meeting(docs, {"third": True}).deleted == 34
        assert [one.id for one in docs] == [id for place, id in enumerate(ids) if place % 3]
        assert delete_meeting(docs, None).deleted == 66
        assert docs.count() == 0


def test_restoring_replaces_the_collection_that_was_there_when_it_began(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lookalike.collection.care import snapshots

    rows = np.zeros((1, 8), np.uint8)
    with la.open_collection(url, bits=64) as docs:
        docs.add(["old"], signatures=rows)
        docs.snapshot(tmp_path / "snapshot.db")
    copy = snapshots._copy

    def copied(*given: Any) -> None:
        copy(*given)
        la.drop_collection(url, "documents")
        with la.open_collection(url, bits=64) as docs:
            docs.add(["new"], signatures=rows)

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "_copy", copied)
        with pytest.raises(la.errors.ArgumentError, match="was created at .* meanwhile"):
            la.restore_collection(tmp_path / "snapshot.db", url, replace=True)
    with la.open_collection(url) as docs:
        assert [one.id for one in docs] == ["new"]
    la.restore_collection(tmp_path / "snapshot.db", url, replace=True)
    with la.open_collection(url) as docs:
        assert [one.id for one in docs] == ["old"]
