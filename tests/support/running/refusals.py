"""Commands that end with an error: what is printed, and the exit status that goes with it."""

from __future__ import annotations

import pytest

from lookalike.cli import main


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must fail, and return what it says is wrong.

    An error is one line and status 1; wrong usage is two lines and status 2, the second of them
    saying where to look.
    """
    try:
        status: object = main(arguments)
    except SystemExit as stop:
        status = stop.code
    printed = capsys.readouterr()
    assert printed.out == "", arguments
    lines = printed.err.splitlines()
    if status == 1:
        assert len(lines) == 1 and lines[0].startswith("lookalike: "), (arguments, lines)
        return lines[0].removeprefix("lookalike: ")
    assert status == 2 and len(lines) == 2, (arguments, status, lines)
    command, _, message = lines[0].partition(": ")
    assert lines[1] == f"See `{command} --help`."
    assert command.split() == ["lookalike", *arguments][: len(command.split())]
    return message
