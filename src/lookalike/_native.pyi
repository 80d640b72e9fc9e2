"""The C++ core (native/bindings). Its arguments are validated by the modules that call it."""

import numpy as np
from numpy.typing import NDArray

__version__: str

class TooManyResults(Exception): ...

def kernels() -> list[tuple[str, bool, bool]]: ...
def select_kernel(name: str) -> bool: ...
def paired_distances(
    left: NDArray[np.uint8], right: NDArray[np.uint8], out: NDArray[np.int32]
) -> None: ...
def read_all(data: NDArray[np.uint8], threads: int) -> int: ...
def xxh64(data: NDArray[np.uint8], seed: int = 0) -> int: ...
def scan_top(
    rows: NDArray[np.uint8],
    ids: NDArray[np.int64] | None,
    ascending: bool,
    queries: NDArray[np.uint8],
    k: int,
    threads: int,
    out_ids: NDArray[np.int64],
    out_distances: NDArray[np.int32],
) -> None: ...
def scan_within(
    rows: NDArray[np.uint8],
    ids: NDArray[np.int64] | None,
    ascending: bool,
    queries: NDArray[np.uint8],
    radius: int,
    limit: int,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...
def scan_pairs(
    rows: NDArray[np.uint8],
    ids: NDArray[np.int64] | None,
    ascending: bool,
    radius: int,
    limit: int,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...
def scan_all(
    left: NDArray[np.uint8], right: NDArray[np.uint8], threads: int, out: NDArray[np.int32]
) -> None: ...
