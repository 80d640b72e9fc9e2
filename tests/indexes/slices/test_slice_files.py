"""Slice indexes that are built straight into a file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from support.cases.strategies import collections, distinct_ids
from support.oracles import scan as oracle


@settings(max_examples=60)
@given(
    st.data(),
    st.sampled_from([1, 2, 8, 9, 16, 128]),
    st.integers(1, 12),
    st.integers(1, 4000),
    st.sampled_from([1, 3]),
)
def test_the_file_is_the_one_that_save_writes(
    draw: st.DataObject, width: int, slice_bits: int, memory: int, threads: int
) -> None:
    rows = draw.draw(collections(width=width, most=60))
    ids = draw.draw(distinct_ids(len(rows)))
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder, "one"), Path(folder, "other")
        built = la.SliceIndex.build(one, rows, slice_bits, ids, memory=memory, threads=threads)
        built.verify()
        la.SliceIndex(rows, slice_bits, ids).save(other)
        assert one.read_bytes() == other.read_bytes()
        assert [path.name for path in sorted(Path(folder).iterdir())] == ["one", "other"]


def test_what_was_built_can_be_searched_and_changed(tmp_path: Path) -> None:
    rows = oracle.collection(3000, 8, "clustered", 4)
    index = la.SliceIndex.build(tmp_path / "slices", rows, memory=5000)
    assert index.stats()["file"] == str(tmp_path / "slices")
    truth = la.ScanIndex(rows).within(rows[:40], 5)
    assert np.array_equal(index.within(rows[:40], 5).ids, truth.ids)
    assert index.add(rows[:3]).tolist() == [3000, 3001, 3002]
    index.compact()
    assert len(index) == 3003


def test_a_build_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = oracle.collection(500, 8, "uniform", 5)
    path = tmp_path / "slices"
    la.SliceIndex.build(path, rows[:20])
    before = path.read_bytes()

    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_native, "fill_lists", interrupted)
    with pytest.raises(KeyboardInterrupt):
        la.SliceIndex.build(path, rows)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(la.errors.FileError, match="cannot be written"):
        la.SliceIndex.build(tmp_path / "missing" / "slices", rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"memory": 0}, "memory"), ({"slice_bits": 33}, "slice_bits"), ({"ids": [1, 1]}, "id")],
)
def test_bad_arguments_are_named(tmp_path: Path, arguments: Any, message: str) -> None:
    rows = oracle.collection(2, 8, "uniform", 6)
    with pytest.raises(la.LookalikeError, match=message):
        la.SliceIndex.build(tmp_path / "slices", rows, **arguments)
    assert not any(tmp_path.iterdir())


LIMITED = """
import resource, sys
import numpy as np
import lookalike as la

signatures = np.load(sys.argv[1], mmap_mode="r")
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
private = int(status["VmData"].split()[0]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (private + (40 << 20),) * 2)
try:
    la.SliceIndex(signatures, 16, threads=1)
except MemoryError:
    print("too large")
index = la.SliceIndex.build(sys.argv[2], signatures, 16, memory=8 << 20, threads=1)
print(len(index), index.memory_bytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits what Linux counts as data")
def test_lists_that_do_not_fit_into_memory_are_built(tmp_path: Path) -> None:
    """40 MB are allowed; the lists take 51, their offsets 16, the signatures 26."""
    rows = np.random.default_rng(7).integers(0, 256, (200_000, 128), np.uint8)
    np.save(tmp_path / "rows.npy", rows)
    files = [str(tmp_path / name) for name in ("rows.npy", "slices")]
    command = [sys.executable, "-c", LIMITED, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:2] == ["too large", f"200000 {200_000 * 384 + (64 << 18)}"], (
        done.stderr
    )
    index = la.load_index(tmp_path / "slices", verify=True)
    found = index.search(rows[:50], 1, threads=1)
    assert found.ids[:, 0].tolist() == list(range(50))
