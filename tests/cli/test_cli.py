from __future__ import annotations

import subprocess
import sys

import pytest

import lookalike as la
from lookalike.cli import COMMANDS, main


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert command.__name__.rpartition(".")[2] in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"lookalike {la.__version__}\n"


def test_kernels_marks_the_one_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels"]) == 0
    lines = capsys.readouterr().out.splitlines()
    active = [kernel.name for kernel in la.kernels() if kernel.active]
    assert [line.split()[0] for line in lines if line.endswith("in use")] == active
    assert len(lines) == len(la.kernels())


def test_demo_finds_what_it_hid(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--count", "5000"]) == 0
    text = capsys.readouterr().out
    assert text.count(": yes") == 3
    assert "NO" not in text
    assert "is its original: 100.0%" in text
    assert "originals found: 100.0%" in text
    assert "100.0% of the copies" in text


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--count", "3"]) == 1
    assert capsys.readouterr().err.startswith("lookalike: --count is 3; expected")


def test_no_command_is_wrong_usage() -> None:
    result = subprocess.run([sys.executable, "-m", "lookalike.cli"], capture_output=True, text=True)
    assert result.returncode == 2
    assert "COMMAND" in result.stderr
