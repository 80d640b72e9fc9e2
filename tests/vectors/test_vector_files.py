"""Vectors in files: mapped, damage noticed, opened by the right name."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.storage.container import open_container, write_container

ROWS = np.random.default_rng(0).normal(size=(300, 8)).astype("f2")


def saved(folder: Path, **options: Any) -> Path:
    index = la.VectorIndex(ROWS, bits=64, **options)
    index.remove(index.living()[1][:5])
    index.add(ROWS[:3] * 2)
    index.tune(2, 0.5, sample=20)
    index.save(folder / "vectors")
    return folder / "vectors"


@pytest.mark.parametrize("verify", [True, False])
def test_what_is_loaded_answers_as_what_was_saved(tmp_path: Path, verify: bool) -> None:
    index = la.VectorIndex(ROWS, ids=np.arange(300) * 3, bits=64)
    index.remove([0, 9])
    index.save(tmp_path / "vectors")
    again = la.VectorIndex.load(tmp_path / "vectors", verify=verify)
    assert not again._parts.store.first.flags.owndata  # it is mapped
    assert again.stats()["file"] == str(tmp_path / "vectors")
    for options in ({}, {"candidates": 20}, {"exact": True}):
        one, two = (each.search(ROWS, 5, **options) for each in (index, again))
        assert np.array_equal(one.ids, two.ids)
        assert np.array_equal(one.similarities, two.similarities)
    again.verify()
    assert again.add(ROWS[:2]).tolist() == [898, 899]
    assert len(again) == 300


def test_it_is_opened_as_other_indexes_are(tmp_path: Path) -> None:
    path = saved(tmp_path)
    again = la.load_index(path, verify=False)
    assert (type(again), len(again)) == (la.VectorIndex, len(la.VectorIndex.load(path)))
    with pytest.raises(
        la.errors.FormatError, match="a VectorIndex, and signatures are expected; la.load"
    ):
        la.open_index(path)
    la.ScanIndex(np.zeros((3, 8), np.uint8)).save(tmp_path / "scan")
    with pytest.raises(
        la.errors.FormatError, match="a ScanIndex; expected a VectorIndex; la.load_index"
    ):
        la.VectorIndex.load(tmp_path / "scan")


def test_damage_is_noticed(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole, rng = path.read_bytes(), random.Random(0)
    truth = la.VectorIndex.load(path).search(ROWS, 3).ids
    for _ in range(60):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            found = la.VectorIndex.load(path).search(ROWS, 3).ids
        except (la.errors.CorruptIndexError, la.errors.FormatError):
            continue
        assert np.array_equal(found, truth)  # a byte that nothing is in
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(la.errors.CorruptIndexError):
        la.VectorIndex.load(path)


@pytest.mark.parametrize("value", [-2, -(2**63), 2**62])
def test_unverified_numbers_of_vectors_are_not_believed(tmp_path: Path, value: int) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    outcomes: set[bool | None] = set()
    for at in range(0, len(whole) - 64, 1024):
        path.write_bytes(
            whole[:at] + value.to_bytes(8, "little", signed=True) * 8 + whole[at + 64 :]
        )
        try:
            index = la.VectorIndex.load(path, verify=False)
            index.search(ROWS[:40], 3, candidates=20)
            index.within(ROWS[:40], 0.5, recall=0.9)
        except la.LookalikeError as error:
            outcomes.add("a signature belongs to the vector" in str(error))
        else:
            outcomes.add(None)
    assert outcomes == {None, False, True}


def test_unverified_damage_does_not_leave_the_index(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = bytearray(path.read_bytes())
    at = data.index(np.ascontiguousarray(ROWS[100:103]).tobytes())
    data[at : at + 2] = b"\x00\x7e"  # not a number
    path.write_bytes(data)
    index = la.VectorIndex.load(path, verify=False)
    index.search(ROWS, 3, exact=True)
    for leave in (
        lambda: index.save(tmp_path / "again"),
        lambda: index.add(ROWS),
        index.compact,
        index.living,
        lambda: index.vectors([100]),
        lambda: index.pairs(0.9),
        index.verify,
        index.to_bytes,
    ):
        with pytest.raises(la.errors.CorruptIndexError, match="checksum"):
            leave()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "float64"}, "metadata of the vectors is invalid"),
        ({"dtype": "float32"}, "'vectors' holds"),
        ({"next_id": 4}, "do not fit them"),
        ({"next_id": "x"}, "metadata of the vectors is invalid"),
        ({"tunings": [{"k": 0}]}, "metadata of the vectors is invalid"),
        ({"signer": la.Projection(64, 9).to_dict()}, "do not fit them"),
        ({"signer": la.Projection(128, 8).to_dict()}, "do not fit them"),
        ({"signer": la.SimHash(64).to_dict()}, "do not fit them"),
        ({"signer": None}, "do not fit them"),
    ],
)
def test_descriptions_that_do_not_fit(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = saved(tmp_path)
    meta, arrays = contents(path)
    write_container(path, {**meta, **change}, arrays)
    with pytest.raises(la.errors.CorruptIndexError, match=message):
        la.VectorIndex.load(path)


def test_arrays_that_do_not_fit(tmp_path: Path) -> None:
    path = saved(tmp_path)
    meta, arrays = contents(path)
    other = la.ScanIndex(np.zeros((303, 8), np.uint8)).to_bytes()
    for name, array in (
        ("vectors", arrays["vectors"][:-1]),
        ("removed", arrays["removed"][:-1]),
        ("removed", np.zeros_like(arrays["removed"])),
        ("ids", np.arange(3)),
        ("signatures", np.frombuffer(other, np.uint8)),
    ):
        write_container(path, meta, {**arrays, name: array})
        with pytest.raises(la.errors.CorruptIndexError, match="do not fit them"):
            la.VectorIndex.load(path)


@pytest.mark.parametrize("error", [-1.0, 2.0, float("nan")])
def test_sketches_with_an_impossible_error(tmp_path: Path, error: float) -> None:
    path = saved(tmp_path)
    meta, arrays = contents(path)
    write_container(path, {**meta, "sketch_error": error}, arrays)
    with pytest.raises(la.errors.CorruptIndexError, match="do not fit them"):
        la.VectorIndex.load(path)


def test_sketches_that_do_not_fit(tmp_path: Path) -> None:
    path = saved(tmp_path)
    meta, arrays = contents(path)
    places = arrays["sketch_places"].copy()
    places[0] = len(places)
    for name, array in (
        ("sketches", arrays["sketches"][:-1]),
        ("sketches", arrays["sketches"][:, :-4]),
        ("sketch_scales", arrays["sketch_scales"][:-1]),
        ("sketch_places", places),
        ("sketch_places", np.concatenate([places, places])),
        ("sketch_offsets", arrays["sketch_offsets"][::-1]),
        ("sketch_offsets", arrays["sketch_offsets"] + 1),
        ("centers", arrays["centers"][:0]),
        ("center_scales", arrays["center_scales"][1:]),
    ):
        write_container(path, meta, {**arrays, name: np.ascontiguousarray(array)})
        with pytest.raises(la.errors.CorruptIndexError, match="do not fit them"):
            la.VectorIndex.load(path)


def test_a_file_without_sketches_gets_them(tmp_path: Path) -> None:
    """As versions before them wrote it; its tunings were of signatures."""
    path = saved(tmp_path)
    meta, arrays = contents(path)
    before = la.VectorIndex.load(path)
    old = {name: array for name, array in arrays.items() if not name.startswith(("sk", "cent"))}
    write_container(path, {key: meta[key] for key in meta if key != "sketch_error"}, old)
    index = la.VectorIndex.load(path)
    assert before.tunings
    assert not index.tunings
    every: dict[str, Any] = {"candidates": 40, "probe": 10_000}
    assert np.array_equal(index.search(ROWS, 3, **every).ids, before.search(ROWS, 3, **every).ids)


def contents(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all that a file holds."""
    container = open_container(path)
    kinds: dict[str, Any] = {
        "vectors": (np.uint16, 2),
        "removed": (np.uint8, 1),
        "signatures": (np.uint8, 1),
        "sketches": (np.uint8, 2),
        "sketch_scales": (np.float32, 1),
        "sketch_places": (np.uint32, 1),
        "sketch_offsets": (np.int64, 1),
        "centers": (np.uint8, 2),
        "center_scales": (np.float32, 1),
    }
    arrays = {name: np.array(container.array(name, *kind)) for name, kind in kinds.items()}
    return container.meta, arrays


def test_searches_go_on_while_vectors_come_and_go() -> None:
    index = la.VectorIndex(ROWS, bits=64)
    stop = threading.Event()
    wrong: list[Any] = []

    def ask() -> None:
        try:
            while not stop.is_set():
                found = index.search(ROWS[200:204], 3, candidates=20, threads=1)
                if not (found.similarities[:, 0] == 1).all():
                    wrong.append(found)
                index.search(ROWS[200:204], 3, exact=True, threads=1)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for round_ in range(40):
        ids = index.add(ROWS[:50], threads=1)
        index.remove(ids[::2])
        if round_ % 10 == 9:
            index.compact(threads=1)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(index) == 300 + 40 * 25
