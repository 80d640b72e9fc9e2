"""Questions to a collection that others write to, and whether the answers were right then."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import lookalike as la
from support import collection_model as model

__all__ = ["Answered", "Question", "Reader"]

BITS = 64
CONDITIONS: list[dict[str, Any] | None] = [None, {"even": True}, {"even": False}]


@dataclass(frozen=True)
class Question:
    """A search, with or without a radius, a condition and exclusions, in one of the two ways."""

    query: np.ndarray[Any, Any]
    k: int
    radius: int | None
    where: dict[str, Any] | None
    exclude: tuple[str, ...]
    way: str

    @classmethod
    def any(cls, rng: random.Random, rows: np.ndarray[Any, Any] | None = None) -> Question:
        """Return some question, near one of the rows if there are any."""
        row = np.frombuffer(rng.randbytes(BITS // 8), np.uint8)
        if rows is not None and len(rows):
            row = rows[rng.randrange(len(rows))] ^ np.uint8(1 << rng.randrange(8))
        excluded = tuple(f"doc-{rng.randrange(40)}" for _ in range(rng.randrange(4)))
        return cls(
            row,
            rng.randrange(1, 12),
            rng.choice([None, 0, 8, 24, 32]),
            rng.choice(CONDITIONS),
            excluded,
            rng.choice(["native", "sql"]),
        )

    def ask(self, docs: la.Collection) -> Answered:
        """Ask, and keep what came back."""
        answer = docs.search(
            self.query, self.k, radius=self.radius, where=self.where, exclude=self.exclude,
            way=self.way,  # type: ignore[arg-type]
        )  # fmt: skip
        found = [(match.distance, match.id, match.metadata) for match in answer]
        return Answered(self, answer.version, answer.complete, found)


@dataclass(frozen=True)
class Answered:
    """What came back, and which version of the collection it is about."""

    question: Question
    version: int
    complete: bool
    found: list[tuple[int, str, dict[str, Any]]]

    def check(self, known: Mapping[str, model.Entry]) -> None:
        """Compare with brute force over the documents that there were at that version."""
        asked = self.question
        where = asked.where
        expected = model.nearest(
            known,
            asked.query,
            radius=asked.radius,
            k=asked.k,
            where=lambda metadata: where is None or metadata["even"] is where["even"],
            exclude=asked.exclude,
        )
        assert self.complete
        assert self.found == [(far, id, known[id][1]) for far, id in expected], asked


class Reader:
    """Asks one question after the other, in a thread of its own, until it is told to stop."""

    def __init__(self, docs: la.Collection, seed: int) -> None:
        self._docs = docs
        self._rng = random.Random(seed)
        self._stop = threading.Event()
        self._answers: list[Answered] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        try:
            while not self._stop.is_set():
                self._answers.append(Question.any(self._rng).ask(self._docs))
                self._stop.wait(0.01)  # writers want the locks too
        except BaseException as error:  # told by `answers`, in the thread that asks for them
            self._error = error

    def answers(self) -> list[Answered]:
        """Stop, and return all answers."""
        self._stop.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), "a search does not end"
        if self._error is not None:
            raise self._error
        return self._answers
