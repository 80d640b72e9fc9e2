"""A collection beside a plain dictionary, through every operation in any order."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tools.postgres_server import PostgresServer

import lookalike as la
from collection.conftest import new_database
from lookalike.collection.search import answer as gathering
from lookalike.collection.search import native as native_search
from lookalike.collection.search import sql as sql_search
from lookalike.collection.search import vectors as vector_search
from lookalike.collection.search import words as word_search
from lookalike.vectors import index as vector_index
from support.cases.strategies import collections
from support.oracles import collections as model
from support.oracles import scan as oracle
from support.oracles import vectors as vector_model
from support.oracles import words as word_model
from support.running.exploring import examples

WIDTH = 3
POOL = np.random.default_rng(7).normal(size=(9, 4)).astype(np.float32)
"""Vectors of documents: some documents have the same one, and no two others the same cosine."""
ids = st.integers(0, 25).map(lambda number: f"d'{number}")  # with a quote, as SQL likes them
metadata = st.fixed_dictionaries({"n": st.integers(0, 3)})
counts = st.one_of(st.integers(1, 8), st.integers(1, 40))
radii = st.one_of(st.integers(0, 12), st.integers(0, 8 * WIDTH))
asked = st.fixed_dictionaries(
    {
        "most": st.sampled_from((0, 1, 2, None)),
        "exclude": st.one_of(st.lists(ids, max_size=3), st.lists(ids, max_size=20)),
        "text": st.booleans(),
    }
)
"""Which documents may be found, and how."""
in_pool = st.one_of(st.none(), st.integers(0, len(POOL) - 1))
"""The vector of a document, if it has one."""

Settings = dict[tuple[Any, str], float]
FINE: Settings = {(gathering, "_FILTERED_CHUNK"): 1, (sql_search, "_MORE"): 1}
"""Searches go on in the smallest steps."""
PROBES: Settings = {(sql_search, "SCAN_COST"): 1e6}
"""Slices are looked up wherever that can be done."""
TEMPERS: dict[str, list[Settings]] = {
    "native": [{}, {(gathering, "_FILTERED_CHUNK"): 1, (native_search, "_SPARE"): 2}],
    "sql": [
        {},
        FINE,
        PROBES,
        {**FINE, **PROBES},
        {**PROBES, (sql_search, "_SPARE_CANDIDATES"): 1, (sql_search, "_HOT"): 1},
        {**FINE, (sql_search, "SCAN_COST"): 0.0, (sql_search, "_LEAST_SCAN"): 0.0},
    ],
}
"""What makes small collections take every path that large ones take: the last two count values
that are hot, and read everything."""
USUAL: Settings = {
    key: getattr(*key) for tempers in TEMPERS.values() for temper in tempers for key in temper
}


def be(temper: Settings) -> None:
    for (module, name), value in {**USUAL, **temper}.items():
        setattr(module, name, value)
    sql_search._plan.cache_clear()  # plans were made with the costs of before


def text_of(id: str, described: dict[str, Any]) -> str:
    return f"text of {id}, {described}"


class CollectionBesideDictionary(RuleBasedStateMachine):
    postgres: PostgresServer | None = None
    """Where to work; None: in SQLite files."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.known: dict[str, model.Entry] = {}
        self.vectors: dict[str, int] = {}  # places in the pool, in the order of writing
        self.version = 0
        self.handles: list[la.Collection] = []

    def open(self) -> la.Collection:
        return la.open_collection(
            self.url, "it's", bits=8 * WIDTH, slice_bits=self.slice_bits, cache=self.folder.name,
            words="porter",
        )  # fmt: skip

    @initialize(
        slice_bits=st.integers(2, 9), size=st.sampled_from((0, 10, 26, 40)),
        seed=st.integers(0, 2**32 - 1),
    )  # fmt: skip
    def begin(self, slice_bits: int, size: int, seed: int) -> None:
        self.slice_bits = slice_bits
        if self.postgres:
            self.url = new_database(self.postgres)
        else:
            self.url = str(Path(self.folder.name) / "docs.db")
        self.handles = [self.open(), self.open()]  # as two processes would
        if size:  # a clump, of which conditions leave some: then searches go on after a while
            rng = np.random.default_rng(seed)
            flips = rng.random((size, 8 * WIDTH)) < rng.random((size, 1)) * 0.6
            names = [f"d'{number}" for number in range(size)]
            rows = np.packbits(flips, axis=1)
            described = [{"n": int(n)} for n in rng.integers(0, 4, size)]
            texts = self._texts(names, described)
            drawn = rng.integers(-1, len(POOL), size).tolist()
            places = [None if one < 0 else one for one in drawn]
            self.handles[0].add(
                names, texts, signatures=rows, metadata=described, vectors=self._rows(places)
            )
            self._take(names, rows, described, places)

    def teardown(self) -> None:
        be({})
        for handle in self.handles:
            handle.close()
        self.folder.cleanup()

    @rule(data=st.data(), who=st.integers(0, 1))
    def add(self, data: st.DataObject, who: int) -> None:
        names, rows, described = self._batch(data)
        places = self._places(data, len(names))
        fresh = len(set(names)) == len(names) and not set(names) & set(self.known)
        if fresh:
            written = self.handles[who].add(
                names, self._texts(names, described), signatures=rows, metadata=described,
                vectors=self._rows(places),
            )  # fmt: skip
            self._take(names, rows, described, places)
            assert (written.added, written.updated) == (len(names), 0)
            return
        with pytest.raises(la.errors.BatchError):
            self.handles[who].add(
                names, signatures=rows, metadata=described, vectors=self._rows(places)
            )

    @rule(data=st.data(), who=st.integers(0, 1))
    def upsert(self, data: st.DataObject, who: int) -> None:
        names, rows, described = self._batch(data)
        places = self._places(data, len(names))
        old = set(names) & set(self.known)
        written = self.handles[who].upsert(
            names, self._texts(names, described), signatures=rows, metadata=described,
            vectors=self._rows(places),
        )  # fmt: skip
        self._take(names, rows, described, places)
        assert (written.added, written.updated) == (len(set(names) - old), len(old))

    @rule(names=st.lists(ids, max_size=6), who=st.integers(0, 1))
    def delete(self, names: list[str], who: int) -> None:
        gone = set(names) & set(self.known)
        assert self.handles[who].delete(names).deleted == len(gone)
        self.known = {id: entry for id, entry in self.known.items() if id not in gone}
        self.vectors = {id: one for id, one in self.vectors.items() if id not in gone}
        self.version += bool(gone)

    @precondition(lambda self: self.known)
    @rule(data=st.data(), who=st.integers(0, 1), times=st.integers(1, 3))
    def remove_and_add_again(self, data: st.DataObject, who: int, times: int) -> None:
        id = data.draw(st.sampled_from(sorted(self.known)))
        for row in data.draw(collections(width=WIDTH, least=times, most=times)):
            described = data.draw(metadata)
            self.handles[who].delete(id)
            text = [text_of(id, described)]
            places = self._places(data, 1)
            self.handles[who].add(
                [id], text, signatures=row[None], metadata=[described], vectors=self._rows(places)
            )
            self.version += 1
            self._take([id], row[None], [described], places)

    @rule(
        data=st.data(), k=counts, who=st.integers(0, 1), asked=asked,
        radius=st.one_of(st.none(), st.none(), radii),
    )  # fmt: skip
    def search(
        self, data: st.DataObject, k: int, who: int, asked: dict[str, Any], radius: int | None
    ) -> None:
        queries = self._queries(data)
        expected = [self._nearest(query, asked, radius=radius, k=k) for query in queries]
        for options in self._every_way(asked):
            answers = self.handles[who].search_many(queries, k, radius=radius, **options)
            for answer, nearest in zip(answers, expected, strict=True):
                self._same(answer, nearest, asked["text"])
                assert answer.exact
        one = self.handles[who].search(queries[0], k, radius=radius, **options)
        assert one == answers[0]

    @rule(
        query=st.lists(st.sampled_from(("text", "d", "n", "0", "1", "2", "7", "none")), max_size=4),
        k=counts, who=st.integers(0, 1), asked=asked, growth=st.integers(2, 8),
    )  # fmt: skip
    def search_by_words(
        self, query: list[str], k: int, who: int, asked: dict[str, Any], growth: int
    ) -> None:
        word_search._GROWTH = growth
        allowed = self._by_words(query, asked)
        for options in self._every_way(asked):
            answer = self.handles[who].search(" ".join(query), k, by="words", **options)
            self._same(answer, allowed[:k], asked["text"])

    @precondition(lambda self: self.vectors)
    @rule(
        query=st.lists(st.sampled_from(("text", "0", "1", "7", "none")), min_size=1, max_size=3),
        vector=st.integers(0, len(POOL) - 1), k=counts, who=st.integers(0, 1), asked=asked,
        growth=st.integers(2, 8), few=st.sampled_from((3, 256)), exact=st.booleans(),
    )  # fmt: skip
    def search_by_vector(
        self, query: list[str], vector: int, k: int, who: int, asked: dict[str, Any], growth: int,
        few: int, exact: bool,
    ) -> None:  # fmt: skip
        vector_search._GROWTH, vector_index._FEW = growth, few
        near = self._by_vector(vector, asked)
        near_in_words = self._by_words(query, asked)
        for options in self._every_way(asked):
            answer = self.handles[who].search(vector=POOL[vector], k=k, exact=exact, **options)
            assert answer.exact or not exact
            # There are fewer vectors than candidates, so that all of them are compared.
            expected = [(round(65536 * (1 - one)), id) for one, id in near[:k]]
            self._same(answer, expected, asked["text"])
            cosines = [one for one, _ in near[:k]]
            assert [m.score for m in answer] == pytest.approx(cosines)
            answer = self.handles[who].search(
                " ".join(query), k, vector=POOL[vector], by="words", **options
            )
            fused = model.fused([id for _, id in near_in_words], [id for _, id in near], k)
            assert [(m.ranks, m.id) for m in answer] == fused
            assert (answer.by, answer.exact, answer.version) == ("fused", True, self.version)
        vector_search._GROWTH, vector_index._FEW = 8, 256

    @rule(
        data=st.data(), radius=radii, who=st.integers(0, 1), asked=asked,
        limit=st.one_of(st.just(100), counts),
    )  # fmt: skip
    def within(
        self, data: st.DataObject, radius: int, who: int, asked: dict[str, Any], limit: int
    ) -> None:
        queries = self._queries(data)
        expected = [self._nearest(query, asked, radius=radius) for query in queries]
        for options in self._every_way(asked):
            answers = self.handles[who].within_many(
                queries, radius, limit=limit, explain=True, **options
            )
            for answer, nearest in zip(answers, expected, strict=True):
                self._same(answer, nearest[:limit], asked["text"])
                assert answer.exact == (len(nearest) <= limit)
                self._explained(answer)

    @precondition(lambda self: self.known)
    @rule(data=st.data(), radius=st.integers(0, 9), asked=asked)
    def duplicates(self, data: st.DataObject, radius: int, asked: dict[str, Any]) -> None:
        id = data.draw(st.sampled_from(sorted(self.known)))
        query = np.frombuffer(self.known[id][0], np.uint8)
        expected = self._nearest(query, {**asked, "exclude": [id]}, radius=radius)
        for options in self._every_way(asked):
            del options["exclude"]
            answer = self.handles[0].duplicates_of(id, radius, **options)
            self._same(answer, expected, asked["text"])

    @rule(radius=st.integers(0, 6))
    def pairs(self, radius: int) -> None:
        found = [(p.left, p.right, p.distance) for p in self.handles[0].pairs(radius)]
        assert found == model.pairs(self.known, radius)

    @rule(limit=st.integers(1, 9), wanted=st.integers(0, 3))
    def scroll(self, limit: int, wanted: int) -> None:
        after, seen = "", []
        while page := self.handles[1].scroll(after, limit, where={"n": wanted}):
            seen += [document.id for document in page]
            after = seen[-1]
            for document in page:
                self._same_vector(document)
        assert seen == sorted(id for id, (_, m) in self.known.items() if m["n"] == wanted)
        assert self.handles[1].count({"n": wanted}) == len(seen)

    @rule(names=st.lists(ids, max_size=6))
    def get(self, names: list[str]) -> None:
        for id, document in zip(names, self.handles[1].get_many(names), strict=True):
            if id not in self.known:
                assert document is None
                continue
            assert document is not None
            assert document.id == id
            assert (document.signature.tobytes(), document.metadata) == self.known[id]
            self._same_vector(document)

    @rule(who=st.integers(0, 1))
    def reopen(self, who: int) -> None:
        self.handles[who].refresh()
        self.handles[who].close()
        self.handles[who] = self.open()

    @rule()
    def repair(self) -> None:
        assert self.handles[0].repair().ok
        self.known = dict(sorted(self.known.items()))  # the order of the keyword index
        self.version += 1

    @rule(number=st.integers(0, 10**9))
    def snapshot_and_restore(self, number: int) -> None:
        path = Path(self.folder.name) / f"snapshot-{number}.db"
        if path.exists():
            return
        self.handles[0].snapshot(path)
        self.handles[1].upsert(["passing"], signatures=np.zeros((1, WIDTH), np.uint8))
        assert la.restore_collection(path, self.url, replace=True) == "it's"
        path.unlink()

    @invariant()
    def consistent(self) -> None:
        if self.handles:
            assert self.handles[0].count() == len(self.known)
            assert self.handles[0].version == self.version
            report = self.handles[1].verify()
            assert report.ok, report.problems
            assert report.documents == len(self.known)
            assert self.handles[1].stats()["vectors"] == len(self.vectors)
            assert report.signatures == len({entry[0] for entry in self.known.values()})

    def _batch(
        self, data: st.DataObject
    ) -> tuple[list[str], oracle.Signatures, list[dict[str, Any]]]:
        rows = data.draw(collections(width=WIDTH, least=1, most=6))
        size = len(rows)
        names = data.draw(st.lists(ids, min_size=size, max_size=size))
        return names, rows, data.draw(st.lists(metadata, min_size=size, max_size=size))

    def _take(
        self, names: list[str], rows: oracle.Signatures, described: list[dict[str, Any]],
        places: list[int | None],
    ) -> None:  # fmt: skip
        for id, row, one, place in zip(names, rows, described, places, strict=True):
            self.known.pop(id, None)  # what is written comes last
            self.vectors.pop(id, None)
            self.known[id] = (row.tobytes(), one)
            if place is not None:
                self.vectors[id] = place
        self.version += 1

    def _places(self, data: st.DataObject, size: int) -> list[int | None]:
        if data.draw(st.booleans()):
            return [None] * size
        return data.draw(st.lists(in_pool, min_size=size, max_size=size))

    def _rows(self, places: list[int | None]) -> list[Any] | None:
        if all(place is None for place in places):
            return None
        return [None if place is None else POOL[place] for place in places]

    def _allowed(
        self, found: list[tuple[Any, str]], asked: dict[str, Any]
    ) -> list[tuple[Any, str]]:
        most = asked["most"]
        return [
            (far, id)
            for far, id in found
            if id not in asked["exclude"] and (most is None or self.known[id][1]["n"] <= most)
        ]

    def _by_words(self, query: list[str], asked: dict[str, Any]) -> list[tuple[int, str]]:
        texts = {id: text_of(id, described) for id, (_, described) in self.known.items()}
        return self._allowed(word_model.nearest(texts, " ".join(query), "porter"), asked)

    def _by_vector(self, vector: int, asked: dict[str, Any]) -> list[tuple[float, str]]:
        (cosines,) = vector_model.cosines(POOL[vector][None], POOL).tolist()
        found = [(cosines[place], id) for id, place in self.vectors.items()]
        return self._allowed(sorted(found, key=lambda one: -one[0]), asked)

    def _same_vector(self, document: la.results.Document) -> None:
        place = self.vectors.get(document.id)
        if place is None or document.vector is None:
            assert place is None
            assert document.vector is None
        else:
            assert document.vector.tobytes() == POOL[place].tobytes()

    def _texts(self, names: list[str], described: list[dict[str, Any]]) -> list[str]:
        return [text_of(id, one) for id, one in zip(names, described, strict=True)]

    def _queries(self, data: st.DataObject) -> oracle.Signatures:
        queries: oracle.Signatures = data.draw(collections(width=WIDTH, least=1, most=3))
        if not self.known:
            return queries
        some = data.draw(st.lists(st.sampled_from(sorted(self.known)), max_size=5))
        near = [np.frombuffer(self.known[id][0], np.uint8) for id in some]
        queries = np.array([*queries, *near], np.uint8)
        queries[0, 0] ^= data.draw(st.integers(0, 3))
        return queries

    def _every_way(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the options of a search: both ways, and on each every path that it can take."""
        options = {"exclude": asked["exclude"], "text": asked["text"]}
        if asked["most"] is not None:
            options["where"] = {"n": {"<=": asked["most"]}}
        for plan, tempers in TEMPERS.items():
            for temper in tempers:
                be(temper)
                yield {**options, "plan": plan}
        be({})

    def _nearest(
        self, query: oracle.Signatures, asked: dict[str, Any], **options: Any
    ) -> list[tuple[int, str]]:
        most = asked["most"]
        return model.nearest(
            self.known, query, exclude=asked["exclude"],
            where=lambda metadata: most is None or metadata["n"] <= most, **options,
        )  # fmt: skip

    def _explained(self, answer: la.results.Answer) -> None:
        for match in answer:
            assert match.differing_bits is not None
            assert match.slice_distances is not None
            assert len(match.differing_bits) == sum(match.slice_distances) == match.distance
            if answer.work is not None and answer.work.plan == "sql":
                assert match.slices, "it was found, so a slice must have hit"

    def _same(self, answer: la.results.Answer, expected: list[tuple[int, str]], text: bool) -> None:
        assert list(zip(answer.distances, answer.ids, strict=True)) == expected
        assert [m.metadata for m in answer] == [self.known[id][1] for _, id in expected]
        texts = [text_of(id, self.known[id][1]) if text else None for _, id in expected]
        assert [m.text for m in answer] == texts
        assert answer.version == self.version


@pytest.mark.hypothesis
def test_sqlite_beside_a_dictionary() -> None:
    run_state_machine_as_test(
        CollectionBesideDictionary,
        settings=settings(max_examples=examples(40), stateful_step_count=30),
    )


@pytest.mark.hypothesis
def test_postgresql_beside_a_dictionary(postgres: PostgresServer) -> None:
    machine = type("OnPostgres", (CollectionBesideDictionary,), {"postgres": postgres})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples(15), stateful_step_count=25)
    )
