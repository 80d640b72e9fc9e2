"""Indexes of faiss that take minutes to build, kept beside the collections they were built from."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.slices.peers import Built

__all__ = ["kept"]


def kept(
    cache: Path, name: str, signatures: NDArray[np.uint8], build: Callable[[], Built]
) -> Built:
    """Return what `build` built once, with the time that it took then."""
    made_from = zlib.crc32(faiss.__version__.encode(), zlib.crc32(signatures.data))
    file = cache / f"{name}-{len(signatures)}-{made_from:08x}.faiss"
    notes = file.with_suffix(".json")
    if not notes.is_file():
        built = build()
        unfinished = file.with_suffix(f".{os.getpid()}")
        faiss.write_index_binary(built.index, str(unfinished))
        unfinished.replace(file)
        told = {"seconds": built.seconds, "bytes_per_signature": built.bytes_per_signature}
        notes.write_text(json.dumps(told), encoding="utf-8")
        return built
    told = json.loads(notes.read_text(encoding="utf-8"))
    index = faiss.read_index_binary(str(file))
    return Built(index, told["seconds"], told["bytes_per_signature"])
