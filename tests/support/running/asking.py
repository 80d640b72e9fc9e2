"""Questions to a collection that others write to, and whether the answers were right then."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import lookalike as la
from support.oracles import collections as model
from support.oracles.part_collections import Entry, expected, told

__all__ = ["Answered", "Question", "Reader"]

BITS = 64
PART_SETTINGS: dict[str, Any] = {"radius": 1, "tolerance": 1, "min_votes": 1}
CONDITIONS: list[dict[str, Any] | None] = [None, {"even": True}, {"even": False}]


@dataclass(frozen=True)
class Question:
    """A search, with or without a radius, a condition and exclusions, in one of the two ways."""

    query: np.ndarray[Any, Any]
    k: int
    radius: int | None
    where: dict[str, Any] | None
    exclude: tuple[str, ...]
    plan: str
    parts: bool = False
    """Whether documents have a part for each byte, and so has the query."""

    @classmethod
    def any(
        cls, rng: random.Random, rows: np.ndarray[Any, Any] | None = None, parts: bool = False
    ) -> Question:
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
            parts,
        )

    def ask(self, docs: la.Collection) -> Answered:
        """Ask, and keep what came back."""
        if self.parts:
            answer = docs.search(
                self.query[:, None], self.k, where=self.where, exclude=self.exclude, explain=True,
                **PART_SETTINGS,
            )  # fmt: skip
            return Answered(self, answer.version, answer.exact, told(answer))
        answer = docs.search(
            self.query, self.k, radius=self.radius, where=self.where, exclude=self.exclude,
            plan=self.plan,  # type: ignore[arg-type]
        )  # fmt: skip
        found = [(match.distance, match.id, match.metadata) for match in answer]
        return Answered(self, answer.version, answer.exact, found)


@dataclass(frozen=True)
class Answered:
    """What came back, and which version of the collection it is about."""

    question: Question
    version: int
    complete: bool
    found: list[Any]

    def check(self, known: Mapping[str, model.Entry]) -> None:
        """Compare with brute force over the documents that there were at that version."""
        asked = self.question
        where = asked.where
        assert self.complete
        if asked.parts:
            allowed = {
                id: Entry(np.frombuffer(data, np.uint8)[:, None], tuple(range(len(data))), {})
                for id, (data, metadata) in known.items()
                if id not in asked.exclude and (where is None or metadata["even"] is where["even"])
            }
            query = asked.query[:, None]
            assert self.found == expected(allowed, query, None, 8, k=asked.k, **PART_SETTINGS)
            return
        nearest = model.nearest(
            known,
            asked.query,
            radius=asked.radius,
            k=asked.k,
            where=lambda metadata: where is None or metadata["even"] is where["even"],
            exclude=asked.exclude,
        )
        assert self.found == [(far, id, known[id][1]) for far, id in nearest], asked


class Reader:
    """Asks one question after the other, in a thread of its own, until it is told to stop."""

    def __init__(self, docs: la.Collection, seed: int, parts: bool = False) -> None:
        self._docs = docs
        self._parts = parts
        self._rng = random.Random(seed)
        self._stop = threading.Event()
        self._answers: list[Answered] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        try:
            while not self._stop.is_set():
                question = Question.any(self._rng, parts=self._parts)
                self._answers.append(question.ask(self._docs))
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
