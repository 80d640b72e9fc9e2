"""Searching in the database: complete for any radius, whatever the data, and by its indexes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.collection.search.sql import FrequentValues, plan_probes
from lookalike.collection.stores.base import View
from lookalike.collection.stores.schema import Slicing, default_slice_bits, flips
from support.cases.strategies import collections
from support.oracles import collections as model
from support.oracles import scan as oracle


@given(st.data())
def test_values_of_slices_are_the_bits_of_signatures(data: st.DataObject) -> None:
    rows = data.draw(collections(width=data.draw(st.integers(1, 70)), least=1, most=5))
    bits = 8 * rows.shape[1]
    slicing = Slicing(bits, data.draw(st.integers(1, min(32, bits))))
    flat = np.unpackbits(rows, axis=1, bitorder="little")
    start = 0
    values = slicing.values(rows)
    for position, width in enumerate(slicing.widths):
        part = flat[:, start : start + width].astype(object)
        expected = [sum(int(bit) << place for place, bit in enumerate(row)) for row in part]
        assert values[position].tolist() == expected
        start += width
    assert start == bits
    assert max(slicing.widths) - min(slicing.widths) <= 1
    keys = slicing.keys(rows)
    assert (keys >> 32).tolist() == [[p] * len(rows) for p in range(slicing.count)]
    apart = slicing.differing(rows[0], rows)
    assert apart.T.tolist() == np.bitwise_count(values ^ values[:, :1]).tolist()
    assert apart.sum(axis=1).tolist() == oracle.distances(rows[:1], rows)[0].tolist()


def test_flips_are_all_values_with_so_many_ones() -> None:
    for width in (1, 5, 9):
        for ones in range(width + 1):
            expected = [value for value in range(1 << width) if value.bit_count() == ones]
            assert sorted(flips(width, ones).tolist()) == expected


def test_four_equal_slices_alone_find_a_quarter_and_probes_find_all() -> None:
    """Figures of the documentation: 128 bits, four slices of 32, neighbors at distance 9."""
    rng = np.random.default_rng(0)
    slicing = Slicing(128, 32)
    query = rng.integers(0, 256, 16, dtype=np.uint8)
    bits = np.array([rng.permutation(128)[:9] for _ in range(20_000)])
    flipped = np.zeros((20_000, 128), np.uint8)
    np.put_along_axis(flipped, bits, 1, axis=1)
    rows = query ^ np.packbits(flipped, axis=1, bitorder="little")
    apart = slicing.differing(query, rows)
    alone = float((apart == 0).any(axis=1).mean())
    assert 0.24 < alone < 0.28
    plan = plan_probes(
        slicing, slicing.values(query[None])[:, 0].tolist(), 9, 10**9, FrequentValues()
    )
    assert plan is not None
    assert sum(most + 1 for most in plan.thresholds) == 10
    assert (apart <= np.array(plan.thresholds)).any(axis=1).all()


@given(
    st.integers(1, 30), st.integers(0, 40), st.integers(0, 10**8),
    st.dictionaries(st.integers(0, 5 << 32), st.integers(1, 10**6), max_size=6), st.data(),
)  # fmt: skip
@settings(max_examples=60)
def test_thresholds_are_always_enough(
    width: int, radius: int, count: int, hot_keys: dict[int, int], data: st.DataObject
) -> None:
    slicing = Slicing(8 * data.draw(st.integers(4, 20)), width)
    hot = FrequentValues()
    hot.note(hot_keys)
    values = [data.draw(st.integers(0, (1 << width) - 1)) for width in slicing.widths]
    plan = plan_probes(slicing, values, radius, count, hot)
    if plan is None:
        return
    assert len(plan.thresholds) == slicing.count
    assert sum(most + 1 for most in plan.thresholds) >= radius + 1
    keys = plan.keys(slicing, values)
    assert len(set(keys.tolist())) == len(keys)
    for position, most in enumerate(plan.thresholds):
        here = keys[keys >> 32 == position] & 0xFFFFFFFF
        apart = np.bitwise_count(here ^ values[position])
        assert len(apart) == 0 if most < 0 else int(apart.max()) == most


@pytest.mark.usefixtures("probes_only")
@pytest.mark.parametrize("style", oracle.STYLES)
def test_every_radius_is_complete_by_slices_alone(url: str, style: str) -> None:
    rng = np.random.default_rng(7)
    rows = oracle.collection(400, 8, style, 3)
    rows[200:300] = rows[:100]
    for row in range(200, 300):  # at every distance from its original
        for bit in rng.permutation(64)[: row - 200]:
            rows[row, bit // 8] ^= 1 << bit % 8
    ids = [f"d{i}" for i in range(400)]
    known: dict[str, model.Entry] = {
        id: (row.tobytes(), {}) for id, row in zip(ids, rows, strict=True)
    }
    used = set()
    with la.open_collection(url, bits=64, slice_bits=11, cache=False) as docs:
        docs.add(ids, signatures=rows)
        for query in (rows[0], rows[250], rng.integers(0, 256, 8, dtype=np.uint8)):
            for radius in (0, 1, 4, 5, 6, 11, 14, 17):
                expected = model.nearest(known, query, radius=radius)
                for plan in ("sql", "native"):
                    answer = docs.within(query, radius, plan=plan, explain=True)
                    assert list(zip(answer.distances, answer.ids, strict=True)) == expected
                    assert answer.work is not None
                    if plan == "sql":
                        used.add(answer.work.plan)
    assert "sql" in used


def test_hot_values_are_counted_and_avoided(url: str) -> None:
    """Half of the collection shares four of five slices; a query for those must not read half."""
    rng = np.random.default_rng(1)
    count = 30_000
    rows = rng.integers(0, 256, (count, 10), dtype=np.uint8)
    rows[: count // 2, :8] = 0  # bits 0 to 63 of 80: slices 0 to 3 of 16 bits
    query = rows[5].copy()
    query[0] ^= 1
    with la.open_collection(url, bits=80, slice_bits=16, cache=False, plan="sql") as docs:
        docs.add([f"d{i}" for i in range(count)], signatures=rows)
        first = docs.within(query, 4, explain=True)
        again = docs.within(query, 4, explain=True)
        native = docs.within(query, 4, plan="native")
        assert list(first) == [*first]
        assert first.ids == again.ids == native.ids
        assert "d5" in first.ids
        assert again.work is not None
        assert again.work.plan == "sql"
        assert again.work.hot >= 1, "hot values were counted"
        assert again.work.candidates < count // 20, "and avoided"
        assert again.work.thresholds[4] > 0, "by looking up more values of the other slice"


def plans_of_reads(view: View, kind: str) -> dict[str, str]:
    """Return how the database runs each kind of read that searches do, in its own words."""
    plans: dict[str, str] = {}
    execute, explain = view._execute, "EXPLAIN QUERY PLAN" if kind == "sqlite" else "EXPLAIN"
    some = np.array([1, 2])
    reads: dict[str, Callable[[], object]] = {
        "candidates": lambda: view.candidates(some, 1),
        "counts": lambda: view.count_keys(some, 1),
        "catching up": lambda: next(view.signatures_after(1), None),
        "documents": lambda: list(view.documents_of(some.tolist(), None, True)),
        "first documents": lambda: list(view.documents_of(some.tolist(), 5, True)),
        "documents by id": lambda: view.documents(["a", "b"]),
        "scroll": lambda: next(view.pages(5, "a"), None),
    }
    for name, read in reads.items():

        def asking_first(query: str, values: Sequence[Any] = (), name: str = name) -> Any:
            rows = execute(f"{explain} {query}", values).fetchall()
            plans[name] = "\n".join(str(row[-1]) for row in rows)
            return execute(query, values)

        with mock.patch.object(view, "_execute", asking_first):
            read()
    assert plans.keys() == reads.keys()
    return plans


def test_searches_use_indexes_and_never_read_a_whole_table(kind: str, url: str) -> None:
    """Plans as the database tells them, with few rows and with many, right after writing."""
    rng = np.random.default_rng(0)
    with la.open_collection(url, bits=64, cache=False) as docs:
        for count in (3, 20_000):
            rows = rng.integers(0, 256, (count, 8), dtype=np.uint8)
            docs.add([f"{count}-{i}" for i in range(count)], signatures=rows)
            plans = docs._read(partial(plans_of_reads, kind=kind))
            for name, plan in plans.items():
                if kind == "sqlite":
                    lines = [
                        line for line in plan.splitlines() if "lookalike" in line or "SCAN" in line
                    ]
                    scans = [line for line in lines if line.startswith("SCAN")]
                    assert all("json_each" in s or " j " in s or "subquery" in s for s in scans), (
                        plan
                    )
                    assert "SEARCH" in plan
                else:
                    assert "Seq Scan" not in plan, (name, plan)
                    assert "Hash Join" not in plan
                    assert "Merge Join" not in plan
                    assert "Index" in plan
            wanted = "PRIMARY KEY (key=?)" if kind == "sqlite" else "key = ANY"
            assert wanted in plans["candidates"]
            assert wanted in plans["counts"]


def test_one_signature_of_many_documents_is_stored_once(url: str) -> None:
    row = np.arange(8, dtype=np.uint8)
    count = 5000
    ids = sorted(f"copy-{i}" for i in range(count))
    with la.open_collection(url, bits=64, cache=False) as docs:
        docs.add(ids, signatures=np.repeat(row[None], count, axis=0))
        docs.add(["near"], signatures=row[None] ^ 1)
        stats = docs.stats()
        assert (stats["documents"], stats["signatures"]) == (count + 1, 2)
        for plan in ("sql", "native"):
            search: dict[str, Any] = {"plan": plan}
            assert docs.search(row, 3, **search).ids == ids[:3]
            assert docs.search(row, 2, exclude=ids[:4], **search).ids == ids[4:6]
            assert docs.search(row ^ 1, 2, **search).ids == ["near", ids[0]]
            whole = docs.within(row, 8, limit=count + 1, **search)
            assert whole.ids == [*ids, "near"]
            assert whole.exact
            part = docs.within(row, 8, limit=100, **search)
            assert part.ids == ids[:100]
            assert not part.exact, "a part never passes for the whole"
        with pytest.raises(la.errors.ResultTooLargeError, match="more than limit=1000000"):
            docs.pairs(0)
        docs.delete(ids[1:])
        assert docs.stats()["signatures"] == 2
        docs.delete(ids[:1])
        assert docs.stats()["signatures"] == 1
        assert docs.search(row, 5).ids == ["near"]


def test_conditions_come_before_the_nearest_are_chosen(url: str) -> None:
    """The only document that meets the condition is the farthest of all."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 256, (3000, 8), dtype=np.uint8)
    query = rows[0]
    far = oracle.distances(query[None], rows)[0]
    wanted = int(far.argmax())
    metadata = [{"wanted": i == wanted, "n": i} for i in range(3000)]
    with la.open_collection(url, bits=64, cache=False) as docs:
        docs.add([f"d{i}" for i in range(3000)], signatures=rows, metadata=metadata)
        for plan in ("native", "sql"):
            (match,) = docs.search(query, 3, where={"wanted": True}, plan=plan)
            assert (match.id, match.distance) == (f"d{wanted}", far[wanted])
            odd = docs.search(query, 9, where=lambda m: m["n"] % 2, plan=plan)
            pairs = sorted((int(far[i]), f"d{i}") for i in range(1, 3000, 2))[:9]
            assert list(zip(odd.distances, odd.ids, strict=True)) == pairs
            assert not docs.search(query, 3, where={"n": -1}, plan=plan)


def test_what_slices_have_found_is_not_found_again_by_reading_all(url: str) -> None:
    """A hundred near the query, of which two meet the condition: slices do not lead to a third."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (5100, 16), dtype=np.uint8)
    query = rows[0].copy()
    for row in range(100):
        flipped = np.isin(np.arange(128), rng.permutation(128)[: row % 5 + 1])
        rows[row] = query ^ np.packbits(flipped)
    far = oracle.distances(query[None], rows)[0]
    ids = [f"d{i}" for i in range(5100)]
    with la.open_collection(url, bits=128, cache=False) as docs:
        docs.add(ids, signatures=rows, metadata=[{"m": i % 50 == 0} for i in range(5100)])
        wanted = sorted((int(far[i]), ids[i]) for i in range(0, 5100, 50))
        others = [id for i, id in enumerate(ids) if i % 50]
        for plan in ("native", "sql"):
            for k in (1, 2, 3, 10, 101, 103):
                search: dict[str, Any] = {"k": k, "plan": plan}
                answer = docs.search(query, where={"m": True}, **search)
                assert list(zip(answer.distances, answer.ids, strict=True)) == wanted[:k]
                answer = docs.search(query, exclude=others, **search)
                assert list(zip(answer.distances, answer.ids, strict=True)) == wanted[:k]


def test_many_queries_are_answered_as_one_by_one(url: str) -> None:
    rng = np.random.default_rng(3)
    rows = oracle.collection(500, 16, "clustered", 5)
    queries = rng.permutation(rows)[:20]
    with la.open_collection(url, bits=128, cache=False) as docs:
        docs.add([f"d{i}" for i in range(500)], signatures=rows)
        for plan in ("native", "sql"):
            options: dict[str, Any] = {"plan": plan}
            many = docs.search_many(queries, 7, **options)
            assert [list(a) for a in many] == [list(docs.search(q, 7, **options)) for q in queries]
            near = docs.within_many(queries, 4, limit=50, **options)
            assert [list(a) for a in near] == [
                list(docs.within(q, 4, limit=50, **options)) for q in queries
            ]
            assert docs.search_many(queries[:0], 3, **options) == []
            assert docs.within_many([], 3, **options) == []


@pytest.mark.parametrize("bits", [8, 24, 64, 128, 512, 1024, 4096])
def test_every_width(url: str, bits: int) -> None:
    rng = np.random.default_rng(bits)
    rows = rng.integers(0, 256, (50, bits // 8), dtype=np.uint8)
    with la.open_collection(url, bits=bits, cache=False) as docs:
        assert docs.stats()["slice_bits"] == default_slice_bits(bits)
        docs.upsert([f"d{i}" for i in range(50)], signatures=rows)
        query = rows[3].copy()
        query[0] ^= 5
        for plan in ("native", "sql"):
            near = docs.within(query, bits // 8, plan=plan)
            far = oracle.distances(query[None], rows)[0]
            expected = sorted((int(d), f"d{i}") for i, d in enumerate(far) if d <= bits // 8)
            assert list(zip(near.distances, near.ids, strict=True)) == expected
        assert docs.verify().ok


def test_ties_are_decided_by_id(url: str) -> None:
    """Sixty-four signatures at distance 1, whose ids and numbers run in opposite directions."""
    query = np.zeros(8, np.uint8)
    bits = np.eye(64, dtype=np.uint8)
    rows = np.packbits(bits, axis=1, bitorder="little")
    rows = rows[np.lexsort(rows.T[::-1])]
    ids = [f"d{99 - i}" for i in range(64)]
    with la.open_collection(url, bits=64, cache=False) as docs:
        docs.add(ids, signatures=rows)
        for plan in ("native", "sql"):
            for k in (1, 5, 40):
                assert docs.search(query, k, plan=plan).ids == sorted(ids)[:k]
                assert docs.search(query, k, radius=3, plan=plan).ids == sorted(ids)[:k]
                assert docs.within(query, 1, limit=k, plan=plan).ids == sorted(ids)[:k]
