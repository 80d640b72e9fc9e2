"""Running something in a forked child."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable


def in_a_fork(work: Callable[[], object]) -> str:
    """Run it in a child, and return what it returned as text; a child that hangs is killed."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that there are threads is the point
        child = os.fork()
    if child == 0:
        signal.alarm(120)
        try:
            told = str(work())
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(write_end, told.encode()[:1000])
        os._exit(0)
    os.close(write_end)
    with open(read_end, encoding="utf-8") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    return told if status == 0 else f"the child ended with {status}"
