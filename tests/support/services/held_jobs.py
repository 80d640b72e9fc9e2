"""The process of a job that waits before it finds pairs or deletes, for the file `GO_ON`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lookalike.collection import Collection
from lookalike.collection.care.duplicates import delete_unchanged
from lookalike.collection.documents import Seen
from lookalike.service import job_process
from support.running.waiting import wait_until

_pairs = job_process.pairs


def _held(job: job_process.Job, docs: Collection) -> job_process.Summary:
    wait_until(Path(os.environ["GO_ON"]).exists)
    return _pairs(job, docs)


def _held_deletion(docs: Collection, duplicates: Sequence[tuple[Seen, Seen]]) -> int:
    wait_until(Path(os.environ["GO_ON"]).exists)
    return delete_unchanged(docs, duplicates)


if __name__ == "__main__":
    job_process._KINDS["pairs"] = _held
    job_process.delete_unchanged = _held_deletion  # type: ignore[attr-defined]
    sys.exit(job_process.main(sys.argv[1]))
