"""Whether memory stays flat while an iterable of any length is signed.

Each size runs in a fresh interpreter, because a peak never falls. What is measured is the peak of
resident memory over what was resident before, less the array that is returned: with four times the
documents it must stay the same. The peak comes from /proc, since `ru_maxrss` of a new process
begins with the peak of the process that started it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lookalike as la
from benchmarks.harness import Verdict

__all__ = ["NAME", "judge_memory"]

NAME = "sign-memory"
COUNT = 50_000
TIMES = 4
TARGET_MB = 8.0
"""What N and 4N documents may differ by: allocators round up, and pages are touched or not."""

SIGNERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "SimHash": ("9a", la.SimHash),
    "MinHash": ("9b", la.MinHash),
    "TopSig": ("9c", la.TopSig),
}


def judge_memory() -> list[Verdict]:
    """Sign a generator of N and of 4N documents with each signer, in fresh interpreters."""
    return [_judge(name, number) for name, (number, _) in SIGNERS.items()]


def _judge(name: str, number: str) -> Verdict:
    short, long = (_measure(name, count) / 1e6 for count in (COUNT, TIMES * COUNT))
    more = max(0.0, long - short)
    return Verdict(
        f"{number}. {name} of a generator: memory beyond the result, {TIMES}N over N documents",
        f"<= {TARGET_MB:g} MB more",
        f"{more:.1f} MB more ({short:.1f}, {long:.1f})",
        more <= TARGET_MB,
    )


def _measure(name: str, count: int) -> int:
    command = [sys.executable, "-m", __name__, name, str(count)]
    folder = Path(__file__).parents[2]
    return int(subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True).stdout)


def documents(count: int) -> Iterator[str]:
    """Yield different texts of some 830 bytes that are cheap to make, and then forgotten."""
    text = " ".join(f"word{number * number % 9973}" for number in range(4000))
    for number in range(count):
        start = number * 31 % (len(text) - 830)
        yield f"{number} {text[start : start + 820]}"


def growth(name: str, count: int) -> int:
    """Sign in this process and return the bytes that memory grew by, less those returned."""
    signer = SIGNERS[name][1]()
    before = _resident("VmRSS")
    signatures = signer.sign(documents(count), threads=1)
    return _resident("VmHWM") - before - int(signatures.nbytes)


def _resident(field: str) -> int:
    """Return a number of bytes from /proc; where there is none, the peak that the system tells."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes on macOS
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    print(growth(sys.argv[1], int(sys.argv[2])))
