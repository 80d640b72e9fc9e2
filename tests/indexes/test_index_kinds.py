"""The registry of index kinds: its entries are true, and every kind is saved and opened alike."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.indexes.base import StoredIndex
from lookalike.indexes.kinds import KINDS
from support.cases.index_kinds import made

ROWS = np.random.default_rng(0).integers(0, 256, (60, 8), np.uint8)
BUILTIN = KINDS.names()


def example(name: str) -> Any:
    """Return a small index of that kind."""
    if name == "vectors":
        return la.VectorIndex(np.random.default_rng(0).normal(size=(50, 6)))
    if name == "bands":
        index = la.BandIndex(0.6, 16)
        index.insert_many(range(20), np.arange(320, dtype=np.uint32).reshape(20, 16))
        return index
    if name == "parts":
        parts = la.PartIndex(64)
        parts.add_many(["one", "two"], [ROWS[:20], ROWS[20:]])
        return parts
    if name == "recordings":
        recordings = la.RecordingIndex()
        recordings.parts.add("song", ROWS[:, :4])
        return recordings
    if name == "covers":
        covers = la.CoverIndex()
        covers.parts.add("song", np.tile(ROWS, (1, 24 // ROWS.shape[1])))
        return covers
    return made(name, ROWS, None)


def asked(index: Any) -> str:
    """Return an answer of the index, as text."""
    if isinstance(index, la.VectorIndex):
        return str(index.search(index.living()[0][:3], 4).ids.tolist())
    if isinstance(index, la.BandIndex):
        return str(index.query(index[3]))
    if isinstance(index, la.PartIndex):
        return str(index.search(ROWS[25:30])[0])
    if isinstance(index, la.RecordingIndex):
        return str(index.parts.search(ROWS[25:30, :4])[0])
    if isinstance(index, la.CoverIndex):
        return str(index.parts.parts_of("song"))
    return str(index.search(ROWS[:3], 4).ids.tolist())


def pickled(index: Any) -> Any:
    return pickle.loads(pickle.dumps(index))


@pytest.mark.parametrize("name", BUILTIN)
def test_entries_are_true(name: str) -> None:
    kind = KINDS[name]
    assert (kind.name, kind.cls.kind) == (name, kind.saved_as or name)
    assert issubclass(kind.cls, StoredIndex)
    assert issubclass(kind.cls, la.Index) == (kind.holds == "signatures")
    parameters = inspect.signature(kind.cls).parameters
    assert {option.name for option in kind.options} <= set(parameters)


@pytest.mark.parametrize("name", [name for name in BUILTIN if name != "gpu"])
def test_every_kind_is_saved_opened_copied_and_pickled(name: str, tmp_path: Path) -> None:
    index = example(name)
    truth = asked(index)
    index.save(tmp_path / "x", notes={"a": 1})
    for verify in (True, False):
        loaded = la.load_index(tmp_path / "x", verify=verify)
        assert (type(loaded), loaded.notes) == (KINDS[name].cls, {"a": 1})
        assert (asked(loaded), loaded.file) == (truth, str(tmp_path / "x"))
        loaded.verify()
    assert asked(type(index).load(tmp_path / "x")) == truth
    assert asked(type(index).from_bytes(index.to_bytes())) == truth
    for duplicate in (copy.copy, copy.deepcopy, pickled):
        for original in (index, loaded):
            twin = duplicate(original)
            assert (type(twin), asked(twin), len(twin)) == (type(index), truth, len(index))


@pytest.mark.parametrize("name", ["vectors", "bands", "parts", "recordings"])
def test_a_copy_of_other_kinds_changes_alone(name: str) -> None:
    index = example(name)
    for duplicate in (copy.copy, copy.deepcopy):
        twin = duplicate(index)
        if name == "recordings":
            twin.remove("song")
        else:
            twin.remove({"vectors": [0], "bands": 3, "parts": "one"}[name])
        assert (len(twin), len(index)) == (len(example(name)) - 1, len(example(name)))


def test_settings_are_those_that_searches_take() -> None:
    slices, scan = la.SliceIndex(ROWS), la.ScanIndex(ROWS)
    assert {"expand", "rerank", "exact", "explain", "masks"} <= slices.settings("search")
    assert {"expand", "exact", "explain"}.isdisjoint(scan.settings("search"))
    assert "exact" in la.PrefixIndex(ROWS).settings("within")
    mixed, plain = la.ShardedIndex([slices, scan]), la.ShardedIndex([scan])
    assert "expand" in mixed.settings("search")
    assert {"expand", "admit", "rerank"}.isdisjoint(plain.settings("search"))
