"""Files appear whole or not at all, and what the system refuses is told as it is."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.jobs.work_folder import WorkFolder
from lookalike.storage.files import (
    check_replaceable,
    is_there,
    unfinished,
    whole_file,
    whole_folder,
)

ROWS = np.arange(80, dtype=np.uint8).reshape(10, 8)


def failing(number: int, call: Callable[..., Any], fails: Callable[[Any], bool]) -> Any:
    """Return a system call that fails for some of what it is given."""

    def instead(what: Any, *arguments: Any, **options: Any) -> Any:
        if fails(what):
            raise OSError(number, os.strerror(number), str(what))
        return call(what, *arguments, **options)

    return instead


def is_folder(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def fill_file(path: Path) -> None:
    with whole_file(path) as temporary:
        temporary.write_text("new")


def fill_folder(path: Path) -> None:
    with whole_folder(path) as temporary:
        (temporary / "one").write_text("new")


WRITES: dict[str, Callable[[Path], Any]] = {
    "file": fill_file,
    "folder": fill_folder,
    "index": la.ScanIndex(ROWS).save,
    "signature file": lambda path: la.SignatureFile.create(path, 64),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_name_that_is_not_durable_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "target"
    monkeypatch.setattr(os, "fsync", failing(errno.EIO, os.fsync, is_folder))
    with pytest.raises(
        la.errors.FileError, match="target is written, but a power failure may undo"
    ):
        WRITES[name](path)
    assert [one.name for one in tmp_path.iterdir()] == ["target"]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EACCES])
def test_a_system_that_syncs_no_folders_is_no_error(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", failing(number, os.fsync, is_folder))
    for name, write in WRITES.items():
        write(tmp_path / name)
        assert (tmp_path / name).exists()


def test_what_cannot_be_looked_at_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "target"
    path.write_text("old")
    uses: list[Callable[[], Any]] = [
        lambda: is_there(path),
        lambda: check_replaceable(path),
        lambda: fill_file(path),
        lambda: fill_folder(path),
        lambda: la.match_batch(path, ROWS),
        lambda: la.match_batch(path, ROWS, append=False),
        lambda: la.open_collection(path),
        lambda: la.list_collections(path),
        lambda: la.ScanIndex(ROWS).save(path),
    ]
    monkeypatch.setattr(
        os, "stat", failing(errno.EIO, os.stat, lambda what: str(what) == str(path))
    )
    for use in uses:
        with pytest.raises(
            la.errors.FileError, match="target cannot be accessed: .*Input/output error"
        ):
            use()
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert is_there(path)
    assert not is_there(tmp_path / "nothing")
    assert not is_there(path / "below a file")


@pytest.mark.parametrize("path", [Path(), Path("/"), Path("..")])
@pytest.mark.parametrize("exist_ok", [False, True])
def test_folders_are_no_signature_files(path: Path, exist_ok: bool) -> None:
    with pytest.raises(la.errors.FileError, match="cannot be"):
        la.SignatureFile.create(path, 64, exist_ok=exist_ok)


def test_a_work_folder_names_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = WorkFolder(tmp_path / "work")
    with work.writer("numbers") as file:
        file.write(ROWS.data)

    def fail(*arguments: Any, **options: Any) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    uses: dict[str, list[Callable[[], Any]]] = {
        "mmap.mmap": [
            lambda: work.array("numbers", np.uint8),
            lambda: work.scratch("numbers", np.uint8, (3,)),
            lambda: work.complete("step", "key", {}, ["numbers"]),
        ],
        "pathlib.Path.stat": [lambda: work.array("numbers", np.uint8)],
        "pathlib.Path.unlink": [lambda: work.remove("numbers"), lambda: work.begin("numbers")],
        "os.fsync": [lambda: work.complete("step", "key", {}, ["numbers"])],
    }
    for call, those in uses.items():
        for use in those:
            with monkeypatch.context() as patched:
                patched.setattr(call, fail)
                with pytest.raises(
                    la.errors.FileError, match=r"numbers.* cannot be .*Input/output error"
                ):
                    use()
    work.close()


def test_only_what_belongs_to_it_goes_with_an_unfinished_file(tmp_path: Path) -> None:
    """Its journal does; a file whose name merely begins alike does not."""
    names = ["part", "part-journal", "part2", "part.kept"]
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(KeyboardInterrupt), unfinished(tmp_path / "part"):
        raise KeyboardInterrupt
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part.kept", "part2"]
