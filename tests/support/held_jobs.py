"""The process of a job that finds no pairs before a file is there, which `GO_ON` names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lookalike.collection import Collection
from lookalike.service.work import job_process
from support.waiting import wait_until

_pairs = job_process.pairs


def _held(job: job_process.Job, docs: Collection) -> job_process.Summary:
    wait_until(Path(os.environ["GO_ON"]).exists)
    return _pairs(job, docs)


if __name__ == "__main__":
    job_process._KINDS["pairs"] = _held
    sys.exit(job_process.main(sys.argv[1]))
