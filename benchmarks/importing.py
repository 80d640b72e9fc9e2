"""How long `import lookalike` takes, because every short script and every worker pays it."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.harness import Verdict

__all__ = ["NAME", "compiled_environment", "judge_import"]

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
    """Import in fresh interpreters, each of which times the statement itself; the best counts."""
    with tempfile.TemporaryDirectory() as compiled:
        environment = compiled_environment(compiled)
        times = [_seconds_to_import(environment) for _ in range(RUNS)]
    best = min(times)
    return Verdict(
        "5.  import lookalike in a fresh interpreter",
        f"< {TARGET_SECONDS:g} s",
        f"{best:.3f} s (median {statistics.median(times):.3f})",
        best < TARGET_SECONDS,
    )


def compiled_environment(folder: str) -> dict[str, str]:
    """Return an environment in which compiled modules are kept in a folder between runs.

    As they are for an installed package, also where ours is not installed but linked, or the
    environment forbids to write them beside the source.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _seconds_to_import(environment: dict[str, str]) -> float:
    command = [sys.executable, "-c", PROGRAM]
    return float(
        subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    )
