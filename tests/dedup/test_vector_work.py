"""Vectors in a work folder: the same result, resumed, within a memory limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.dedup import vector_rows
from lookalike.errors import ArgumentError

LIMIT = 700 << 20


def table(seed: int, count: int, dtype: Any = np.float32) -> pa.Table:
    """Return rows with equal, near, zero and missing vectors."""
    random = np.random.default_rng(seed)
    base = random.normal(size=(max(1, count // 3), 8))
    rows = base[random.integers(0, len(base), count)]
    rows += random.choice([0, 0.02, 1], (count, 1)) * random.normal(size=(count, 8))
    rows[random.random(count) < 0.1] = 0
    listed: list[Any] = list(rows.astype(dtype))
    for row in np.flatnonzero(random.random(count) < 0.1).tolist():
        listed[row] = None
    kind = pa.float16() if dtype == np.float16 else pa.float32()
    return pa.table(
        {
            "name": [f"row {row}" for row in range(count)],
            "vector": pa.array(listed, pa.list_(kind)),
            "date": random.integers(0, 50, count),
        }
    )


def facts_of(result: Any) -> dict[str, Any]:
    pairs = result.different_pairs
    arrays = (
        *(result.keep, result.group_of, result.duplicate_of, result.matched_old),
        *(result.first_equal, pairs.left, pairs.right),
    )
    values = (result.similarity, pairs.similarity)
    return {
        "counts": vars(result.counts) | {"lowest_similarity": None},
        "ids": [result.id(row) for row in range(len(result.keep))],
        "old": [result.old_id(row) for row in range(result.old)],
        "arrays": [array.tolist() for array in arrays],
        "values": [np.round(array, 5).tolist() for array in values],
    }


@given(
    st.integers(0, 2**32),
    st.integers(0, 60),
    st.none() | st.integers(0, 40),
    st.sampled_from([np.float32, np.float16]),
    st.booleans(),
    st.sampled_from(["first", "max:date"]),
)
@settings(max_examples=40, deadline=None)
def test_on_disk_as_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    count: int,
    old: int | None,
    dtype: Any,
    exact: bool,
    keep: str,
) -> None:
    folder = tmp_path_factory.mktemp("vectors")
    pq.write_table(table(seed, count, dtype), folder / "new.parquet")
    more: dict[str, Any] = {"vectors": "vector", "id": "name", "exact": exact, "keep": keep}
    if old is not None:
        pq.write_table(table(seed + 1, old), folder / "old.parquet")
        more["against"] = folder / "old.parquet"
    plain = facts_of(la.dedup(folder / "new.parquet", **more))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_rows, "_AT_A_TIME", 100)  # so that there are many blocks
        work: dict[str, Any] = {"work": folder / "work"}
        for way in ({"memory_limit": LIMIT}, work, {**work, "memory_limit": LIMIT}):
            result = la.dedup(folder / "new.parquet", **more, **way)
            np.testing.assert_equal(facts_of(result), plain)
        assert {"read", "pairs", "index"} <= set(result.reused)
        other = la.dedup(folder / "new.parquet", **more, threshold=0.5, **work)
        assert other.reused == ("read",)
        np.testing.assert_equal(
            facts_of(other), facts_of(la.dedup(folder / "new.parquet", **more, threshold=0.5))
        )


def test_another_input_is_read(tmp_path: Path) -> None:
    path, work = tmp_path / "a.parquet", tmp_path / "work"
    pq.write_table(table(1, 30), path)
    la.dedup(path, vectors="vector", work=work)
    assert la.dedup(path, vectors="vector", work=work).reused
    pq.write_table(table(2, 30), path)
    changed = la.dedup(path, vectors="vector", work=work)
    assert not changed.reused
    np.testing.assert_equal(facts_of(changed), facts_of(la.dedup(path, vectors="vector")))
    in_memory = la.dedup(table(1, 30), vectors="vector", work=work)  # nothing tells whether it is
    assert not in_memory.reused


@pytest.mark.parametrize("name", ["vectors", "rows", "left", "cosines", "first"])
def test_damaged_files_are_made_again(name: str, tmp_path: Path) -> None:
    path, work = tmp_path / "a.parquet", tmp_path / "work"
    pq.write_table(table(1, 60), path)
    plain = facts_of(la.dedup(path, vectors="vector", work=work))
    content = bytearray((work / name).read_bytes())
    content[len(content) // 2] ^= 1
    (work / name).write_bytes(content)
    again = la.dedup(path, vectors="vector", work=work)
    np.testing.assert_equal(facts_of(again), plain)
    assert ("read" in again.reused) == (name not in ("vectors", "rows"))
    assert ("pairs" in again.reused) == (name in ("vectors", "rows"))


KILLED = """
import os, signal, sys
import lookalike as la
left = int(sys.argv[3])

def progress(step, share):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

la.dedup(sys.argv[1], vectors="vector", work=sys.argv[2], progress=progress)
"""


def test_killed_and_resumed(tmp_path: Path) -> None:
    path, work = tmp_path / "a.parquet", tmp_path / "work"
    pq.write_table(table(1, 60), path)
    expected = facts_of(la.dedup(path, vectors="vector"))
    reused = set()
    for calls in (1, 2, 3, 4, 5, 6):
        run = subprocess.run(
            [sys.executable, "-c", KILLED, str(path), str(work), str(calls)], capture_output=True
        )
        assert run.returncode in (0, -signal.SIGKILL), run.stderr.decode()
        resumed = la.dedup(path, vectors="vector", work=work)
        np.testing.assert_equal(facts_of(resumed), expected)
        reused |= set(resumed.reused)
    assert "read" in reused


def test_limits_that_are_too_small() -> None:
    many = np.ones((3_000_000, 1), np.float32)
    with pytest.raises(ArgumentError, match=r"vectors need 2,[0-9,]+: raise it"):
        la.dedup(many, kind="vectors", memory_limit=LIMIT)
    with pytest.raises(ArgumentError, match="a job needs at least"):
        la.dedup(many, kind="vectors", memory_limit=1000)


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    near = np.ones((400, 8), np.float32) + random.normal(0, 1e-3, (400, 8)).astype(np.float32)
    monkeypatch.setattr(vector_rows, "_BYTES_A_CANDIDATE", 2000)
    with pytest.raises(ArgumentError, match=r"more similar vectors than fit into it"):
        la.dedup(near, kind="vectors", memory_limit=vector_rows._BASE + (10 << 20))
    monkeypatch.undo()
    monkeypatch.setattr(vector_rows, "_BYTES_A_PAIR", 2000)
    for exact in (False, True):
        with pytest.raises(ArgumentError, match=r"more similar vectors than fit into it"):
            la.dedup(near, kind="vectors", exact=exact, memory_limit=vector_rows._BASE + (10 << 20))


MEASURED = """
import sys, threading, time
import numpy as np
import lookalike as la
import lookalike.dedup.vectors, pyarrow.parquet, lookalike.vectors
most, done = 0, False

def anonymous():
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["RssAnon"].split()[0])

def watch():
    global most
    while not done:
        most = max(most, anonymous())
        time.sleep(0.001)

watcher = threading.Thread(target=watch)
watcher.start()
result = la.dedup(sys.argv[1], vectors="vector", memory_limit=int(sys.argv[2]), threads=2)
done = True
watcher.join()
print(most * 1024, result.counts.kept)
"""


def peak_memory(path: Path, limit: int) -> int:
    """Return the most memory that a job takes, mapped files left out."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path), str(limit)], capture_output=True, text=True
    )
    assert not run.returncode, run.stderr
    return int(run.stdout.split()[0])


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux to be measured")  # noqa: PTH110
def test_the_limit_holds(tmp_path: Path) -> None:
    """Four times the vectors, and four times the dimensions: memory grows with the rows alone."""
    random, peaks, limit = np.random.default_rng(0), {}, 800 << 20
    for count, width in ((40_000, 32), (160_000, 32), (40_000, 128)):
        rows = random.normal(size=(count, width)).astype(np.float32)
        rows[::50] = rows[1::50]  # equal ones
        rows[2::50] = rows[3::50] * np.float32(1.5)  # near ones
        path = tmp_path / f"{count} {width}.parquet"
        column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), width)
        pq.write_table(pa.table({"vector": column}), path, row_group_size=8192)
        peaks[count, width] = peak_memory(path, limit)
    assert max(peaks.values()) < limit
    grown = (peaks[160_000, 32] - peaks[40_000, 32]) / 120_000
    assert grown < vector_rows._BYTES_A_VECTOR, peaks
