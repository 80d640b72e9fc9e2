"""The examples in docstrings run and print what they show."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

import lookalike as la

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("thing", [la.Collection, la.open_collection, la.restore_collection])
def test_examples(thing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(thing, globs={"la": la})
    assert example.examples
    assert doctest.DocTestRunner(optionflags=FLAGS).run(example).failed == 0
