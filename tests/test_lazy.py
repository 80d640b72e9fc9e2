"""Modules that are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lookalike as la
from lookalike.lazy import LazyModule


def test_a_module_is_imported_when_it_is_first_used() -> None:
    code = (
        "import sys; from lookalike.corpora.base import pa; assert 'pyarrow' not in sys.modules; "
        "assert pa.array([1]).to_pylist() == [1]; assert 'pyarrow' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_that_is_not_there_says_what_needs_it() -> None:
    missing = LazyModule("no_such_package", "reading stones")
    with pytest.raises(
        la.errors.MissingDependencyError, match=r"reading stones needs.*'no_such_package'"
    ):
        _ = missing.array
