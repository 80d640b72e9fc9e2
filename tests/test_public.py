"""The public face: names, imports, errors."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import types

import lookalike as la
from lookalike import errors


def test_all_lists_exactly_the_public_names() -> None:
    public = {
        name
        for name, value in vars(la).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public | {"__version__"} == set(la.__all__)
    assert list(la.__all__) == sorted(la.__all__)


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
    assert errors.__doc__ is not None
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), la.LookalikeError)
        assert getattr(la, name) is getattr(errors, name)
        assert name in errors.__doc__
