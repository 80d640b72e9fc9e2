"""Opening what somebody else may have put there: a file, or nothing."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

__all__ = ["open_plain"]


def open_plain(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a plain file for reading its bytes; `OSError` for whatever else has that name.

    A pipe that nobody writes to, or a device, would keep the reader waiting for ever.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", os.fspath(path))
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
