"""README and docs stay true: their Python is run, their commands are run, links lead somewhere."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from lookalike.cli import COMMANDS
from lookalike.gpu import index
from support.running.doc_pages import run_page
from support.running.fake_card import FakeCard

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md"]
PAGES += sorted((ROOT / "docs").glob("**/*.md"))
ELSEWHERE = {"spark.md": "tests/spark/test_spark_docs.py"}
"""Pages that need more than this process, and the tests that run them."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in ELSEWHERE], ids=lambda page: page.name
)
def test_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a GPU, the page on GPU search runs on kernels written in NumPy."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setattr(index, "card", lambda number: FakeCard())
    run_page(page, {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_python_is_run(page: Path) -> None:
    """A block that looks like Python is marked as `python`, which is what runs it."""
    for language, source in re.findall(
        r"^```(\S*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL
    ):
        if language in ("python", "console"):
            continue
        assert language != "py"
        assert not re.search(r"^(>>> |import |from \S+ import )", source, re.MULTILINE), source


def test_pages_run_elsewhere_are() -> None:
    for name, test in ELSEWHERE.items():
        assert name in (ROOT / test).read_text()


def test_every_command_is_documented() -> None:
    text = "".join(page.read_text() for page in PAGES)
    for command in COMMANDS:
        assert f"lookalike {command}" in text


def test_links_lead_to_files() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
