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


FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks share their names and a folder; `...` is what differs from machine to machine.

    A block in a comment makes files. Its names are its own: readers do not see where they come
    from.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    names: dict[str, object] = {}
    text = page.read_text()
    hidden = [found.span() for found in re.finditer(r"<!--.*?-->", text, re.DOTALL)]
    for block in re.finditer(r"^```(python|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        language, source = block.groups()
        if language == "python" and any(begin < block.start() < end for begin, end in hidden):
            exec(compile(source, str(page), "exec"), {})
        elif language == "console":
            run_commands(source)
        elif ">>>" in source:
            names = run_session(source, names, page)
        else:
            exec(compile(source, str(page), "exec"), names)


def run_session(source: str, names: dict[str, object], page: Path) -> dict[str, object]:
    """A line `>>>` shows what the next one prints."""
    test = doctest.DocTestParser().get_doctest(source, names, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, clear_globs=False)
    assert runner.failures == 0
    return test.globs


def run_commands(source: str) -> None:
    """A line `$` is a command; what follows is what it prints."""
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", source, re.MULTILINE):
        result = subprocess.run(shlex.split(command), capture_output=True, text=True)
        printed = result.stdout + result.stderr
        assert doctest.OutputChecker().check_output(shown, printed, FLAGS), (
            f"{command} printed:\n{printed}"
        )


def test_every_command_is_documented() -> None:
    text = "".join(page.read_text() for page in PAGES)
    for command in COMMANDS:
        assert f"lookalike {command}" in text


def test_links_lead_to_files() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
