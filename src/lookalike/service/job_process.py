"""The process of a job: `python -m lookalike.service.job_process FOLDER`; see `jobs`."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookalike.collection import Collection
from lookalike.collection.care.duplicates import delete_unchanged, find_pairs, pages_with_versions
from lookalike.collection.documents import Seen
from lookalike.collection.stores.address import parse_address
from lookalike.dedup import dedup
from lookalike.dedup.pair_groups import group_pairs
from lookalike.errors import ArgumentError, LookalikeError
from lookalike.service.jobs import drop_upload, lines_of, now, read_state, write_state
from lookalike.service.library import open_for_clients
from lookalike.service.problems import problem_for_clients
from lookalike.service.telemetry import Log
from lookalike.shown import escape_terminal

_LOOK = 0.05
_TELL = 0.2
_DELETED_AT_ONCE = 5_000
Summary = dict[str, Any]
_NAME_ENCODING = re.compile(r"set (it|the encoding) with --encoding \(in Python encoding=\)")


class Job:
    """A job that reports its progress."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.order: dict[str, Any] = json.loads((folder / "order.json").read_text())
        self._state = read_state(folder) or {}
        self._lock = threading.Lock()
        self._told = 0.0
        self._parent = os.getppid()
        self._look()
        threading.Thread(target=self._watch, daemon=True).start()

    def tell(self, step: str, share: float) -> None:
        """Report progress, at most five times a second."""
        if time.monotonic() - self._told < _TELL and step == self._state.get("step"):
            return
        self._told = time.monotonic()
        self._write(step=step, progress=round(min(1.0, max(0.0, share)), 4))

    def end(self, state: str, **values: Any) -> None:
        """Report the end of the job."""
        self._write(state=state, ended=now(), **values)

    def _write(self, **values: Any) -> None:
        with self._lock:
            self._state.update(values)
            write_state(self.folder, self._state)

    def _watch(self) -> None:
        """End this process when the job is canceled or the service has died."""
        while True:
            time.sleep(_LOOK)
            self._look()

    def _look(self) -> None:
        gone = os.getppid() != self._parent
        if gone or (self.folder / "cancel").exists():
            self._lock.acquire()  # never released: no other thread writes a state now
            self._state.update(state="canceled", ended=now())
            try:
                drop_upload(self.folder)
                write_state(self.folder, self._state)
            finally:
                os._exit(1)


class _Duplicates(NamedTuple):
    """Positions of near-duplicates and of their kept documents."""

    ids: Sequence[str]
    dropped: NDArray[np.int64]
    kept: NDArray[np.int64]
    measure: str
    """Name of `values`: "distance" or "similarity"."""
    values: NDArray[Any]
    seen: Callable[[int], Seen]
    """Returns the version of a document that was compared."""
    compared: Summary
    """What texts were compared by, and why; empty for signatures."""


def pairs(job: Job, docs: Collection) -> Summary:
    """Find all pairs within a radius."""
    job.tell("comparing", 0.0)
    found = find_pairs(docs, job.order["radius"], job.order["limit"])
    job.tell("writing", 0.5)
    count = lines_of((vars(pair) for pair in found), job.folder / "result.jsonl")
    return {"pairs": count}


def deduplicate(job: Job, docs: Collection) -> Summary:
    """Find near-duplicates and the documents to keep; delete the near-duplicates on request.

    Documents that changed since they were compared are not deleted, but counted.
    """
    find = _by_texts if job.order["threshold"] is not None else _by_signatures
    ids, dropped, kept, measure, values, seen, compared = find(job, docs)
    found = list(zip(dropped.tolist(), kept.tolist(), strict=True))
    rows = (
        {"id": ids[one], "duplicate_of": ids[other], measure: value}
        for (one, other), value in zip(found, values.tolist(), strict=True)
    )
    count = lines_of(rows, job.folder / "result.jsonl")
    deleted = changed = 0
    if job.order["delete"]:
        for begin in range(0, count, _DELETED_AT_ONCE):
            job.tell("deleting", begin / count)
            some = found[begin : begin + _DELETED_AT_ONCE]
            deleted += delete_unchanged(docs, [(seen(one), seen(other)) for one, other in some])
        changed = count - deleted
    groups = len(np.unique(kept))
    counts = {"duplicates": count, "groups": groups, "deleted": deleted, "changed": changed}
    return {**counts, **compared}


def _by_signatures(job: Job, docs: Collection) -> _Duplicates:
    job.tell("comparing", 0.0)
    table = find_pairs(docs, job.order["radius"], job.order["limit"])
    job.tell("grouping", 0.5)
    order = np.arange(len(table.ids))
    if job.order["keep"] != "first":
        order = np.argsort(table.added, kind="stable")
    if job.order["keep"] == "newest":
        order = order[::-1]
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    both = np.stack([rank[table.left], rank[table.right]], axis=1)
    duplicate_of = group_pairs(both).duplicate_of  # every document is in a pair
    goes = np.flatnonzero(duplicate_of >= 0)
    dropped, kept = order[goes], order[duplicate_of[goes]]
    distances = table.distances_between(dropped, kept)
    return _Duplicates(table.ids, dropped, kept, "distance", distances, table.seen, {})


def _by_texts(job: Job, docs: Collection) -> _Duplicates:
    texts: dict[str, str] = {}
    versions: dict[str, Seen] = {}
    total = max(1, docs.count())
    for page in pages_with_versions(docs):
        job.tell("reading", len(texts) / total)
        for one, version in page:
            if one.text is None:
                raise ArgumentError(
                    f"the document {one.id[:80]!r} has no text; use a radius instead of a "
                    "threshold to compare signatures"
                )
            texts[one.id], versions[one.id] = one.text, version
    names = sorted(versions)
    if job.order["keep"] != "first":
        newest = job.order["keep"] == "newest"
        names.sort(key=lambda id: (versions[id].added, id), reverse=newest)
    dropped = kept = np.empty(0, np.int64)
    similarities, compared = np.empty(0), dict[str, Any]()
    if names:
        import pyarrow

        table = pyarrow.table({"id": names, "text": [texts[name] for name in names]})
        result: Any = dedup(table, text="text", id="id", threshold=job.order["threshold"],
                            features=job.order.get("features"), progress=job.tell)  # fmt: skip
        compared = {
            "features": result.settings.features, "features_reason": result.features_reason
        }  # fmt: skip
        dropped = np.flatnonzero(result.duplicate_of >= 0)
        kept, similarities = result.duplicate_of[dropped], result.similarity[dropped]
    return _Duplicates(
        names, dropped, kept, "similarity", similarities, lambda at: versions[names[at]], compared
    )


def bring_in(job: Job, docs: Collection) -> Summary:
    """Import a file."""
    done = docs.import_file(
        job.order["path"], format=job.order["format"], replace=True, skip_bad=True,
        max_document=job.order["max_text"], batch=5_000, progress=job.tell,
    )  # fmt: skip
    return {
        "added": done.added,
        "updated": done.updated,
        "bad": done.bad,
        "left_out": sum(done.left_out.values()),
        "examples": [_without_path(job, example) for example in done.examples],
        "warnings": [_without_path(job, notice) for notice in done.notices],
    }


def _without_path(job: Job, message: str) -> str:
    """Return a message without the path of the uploaded file and command-line options."""
    path = job.order.get("path")
    if path is None:
        return message
    for shown in (escape_terminal(path), Path(path).name):
        message = message.replace(shown, "the file")
    return _NAME_ENCODING.sub("upload it in UTF-8", message)


_KINDS: dict[str, Callable[[Job, Collection], Summary]] = {
    "pairs": pairs,
    "dedup": deduplicate,
    "import": bring_in,
}


def main(folder: str) -> int:
    """Run the job of a folder."""
    job = Job(Path(folder))
    try:
        with open_for_clients(job.order["url"], job.order["name"]) as docs:
            summary = _KINDS[job.order["kind"]](job, docs)
    except LookalikeError as error:
        problem = problem_for_clients(error, parse_address(job.order["url"]).shown)
        job.end("failed", error=_without_path(job, str(problem)), error_kind=problem.kind)
        return 1
    except BaseException as error:
        name = type(error).__name__
        job.end("failed", error=f"unexpected error ({name}); see the log of the service")
        log = Log("error")
        log.failed("job failed", error, job=job.folder.name)
        log.close()
        return 1
    finally:
        drop_upload(job.folder)
    job.end("done", step="done", progress=1.0, summary=summary)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
