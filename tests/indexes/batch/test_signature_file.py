"""The signature file: appended to, interrupted, damaged, and read by others meanwhile."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike import SignatureFile
from support.oracles import scan as oracle

PAGE = 4096
V1 = Path(__file__).parents[2] / "data" / "runs_v1.runs"


def sorted_rows(count: int, seed: int) -> oracle.Signatures:
    words = np.random.default_rng(seed).integers(0, 2**63, count, dtype=np.int64).astype("<u8")
    return np.sort(words).view(np.uint8).reshape(count, 8)


def filled(path: Path, sizes: list[int]) -> SignatureFile:
    store = SignatureFile.create(path, 64)
    for seed, size in enumerate(sizes):
        store.append(sorted_rows(size, seed), np.arange(size), number_on=True)
    return store


def contents(path: Path) -> list[tuple[bytes, list[int]]]:
    return [(rows.tobytes(), ids.tolist()) for rows, ids in SignatureFile(path).each_run()]


def test_a_lost_header_is_damage_and_nothing_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "file"
    store = filled(path, [300, 20, 0, 40])
    good = path.read_bytes()
    headers = [at for at in range(PAGE, len(good), PAGE) if good[at : at + 8] == b"LKSORTED"]
    end = len(good) - PAGE
    assert len(headers) == 4 and good[end : end + 8] == b"LKFINISH"
    for at, length in itertools.product([*headers, end], (8, 56, PAGE)):
        damaged = good[:at] + bytes(length) + good[at + length :]
        path.write_bytes(damaged)
        for use in (
            lambda: SignatureFile(path),
            store.verify,
            lambda: store.append(sorted_rows(3, 9), np.arange(3)),
            lambda: la.match_batch(path, sorted_rows(3, 9)),
        ):
            with pytest.raises(la.errors.CorruptIndexError, match=f"at byte {at}"):
                use()
        assert path.read_bytes() == damaged


def test_a_file_that_was_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    filled(path, [300, 0, 40])
    good = path.read_bytes()
    for length in {0, 3, 8, 23, 24, 100, *range(0, len(good), 512), len(good) - 1}:
        path.write_bytes(good[:length])
        with pytest.raises((la.errors.CorruptIndexError, la.errors.FormatError)):
            SignatureFile(path)
    path.write_bytes(good + b"something that was never finished")
    assert SignatureFile(path).runs == [300, 0, 40]


def test_no_flipped_byte_gives_a_wrong_answer(tmp_path: Path) -> None:
    path = tmp_path / "file"
    filled(path, [30, 0, 5])
    good = path.read_bytes()
    expected = contents(path)
    meaningful = [at for at in range(len(good)) if good[at] or not at % 97]
    for at in meaningful:
        path.write_bytes(good[:at] + bytes([good[at] ^ (1 << at % 8)]) + good[at + 1 :])
        try:
            assert contents(path) == expected, at
        except (la.errors.CorruptIndexError, la.errors.FormatError):
            continue
        assert good[at] == 0, at  # zeros between the parts


def test_files_of_version_1_are_read_and_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "file"
    shutil.copy(V1, path)
    rows = oracle.collection(40, 8, "clustered", 2026)
    found = la.match_batch(path, rows, 0, append=False, method="blocks", first=True)
    assert set(found.ids.tolist()) <= {*range(25), *range(500, 515)} and len(found.ids) == 40
    before = contents(path)
    assert SignatureFile(path).runs == [25, 15]
    SignatureFile(path).append(sorted_rows(7, 0), np.arange(7), number_on=True)
    assert contents(path) == [*before, (sorted_rows(7, 0).tobytes(), list(range(515, 522)))]
    assert path.read_bytes()[8] == 2  # older versions refuse it


def test_version_1_without_a_header_is_refused_with_what_can_be_done(tmp_path: Path) -> None:
    path = tmp_path / "file"
    good = V1.read_bytes()
    second = PAGE + 3 * PAGE
    damaged = good[:second] + bytes(56) + good[second + 56 :]
    path.write_bytes(damaged)
    for use in (lambda: SignatureFile(path), lambda: la.match_batch(path, sorted_rows(3, 0))):
        with pytest.raises(
            la.errors.CorruptIndexError, match=f"truncate -s {second}.*restore the file"
        ):
            use()
    assert path.read_bytes() == damaged
    os.truncate(path, second)
    assert SignatureFile(path).runs == [25]


class Disk:
    """What is written to a file, with what may be lost where power fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[tuple[Any, ...]] = []
        write, cut = os.pwrite, os.ftruncate

        def pwrite(descriptor: int, data: Any, offset: int) -> int:
            self.steps.append(("write", offset, bytes(data)))
            return write(descriptor, data, offset)

        def ftruncate(descriptor: int, length: int) -> None:
            self.steps.append(("cut", length))
            cut(descriptor, length)

        monkeypatch.setattr(os, "pwrite", pwrite)
        monkeypatch.setattr(os, "ftruncate", ftruncate)
        monkeypatch.setattr(os, "fsync", lambda descriptor: self.steps.append(("sync",)))

    def after_power_failed(self, before: bytes) -> list[bytes]:
        """Return each state: what was synced, and any part of what was written after that."""
        states = []
        durable, pending = bytearray(before), []
        for step in [*self.steps, ("sync",)]:
            if step[0] != "sync":
                pending.append(step)
                continue
            for chosen in itertools.product((True, False), repeat=len(pending)):
                state = bytearray(durable)
                for one in itertools.compress(pending, chosen):
                    self._apply(state, one)
                states.append(bytes(state))
            for one in pending:
                self._apply(durable, one)
            pending = []
        return states

    @staticmethod
    def _apply(state: bytearray, step: tuple[Any, ...]) -> None:
        if step[0] == "cut":
            del state[step[1] :]
            state.extend(bytes(step[1] - len(state)))
        else:
            _, offset, data = step
            state.extend(bytes(max(0, offset + len(data) - len(state))))
            state[offset : offset + len(data)] = data


@pytest.mark.parametrize("old", ["version 1", "version 2", "interrupted before"])
def test_power_may_fail_at_any_time(
    old: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append is there or is not, whatever of it reached the disk, and the next one goes well."""
    path = tmp_path / "file"
    if old == "version 1":
        shutil.copy(V1, path)
    else:
        filled(path, [30, 5])
    if old == "interrupted before":
        with open(path, "ab") as file:
            file.write(np.random.default_rng(0).bytes(3 * PAGE + 77))
    before, before_runs = path.read_bytes(), contents(path)
    with monkeypatch.context() as patch:
        disk = Disk(patch)
        SignatureFile(path).append(sorted_rows(9, 7), np.arange(9) + 10_000)
    after_runs = contents(path)
    assert len(after_runs) == 3
    states = disk.after_power_failed(before)
    assert len(states) > 16
    for state in states:
        path.write_bytes(state)
        found = contents(path)
        assert found in (before_runs, after_runs)
        SignatureFile(path).append(sorted_rows(2, 8), np.arange(2) + 20_000)
        assert contents(path)[:-1] == found


def test_an_append_that_cannot_be_synced_may_have_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    store = filled(path, [30])
    calls: list[int] = []

    def fails_at(which: int) -> None:
        calls.clear()

        def fsync(descriptor: int) -> None:
            calls.append(descriptor)
            if len(calls) == which:
                raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "fsync", fsync)

    fails_at(1)
    with pytest.raises(la.errors.FileError, match="cannot be written"):
        store.append(sorted_rows(3, 1), np.arange(3))
    assert SignatureFile(path).runs == [30]
    fails_at(2)
    with pytest.raises(la.errors.FileError, match="may have been appended to, or not"):
        store.append(sorted_rows(3, 1), np.arange(3))


def test_readers_never_take_an_append_for_damage(tmp_path: Path) -> None:
    """Threads append, through one object and through their own, while others read everything."""
    path = tmp_path / "file"
    shared = SignatureFile.create(path, 64)
    wrong: list[BaseException] = []
    appending = threading.Event()
    appending.set()

    def guarded(work: Any, *arguments: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*arguments)
            except BaseException as error:
                wrong.append(error)

        return threading.Thread(target=run)

    def append(store: SignatureFile) -> None:
        for seed in range(25):
            store.append(sorted_rows(20, seed), np.arange(20), number_on=True)

    def read(fresh: bool) -> None:
        seen = 0
        while appending.is_set():
            store = SignatureFile(path) if fresh else shared
            for run in range(len(store.runs)):
                rows, ids = store.read(run)
                assert len(rows) == len(ids) == 20 and ids[0] == 20 * run
            assert len(store) >= seen
            seen = len(store)

    writers = [guarded(append, store) for store in (shared, shared, SignatureFile(path))]
    readers = [guarded(read, fresh) for fresh in (True, True, False)]
    for thread in [*readers, *writers]:
        thread.start()
    for thread in writers:
        thread.join()
    appending.clear()
    for thread in readers:
        thread.join()
    assert not wrong, wrong
    assert SignatureFile(path).runs == [20] * 75
    assert sorted(i for _, ids in SignatureFile(path).each_run() for i in ids) == [*range(1500)]


PROCESS = """
import sys, numpy as np, lookalike as la
from lookalike import SignatureFile
rng = np.random.default_rng(int(sys.argv[2]))
for _ in range(15):
    rows = rng.integers(0, 256, (50, 8), dtype=np.uint8)
    la.match_batch(sys.argv[1], rows, method="blocks")
    SignatureFile(sys.argv[1]).verify()
"""


def test_processes_make_the_file_append_and_read_together(tmp_path: Path) -> None:
    path = tmp_path / "file"  # which nobody has made before
    command = [sys.executable, "-c", PROCESS, str(path)]
    processes = [
        subprocess.Popen([*command, seed], stderr=subprocess.PIPE, text=True) for seed in "123"
    ]
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    assert SignatureFile(path).runs == [50] * 45
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_half_a_header_is_looked_at_again_under_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header that is being written may be seen in part."""
    path = tmp_path / "file"
    filled(path, [30])
    whole = os.pread
    torn: list[bool] = []

    def pread(descriptor: int, length: int, offset: int) -> bytes:
        data = whole(descriptor, length, offset)
        if offset == PAGE and not torn:
            torn.append(True)
            return data[:20] + bytes(len(data) - 20)
        return data

    monkeypatch.setattr(os, "pread", pread)
    assert SignatureFile(path).runs == [30] and torn


def test_a_file_without_links_is_made_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*names: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    filled(tmp_path / "file", [3])
    with pytest.raises(la.errors.FileError, match="File exists"):
        SignatureFile.create(tmp_path / "file", 64)
    assert SignatureFile.create(tmp_path / "file", 64, exist_ok=True).runs == [3]
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
