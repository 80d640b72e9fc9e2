"""Run the code blocks of a documentation page, top to bottom."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
from pathlib import Path

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_page(page: Path, names: dict[str, object], replaced: dict[str, str] | None = None) -> int:
    """Run a page's blocks of Python and of commands; return how many there are.

    Blocks share `names` and the current folder. `...` stands for what differs between machines. A
    block in an HTML comment prepares files; its names are its own, since readers do not see it.
    `replaced` maps addresses in the text to those that exist during the test.
    """
    text = page.read_text()
    for old, new in (replaced or {}).items():
        text = text.replace(old, new)
    hidden = [found.span() for found in re.finditer(r"<!--.*?-->", text, re.DOTALL)]
    blocks = list(re.finditer(r"^```(python|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for block in blocks:
        language, source = block.groups()
        if any(begin < block.start() < end for begin, end in hidden):
            exec(compile(source, str(page), "exec"), {})
        elif language == "console":
            run_commands(source)
        elif ">>>" in source:
            run_session(source, names, page)
        else:
            exec(compile(source, str(page), "exec"), names)
    return len(blocks)


def run_session(source: str, names: dict[str, object], page: Path) -> None:
    """Run lines that begin with `>>>`, and compare what they print with the lines below them."""
    test = doctest.DocTestParser().get_doctest(source, names, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, clear_globs=False)
    assert runner.failures == 0
    names.update(test.globs)


def run_commands(source: str) -> None:
    """Run lines that begin with `$`, and compare what they print with the lines below them."""
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", source, re.MULTILINE):
        result = subprocess.run(shlex.split(command), capture_output=True, text=True)
        printed = result.stdout + result.stderr
        assert doctest.OutputChecker().check_output(shown, printed, FLAGS), (
            f"{command} printed:\n{printed}"
        )
