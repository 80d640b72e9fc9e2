"""System calls that fail, one after the other: what was acknowledged is there, what we say is so.

strace makes the N-th call of a kind fail, or all from the N-th on, in a process that it is attached
to when everything is ready; so every call of the work itself gets its turn.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crash import scenarios
from crash.run_scenarios import RUN_SCENARIOS
from crash.scenarios import Journal
from crash.trials import FORKS, REFUSED, RIGHT, Tally

SCENARIOS = {**scenarios.SCENARIOS, **RUN_SCENARIOS}
FAULTS = os.environ.get("LOOKALIKE_FAULTS", "10")
"""How many calls of each kind fail, each in a run of its own; `make crash` asks for `every`."""
SECONDS = 60
_PR_SET_PTRACER = 0x59616D61

CALLS = {
    "openat": "EMFILE",
    "read": "EIO",
    "pread64": "EIO",
    "write": "ENOSPC",
    "pwrite64": "ENOSPC",
    "fsync": "EIO",
    "fdatasync": "EIO",
    "ftruncate": "EIO",
    "fallocate": "ENOSPC",
    "rename": "EIO",
    "unlink": "EIO",
    "mkdir": "ENOSPC",
    "mmap": "ENOMEM",
    "flock": "ENOLCK",
    "fcntl": "ENOLCK",
    "newfstatat": "EIO",
    "lseek": "EIO",
}
"""What fails, and how."""


@dataclass(frozen=True)
class Fault:
    call: str
    number: int
    """Which one of the calls of a thread fails, counted from 1."""
    for_good: bool = False
    """Whether all later ones fail too, as on a disk that stays full."""

    def __str__(self) -> str:
        return f"{self.call} {CALLS[self.call]} at {self.number}{'+' if self.for_good else ''}"


def options(fault: Fault | None) -> list[str]:
    """Return what strace has to be told."""
    traced = ["-e", f"trace={','.join(CALLS)}"]
    if fault is None:
        return traced
    when = f"{fault.number}{'+' if fault.for_good else ''}"
    return [*traced, "-e", f"inject={fault.call}:error={CALLS[fault.call]}:when={when}"]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_system_call_may_fail(name: str, folder: Path) -> None:
    tally = Tally()
    chosen = faults(run(name, folder / "dry", None)[1], folder)
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as threads:
        runs = threads.map(lambda fault: run(name, folder / str(fault), fault), chosen)
        for fault, (journal, log) in zip(chosen, runs, strict=True):
            if not any("(INJECTED)" in line and str(folder) in line for line in log.splitlines()):
                continue  # there were fewer such calls this time, or it was one of Python's own
            came = judged(name, folder / str(fault) / "real", journal)
            if came == RIGHT:
                tally.right += 1
            elif came == REFUSED:
                tally.refused += 1
            else:
                tally.wrong.append(f"{fault}: {came}")
            shutil.rmtree(folder / str(fault))
    assert tally.refused, "no fault did anything"
    tally.settle(name, "faults")


def faults(log: str, folder: Path) -> list[Fault]:
    """Return a fault for every call that has to do with a file of ours, or for some of them.

    Calls are counted thread by thread, as strace does.
    """
    made: Counter[tuple[str, str]] = Counter()
    places: dict[str, set[int]] = {call: set() for call in CALLS}
    for line in log.splitlines():
        match = re.match(r"(\d+) +(\w+)\(", line)
        if match and match[2] in CALLS:
            made[match.groups()] += 1  # type: ignore[index]
            if str(folder) in line:
                places[match[2]].add(made[match.groups()])  # type: ignore[index]
    chosen = []
    for call, numbers in places.items():
        step = 1 if FAULTS == "every" else -(-len(numbers) // int(FAULTS))
        for number in sorted(numbers)[:: max(1, step)]:
            chosen.append(Fault(call, number))
            if call in ("write", "pwrite64", "fsync", "fdatasync"):
                chosen.append(Fault(call, number, for_good=True))
    return chosen


def run(name: str, folder: Path, fault: Fault | None) -> tuple[Journal, str]:
    """Let a scenario act under a fault; return what it told, and which calls it made."""
    folder.mkdir()
    ready = FORKS.Event()
    process = FORKS.Process(target=act, args=(name, folder, ready))
    process.start()
    assert ready.wait(SECONDS), "the process does not get ready"
    log = folder / "strace"
    tracer = subprocess.Popen(
        ["strace", "-fyqq", "-o", str(log), *options(fault), "-p", str(process.pid)],
        stderr=subprocess.PIPE,
    )
    try:
        wait_for_tracer(int(process.pid or 0), tracer)
        os.kill(int(process.pid or 0), signal.SIGUSR1)
        process.join(SECONDS)
        hangs = process.exitcode is None
        process.kill()
        tracer.wait(SECONDS)
    finally:
        tracer.kill()
        tracer.communicate()
        process.kill()
        process.join()
    told = (folder / "told").read_text() if (folder / "told").exists() else ""
    journal = dict(line.split("\t", 1) for line in told.splitlines())
    if hangs:
        journal["the end"] = f"raw: it took more than {SECONDS} s"
    elif journal.pop("the end", "") != "reached":
        journal["the end"] = f"raw: it ended with {process.exitcode}"
    return journal, log.read_text(errors="replace")


def wait_for_tracer(process: int, tracer: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS
    status = Path(f"/proc/{process}/status")
    while f"TracerPid:\t{tracer.pid}\n" not in status.read_text():
        if tracer.poll() is not None or time.monotonic() > deadline:
            assert tracer.stderr is not None
            raise AssertionError(f"strace cannot attach: {tracer.stderr.read().decode()}")
        time.sleep(0.001)


def act(name: str, folder: Path, ready: Any) -> None:
    """Do everything once, so that all is imported; make things ready; wait; and act.

    What is told goes through a call that is never made to fail.
    """
    scenario = SCENARIOS[name]()
    for part in ("warm", "real"):
        (folder / part).mkdir()
        scenario.prepare(folder / part)
    scenario.act(folder / "warm", lambda what, came: None)
    file = os.open(folder / "told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(what: str, came: str) -> None:
        line = came.replace("\n", " ").replace("\t", " ")
        os.writev(file, [f"{what}\t{line}\n".encode("utf-8", "replace")])

    # Any process may trace this one: strace is not its parent.
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    ready.set()
    signal.sigwait([signal.SIGUSR1])
    scenario.act(folder / "real", tell)
    tell("the end", "reached")
    os._exit(0)  # what happens at the end of a process is not what is looked at


def judged(name: str, folder: Path, journal: Journal) -> str:
    """Compare what is there with what was told."""
    raw = {what: came for what, came in journal.items() if came.startswith("raw")}
    if raw:
        return f"{raw}"
    try:
        SCENARIOS[name]().check(folder, journal)
    except Exception as error:
        return f"{type(error).__name__}: {error}; it was told {journal}"
    return RIGHT if all(came == "done" for came in journal.values()) else REFUSED
