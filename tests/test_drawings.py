"""The drawings of the documentation are what their script makes, and every one is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.draw_indexes import DRAWINGS, FOLDER

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_current_and_shown(name: str) -> None:
    path = FOLDER / f"{name}.svg"
    assert path.read_text() == DRAWINGS[name]().svg(), "run python tools/draw_indexes.py"
    assert any(f"searching/{path.name})" in page.read_text() for page in DOCS.glob("*.md"))
