"""Commands that are told to end: by Ctrl-C, by `kill`, by a terminal that is closed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from lookalike.cli import main
from lookalike.corpora.formats.duck import connection, interrupt_queries
from lookalike.jobs.work_folder import WorkFolder
from lookalike.storage.files import LOCK

WAITS = """
import time
from pathlib import Path
from lookalike.cli import main
from lookalike.{module} import {where}

def wait(*given, **settings):
    print(*Path().glob(".*.tmp"), *Path("tmp").iterdir(), flush=True)
    time.sleep(600)

{where}.{what} = wait
raise SystemExit(main(["dedup", "corpus.jsonl", "-o", "out.jsonl"]))
"""
MOMENTS = {
    "texts in a temporary folder": (
        "jobs.work_folder",
        "WorkFolder",
        "complete",
        "tmp/lookalike-job-",
    ),
    "an output half written": ("corpora.base", "KeptRows", "finish", ".out.jsonl."),
}
STATUS = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", STATUS)
def test_nothing_is_left_by_a_command_that_is_told_to_end(
    tmp_path: Path, number: signal.Signals, moment: str
) -> None:
    module, where, what, half_made = MOMENTS[moment]
    rows = [{"id": at, "text": f"a secret that is nobody's business {at}"} for at in range(50)]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "out.jsonl").write_text("as it was\n")
    (tmp_path / "tmp").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", WAITS.format(module=module, where=where, what=what)],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": "tmp"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        there = process.stdout.readline()
        process.send_signal(number)
        _, told = process.communicate(timeout=300)
    assert there.startswith(half_made) and len(there.split()) == 1
    assert told.startswith("lookalike: ") and told.count("\n") == 1
    assert process.returncode == STATUS[number]
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {"corpus.jsonl", "out.jsonl", "tmp"}
    assert (tmp_path / "out.jsonl").read_text() == "as it was\n"


INTERRUPTED = """
import os, signal, sys, threading, time
from lookalike.cli import main
from lookalike.cli.commands import kernels
from lookalike.corpora.formats.delimited import DelimitedCorpus
from lookalike.errors import FileError

def interrupt_soon():
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

endless = "(SELECT 'a' AS id, 'b' AS text FROM range(1000000000000) WHERE range < 0)"

def in_a_command():
    begun = []
    def source(self, *given):
        if not begun:
            begun.append(True)
            interrupt_soon()
        return endless
    DelimitedCorpus._source = source
    return main(["dedup", "a.csv"])

def as_another_error():
    def run(options):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        except KeyboardInterrupt:
            raise FileError("it cannot be read") from None
    kernels.run = run
    return main(["kernels"])

raise SystemExit(globals()[sys.argv[1]]())
"""


@pytest.mark.parametrize("where", ["in_a_command", "as_another_error"])
def test_ctrl_c_that_a_library_makes_another_error_of(tmp_path: Path, where: str) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,one\n")
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, where],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 130, done.stderr
    assert done.stderr == "lookalike: interrupted\n"


def test_what_duckdb_makes_of_ctrl_c_is_ctrl_c() -> None:
    with pytest.raises(KeyboardInterrupt), connection():
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="something else"), connection():
        raise RuntimeError("something else")
    done = threading.Event()

    def interrupt() -> None:
        while not done.wait(0.1):  # again, if the query had not begun
            interrupt_queries()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt), connection() as database:
            database.sql("SELECT count(*) FROM range(1000000000000) WHERE range < 0").fetchall()
    finally:
        done.set()
        thread.join()


def test_handlers_are_as_they_were() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    assert main(["kernels"]) == 0
    assert [signal.getsignal(number) for number in numbers] == before
    done: list[int] = []
    thread = threading.Thread(target=lambda: done.append(main(["kernels"])))
    thread.start()
    thread.join()
    assert done == [0]


def test_folders_of_processes_that_were_killed_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    held = WorkFolder(None)
    names = {
        "abandoned": "lookalike-job-1",
        "just abandoned": "lookalike-job-2",
        "other": "lookalike-pg-3",
        "not locked yet": ".new-lookalike-job-6",
        "never locked": ".new-lookalike-job-7",
    }
    folders = {kind: tmp_path / name for kind, name in names.items()}
    for folder in folders.values():
        folder.mkdir()
        (folder / LOCK).touch()
        (folder / "texts.bytes").write_text("a secret")
    (tmp_path / "lookalike-job-4").symlink_to(folders["other"])
    for folder in (
        folders["abandoned"], folders["other"], folders["never locked"], held.folder
    ):  # fmt: skip
        os.utime(folder, (0, 0))
    (tmp_path / "lookalike-csv-5").mkdir()
    (tmp_path / "lookalike-csv-5" / LOCK).touch()
    os.utime(tmp_path / "lookalike-csv-5", (0, 0))
    (tmp_path / "a.csv").write_text("id,text\n1,one\n")
    assert main(["dedup", str(tmp_path / "a.csv"), "--quiet"]) == 0
    (tmp_path / "a.csv").unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [held.folder.name, ".new-lookalike-job-6", "lookalike-job-4", "lookalike-pg-3"]
    )
    held.close()
    assert not held.folder.exists()


def test_a_place_for_temporary_files_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,one\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    for command in (["dedup", "--quiet"], ["sign", "--quiet", "-o", str(tmp_path / "s.npy")]):
        assert main([*command, str(tmp_path / "a.csv")]) == 1
        assert "set TMPDIR to a folder" in capsys.readouterr().err
