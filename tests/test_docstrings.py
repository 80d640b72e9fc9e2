"""Examples in docstrings print what they show."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import lookalike as la
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
    names = {"la": la, "np": np}
    assert doctest.testmod(module, extraglobs=names, optionflags=FLAGS).failed == 0


def test_each_parameter_has_its_own_line() -> None:
    for path in (SOURCE / "lookalike").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                described = (ast.get_docstring(node) or "").partition("Args:\n")[2]
                joined = re.findall(r"^    \w+(?:, \w+)+: .*", described, re.MULTILINE)
                assert not joined, (path, node.name)
