"""Signature files that the operating system lets down: appended to, made, compacted."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lookalike as la
from crash.scenarios import Journal, Scenario, Tell, attempt, denies, in_its_place, no_leftovers
from lookalike import SignatureFile
from support.oracles import scan as oracle

__all__ = ["RUN_SCENARIOS"]

_ROWS = oracle.collection(60, 8, "clustered", 1)


class AppendRuns(Scenario):
    """Three runs behind the first of a signature file."""

    name = "signature file"

    def prepare(self, folder: Path) -> None:
        la.match_batch(folder / "runs", _ROWS[:10], 3, threads=1)

    def act(self, folder: Path, tell: Tell) -> None:
        for name, begin in (("one", 10), ("two", 20), ("three", 30)):
            attempt(tell, name, partial(self._append, folder, begin))

    def _append(self, folder: Path, begin: int) -> None:
        rows = _ROWS[begin : begin + 10]
        ids = np.arange(begin, begin + 10)
        la.match_batch(folder / "runs", rows, 3, ids=ids, threads=1)

    def check(self, folder: Path, journal: Journal) -> None:
        file = SignatureFile(folder / "runs")
        file.verify()
        found = [sorted(ids.tolist()) for _, ids in file.each_run()]
        possible = [[list(range(10))]]
        for name, begin in (("one", 10), ("two", 20), ("three", 30)):
            after = [[*runs, list(range(begin, begin + 10))] for runs in possible]
            came = journal.get(name, "failed: nothing was written")
            possible = after if came == "done" else possible if denies(came) else possible + after
        assert found in possible, f"after {journal} there are {found}"
        for rows, ids in file.each_run():
            assert (_ROWS[ids] == rows).all()
        self._append(folder, 40)
        assert SignatureFile(folder / "runs").runs == [*file.runs, 10]


class NewRuns(Scenario):
    """A signature file that is made by the first batch."""

    name = "new signature file"

    def prepare(self, folder: Path) -> None:
        pass

    def act(self, folder: Path, tell: Tell) -> None:
        attempt(tell, "write", lambda: la.match_batch(folder / "runs", _ROWS[:10], 3, threads=1))

    def check(self, folder: Path, journal: Journal) -> None:
        if journal["write"] == "done":
            assert SignatureFile(folder / "runs").runs == [10]
        before = len(SignatureFile(folder / "runs")) if (folder / "runs").exists() else 0
        assert before in (0, 10)
        la.match_batch(folder / "runs", _ROWS[10:20], 3, threads=1)
        assert len(SignatureFile(folder / "runs")) == before + 10


class CompactRuns(Scenario):
    """Three runs that become one, then another one behind it."""

    name = "compacted signature file"

    def prepare(self, folder: Path) -> None:
        for begin in (0, 10, 20):
            la.match_batch(folder / "runs", _ROWS[begin : begin + 10], 3, threads=1)

    def act(self, folder: Path, tell: Tell) -> None:
        attempt(tell, "compact", lambda: SignatureFile(folder / "runs").compact(threads=1))
        attempt(tell, "append", partial(self._append, folder))

    def _append(self, folder: Path) -> None:
        la.match_batch(folder / "runs", _ROWS[30:40], 3, threads=1)

    def check(self, folder: Path, journal: Journal) -> None:
        no_leftovers(folder)
        file = SignatureFile(folder / "runs")
        file.verify()
        compact, append = (journal.get(name, "failed: nothing") for name in ("compact", "append"))
        said = compact == "done" or "has been compacted" in compact or in_its_place(compact)
        possible = [[30]] if said else [[10, 10, 10]]
        after = [[*runs, 10] for runs in possible]
        possible = after if append == "done" else possible if denies(append) else possible + after
        assert file.runs in possible, f"after {journal} there are {file.runs}"
        for rows, ids in file.each_run():
            assert (_ROWS[ids] == rows).all()
        held = sorted(id for _, ids in file.each_run() for id in ids.tolist())
        assert held == list(range(len(file)))
        file.compact(threads=1)
        assert SignatureFile(folder / "runs").runs == [len(held)]


RUN_SCENARIOS: dict[str, Any] = {
    scenario.name: scenario for scenario in (AppendRuns, NewRuns, CompactRuns)
}
