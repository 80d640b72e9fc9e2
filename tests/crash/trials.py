"""Trials by the thousand, in processes of their own: one that hangs or crashes is one bad trial.

A trial is a function of a number and says what came of it: `RIGHT`, `REFUSED`, `PARTIAL` (nothing
untrue, but something is missing, and who asks for that is told), or else what was wrong.
Workers note in shared memory which trial they are at and what came of those before, so that nothing
is lost when one has to be killed; the next goes on behind it.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lookalike as la

RIGHT = "right"
REFUSED = "refused"
PARTIAL = "partial"

SECONDS = 60
"""How long one trial may take; on an idle machine they take some milliseconds."""
_MEMORY = 16 << 30
"""Of addresses: lengths that damage has made huge must not become allocations."""
_MOST_KILLED = 10
"""Workers that hang or die in one lane; then the run has said enough."""
_MOST_SHOWN = 20
FORKS = multiprocessing.get_context("forkserver")
# There is one such server for all tests: it begins with whatever any of them needs.
FORKS.set_forkserver_preload(
    [
        "lookalike.cli.commands.dedup",
        "lookalike.collection",
        "lookalike.dedup.job",
        "sqlite3",
        "psycopg",
    ]
)

Trial = Callable[[int], str]
Prepare = Callable[..., Trial]
"""Called in the worker with a folder of its own and the arguments."""


@dataclass
class Tally:
    """What came of many trials."""

    right: int = 0
    refused: int = 0
    partial: int = 0
    wrong: list[str] = field(default_factory=list)

    def told(self, subject: str, what: str = "damages") -> str:
        """Return one line with the counts."""
        total = self.right + self.refused + self.partial + len(self.wrong)
        partial = f"{self.partial:,} hidden but found by verify, " if self.partial else ""
        return (
            f"{subject}: {total:,} {what}: {self.refused:,} refused, {self.right:,} right, "
            f"{partial}{len(self.wrong):,} wrong"
        )

    def settle(self, subject: str, what: str = "damages") -> None:
        """Print the line, and fail if anything was wrong."""
        print(f"\n{self.told(subject, what)}", flush=True)
        assert not self.wrong, "\n".join([self.told(subject, what), *self.wrong[:_MOST_SHOWN]])


def try_all(
    folder: Path, prepare: Prepare, arguments: tuple[Any, ...], count: int, seconds: float = SECONDS
) -> Tally:
    """Run trials 0 to `count` - 1, several at a time, and return what came of them."""
    folder.mkdir(parents=True)
    lanes = [
        _Lane(folder, lane, prepare, arguments, count, seconds) for lane in range(_lanes(count))
    ]
    try:
        done = False
        while not done:
            time.sleep(0.01)
            done = sum(lane.look() for lane in lanes) == len(lanes)
    finally:
        for lane in lanes:
            lane.stop()
    tally = Tally()
    for lane in lanes:
        tally.right += lane.notes[1]
        tally.refused += lane.notes[2]
        tally.partial += lane.notes[3]
        tally.wrong += lane.log.read_text().splitlines() if lane.log.exists() else []
    return tally


def _lanes(count: int) -> int:
    return max(1, min(4, os.cpu_count() or 1, count // 50))


class _Lane:
    """Every so-manieth trial, in one process after the other."""

    def __init__(
        self,
        folder: Path,
        lane: int,
        prepare: Prepare,
        arguments: tuple[Any, ...],
        count: int,
        seconds: float,
    ) -> None:
        self.log = folder / f"{lane}.log"
        self.notes = FORKS.RawArray("q", 4)  # the trial at hand, right, refused, partial
        self._folder, self._lane, self._count = folder, lane, count
        self._work = (prepare, arguments)
        self._seconds = seconds
        self._bad = 0
        self._process: Any = None
        self._go_on(lane)

    def _go_on(self, first: int) -> None:
        self.stop()
        self.notes[0] = first
        self._seen, self._since = first, time.monotonic()
        numbers = range(first, self._count, _lanes(self._count))
        scratch = self._folder / f"{self._lane}-{first}"
        self._process = FORKS.Process(
            target=_run, args=(*self._work, scratch, numbers, self.notes, str(self.log))
        )
        self._process.start()

    def look(self) -> bool:
        """Deal with a worker that has ended or hangs; return whether all is done."""
        code = self._process.exitcode  # once, and before the notes: the worker may end at any time
        at = self.notes[0]
        if code == 0:
            return True
        if at != self._seen:
            self._seen, self._since = at, time.monotonic()
            return False
        if code is None:
            if time.monotonic() - self._since < self._seconds:
                return False
            bad = f"took more than {self._seconds:g} s"
        elif code < 0:
            bad = f"died of {signal.Signals(-code).name}"
        else:
            raise AssertionError(f"the harness failed in trial {at}: see above")
        note(str(self.log), at, bad)
        self._bad += 1
        if self._bad >= _MOST_KILLED:
            return True
        self._go_on(at + _lanes(self._count))
        return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()


def note(log: str, number: int, what: str) -> None:
    """Append a line about a trial."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"trial {number}: " + what.replace("\n", " ")[:800] + "\n")


def _run(
    prepare: Prepare,
    arguments: tuple[Any, ...],
    scratch: Path,
    numbers: range,
    notes: Any,
    log: str,
) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["XDG_CACHE_HOME"] = str(scratch / "caches")
    scratch.mkdir(parents=True)
    sys.setrecursionlimit(1_000)
    trial = prepare(scratch, *arguments)
    for number in numbers:
        notes[0] = number
        verdict = trial(number)
        if verdict == RIGHT:
            notes[1] += 1
        elif verdict == REFUSED:
            notes[2] += 1
        elif verdict == PARTIAL:
            notes[3] += 1
        else:
            note(log, number, verdict)


def verdict(
    question: str,
    ask: Callable[[], Any],
    expected: Any,
    true: Callable[[Any], bool] | None = None,
) -> str:
    """Ask, and say what came of it: only our own errors are a refusal.

    `true` tells of an item of a list that it is no lie, though it should not be in the answer.
    """
    try:
        answer = ask()
    except la.LookalikeError:
        return REFUSED
    except Exception as error:
        return f"{question} raised {type(error).__name__}: {error}"
    if answer == expected:
        return RIGHT
    if isinstance(answer, list) and isinstance(expected, list):
        more = [item for item in answer if item not in expected]
        less = [item for item in expected if item not in answer]
        if true is not None and less and all(map(true, more)):
            return PARTIAL
        return f"{question}: {_shown(more)} should not be there, {_shown(less)} should"
    return f"{question}: {_shown(answer)} and not {_shown(expected)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:80]} ... {text[-80:]}"


def worst(verdicts: list[str]) -> str:
    """Return the verdict on several answers to one damage."""
    bad = [verdict for verdict in verdicts if verdict not in (RIGHT, REFUSED, PARTIAL)]
    if bad:
        return "; ".join(bad[:3])
    return next((sort for sort in (PARTIAL, REFUSED) if sort in verdicts), RIGHT)
