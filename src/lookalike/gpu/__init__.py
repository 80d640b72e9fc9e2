"""Every signature, every time, on a graphics card: exact answers by brute force and bandwidth.

Imported only when asked for: CuPy is needed here and nowhere else.
"""

from lookalike.gpu.index import GpuIndex

__all__ = ["GpuIndex"]
