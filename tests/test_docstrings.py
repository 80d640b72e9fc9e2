"""Examples in docstrings print what they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from support.running.doc_pages import FLAGS

SOURCE = Path(__file__).parent.parent / "src"
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((SOURCE / "lookalike").rglob("*.py"))
    if ">>> " in path.read_text()
]


def test_public_classes_have_examples() -> None:
    assert {"lookalike.indexes.slices.index", "lookalike.signatures.simhash"} < set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=FLAGS).failed == 0
