"""The package `lookalike_toys` beside this file, as if it were installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process and the processes it starts find the toys and their entry points."""
    folder = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(folder)
    paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
