"""Files of parts whose checksums fit, and whose contents do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.storage.container import write_container
from lookalike.storage.strings import Strings


def saved(folder: Path, changes: dict[str, Any], arrays: dict[str, Any]) -> Path:
    """Write two items of three parts, with two different signatures; or what is changed."""
    words = np.array([[1, 0], [2, 0]], np.uint8)
    meta = {"index": "parts", "bits": 16, "signatures": "auto"}
    whole: dict[str, Any] = {
        "key_numbers": np.arange(2),
        "begins": np.array([0, 1, 3]),
        "offsets": np.array([0, 5, 9]),
        "words": words,
        "part_words": np.array([1, 0, 1], np.uint32),
        "word_begins": np.array([0, 1, 3]),
        "word_parts": np.array([1, 0, 2], np.uint32),
        "index": np.frombuffer(la.ScanIndex(words).to_bytes(), np.uint8),
    }
    given = {name: array for name, array in {**whole, **arrays}.items() if array is not None}
    write_container(folder / "hostile", {**meta, **changes}, given)
    return folder / "hostile"


def inner(index: la.Index) -> dict[str, Any]:
    return {"index": np.frombuffer(index.to_bytes(), np.uint8)}


def test_whole_files_are_read_with_and_without_their_index(tmp_path: Path) -> None:
    for arrays in ({}, {"index": None}):
        parts = la.PartIndex.load(saved(tmp_path, {}, arrays))
        (found,) = parts.search(np.array([[1, 0], [2, 0]], np.uint8), [0, 4], radius=0)
        assert (found.item, found.offset, found.parts) == (1, 5, [(0, 0, 0), (1, 1, 0)])


@pytest.mark.parametrize(
    "changes",
    [
        {"bits": 7},
        {"bits": None},
        {"bits": 24},
        {"signatures": "nothing"},
        {"signatures": None},
        {"notes": []},
    ],
)
def test_wrong_descriptions_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(la.errors.CorruptIndexError):
        la.PartIndex.load(saved(tmp_path, changes, {}))


@pytest.mark.parametrize(
    "arrays",
    [
        {"key_numbers": np.zeros(2, np.int64)},
        {"key_numbers": np.arange(3)},
        {"key_numbers": None, **Strings.of(["null", "1.5"]).arrays("key_json")},
        {"key_numbers": None},
        {"begins": np.array([0, 3])},
        {"begins": np.array([0, 4, 3])},
        {"begins": np.array([1, 1, 3])},
        {"begins": np.array([0, 1, 2])},
        {"offsets": np.array([0, 5])},
        {"offsets": np.array([0, 5, 2**62])},
        {"words": np.zeros((2, 3), np.uint8)},
        {"words": np.zeros((3, 2), np.uint8)},
        {"part_words": np.array([1, 0, 2], np.uint32)},
        {"part_words": np.array([1, 0], np.uint32)},
        {"word_begins": np.array([0, 3, 3])},
        {"word_begins": np.array([0, -1, 3])},
        {"word_parts": np.array([1, 0, 3], np.uint32)},
        {"word_parts": np.array([1, 0, 0], np.uint32)},
        {"word_parts": np.array([1, 2, 0], np.uint32)},
        {"index": np.zeros(4, np.uint8)},
        inner(la.ScanIndex(np.zeros((3, 2), np.uint8))),
        inner(la.ScanIndex(np.zeros((2, 4), np.uint8))),
        inner(la.ScanIndex(np.zeros((2, 2), np.uint8), [2**40, 3])),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path: Path, arrays: dict[str, Any]) -> None:
    with pytest.raises((la.errors.CorruptIndexError, la.errors.FormatError)):
        la.PartIndex.load(saved(tmp_path, {}, arrays))
