"""The tests themselves: what a run under `nohup` inherits, and which examples are drawn."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

IGNORING = """
import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *sys.argv[1:]])
"""
"""What `nohup` and the background of a plain shell do."""

SIGNALS = """
import os, signal, subprocess, sys

def test_children_hear_signals():
    ignored = subprocess.run(
        [sys.executable, "-c", "import signal; print([signal.getsignal(number) == signal.SIG_IGN "
         "for number in (1, 2, 3, 15)])"], capture_output=True, text=True, check=True,
    ).stdout
    assert ignored == "[False, False, False, False]\\n"

def test_this_process_outlives_its_terminal():
    os.kill(os.getpid(), signal.SIGHUP)

def test_this_process_can_be_interrupted():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        return
    raise AssertionError("not interrupted")
"""

DRAWN = """
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

@given(st.integers())
@settings(max_examples=7)
@pytest.mark.parametrize("part", [1, 2])
def test_of_seven(part, value):
    with open(f"seven{part}", "a") as file:
        file.write(f"{value}\\n")

@given(st.integers())
def test_of_a_hundred(value):
    with open("hundred", "a") as file:
        file.write(f"{value}\\n")

class Machine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        with open("machine", "a") as file:
            file.write("begun\\n")

    @rule()
    def step(self):
        pass

Machine.TestCase.settings = settings(max_examples=5, stateful_step_count=2)
test_machine = Machine.TestCase
"""


def run(folder: Path, *command: str, explore: str | None = None) -> None:
    """Run the tests of a folder as ours are run."""
    (folder / "conftest.py").write_text("from tests.conftest import *  # noqa\n")
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    environment.pop("LOOKALIKE_EXPLORE", None)
    if explore is not None:
        environment["LOOKALIKE_EXPLORE"] = explore
    done = subprocess.run(
        [*command, "-q", "-c", str(HERE.parent / "pyproject.toml"), "--rootdir", str(folder)],
        cwd=folder, env={**environment, "PYTHONPATH": f"{HERE.parent}:{HERE}"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_signals_that_are_ignored_when_the_tests_begin(tmp_path: Path, workers: list[str]) -> None:
    (tmp_path / "test_it.py").write_text(SIGNALS)
    run(tmp_path, sys.executable, "-c", IGNORING, *workers, "test_it.py")


def test_the_same_examples_are_drawn_unless_exploring(tmp_path: Path) -> None:
    drawn: dict[str, list[dict[str, str]]] = {}
    for explore in (None, None, "3", "3"):
        folder = tmp_path / str(sum(map(len, drawn.values())))
        folder.mkdir()
        (folder / "test_it.py").write_text(DRAWN)
        run(folder, sys.executable, "-m", "pytest", "test_it.py", explore=explore)
        values = {name: (folder / name).read_text() for name in ("seven1", "seven2", "hundred")}
        drawn.setdefault(str(explore), []).append(values)
        counts = [len(values[name].split()) for name in values]
        assert counts == ([7, 7, 100] if explore is None else [21, 21, 300])
        begun = (folder / "machine").read_text().count("begun")
        assert (begun > 5) == (explore is not None)
        assert not (folder / ".hypothesis" / "examples").exists()
    assert drawn["None"][0] == drawn["None"][1]
    assert drawn["3"][0] != drawn["3"][1]
