"""What the figures were measured on: without it they mean nothing."""

from __future__ import annotations

import os
import platform
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import lookalike as la
from benchmarks.harness import Contender, Effort, measure
from lookalike import _native
from lookalike.checks import thread_count

__all__ = ["describe_machine"]

PACKAGES = (
    "lookalike",
    "numpy",
    "pyarrow",
    "faiss-cpu",
    "usearch",
    "numkong",
    "simhash",
    "rensa",
    "gaoya",
    "datasketch",
    "PyStemmer",
    "hnswlib",
    "bm25s",
    "pydivsufsort",
    "datatrove",
    "imagehash",
    "pdqhash",
    "trafilatura",
    "scikit-learn",
    "pyspark",
)
BANDWIDTH_BYTES = 256 * 2**20
"""More than caches hold."""


def describe_machine() -> dict[str, Any]:
    """Return processor, kernel, versions, and the speed of reading memory, in plain values."""
    cores = thread_count(None)
    return {
        "measured": date.today().isoformat(),
        "processor": _processor(),
        "cores": cores,
        "kernel": next(kernel.name for kernel in la.signatures.kernels() if kernel.active),
        "system": f"{platform.system()} {platform.release()}",
        "versions": {"python": platform.python_version()}
        | {package: version(package) for package in PACKAGES},
        "load_average": round(os.getloadavg()[0], 2),
        "read_gb_per_second": _read_bandwidth(sorted({1, cores})),
    }


def _processor() -> str:
    """Return the model's name; Linux has it only in a file."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _read_bandwidth(thread_counts: list[int]) -> dict[str, float]:
    """Return how many GB a second are read from memory, by number of threads."""
    data = np.ones(BANDWIDTH_BYTES, np.uint8)
    readers = [
        Contender(str(threads), partial(_native.read_all, data, threads))
        for threads in thread_counts
    ]
    measured = measure(readers, Effort(rounds=30, seconds=2.0))
    return {each.name: round(BANDWIDTH_BYTES / each.best / 1e9, 1) for each in measured}
