"""Decoding a recording must not ask the system for the same memory again and again."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CODE = """
import json, resource, sys
import lookalike as la
from lookalike.recordings import workers

hash = workers._hasher()
path = sys.argv[1].encode()
signer = json.dumps(la.AudioHash().to_dict())
hash(path, signer, False)  # imports, tables and the first arrays
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
hash(path, signer, False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is a setting of glibc")
def test_page_faults_of_a_worker(tmp_path: Path) -> None:
    """Without the setting, a minute of stereo takes about 85,000."""
    soundfile = pytest.importorskip("soundfile")
    noise = np.random.default_rng(1).normal(0, 0.1, (44100 * 60, 2))
    soundfile.write(tmp_path / "noise.wav", noise, 44100)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "noise.wav")],
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(done.stdout) < 8_000
