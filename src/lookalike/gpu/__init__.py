"""Exhaustive search on a CUDA GPU.

Imported on first use, since it needs CuPy.
"""

from lookalike.gpu.index import GpuIndex

__all__ = ["GpuIndex"]
