"""The public face: names, imports, errors."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from tools.make_docs import API

import lookalike as la

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def is_module(package: str, name: str) -> bool:
    is_package = hasattr(importlib.import_module(package), "__path__")
    return is_package and find_spec(f"{package}.{name}") is not None


def names_used(text: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of all that a page imports or uses from lookalike."""
    text = re.sub(r"^(>>>|\.\.\.) ?", "", text, flags=re.MULTILINE)
    imports = r"^\s*from (lookalike[\w.]*) import (?:\(([^)]*)\)|(.*))$"
    for module, several, line in re.findall(imports, text, re.MULTILINE):
        plain = re.sub(r"#.*", "", several or line)
        yield from ((module, name.split()[0]) for name in plain.split(",") if name.strip())
    for chain in re.findall(r"\b(?:la|lookalike)((?:\.[A-Za-z]\w*)+)", text):
        module, names = "lookalike", chain[1:].split(".")
        while names and is_module(module, names[0]):
            module, names = f"{module}.{names[0]}", names[1:]
        if names:
            yield module, names[0]


LAZY = ["lookalike", "lookalike.images", "lookalike.results", "lookalike.spark"]
"""Modules whose names are all imported when they are first used."""


def test_there_are_few_names_at_the_top() -> None:
    names = importlib.import_module("lookalike").__all__
    assert len(names) <= 74
    assert names == sorted(names)


@pytest.mark.parametrize("module", LAZY)
def test_dir_has_the_public_names_and_modules(module: str) -> None:
    package = importlib.import_module(module)
    plain = {name for name in dir(package) if not isinstance(getattr(package, name), ModuleType)}
    assert {name for name in plain if not name.startswith("_")} == set(package.__all__) - {
        "__version__"
    }


@pytest.mark.parametrize("module", LAZY)
def test_type_checkers_read_the_names_that_are_there(module: str) -> None:
    """The imports for type checkers are those that happen, each as a name that is exported."""
    package = importlib.import_module(module)
    assert package.__file__ is not None
    read = {
        alias.asname: (node.module, alias.name)
        for node in ast.walk(ast.parse(Path(package.__file__).read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    modules = {name for name in dir(package) if isinstance(getattr(package, name), ModuleType)}
    assert set(read) - modules == set(package.__all__)
    for name, (home, _) in read.items():
        assert getattr(importlib.import_module(str(home)), name) is getattr(package, name)


def test_names_that_come_later_are_there() -> None:
    code = (
        "import lookalike as la\n"
        "print(la.tune.__module__, la.results.Match.__module__, la.errors.FileError.__module__)"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split() == [
        "lookalike.advice.tuner",
        "lookalike.collection.answers",
        "lookalike.errors",
    ]
    assert la.indexes.SliceIndex is la.SliceIndex
    with pytest.raises(AttributeError, match="module 'lookalike' has no attribute 'nothing'"):
        la.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_importing_brings_only_numpy() -> None:
    """Everything else is the standard library's or ours; what the interpreter starts with aside."""
    code = (
        "import sys; start = set(sys.modules); import lookalike\n"
        "names = {name.partition('.')[0] for name in set(sys.modules) - start}\n"
        "print(*sorted(names - set(sys.stdlib_module_names)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["lookalike", "numpy"]


def test_the_version_is_that_of_the_distribution() -> None:
    assert la.__version__ == importlib.metadata.version("lookalike")


def test_every_error_has_the_one_root_and_stands_in_the_tree() -> None:
    assert la.errors.__doc__ is not None
    for name in la.errors.__all__:
        assert issubclass(getattr(la.errors, name), la.LookalikeError | la.LookalikeWarning)
        assert name in la.errors.__doc__


@pytest.mark.parametrize("order", ["first the main one", "first the other one"])
def test_a_subinterpreter_is_refused_and_leaves_the_main_one_as_it_was(order: str) -> None:
    code = (
        "import sys\n"
        "if sys.argv[1] == 'first the main one': import lookalike\n"
        "try: import _interpreters as sub\n"
        "except ImportError: import _xxsubinterpreters as sub\n"
        "other = sub.create()\n"
        "try: problem = sub.run_string(other, 'import lookalike')\n"
        "except Exception as error: problem = error\n"
        "print(problem)\n"
        "sub.destroy(other)\n"
        "import lookalike as la\n"
        "rows = la.SimHash(bits=64).sign([f'text {i}' for i in range(100)])\n"
        "for index in (la.SliceIndex(rows), la.ScanIndex(rows), la.BlockIndex(rows)):\n"
        "    print(index.within(rows[:1], 0).ids[0])"
    )
    result = subprocess.run([sys.executable, "-c", code, order], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    refusal, *answers = result.stdout.splitlines()
    assert "lookalike cannot be imported in a subinterpreter" in refusal
    assert answers == ["0"] * 3


def test_names_that_pages_use_are_found() -> None:
    page = """
    >>> import lookalike as la
    >>> from lookalike.advice import evaluate, tune as best  # both
    >>> from lookalike.indexes import (
    ...     ScanIndex,  # the truth
    ...     SliceIndex,
    ... )
    >>> la.indexes.slices.index.SliceIndex.build(la.SimHash(bits=64).name)
    """.replace("\n    ", "\n")
    assert list(names_used(page)) == [
        ("lookalike.advice", "evaluate"),
        ("lookalike.advice", "tune"),
        ("lookalike.indexes", "ScanIndex"),
        ("lookalike.indexes", "SliceIndex"),
        ("lookalike.indexes.slices.index", "SliceIndex"),
        ("lookalike", "SimHash"),
    ]


def test_what_pages_use_is_public() -> None:
    used = {(module, name) for page in PAGES for module, name in names_used(page.read_text())}
    assert {("lookalike", "SliceIndex"), ("lookalike.advice", "tune")} < used
    hidden = sorted(
        f"{module}.{name}"
        for module, name in used
        if name not in importlib.import_module(module).__all__
    )
    assert hidden == [], "used in README or docs, but not in __all__"


def test_the_reference_has_every_public_name_once() -> None:
    listed = [name for _, names in API.values() for name in names.split()]
    assert len(listed) == len(set(listed))
    for name in listed:
        home, _, last = f"lookalike.{name}".rpartition(".")
        assert last in importlib.import_module(home).__all__
    for name in importlib.import_module("lookalike").__all__:
        assert name in listed or f"errors.{name}" in listed or name == "__version__"
