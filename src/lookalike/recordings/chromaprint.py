"""Words of Chromaprint, made by its program fpcalc.

A word of 32 bits, every 0.124 s, is made from the energies of the twelve notes of the scale over
2.6 s. The program reads samples from a pipe, never an untrusted file.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import DocumentError, MissingDependencyError

HOP = 1000 * 1365 / 11025
"""Milliseconds from one word to the next: 1365 samples at the rate of Chromaprint."""
SPAN = 2600  # milliseconds of a word
_SILENT = 627964279  # the word of silence


def find_program() -> str:
    """Return the path of fpcalc, or raise `MissingDependencyError`."""
    program = shutil.which("fpcalc")
    if program is None:
        raise MissingDependencyError(
            "kind 'chromaprint' needs the program fpcalc, which is not installed. Install it "
            "(Debian: apt-get install libchromaprint-tools), or use kind 'bands'"
        )
    return program


class ChromaprintWords:
    """The words of a recording whose samples come piece by piece."""

    def __init__(self, rate: int) -> None:
        raw = ["-format", "s16le", "-rate", str(rate), "-channels", "1"]
        self._process = subprocess.Popen(
            [find_program(), "-raw", "-json", "-length", "0", *raw, "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def feed(self, samples: NDArray[np.float32]) -> None:
        """Add the next samples of one channel."""
        whole = np.clip(np.rint(samples * 32767), -32768, 32767).astype("<i2")
        try:
            cast(BinaryIO, self._process.stdin).write(whole.tobytes())
        except BrokenPipeError:
            raise DocumentError("cannot be read by fpcalc") from None

    def finish(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the words and the millisecond at which each begins; silence has none."""
        output = self._process.communicate()[0]
        try:
            values = json.loads(output)["fingerprint"] if output else []
            words = np.array(values, np.uint32)
        except (ValueError, KeyError, TypeError, OverflowError):
            raise DocumentError("cannot be read by fpcalc") from None
        offsets = np.rint(np.arange(len(words)) * HOP).astype(np.int64)
        told = words != _SILENT
        return words[told], offsets[told]

    def close(self) -> None:
        """End the program, if it still runs."""
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                cast(BinaryIO, stream).close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
