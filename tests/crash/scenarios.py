"""Work that the operating system lets down, and what must be true afterwards.

A scenario prepares a folder, then acts in it while system calls fail, and tells before and after
each thing it does how that went. What it finds when all is well again must be what it was told.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import lookalike as la
from lookalike.cli import main
from support.oracles import scan as oracle

__all__ = [
    "SCENARIOS",
    "Journal",
    "Scenario",
    "Tell",
    "attempt",
    "denies",
    "in_its_place",
    "no_leftovers",
]

_ROWS = oracle.collection(60, 8, "clustered", 1)
_OTHERS = oracle.collection(60, 8, "uniform", 2)
_TEXTS = [f"the text number {place} of some words, number {place % 7}" for place in range(60)]

Journal = dict[str, str]
"""What was done, and "done" or the message of the error that it ended with."""
Tell = Callable[[str, str], None]


class Scenario(ABC):
    """Something to be done while system calls fail."""

    name: ClassVar[str]

    @abstractmethod
    def prepare(self, folder: Path) -> None:
        """Make what is there before."""

    @abstractmethod
    def act(self, folder: Path, tell: Tell) -> None:
        """Do it, telling each result."""

    @abstractmethod
    def check(self, folder: Path, journal: Journal) -> None:
        """Assert that what is there is what was told, and that it can be done again, in peace."""


def attempt(tell: Tell, name: str, action: Callable[[], object]) -> None:
    """Do something and tell how it went; an error that is not ours is told as such."""
    try:
        action()
    except la.LookalikeError as error:
        tell(name, f"failed: {error}")
    except BaseException as error:
        tell(name, f"raw {type(error).__name__}: {error}")
    else:
        tell(name, "done")


def no_leftovers(folder: Path) -> None:
    """Temporary files are gone, whatever happened."""
    left = [path.name for path in folder.rglob("*.tmp")]
    assert not left, f"left behind: {left}"


class AddToCollection(Scenario):
    """Four writes to an SQLite file: what failed may be there only if that was said."""

    name = "collection"
    WRITES: ClassVar[dict[str, list[int]]] = {
        "add": list(range(10, 40)),
        "upsert": list(range(5, 15)),
        "delete": list(range(0, 30, 3)),
        "add again": [0, 3, 6],
    }

    def prepare(self, folder: Path) -> None:
        with la.open_collection(folder / "docs.db", bits=64, cache=folder / "cache") as docs:
            self._write(docs, "first", list(range(10)))

    def act(self, folder: Path, tell: Tell) -> None:
        try:
            docs = la.open_collection(folder / "docs.db", cache=folder / "cache", timeout=1)
        except la.LookalikeError as error:
            tell("open", f"failed: {error}")
            return
        except OSError as error:
            tell("open", f"raw {type(error).__name__}: {error}")
            return
        for name, places in self.WRITES.items():
            attempt(tell, name, partial(self._write, docs, name, places))
            attempt(tell, f"search after {name}", lambda: docs.search(_ROWS[0], 3))
        docs._native._changes = 10**9  # so that so small an index is written
        attempt(tell, "close", docs.close)

    def _write(self, docs: la.Collection, name: str, places: list[int]) -> None:
        ids = [f"d{place}" for place in places]
        if name == "delete":
            docs.delete(ids)
            return
        write = docs.upsert if name == "upsert" else docs.add
        texts = [f"{name} {_TEXTS[place]}" for place in places]
        write(ids, texts, signatures=_ROWS[places], metadata=[{"n": place} for place in places])

    def check(self, folder: Path, journal: Journal) -> None:
        first = {f"d{place}": "first" for place in range(10)}
        possible = [first]
        for name, places in self.WRITES.items():
            came = journal.get(name, "failed: nothing was written, because it was not tried")
            after = [self._after(state, name, places) for state in possible]
            if came == "done":
                possible = after
            elif not denies(came):
                possible = possible + after
                assert "written" in came, f"{name} does not say whether it was written: {came}"
        with la.open_collection(folder / "docs.db", cache=folder / "cache") as docs:
            found = {document.id: str(document.text).split(" the ")[0] for document in docs}
            assert found in possible, f"after {journal} there is {found}"
            report = docs.verify()
            assert report.ok and report.cache is None, report
            for plan in ("native", "sql"):
                near = docs.within(_ROWS[0], 64, plan=plan)
                assert sorted(near.ids) == sorted(found)
            docs.upsert(["d0"], ["once more"], signatures=_ROWS[:1])

    def _after(self, state: dict[str, str], name: str, places: list[int]) -> dict[str, str]:
        ids = [f"d{place}" for place in places]
        if name == "delete":
            return {id: text for id, text in state.items() if id not in ids}
        if name != "upsert" and set(ids) & set(state):
            return state  # `add` refuses what is there
        return {**state, **dict.fromkeys(ids, name)}


def denies(message: str) -> bool:
    """Return whether a message says that nothing was written."""
    return bool(re.search(r"\bnothing\b.*\bwritten\b", message)) and "may have been" not in message


def in_its_place(message: str, name: str = "") -> bool:
    """Return whether a message says that a file is there, but perhaps not for good."""
    return f"{name} is written, but a power failure may undo that" in message


class WholeFile(Scenario):
    """A file that is replaced: the old one or the new one, and after an error the old one."""

    target: ClassVar[str] = "file.lookalike"

    def act(self, folder: Path, tell: Tell) -> None:
        attempt(tell, "write", lambda: self.write(folder))

    @abstractmethod
    def write(self, folder: Path) -> None:
        """Write the new file."""

    @abstractmethod
    def read(self, path: Path) -> object:
        """Return all of a file, or None if there is none."""

    def check(self, folder: Path, journal: Journal) -> None:
        path = folder / self.target
        found = self.read(path)
        no_leftovers(folder)
        expected = self.expected(folder)
        if journal["write"] == "done":
            assert found == expected[1], f"said to be written, but there is {found!r:.200}"
        elif in_its_place(journal["write"]):
            assert found == expected[1], f"{journal}, but there is {found!r:.200}"
        elif "written" in journal["write"]:
            assert found == expected[0], f"{journal}, but there is {found!r:.200}"
        else:  # it was something else that failed, before or after
            assert found in expected, f"neither the old nor the new: {found!r:.200}"
        self.again(folder)
        assert self.read(path) == expected[1]

    def again(self, folder: Path) -> None:
        """Write the new file when all is well."""
        self.write(folder)

    @abstractmethod
    def expected(self, folder: Path) -> tuple[object, object]:
        """Return what `read` gives before and after."""


class SaveIndex(WholeFile):
    """`save` of an index over another one."""

    name = "index"

    def prepare(self, folder: Path) -> None:
        la.SliceIndex(_OTHERS, 8).save(folder / self.target)

    def write(self, folder: Path) -> None:
        la.SliceIndex(_ROWS, 8).save(folder / self.target)

    def read(self, path: Path) -> object:
        index = la.load_index(path, verify=True)
        return index.living()[0].tobytes()

    def expected(self, folder: Path) -> tuple[object, object]:
        return _OTHERS.tobytes(), _ROWS.tobytes()


class BuildIndex(SaveIndex):
    """`SliceIndex.build`, which writes in pieces."""

    name = "built index"

    def write(self, folder: Path) -> None:
        la.SliceIndex.build(folder / self.target, _ROWS, 4, memory=200)


class SaveSignatures(SaveIndex):
    """`save_signatures` over an index."""

    name = "signatures"

    def write(self, folder: Path) -> None:
        names = [f"n{place}" for place in range(60)]
        la.save_signatures(folder / self.target, _ROWS, la.SimHash(bits=64), names)

    def read(self, path: Path) -> object:
        with contextlib.suppress(la.errors.FormatError):
            return la.load_signatures(path).signatures.tobytes()
        return super().read(path)


class Snapshot(WholeFile):
    """A snapshot of a collection."""

    name = "snapshot"

    def prepare(self, folder: Path) -> None:
        with la.open_collection(folder / "docs.db", bits=64, cache=False) as docs:
            docs.add([f"d{place}" for place in range(60)], _TEXTS, signatures=_ROWS)

    def write(self, folder: Path) -> None:
        with la.open_collection(folder / "docs.db", cache=False) as docs:
            docs.snapshot(folder / self.target)

    def again(self, folder: Path) -> None:
        (folder / self.target).unlink(missing_ok=True)  # a snapshot never replaces one
        self.write(folder)

    def read(self, path: Path) -> object:
        if not path.exists():
            return None
        with la.open_collection(path, cache=False) as docs:
            assert docs.verify().ok
            return [document.text for document in docs]

    def expected(self, folder: Path) -> tuple[object, object]:
        return None, [_TEXTS[int(id[1:])] for id in sorted(f"d{place}" for place in range(60))]


class Export(Snapshot):
    """An export to JSON Lines."""

    name = "export"
    target = "out.jsonl"

    def write(self, folder: Path) -> None:
        with la.open_collection(folder / "docs.db", cache=False) as docs:
            docs.export(folder / self.target)

    def read(self, path: Path) -> object:
        if not path.exists():
            return None
        return [json.loads(line)["text"] for line in path.read_text().splitlines()]


class Dedup(Scenario):
    """The command, over an output of yesterday, in a work folder."""

    name = "dedup"

    def prepare(self, folder: Path) -> None:
        lines = [json.dumps({"text": f"{text} and so on", "n": n}) for n, text in enumerate(_TEXTS)]
        lines += lines[:20]
        (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
        (folder / "out.jsonl").write_text("yesterday\n")

    def act(self, folder: Path, tell: Tell) -> None:
        said = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            try:
                code = main(self._arguments(folder))
            except BaseException as error:
                tell("dedup", f"raw {type(error).__name__}: {error}")
                return
        message = said.getvalue().strip().replace("\n", " ")
        if code == 0:
            tell("dedup", "done")
        else:
            honest = message.startswith("lookalike: ") and "Traceback" not in message
            tell("dedup", f"failed: {message}" if honest else f"raw {code}: {message}")

    def _arguments(self, folder: Path) -> list[str]:
        names = [str(folder / name) for name in ("corpus.jsonl", "out.jsonl", "work")]
        return ["dedup", names[0], "-o", names[1], "--work", names[2], "--threads", "1"]

    def check(self, folder: Path, journal: Journal) -> None:
        lines = (folder / "corpus.jsonl").read_text().splitlines(keepends=True)
        kept = "".join(line for line, stays in zip(lines, self._stay(lines), strict=True) if stays)
        found = (folder / "out.jsonl").read_text()
        no_leftovers(folder)
        if journal["dedup"] == "done" or in_its_place(journal["dedup"], "out.jsonl"):
            assert found == kept, f"said to be written, but there is {found[:100]!r}"
        else:
            assert found == "yesterday\n", f"{journal}, but there is {found[:100]!r}"
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(self._arguments(folder)) == 0
        assert (folder / "out.jsonl").read_text() == kept, "going on gave another answer"

    def _stay(self, lines: list[str]) -> list[bool]:
        """Say who stays: who differs from the others in a word is compared in memory, and alone."""
        result = la.dedup([json.loads(line)["text"] for line in lines], threads=1)
        return [bool(stays) for stays in result.keep]


SCENARIOS: dict[str, Any] = {
    scenario.name: scenario
    for scenario in (
        AddToCollection,
        SaveIndex,
        BuildIndex,
        SaveSignatures,
        Snapshot,
        Export,
        Dedup,
    )
}
