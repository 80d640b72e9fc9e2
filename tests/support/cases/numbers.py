"""A medium of files with a number each, for which brute force is easy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lookalike.media import Medium, Problem, Read, SimilarPairs, Tell


class Numbers(Medium[list[int]]):
    """Files with a number each, alike if they differ by one at most; those of 13 are broken."""

    name: ClassVar[str] = "numbers"
    noun: ClassVar[str] = "number"
    suffixes: ClassVar[frozenset[str]] = frozenset({".number"})
    facts: ClassVar[dict[str, str]] = {"value": "int64"}

    @classmethod
    def recognizes(cls, head: bytes) -> bool:
        return head[:1].isdigit()

    def settings(self) -> dict[str, Any]:
        return {}

    def criterion(self) -> str:
        return "differ by one at most"

    def read(  # type: ignore[override]  # as before there was a cache
        self, files: Sequence[Path], *, threads: int, tell: Tell, memory: int | None = None
    ) -> Read[list[int]]:
        known = {file: int(file.read_text()) for file in files}
        good = [file for file in files if known[file] != 13]
        values = [known[file] for file in good]
        broken = [Problem(file, "is 13") for file in files if file not in good]
        merit = np.array(values, np.int64) % 10
        return Read(good, merit, {"value": values}, list(map(str, values)), values, broken)

    def pairs(self, read: Read[list[int]], *, threads: int, tell: Tell) -> SimilarPairs:
        found = [
            (one, two)
            for one in range(len(read.files))
            for two in range(one + 1, len(read.files))
            if abs(read.content[one] - read.content[two]) <= 1
        ]
        left, right = np.array(found, np.int64).reshape(-1, 2).T
        far = np.abs(
            np.array(read.content, np.int32)[left] - np.array(read.content, np.int32)[right]
        )
        return SimilarPairs(left, right, 1 - far / 2, far.astype(np.int32))

    def describe_pair(self, similarity: float, distance: int) -> str:
        return f"{distance} apart"

    def preview(self, file: Path, most: int, *, memory: int | None = None) -> str | None:
        return None
