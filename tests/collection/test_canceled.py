"""Work on a collection that is canceled: it ends, writes nothing, and nothing is wrong later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.collection.query import Question
from lookalike.collection.search import answer as answering
from lookalike.collection.search.answer import Budget
from lookalike.collection.search.native import NativeSearch
from lookalike.collection.stores.postgresql import PostgresTransaction
from lookalike.collection.stores.sqlite import SqliteTransaction
from lookalike.operation import Canceled, Operation

ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000000000000) "
    "SELECT count(*) FROM n"
)
_ROWS = np.random.default_rng(3).integers(0, 256, (300, 8), dtype=np.uint8)
_ROWS[100:140] = _ROWS[0]
_IDS = [f"d{number:03}" for number in range(300)]


def _filled(url: str, **options: Any) -> la.Collection:
    docs = la.open_collection(url, bits=64, durable=False, **options)
    docs.add(_IDS, signatures=_ROWS, metadata=[{"n": number % 7} for number in range(300)])
    return docs


def test_a_statement_without_end_is_interrupted(url: str) -> None:
    with _filled(url) as docs:
        operation, begun = Operation(), threading.Event()

        def work(view: Any) -> None:
            begun.set()
            view._execute(ENDLESS).fetchone()

        def cancel() -> None:
            begun.wait()
            operation.cancel()

        threading.Thread(target=cancel).start()
        with pytest.raises(Canceled):
            operation.run(docs._read, work)
        assert docs.search(_ROWS[5], 1).ids == ["d005"]
        assert docs.search(_ROWS[5], 1, plan="sql").ids == ["d005"]


@pytest.mark.parametrize("plan", ["native", "sql"])
def test_searches_and_reads_raise_when_they_are_canceled(url: str, plan: Any) -> None:
    with _filled(url) as docs:
        works: list[Callable[[], Any]] = [
            lambda: docs.search(_ROWS[0], 5, plan=plan),
            lambda: docs.search_many(_ROWS[:20], 5, plan=plan, explain=True),
            lambda: docs.within_many(_ROWS[:20], 20, plan=plan),
            lambda: docs.duplicates_of("d000", 3, plan=plan),
            lambda: docs.pairs(3),
            lambda: docs.count({"n": 3}),
            lambda: docs.get_many(_IDS),
            lambda: docs.scroll(limit=10),
        ]
        for work in works:
            expected = repr(work())
            operation = Operation()
            operation.cancel()
            with pytest.raises(Canceled):
                operation.run(work)
            assert repr(work()) == expected


def test_a_canceled_write_writes_nothing(
    url: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction: Any = SqliteTransaction if kind == "sqlite" else PostgresTransaction
    insert = transaction.insert_documents
    operation = Operation()

    def then_canceled(self: Any, *given: Any) -> None:
        insert(self, *given)
        operation.cancel()

    with _filled(url) as docs:
        version = docs.version
        with monkeypatch.context() as patched:
            patched.setattr(transaction, "insert_documents", then_canceled)
            with pytest.raises(Canceled):
                operation.run(docs.add, ["new"], signatures=_ROWS[:1] ^ 255)
        assert docs.version == version and "new" not in docs
        docs.add(["new"], signatures=_ROWS[:1] ^ 255)
        assert docs.search(_ROWS[0] ^ 255, 1).ids == ["new"]
        assert not docs.verify().problems


def test_the_index_is_completed_for_others(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operation = Operation()
    built = NativeSearch._built

    def cancelled_meanwhile(self: NativeSearch, view: Any) -> Any:
        operation.cancel()
        return built(self, view)

    with _filled(url) as docs:
        with monkeypatch.context() as patched:
            patched.setattr(NativeSearch, "_built", cancelled_meanwhile)
            with pytest.raises(Canceled):
                operation.run(docs.search, _ROWS[0], 1)
        assert docs._native.version == docs.version
        monkeypatch.setattr(NativeSearch, "_built", None)  # which is not called again
        assert docs.search(_ROWS[5], 1).ids == ["d005"]


@pytest.mark.parametrize("before", ["_add", "_remove"])
def test_an_index_that_changes_when_the_service_ends_is_made_again(
    url: str, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    operation = Operation()

    def canceled(*given: Any) -> None:
        operation.cancel(shielded_too=True)
        change(*given)
        la.ScanIndex(_ROWS).search(_ROWS[:1], 1)

    change = getattr(NativeSearch, before)
    with _filled(url) as docs:
        docs.search(_ROWS[0], 1)
        docs.add(["new"], signatures=_ROWS[:1] ^ 255)
        docs.delete(["d005"])
        with monkeypatch.context() as patched:
            patched.setattr(NativeSearch, before, canceled)
            with pytest.raises(Canceled):
                operation.run(docs.search, _ROWS[0], 1)
        assert docs.search(_ROWS[0] ^ 255, 1).ids == ["new"]
        assert "d005" not in docs.search(_ROWS[5], 300).ids


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with _filled(str(tmp_path_factory.mktemp("known") / "docs.db")) as docs:
        yield docs


@settings(max_examples=60, deadline=None)
@given(
    plan=st.sampled_from(["native", "sql"]),
    queries=st.lists(st.integers(0, 299), min_size=1, max_size=8),
    k=st.integers(1, 60),
    radius=st.sampled_from([None, 0, 3, 28, 33, 64]),
    limit=st.sampled_from([None, 1, 50]),
    where=st.sampled_from([None, {"n": 3}, {"n": 99}]),
    exclude=st.sampled_from([[], ["d000", "d007", "d100"]]),
    explain=st.booleans(),
    found=st.integers(1, 400),
    together=st.integers(1, 50),
    piece=st.integers(1, 40),
    kept=st.integers(0, 20_000),
)
def test_memory_does_not_show_in_answers(
    known: la.Collection, plan: Any, queries: list[int], k: int, radius: int | None,
    limit: int | None, where: Any, exclude: list[str], explain: bool, found: int, together: int,
    piece: int, kept: int,
) -> None:  # fmt: skip
    asked, options = _ROWS[queries], {"where": where, "exclude": exclude, "plan": plan}
    explained = explain and (radius is None or found > 300)  # what it did shows in `work`

    def ask(budget: Budget | None = None) -> list[Any]:
        how: Any = {"k": k, "radius": radius}
        if limit is not None and radius is not None:
            how = {"radius": radius, "limit": limit}
        question = Question(explain=explained, **how, **options)
        answers = known.answers_each(asked, question, lambda _, answer: answer, budget)
        return [(list(answer), answer.exact, answer.version) for answer in answers]

    expected = ask()
    taken: list[int] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(answering, "_FOUND_AT_ONCE", found)
        patched.setattr(answering, "_TOGETHER", together)
        patched.setattr(answering, "_PIECE", piece)
        patched.setattr(answering, "_KEPT", kept)
        with Budget(1 << 30, change=taken.append) as budget:
            assert ask(budget) == expected
    assert sum(taken) == 0, "all memory is given back"


def test_memory_that_is_not_there_is_refused(known: la.Collection) -> None:
    left = 3 << 20

    def change(size: int) -> None:
        nonlocal left
        left -= size
        if left < 0:
            left += size
            raise MemoryError

    def ask(rows: Any, k: int, explain: bool, budget: Budget) -> list[Any]:
        question = Question(k=k, explain=explain)
        return known.answers_each(rows, question, lambda _, answer: answer, budget)

    with pytest.raises(MemoryError), Budget(1 << 30, change=change) as budget:
        ask(np.repeat(_ROWS, 30, axis=0), 300, True, budget)
    assert left == 3 << 20
    with Budget(1 << 30, change=change) as budget:
        assert len(ask(_ROWS, 10, False, budget)) == 300
    assert left == 3 << 20


@pytest.mark.parametrize("plan", ["native", "sql"])
@pytest.mark.parametrize(
    ("how", "most"), [({"radius": 64}, 3000), ({"k": 200, "radius": 64}, 2000), ({"k": 7}, 70)]
)
def test_matches_are_counted_while_they_are_found(
    known: la.Collection, monkeypatch: pytest.MonkeyPatch, plan: Any, how: Any, most: int
) -> None:
    monkeypatch.setattr(answering, "_FOUND_AT_ONCE", 700)

    def search(budget: Budget) -> list[int]:
        question = Question(**how, plan=plan)
        return known.answers_each(_ROWS[:10], question, lambda _, answer: len(answer), budget)

    with Budget(1 << 30, matches=most) as budget:
        assert sum(search(budget)) == most
    with (
        Budget(1 << 30, matches=most - 1) as budget,
        pytest.raises(la.errors.ResultTooLargeError, match=f"more than {most - 1} matches"),
    ):
        search(budget)
