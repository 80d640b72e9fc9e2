"""SQLite files that may not be written to: what older versions wrote is read as it is."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la

OLD = Path(__file__).parent / "data" / "collection_v1.db"


@contextmanager
def read_only() -> Iterator[None]:
    """Open every file as one that has no permission; root would have it nevertheless."""
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def without_writing(database: Any, **given: Any) -> sqlite3.Connection:
        return connect(re.sub("mode=rwc?", "mode=ro", str(database)), **given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sqlite3, "connect", without_writing)
        yield


def version_1(path: Path) -> None:
    shutil.copy(OLD, path)


def version_2(path: Path) -> None:
    version_3(path)
    execute(
        path,
        "ALTER TABLE lookalike_collections DROP COLUMN parts",
        "UPDATE lookalike_schema SET version = 2",
    )


def version_3(path: Path) -> None:
    version_4(path)
    columns = ("words", "next_words", "words_digest")
    execute(
        path,
        *(f"ALTER TABLE lookalike_collections DROP COLUMN {column}" for column in columns),
        "UPDATE lookalike_schema SET version = 3",
    )


def execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def version_4(path: Path) -> None:
    version_5(path)
    columns = ("dimensions", "vectors", "next_vectors", "vectors_digest")
    execute(
        path,
        *(f"ALTER TABLE lookalike_collections DROP COLUMN {column}" for column in columns),
        "UPDATE lookalike_schema SET version = 4",
    )


def version_5(path: Path) -> None:
    with la.open_collection(path, signer=la.SimHash(64), cache=False) as docs:
        docs.add(["fox", "owl"], ["the quick brown fox jumps", "an owl sees in the dark"])


@pytest.mark.parametrize("made", [version_1, version_2, version_3, version_4, version_5])
def test_files_that_may_not_be_written_to_are_read(
    tmp_path: Path, made: Callable[[Path], None]
) -> None:
    path = tmp_path / "docs.db"
    made(path)
    before = path.read_bytes()
    with read_only():
        assert la.list_collections(path) == ["documents"]
        with la.open_collection(path, cache=False) as docs:
            text = next(document.text for document in docs if document.id == "fox")
            assert text is not None and not docs.parts and docs.verify().ok
            with pytest.raises(la.errors.ArgumentError, match="has no keyword index; build it"):
                docs.search(text, by="words")
            with ThreadPoolExecutor(4) as pool:  # each on a connection of its own
                found = pool.map(lambda _: docs.search(text, 1).ids, range(20))
                assert all(ids == ["fox"] for ids in found)
            with pytest.raises(la.errors.CollectionError, match="readonly database"):
                docs.add(["new"], ["some text"])
        with pytest.raises(la.errors.CollectionError, match="readonly database"):
            la.open_collection(path, "parts", bits=32, parts=True)
    assert path.read_bytes() == before


def test_a_file_that_others_upgrade_meanwhile_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    version_2(path)
    with read_only():
        docs = la.open_collection(path, cache=False)
    with la.open_collection(path, "parts", bits=32, parts=True, cache=False) as parts:
        parts.add(["new"], signatures=[np.array([1, 2], np.uint32)])
    with docs:
        assert docs.count() == 2 and docs.verify().ok
