"""Commands whose terminal, or the reader of their output, is gone: they end as ever, or go on."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.running.waiting import wait_until
from support.services.running import process as serving

WORKS = """
import signal, sys, threading, time
from pathlib import Path
from lookalike.cli import main
from lookalike.jobs.work_folder import WorkFolder

def wait(*given, **settings):
    Path("begun").touch()
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            if sys.argv[1] != "stubborn":
                raise

WorkFolder.complete = wait
if sys.argv[1] == "cleaning":
    import lookalike.cli as commands
    commands.remove_unfinished = lambda: (Path("cleaning").touch(), time.sleep(600))
if sys.argv[1] == "no threads":
    start = threading.Thread.start
    def refuse(thread):
        if Path("begun").exists():
            raise RuntimeError("can't start new thread")
        start(thread)
    threading.Thread.start = refuse
raise SystemExit(main(["dedup", "corpus.jsonl", "-o", "out.jsonl"]))
"""
STATUS = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130}


def dead_pipe() -> tuple[int, Callable[[], None]]:
    """Return a standard error, and what makes its reader die."""
    reader, writer = os.pipe()
    return writer, lambda: os.close(reader)


def closed_terminal() -> tuple[int, Callable[[], None]]:
    """Return a terminal, and what closes it. It controls no process: none gets SIGHUP for it."""
    master, slave = pty.openpty()
    return slave, lambda: os.close(master)


def unread_pipe() -> tuple[int, Callable[[], None]]:
    """Return a pipe that is full: who writes to it waits."""
    _reader, writer = os.pipe()  # never read
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    return writer, lambda: None


ERRORS = [dead_pipe, closed_terminal, unread_pipe]


@contextlib.contextmanager
def working(folder: Path, how: str, stderr: Any = subprocess.PIPE) -> Iterator[Any]:
    """Run a command that has begun its work, and waits."""
    rows = [{"id": at, "text": f"a text with some words {at}"} for at in range(50)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "tmp").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", WORKS, how], cwd=folder, env={**os.environ, "TMPDIR": "tmp"},
        stdout=subprocess.PIPE, stderr=stderr, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            wait_until(lambda: (folder / "begun").exists() or process.poll() is not None)
            assert list((folder / "tmp").iterdir())
            yield process
        finally:
            process.kill()


def nothing_is_left(folder: Path) -> bool:
    left = {path.name for path in folder.rglob("*")}
    return left <= {"corpus.jsonl", "tmp", "begun"}


@pytest.mark.parametrize("errors", ERRORS)
@pytest.mark.parametrize("number", STATUS)
def test_it_ends_though_standard_error_is_dead(
    tmp_path: Path, number: signal.Signals, errors: Callable[[], tuple[int, Callable[[], None]]]
) -> None:
    stderr, die = errors()
    with working(tmp_path, "", stderr) as process:
        os.close(stderr)
        die()
        process.send_signal(number)
        if number == signal.SIGINT and errors == unread_pipe:
            with pytest.raises(subprocess.TimeoutExpired):  # it waits for the reader
                process.wait(1)
            process.send_signal(number)
        assert process.wait(120) == STATUS[number]
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize("how", ["", "stubborn", "no threads"])
def test_ctrl_c_twice_ends_it(tmp_path: Path, how: str) -> None:
    with working(tmp_path, how) as process:
        process.send_signal(signal.SIGINT)
        if how == "stubborn":
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.5)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    assert process.returncode == 130
    assert told == b"lookalike: interrupted\n"
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize("second", STATUS)
def test_a_second_signal_does_not_wait_for_cleaning_up(
    tmp_path: Path, second: signal.Signals
) -> None:
    with working(tmp_path, "cleaning") as process:
        process.send_signal(signal.SIGTERM)
        wait_until((tmp_path / "cleaning").exists)
        process.send_signal(second)
        assert process.wait(120) == STATUS[second]


def test_what_is_ignored_stays_ignored(tmp_path: Path) -> None:
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        with working(tmp_path, "") as process:
            process.send_signal(signal.SIGHUP)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 143
    finally:
        signal.signal(signal.SIGHUP, ignored)
    assert nothing_is_left(tmp_path)


CONTINUES = """
import sys
from lookalike.cli import main
from lookalike.cli.commands import kernels
from lookalike.cli.terminal import say, warn
from lookalike.progress import progress_bars

def run(options):
    with progress_bars() as tell:
        if tell: tell("first", 0.5)
        open("ready", "w").close()
        sys.stdin.readline()
        if tell: tell("second", 0.5)
        warn("something")
        say("to standard error", file=sys.stderr)
    open("done", "w").close()

kernels.run = run
raise SystemExit(main(["kernels"]))
"""


@pytest.mark.parametrize("errors", [dead_pipe, closed_terminal])
def test_work_goes_on_though_nobody_reads_standard_error(
    tmp_path: Path, errors: Callable[[], tuple[int, Callable[[], None]]]
) -> None:
    stderr, die = errors()
    with subprocess.Popen(
        [sys.executable, "-c", CONTINUES], cwd=tmp_path, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=stderr, start_new_session=True,
    ) as process:  # fmt: skip
        os.close(stderr)
        wait_until(lambda: (tmp_path / "ready").exists() or process.poll() is not None)
        die()
        process.communicate(b"\n", timeout=120)
    assert process.returncode == 0
    assert (tmp_path / "done").exists()


CORPUS = '{"id": 1, "text": "some words"}\nnot a row\n'
SKIPS = [sys.executable, "-m", "lookalike.cli", "dedup", "corpus.jsonl", "--skip-bad"]


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full", "2> >(exit)"])
def test_warnings_that_cannot_be_written_do_not_end_the_work(tmp_path: Path, stderr: str) -> None:
    (tmp_path / "corpus.jsonl").write_text(CORPUS)
    found = []
    for redirected in (stderr, "2>/dev/null"):
        command = f'sleep 0.2; "$@" -o - {redirected}'
        done = subprocess.run(
            ["bash", "-c", command, "bash", *SKIPS], cwd=tmp_path, capture_output=True, check=False
        )
        found.append((done.returncode, done.stdout))
    assert found[0] == found[1] == (0, b'{"id": 1, "text": "some words"}\n')


SLOWLY = (
    "import time; time.sleep(0.3); from lookalike.cli import command_line; "
    "raise SystemExit(command_line())"
)
"""A command that begins when the reader of its output is gone."""


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (">/dev/full", 1, "standard output cannot be written: No space left on device"),
        ("> >(exit)", 0, ""),
        ("--help > >(exit)", 0, ""),
        (">&-", 0, ""),
    ],
)
def test_standard_output_that_cannot_be_written(options: str, status: int, told: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f'"$@" kernels {options}', "bash", sys.executable, "-c", SLOWLY],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (status, f"lookalike: {told}\n" if told else "")


@pytest.mark.parametrize("command", ["--help", "dedup --help", "--version"])
def test_help_that_cannot_be_written(command: str) -> None:
    """Help that is longer than a buffer, too, of which argparse forgets what failed."""
    done = subprocess.run(
        ["bash", "-c", f'"$@" {command} >/dev/full', "bash", sys.executable, "-m", "lookalike.cli"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    message = "lookalike: standard output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, message)


BREAKS = """
from lookalike.cli import main
from lookalike.cli.commands import kernels

def run(options):
    raise BrokenPipeError(32, "of a worker")

kernels.run = run
raise SystemExit(main(["kernels"]))
"""


def test_a_broken_pipe_elsewhere_is_not_success() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BREAKS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "of a worker" in done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_service_whose_terminal_is_closed_ends_in_good_order(
    tmp_path: Path, workers: str
) -> None:
    with serving(str(tmp_path / "docs.db"), "--workers", workers) as started:
        started.service.good("GET", "/healthz")
        started.send_signal(signal.SIGHUP)
        assert started.wait(120) == 0
        assert '"ending"' in started.stderr.read()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_service_under_nohup_outlives_its_terminal(tmp_path: Path, workers: str) -> None:
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with serving(str(tmp_path / "docs.db"), "--workers", workers) as started:
            started.service.good("GET", "/healthz")
            os.killpg(started.pid, signal.SIGHUP)  # to all processes, as a terminal does
            time.sleep(1.5)  # the supervisor of several looks every 0.5 seconds
            assert started.poll() is None
            started.service.good("GET", "/healthz")
            assert '"ending"' not in started.stderr.read()
            started.send_signal(signal.SIGTERM)
            assert started.wait(120) == 0
    finally:
        signal.signal(signal.SIGHUP, ignored)


def test_a_service_ends_though_nobody_reads_what_it_says(tmp_path: Path) -> None:
    stderr, die = dead_pipe()
    with subprocess.Popen(
        [sys.executable, "-m", "lookalike.cli", "serve", str(tmp_path / "docs.db"), "--port", "0"],
        stdout=subprocess.PIPE, stderr=stderr, text=True,
    ) as process:  # fmt: skip
        try:
            os.close(stderr)
            die()
            assert process.stdout is not None
            assert " at http://" in process.stdout.readline()
            process.stdout.close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0
        finally:
            process.kill()
