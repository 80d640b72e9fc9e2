from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native


def run_with(kernel: str) -> subprocess.CompletedProcess[str]:
    code = "import lookalike as la; print([k.name for k in la.signatures.kernels() if k.active])"
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LOOKALIKE_KERNEL": kernel},
        capture_output=True,
        text=True,
    )


def test_one_is_active_and_scalar_is_always_there() -> None:
    kernels = la.signatures.kernels()
    assert [kernel.active for kernel in kernels].count(True) == 1
    assert all(kernel.supported for kernel in kernels if kernel.active)
    assert kernels[-1].name == "scalar"
    assert kernels[-1].supported


def test_the_environment_chooses() -> None:
    for kernel in la.signatures.kernels():
        if kernel.supported:
            assert run_with(kernel.name).stdout == f"['{kernel.name}']\n"


def test_an_unknown_name_is_a_clear_error() -> None:
    result = run_with("mmx")
    assert result.returncode != 0
    assert "LOOKALIKE_KERNEL is 'mmx'" in result.stderr
    assert "scalar" in result.stderr


@given(st.binary(max_size=300), st.integers(0, 2**64 - 1))
def test_xxh64_equals_the_reference_library(data: bytes, seed: int) -> None:
    expected = xxhash.xxh64_intdigest(data, seed)
    assert _native.xxh64(np.frombuffer(data, np.uint8), seed) == expected


@given(st.lists(st.binary(max_size=100), max_size=8))
def test_xxh64_of_pieces_equals_that_of_the_whole(pieces: list[bytes]) -> None:
    found = _native.Xxh64()
    for piece in pieces:
        found.add(np.frombuffer(piece, np.uint8))
    assert found.value() == xxhash.xxh64_intdigest(b"".join(pieces))


@pytest.mark.parametrize("size", [0, 63, 64, 65, 128, 200, 3 << 20])
@pytest.mark.parametrize("threads", [1, 3])
def test_reading_reads_every_line(kernel: str, size: int, threads: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    words = data[: size // 64 * 64].view("<u8")
    assert _native.read_all(data, threads) == int(words.sum(dtype=np.uint64))
