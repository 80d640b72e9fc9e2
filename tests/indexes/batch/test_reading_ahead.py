"""The file is read once, by another thread, and nothing is answered that was not verified."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike import SignatureFile, _native
from lookalike.indexes.batch import signature_file
from lookalike.indexes.batch.signature_file import sorted_run
from support.oracles import scan as oracle


def one_run(path: Path, count: int, width: int = 8) -> oracle.Signatures:
    rows = oracle.collection(count, width, "uniform", 0)
    SignatureFile.create(path, 8 * width).append(*sorted_run(rows, np.arange(count), 1))
    return rows


@pytest.mark.parametrize("method", ["flips", "blocks"])
@pytest.mark.parametrize("part", ["signatures", "ids"])
@pytest.mark.parametrize("first", [False, True])
def test_damage_behind_what_was_needed_is_noticed(
    tmp_path: Path, method: str, part: str, first: bool
) -> None:
    """Of ten chunks of a run the last is damaged; with `first` the first chunk has the answer."""
    path = tmp_path / "file"
    rows = one_run(path, 1000)
    found = la.match_batch(path, rows, 0, method="blocks", append=False)
    first_rows = SignatureFile(path).read(0)[0][:5].copy()
    good = path.read_bytes()
    at = 8192 + 8 * 1000 - 1 if part == "signatures" else 8192 + 8192 + 8 * 1000 - 4
    path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    settings: dict[str, Any] = {"method": method, "chunk": 100, "first": first}
    with pytest.raises(la.errors.CorruptIndexError):
        la.match_batch(path, first_rows, 0, **settings)
    assert SignatureFile(path).runs == [1000]  # nothing was appended
    path.write_bytes(good)
    assert len(la.match_batch(path, first_rows, 0, append=False, **settings).ids) == 5
    assert len(found.ids) == 1000


def test_an_early_end_asks_nothing_of_runs_that_were_not_needed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    rows = one_run(path, 300)
    other = oracle.collection(300, 8, "uniform", 1)
    SignatureFile(path).append(*sorted_run(other, np.arange(300), 1))
    good = path.read_bytes()
    at = len(good) - 8192 + 100  # among the ids of the second, before the end
    path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    found = la.match_batch(path, rows[:9], 0, first=True, append=False, chunk=300, method="blocks")
    assert len(found.ids) == 9
    with pytest.raises(la.errors.CorruptIndexError, match="ids of run 1"):
        la.match_batch(path, rows[:9], 0, append=False, chunk=300, method="blocks")


@given(st.integers(0, 60), st.lists(st.integers(0, 60), max_size=5), st.sampled_from([1, 8, 9]))
def test_parts_of_a_run_are_the_run(
    tmp_path_factory: pytest.TempPathFactory, count: int, cuts: list[int], width: int
) -> None:
    path = tmp_path_factory.mktemp("run") / "file"
    one_run(path, count, width)
    store = SignatureFile(path)
    signatures, ids = store.read(0)
    reader, taken = store.reader(0), []
    ends = sorted(min(cut, count) for cut in cuts)
    taken += [reader.take(end) for end in ends]
    reader.verify()
    end = max(ends, default=0)
    assert b"".join(rows.tobytes() for rows, _ in taken) == signatures[:end].tobytes()
    assert [id for _, some in taken for id in some.tolist()] == ids[:end].tolist()


def test_one_is_made_ahead_and_errors_come_in_their_turn() -> None:
    made: list[int] = []
    taken = threading.Event()

    def items() -> Iterator[int]:
        for number in range(1, 6):
            made.append(number)
            if number == 3:
                taken.set()
            if number == 5:
                raise la.errors.CorruptIndexError("the fifth")
            yield number

    got = []
    with signature_file.read_ahead(items(), 5) as reading:
        got.append(next(reading))
        got.append(next(reading))
        assert taken.wait(120)  # the third, while the second is in use
        assert made == [1, 2, 3]
        got += [next(reading), next(reading)]
        with pytest.raises(la.errors.CorruptIndexError, match="the fifth"):
            next(reading)
    assert got == [1, 2, 3, 4]
    with signature_file.read_ahead(items(), 5) as reading:  # whoever has enough just ends
        assert next(reading) == 1


def test_without_another_thread_it_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    rows = one_run(path, 500)

    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    found = la.match_batch(path, rows[:50], 0, append=False, chunk=60, threads=1)
    assert found.ids.tolist() == list(range(50))


def test_every_byte_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    rows = one_run(path, 1000)
    added: list[int] = []

    class Counted:
        def __init__(self) -> None:
            self._hash = made()

        def add(self, data: Any) -> None:
            added.append(len(data))
            self._hash.add(data)

        def value(self) -> int:
            return self._hash.value()

    made = _native.Xxh64
    monkeypatch.setattr(_native, "Xxh64", Counted)
    la.match_batch(path, rows[:10], 0, append=False, chunk=100)
    assert sum(added) == 1000 * 16
