"""What corpora that are files have in common."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookalike.corpora.base import Corpus
from lookalike.corpora.encodings import Encodings
from lookalike.errors import FileError


def check_plain(path: Path) -> None:
    """Refuse pipes and devices: a corpus is read more than once."""
    if not os.path.isfile(path):  # noqa: PTH113  # raises nothing
        raise FileError(
            f"{path}: is no plain file; expected one, because it is read more than once. Write "
            "what comes through a pipe to a file first"
        )


class FileCorpus(Corpus):
    """Files of one format, one after the other."""

    def __init__(
        self, paths: Sequence[Path], format: str, encodings: Encodings | None = None
    ) -> None:
        self.paths = self.files = list(paths)
        self.format = format
        self.encodings = encodings or Encodings()
        if self.encodings.given is not None:
            self.described = ["encoding", self.encodings.given]
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        self.name = f"{paths[0]}{more}"
        try:
            self.sizes = [path.stat().st_size for path in self.paths]
        except OSError as error:
            raise FileError(f"{error.filename}: cannot be read: {error.strerror}") from error
        for path in self.paths:
            check_plain(path)
        self.total_bytes = max(1, sum(self.sizes))

    def identity(self) -> list[Any]:
        """Return names, sizes and times of change; of copies, what is in them."""
        try:
            return [
                (self.spool and self.spool.identity(path))
                or [str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns]
                for path in self.paths
            ]
        except OSError as error:
            raise FileError(f"{error.filename}: cannot be read: {error.strerror}") from error
