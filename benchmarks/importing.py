"""How long `import lookalike` takes, because every short script and every worker pays it."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.harness import Verdict

__all__ = ["NAME", "judge_import"]

NAME = "import"
RUNS = 10
TARGET_SECONDS = 0.15
PROGRAM = """
from time import perf_counter
start = perf_counter()
import lookalike
print(perf_counter() - start)
"""


def judge_import() -> Verdict:
    """Import in fresh interpreters, each of which times the statement itself; the best counts.

    Compiled modules are kept between runs, as they are for an installed package, also where the
    environment forbids to write them beside the source.
    """
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as compiled:
        environment["PYTHONPYCACHEPREFIX"] = compiled
        times = [_seconds_to_import(environment) for _ in range(RUNS)]
    best = min(times)
    return Verdict(
        "5.  import lookalike in a fresh interpreter",
        f"< {TARGET_SECONDS:g} s",
        f"{best:.3f} s (median {statistics.median(times):.3f})",
        best < TARGET_SECONDS,
    )


def _seconds_to_import(environment: dict[str, str]) -> float:
    command = [sys.executable, "-c", PROGRAM]
    return float(
        subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    )
