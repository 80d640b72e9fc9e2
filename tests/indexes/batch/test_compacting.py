"""Runs of a signature file merged into one: nothing lost, whole or not at all, whoever looks on."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike import SignatureFile
from lookalike.indexes.batch import signature_file
from lookalike.indexes.tables.flips import FlipIndex
from support.cases.tables import found
from support.oracles import scan as oracle

V1 = Path(__file__).parents[2] / "data" / "runs_v1.runs"


def filled(path: Path, batches: list[oracle.Signatures]) -> SignatureFile:
    store = SignatureFile.create(path, 8 * batches[0].shape[1])
    for batch in batches:
        rows, ids = signature_file.sorted_run(batch, np.arange(len(batch)), 1)
        store.append(rows, ids, number_on=True)
    return store


def held(store: SignatureFile) -> list[tuple[bytes, int]]:
    """Return every signature with its id, in whatever order."""
    return sorted(
        (row.tobytes(), int(id))
        for rows, ids in store.each_run()
        for row, id in zip(rows, ids, strict=True)
    )


@settings(max_examples=40)  # each syncs files
@given(st.data())
def test_merged_runs_are_sorted_and_whole(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    width = data.draw(st.sampled_from([1, 2, 8, 9, 24]))
    sizes = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=6))
    styles = st.sampled_from(oracle.STYLES)
    batches = [
        oracle.collection(size, width, data.draw(styles), seed) for seed, size in enumerate(sizes)
    ]
    size = data.draw(st.integers(1, 80))
    store = filled(tmp_path_factory.mktemp("batch") / "file", batches)
    runs, before = list(store.each_run()), held(store)
    pieces = list(signature_file.merged_pieces(runs, size, 1))
    rows = np.concatenate([np.empty((0, width), np.uint8), *(piece for piece, _ in pieces)])
    ids = np.concatenate([np.empty(0, np.int64), *(some for _, some in pieces)])
    FlipIndex.of_sorted(np.ascontiguousarray(rows), 0, 1)  # raises if they are not
    assert sorted(zip(map(bytes, rows), ids.tolist(), strict=True)) == before
    if size >= 8 * len(runs):
        assert max((len(some) for _, some in pieces), default=0) <= size
    reader = SignatureFile(store.path)
    store.compact(threads=2)
    for one in (store, SignatureFile(store.path), pickle.loads(pickle.dumps(store))):
        assert one.runs == [sum(sizes)]
        assert held(one) == before
        assert one.largest_id == sum(sizes) - 1
    store.verify()
    assert reader.runs == sizes and held(reader) == before  # it has the file it opened
    queries = oracle.collection(4, width, "clustered", 9)
    matches = la.match_batch(store.path, queries, 2, append=False)
    assert found(matches) == oracle.within(np.concatenate(batches), queries, 2)
    reader.append(*signature_file.sorted_run(queries, np.arange(4), 1), number_on=True)
    assert reader.runs == [sum(sizes), 4] == SignatureFile(store.path).runs
    assert [path.name for path in store.path.parent.iterdir()] == ["file"]


def test_the_sixth_of_a_file_that_one_key_fills_is_passed_on_in_pieces() -> None:
    same = np.full((5_000, 8), 7, np.uint8)
    other = oracle.collection(1_000, 8, "uniform", 0)
    runs = [
        signature_file.sorted_run(rows, np.arange(len(rows)), 1)
        for rows in (same, np.concatenate([other, same]))
    ]
    pieces = list(signature_file.merged_pieces(runs, 100, 1))
    assert max(len(ids) for _, ids in pieces) <= 100
    assert sum(len(ids) for _, ids in pieces) == 11_000


def test_files_of_version_1_and_of_one_run(tmp_path: Path) -> None:
    path = tmp_path / "file"
    shutil.copy(V1, path)
    before = held(SignatureFile(path))
    SignatureFile(path).compact()
    assert held(SignatureFile(path)) == before
    assert SignatureFile(path).runs == [40]
    whole = path.stat()
    SignatureFile(path).compact()
    assert os.path.samestat(whole, path.stat())


def test_damage_is_not_merged_away(tmp_path: Path) -> None:
    path = tmp_path / "file"
    store = filled(path, [oracle.collection(200, 8, "uniform", seed) for seed in (0, 1)])
    good = path.read_bytes()
    for at in (8192 + 100, 8192 + 4096 + 100):
        path.write_bytes(good[:at] + bytes([good[at] ^ 5]) + good[at + 1 :])
        with pytest.raises(la.errors.CorruptIndexError, match="of run 0 have the checksum"):
            store.compact()
        assert path.read_bytes()[at] == good[at] ^ 5
    path.write_bytes(good)
    store.append(oracle.collection(200, 8, "uniform", 2), np.arange(200))  # in no order
    with pytest.raises(la.errors.CorruptIndexError, match="should be sorted are not"):
        store.compact()
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("call", ["replace", "fsync", "write", "checksums"])
def test_a_merge_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "file"
    store = filled(path, [oracle.collection(50, 8, "uniform", seed) for seed in (0, 1)])
    before = path.read_bytes()

    def fails(*arguments: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if call == "replace":
            patch.setattr(Path, "replace", fails)
        elif call == "fsync":
            patch.setattr(os, "fsync", fails)
        else:
            patch.setattr(signature_file, "write_at" if call == "write" else "checksums", fails)
        with pytest.raises(la.errors.FileError, match="No space left"):
            store.compact()
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    store.compact()
    assert store.runs == [100]


PROCESS = """
import sys, numpy as np, lookalike as la
rng = np.random.default_rng(int(sys.argv[2]))
for _ in range(12):
    rows = rng.integers(0, 256, (50, 8), dtype=np.uint8)
    la.match_batch(sys.argv[1], rows, method="blocks")
"""


def test_processes_append_while_others_merge(tmp_path: Path) -> None:
    """Whoever waited for the lock of a file that was replaced appends to the new one."""
    path = tmp_path / "file"
    shared = SignatureFile.create(path, 64)
    command = [sys.executable, "-c", PROCESS, str(path)]
    processes = [subprocess.Popen([*command, seed], stderr=subprocess.PIPE) for seed in "12"]
    wrong: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                for store in (shared, SignatureFile(path)):
                    assert sum(len(ids) for _, ids in store.each_run()) % 50 == 0
        except BaseException as error:
            wrong.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    while any(process.poll() is None for process in processes):
        shared.compact(threads=1)
        SignatureFile(path).compact(threads=1)
    done.set()
    reader.join()
    assert [process.communicate()[1] for process in processes] == [b"", b""]
    assert not wrong, wrong
    store = SignatureFile(path)
    store.verify()
    assert sorted(id for _, id in held(store)) == list(range(2 * 12 * 50))
