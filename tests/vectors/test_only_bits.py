"""Indexes that store only the bits of vectors: estimates, what is refused, changes and files."""

from __future__ import annotations

import pickle
import threading
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike.storage.container import open_container, write_container
from lookalike.vectors.estimates import Estimator
from support.oracles.vectors import cosines, estimated_cosine

EVERYTHING: dict[str, Any] = {"candidates": 10_000, "probe": 10_000}


def some_rows(count: int, width: int, seed: int = 0) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(8, width))
    rows = centers[rng.integers(0, 8, count)] + rng.normal(size=(count, width))
    made: NDArray[np.float32] = (rows * rng.choice([0.01, 1, 50], (count, 1))).astype("f4")
    return made


@pytest.mark.parametrize(("bits", "width"), [(8, 3), (64, 7), (64, 100), (128, 33), (256, 256)])
def test_estimates_are_those_of_the_slow_way(bits: int, width: int, kernel: str) -> None:
    rows, queries = some_rows(60, width), some_rows(4, width, 1)
    rows[7] = 0
    index = la.VectorIndex(rows, bits=bits, only_bits=True)
    found = index.search(queries, 60, **EVERYTHING)
    assert not found.exact
    for at, query in enumerate(queries):
        ids, similarities = found[at]
        assert sorted(ids.tolist()) == list(range(60))
        matrix = index.signer._matrix
        expected = [estimated_cosine(query, rows[one], matrix) for one in ids]
        np.testing.assert_allclose(similarities, np.clip(expected, -1, 1), atol=2e-4)
        assert (np.diff(similarities) <= 0).all()
        assert similarities[ids == 7] == 0
    alone = [index.search(query, 60, threads=3, **EVERYTHING) for query in queries]
    assert np.array_equal(np.concatenate([one.ids for one in alone]), found.ids)
    assert np.array_equal(np.concatenate([one.similarities for one in alone]), found.similarities)


@pytest.mark.parametrize("cosine", [-0.3, 0.2, 0.7, 0.95])
def test_estimates_are_right_on_average(cosine: float) -> None:
    """Over random projections, within three standard errors."""
    rng = np.random.default_rng(5)
    query, other = np.linalg.qr(rng.normal(size=(20, 2)))[0].T
    row = cosine * query + np.sqrt(1 - cosine**2) * other
    found = [
        la.VectorIndex(3 * row[None], bits=64, seed=seed, only_bits=True)
        .search(2 * query, 1)
        .similarities[0, 0]
        for seed in range(300)
    ]
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - cosine) < 3 * error
    assert np.std(found) < 0.2


def test_a_vector_has_1_with_its_own_bits() -> None:
    rows = some_rows(50, 30)
    found = la.VectorIndex(rows, bits=128, only_bits=True).search(rows, 1)
    assert np.array_equal(found.ids[:, 0], np.arange(50))
    np.testing.assert_allclose(found.similarities, 1, atol=1e-6)


def test_more_bits_find_more_and_estimates_more_than_bits_alone() -> None:
    rows = some_rows(3000, 40)
    queries = some_rows(100, 40, 1) + rows[:100] * 0.5
    truth = np.argsort(-cosines(queries, rows), axis=1)[:, :10]

    def recall(found: NDArray[np.int64]) -> float:
        return float(np.mean([len({*a} & {*b}) / 10 for a, b in zip(found, truth, strict=True)]))

    shares, by_bits = [], []
    for bits in (32, 128, 512):
        index = la.VectorIndex(rows, bits=bits, only_bits=True)
        shares.append(recall(index.search(queries, 10, candidates=300, probe=10_000).ids))
        plain = la.ScanIndex(index.signer.sign(rows)).search(index.signer.sign(queries), 10)
        by_bits.append(recall(plain.ids))
    assert shares == sorted(shares)
    assert all(a > b for a, b in zip(shares, by_bits, strict=True))


@pytest.mark.parametrize(("bits", "width"), [(64, 5), (64, 64), (64, 200)])
def test_weights_are_the_best_linear_guess(bits: int, width: int) -> None:
    signer = la.Projection(bits, width)
    matrix = np.asarray(signer._matrix, np.float64)
    noise = (np.pi / 2 - 1) * width * np.eye(width)
    expected = np.linalg.solve(matrix @ matrix.T + noise, matrix)
    np.testing.assert_allclose(Estimator(signer)._matrix, expected, atol=1e-6)


@pytest.mark.hypothesis
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_changes_beside_a_dictionary(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 12))
    living = dict(enumerate(some_rows(count, 6)))
    index: Any = la.VectorIndex(
        np.array([*living.values()]).reshape(-1, 6), bits=64, only_bits=True
    )
    for seed in range(data.draw(st.integers(1, 6))):
        match data.draw(st.sampled_from(["add", "remove", "compact", "save", "copy"])):
            case "add":
                new = some_rows(data.draw(st.integers(0, 5)), 6, seed + 1)
                living |= dict(zip(index.add(new).tolist(), new, strict=True))
            case "remove" if living:
                gone = data.draw(st.lists(st.sampled_from(sorted(living)), unique=True))
                index.remove(gone)
                living = {one: row for one, row in living.items() if one not in gone}
            case "compact":
                index.compact()
            case "save":
                index = data.draw(
                    st.sampled_from([lambda one: pickle.loads(pickle.dumps(one)), deepcopy])
                )(index)
            case "copy":
                index = copy(index)
        assert len(index) == len(living)
        query = some_rows(1, 6, 50 + seed)[0]
        chosen = data.draw(st.one_of(st.none(), st.just(sorted(living)[::2])))
        found = index.search(query, 20, among=chosen)
        ids, similarities = found[0]
        assert sorted(ids.tolist()) == (sorted(living) if chosen is None else chosen)
        matrix = index.signer._matrix
        expected = [estimated_cosine(query, living[one], matrix) for one in ids.tolist()]
        np.testing.assert_allclose(similarities, np.clip(expected, -1, 1), atol=2e-4)
        assert not found.exact


def test_what_needs_vectors_is_refused() -> None:
    rows = some_rows(20, 5)
    index = la.VectorIndex(rows, bits=64, only_bits=True)
    calls: dict[str, Any] = {
        "exact": lambda: index.search(rows, 1, exact=True),
        "recall": lambda: index.search(rows, 1, recall=0.9),
        "within": lambda: index.within(rows, 0.9),
        "pairs": lambda: index.pairs(0.9, recall=0.9),
        "tune": index.tune,
        "living": index.living,
        "vectors": lambda: index.vectors([0]),
    }
    for name, call in calls.items():
        with pytest.raises(la.errors.ArgumentError, match=f"{name} needs vectors, but the index"):
            call()
    with pytest.raises(la.errors.ArgumentError, match="only_bits"):
        la.VectorIndex(rows, only_bits="yes")  # type: ignore[arg-type]


def test_what_there_is_to_know(tmp_path: Path) -> None:
    rows = some_rows(3000, 50)
    index = la.VectorIndex(rows, bits=256, only_bits=True)
    assert repr(index) == "VectorIndex(3,000 vectors of 50 dimensions, only 256 bits)"
    assert index.only_bits
    assert index.dtype == np.uint8
    assert index.stats()["only_bits"]
    assert "only signatures of 256 bits" in index.summary()
    assert index.memory_bytes < 3000 * (256 // 8 + 20)
    index.save(tmp_path / "bits")
    assert (tmp_path / "bits").stat().st_size < 3000 * (256 // 8 + 24) + 2**16
    for verify in (True, False):
        again = la.VectorIndex.load(tmp_path / "bits", verify=verify)
        assert again.only_bits
        one, two = (each.search(rows[:20], 5, explain=True) for each in (index, again))
        assert np.array_equal(one.ids, two.ids)
        assert np.array_equal(one.similarities, two.similarities)
        assert two.explanation is not None
        assert (two.explanation.reranked == 128).all()
    with pytest.raises(la.errors.FormatError, match="a VectorIndex, and signatures are expected"):
        la.open_index(tmp_path / "bits")


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "bits"
    la.VectorIndex(some_rows(40, 5), bits=64, only_bits=True).save(path)
    container = open_container(path)
    meta = container.meta
    arrays: dict[str, Any] = {
        "vectors": np.array(container.array("vectors", np.float32, 2)),
        "signatures": np.array(container.array("signatures", np.uint8, 1)),
    }
    for change, more in (
        ({"dtype": "float32"}, {}),
        ({"sketch_error": 0.1}, {}),
        ({}, {"vectors": np.zeros((40, 2), np.float32)}),
        ({}, {"vectors": np.zeros((39, 1), np.float32)}),
    ):
        write_container(path, {**meta, **change}, {**arrays, **more})
        with pytest.raises(la.errors.CorruptIndexError, match="do not fit them"):
            la.VectorIndex.load(path)


def test_searches_go_on_while_vectors_come_and_go() -> None:
    rows = some_rows(400, 8)
    index = la.VectorIndex(rows, bits=64, only_bits=True)
    stop, wrong = threading.Event(), list[Any]()

    def ask() -> None:
        try:
            while not stop.is_set():
                found = index.search(rows[200:204], 3, threads=1)
                if not (found.similarities[:, 0] > 0.999).all():
                    wrong.append(found)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for round_ in range(30):
        ids = index.add(rows[:50], threads=1)
        index.remove(ids[::2])
        if round_ % 10 == 9:
            index.compact(threads=1)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(index) == 400 + 30 * 25
