"""README and docs stay true: their Python is run, their commands are run, links lead somewhere."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lookalike.cli import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md"]
PAGES += sorted((ROOT / "docs").glob("**/*.md"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of one page share their names; a line `>>>` shows what the next one prints."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for source in blocks(page, "python"):
        if ">>>" in source:
            test = doctest.DocTestParser().get_doctest(source, names, page.name, str(page), 0)
            runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
            runner.run(test, clear_globs=False)
            names = test.globs
            assert runner.failures == 0
        else:
            exec(compile(source, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """In a `console` block, `...` stands for whatever differs from machine to machine."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for block in blocks(page, "console"):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            result = subprocess.run(
                shlex.split(command), cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            printed = result.stdout + result.stderr
            matches = doctest.OutputChecker().check_output(
                shown, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            )
            assert matches, f"{command} printed:\n{printed}"


def test_every_command_is_documented() -> None:
    text = "".join(page.read_text() for page in PAGES)
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        assert f"lookalike {name}" in text


def test_links_lead_to_files() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
