"""Ten million short documents within 8 GB: time, memory, and what a document costs of both.

`lookalike dedup` runs as a process of its own. Its memory is read from /proc while it runs:
`VmHWM` is the peak of all that was resident, mapped files included, which are signatures for the
most part; `RssAnon` is what is no file, and cannot be given back. What a document takes beside
signatures is the slope of the latter from one million to ten.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.dedup.files import short_documents
from benchmarks.harness import Result, Verdict
from benchmarks.quality import at_least, at_most
from benchmarks.report import table

__all__ = ["LargeResult", "Run", "command", "large", "large_table", "watched"]

SMALL, MIDDLE, LARGE = 100_000, 1_000_000, 10_000_000
LIMIT = "8GB"


@dataclass(frozen=True)
class Run:
    """One run of the command."""

    documents: int
    seconds: float
    peak_bytes: int
    private_bytes: int
    """The most that was not a mapped file."""
    summary: dict[str, Any]


@dataclass(frozen=True)
class LargeResult(Result):
    """The runs, from the smallest to the largest."""

    runs: Sequence[Run]


def command(source: Path, target: Path, *more: str) -> list[str]:
    """Return the command that de-duplicates a file into another, and prints JSON."""
    program = [sys.executable, "-m", "lookalike.cli", "dedup"]
    return [*program, str(source), "-o", str(target), "--threads", "2", "--json", *more]


def watched(arguments: Sequence[str], documents: int) -> Run:
    """Run a command and watch its memory, fifty times a second."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(arguments, stdout=printed)
        peak = private = 0
        while process.poll() is None:
            now = _status(process.pid)
            peak = max(peak, now.get("VmHWM", 0))
            private = max(private, now.get("RssAnon", 0))
            time.sleep(0.02)
        seconds = time.perf_counter() - start
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, arguments)
        printed.seek(0)
        summary = json.load(printed)
    return Run(documents, seconds, peak, private, summary)


def large(name: str, cache: Path, *, part: int) -> LargeResult:
    """De-duplicate 100,000, a million and ten million documents, or a `part`-th of them."""
    counts = [count // part for count in (SMALL, MIDDLE, LARGE)]
    files = [short_documents(cache, count) for count in counts]
    runs = []
    for count, source in zip(counts, files, strict=True):
        # The smallest takes a second or two; the best of three is what it can do.
        repeats = 3 if count == counts[0] else 1
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            target = Path(folder) / "unique.parquet"
            tries = [
                watched(command(source, target, "--memory-limit", LIMIT), count)
                for _ in range(repeats)
            ]
        runs.append(min(tries, key=lambda run: run.seconds))
    title = f"{counts[-1]:,} short documents, Parquet, --memory-limit {LIMIT}, two threads"
    return LargeResult(name, title, [], _verdicts(runs), runs)


def large_table(result: LargeResult) -> str:
    """Return a line for each run."""
    steps = list(dict.fromkeys(step for run in result.runs for step in run.summary["seconds"]))
    rows = [
        (
            f"  {run.documents:,}",
            f"{run.seconds:,.1f}",
            f"{run.documents / run.seconds:,.0f}",
            f"{run.peak_bytes / 1e6:,.0f}",
            f"{run.private_bytes / 1e6:,.0f}",
            f"{run.summary['counts']['kept']:,}",
            *(f"{run.summary['seconds'].get(step, 0.0):,.2f}" for step in steps),
        )
        for run in result.runs
    ]
    heading = ("  documents", "s", "documents/s", "peak MB", "private MB", "kept", *steps)
    lines = [f"{result.name}: {result.title}", table(heading, rows)]
    warnings = [f"  {each}" for run in result.runs for each in run.summary["warnings"]]
    return "\n".join(lines + warnings)


def _verdicts(runs: Sequence[Run]) -> list[Verdict]:
    small, middle, most = runs
    speed = (most.documents / most.seconds) / (small.documents / small.seconds)
    slope = (most.private_bytes - middle.private_bytes) / (most.documents - middle.documents)
    name = f"{most.documents:,} short documents"
    return [
        at_most(f"36a. {name}: peak of memory", most.peak_bytes / 1e9, 8.0, " GB", 2),
        at_least(f"36b. {name}: documents/s, against {small.documents:,}", speed, 0.7, " x", 2),
        at_most(f"36c. {name}: bytes of memory a document, beside signatures", slope, 200.0, "", 0),
    ]


def _status(pid: int) -> dict[str, int]:
    """Return the sizes that the system keeps of a process, in bytes; nothing once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    split = (line.split() for line in lines)
    return {words[0][:-1]: 1024 * int(words[1]) for words in split if words[-1] == "kB"}
