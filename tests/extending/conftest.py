"""The package `lookalike_toys` beside this file, as if it were installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lookalike.indexes.kinds import KINDS


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process and the processes it starts find the toys and their entry points.

    Other tests plan without the kind of index that is loaded here.
    """
    monkeypatch.setattr(KINDS, "_entries", dict(KINDS._entries))
    folder = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(folder)
    paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
