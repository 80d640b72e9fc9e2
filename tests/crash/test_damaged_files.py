"""Every kind of file that is written, with every byte changed: the right answer, or an error."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crash.damage import Change, every_change
from crash.kinds import KINDS, Kind
from crash.trials import REFUSED, RIGHT, Trial, try_all, verdict

CHANGES = os.environ.get("LOOKALIKE_CHANGES", "30")
"""Changes of each kind of file; `make crash` asks for `every`."""


@pytest.mark.parametrize("name", KINDS)
def test_every_byte_of_every_kind_of_file(name: str, folder: Path) -> None:
    kind = KINDS[name]
    whole = folder / "whole"
    whole.mkdir()
    kind.make(whole)
    count = len(changes_of(kind, whole))
    chosen = list(range(count))
    wanted = count if CHANGES == "every" else int(CHANGES)
    wanted = min(count, wanted, kind.most or wanted)
    if wanted < count:
        chosen = random.Random(name).sample(chosen, wanted)
    try_all(folder / "trials", damaged_files, (name, whole, chosen), len(chosen)).settle(name)


def changes_of(kind: Kind, whole: Path) -> list[tuple[Path, Change]]:
    """Return everything that may happen to each of the files."""
    return [
        (path.relative_to(whole), change)
        for pattern in kind.files
        for path in sorted(whole.glob(pattern))
        for change in every_change(path.read_bytes())
    ]


def damaged_files(folder: Path, name: str, whole: Path, chosen: list[int]) -> Trial:
    """Return a trial: one of the changes, and everything that the files can then be asked."""
    kind = KINDS[name]
    changes = changes_of(kind, whole)
    with copied(whole, folder / "copy") as copy:
        assert kind.used(copy), "the files were not used, but made anew"
    with copied(whole, folder / "copy") as copy:
        expected = kind.ask(copy)

    def trial(number: int) -> str:
        path, change = changes[chosen[number]]
        with copied(whole, folder / "copy") as copy:
            target = copy / path
            target.write_bytes(change.made(target.read_bytes()))
            came = verdict("the answer", lambda: kind.ask(copy), expected)
        return came if came in (RIGHT, REFUSED) else f"{path}: {change.what}: {came}"

    return trial


@contextmanager
def copied(whole: Path, copy: Path) -> Iterator[Path]:
    """Yield a copy of a folder, which is removed afterwards."""
    shutil.copytree(whole, copy)
    try:
        yield copy
    finally:
        shutil.rmtree(copy)
