"""Arrays in large pages: what is looked up at random places waits for page tables otherwise."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["empty_in_large_pages"]

_PAGE = 1 << 21


def empty_in_large_pages(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array like `numpy.empty`, in pages of 2 MB where the system has such.

    NumPy asks for them too, but memory that was in use before stays as it was.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size < _PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(shape, dtype)
    try:
        memory = mmap.mmap(-1, size + _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a system without them, or without memory: NumPy says so
        return np.empty(shape, dtype)
    whole = np.frombuffer(memory, np.uint8)
    begin = -whole.ctypes.data % _PAGE
    return whole[begin : begin + size].view(dtype).reshape(shape)
