"""Everything a collection can be asked, and what it must answer, from a dictionary and brute force.

Nothing here asks the collection under test what is right.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lookalike as la
from crash.trials import verdict, worst
from support.oracles import collections as model

SIGNER = la.SimHash(bits=64)
WORDS = (Path(__file__).parent.parent.parent / "LICENSE").read_text().split()
COUNT = 160
RADIUS = 22
PLANS = ("native", "sql")
WHERE = {"lang": "en", "year": {">=": 2010}}
TEXT = "the rights to use copy modify merge publish and distribute the work under this license"


@dataclass(frozen=True)
class Kept:
    """A document as it was given."""

    text: str
    metadata: dict[str, Any]
    signature: bytes


class Truth:
    """What the collection was told, and what follows from that."""

    def __init__(self) -> None:
        rng = random.Random(7)
        texts = [" ".join(rng.choices(WORDS, k=rng.randrange(3, 40))) for _ in range(COUNT)]
        texts[5] = " ".join(rng.choices(WORDS, k=800))  # longer than a page
        for place in range(20, 40):
            texts[place] = texts[place % 4]  # equal ones
        for place in range(40, 80):
            words = texts[place % 8].split()
            words[rng.randrange(len(words))] = "another"
            texts[place] = " ".join(words)
        rows = SIGNER.sign(texts)
        self.documents = {
            f"doc-{place:03}": Kept(
                text,
                {"lang": rng.choice(["en", "de"]), "year": rng.randrange(2000, 2020), "n": place},
                row.tobytes(),
            )
            for place, (text, row) in enumerate(zip(texts, rows, strict=True))
        }
        self.ids = sorted(self.documents)
        self.entries: dict[str, model.Entry] = {
            id: (kept.signature, kept.metadata) for id, kept in self.documents.items()
        }
        self.pairs = model.pairs(self.entries, 6)

    def write(self, path: Path, *, cache: Any = False) -> None:
        """Make the collection, like one that has been in use: documents came, went and changed.

        The native index is saved into `cache`, if that is a folder.
        """
        with la.open_collection(path, signer=SIGNER, cache=cache) as docs:
            docs.add(
                [*self.ids, *(f"gone-{i}" for i in range(30))],
                [f"first {id}" for id in self.ids] + [f"gone {i}" for i in range(30)],
            )
            docs.delete([f"gone-{i}" for i in range(30)] + self.ids[::3])
            kept = [self.documents[id] for id in self.ids]
            docs.upsert(
                self.ids,
                [document.text for document in kept],
                metadata=[document.metadata for document in kept],
            )
            if cache:
                docs.refresh()
                docs._native._changes = 10**9  # so that so small an index is written
                docs._native.save()

    def matches(self, query: bytes, **options: Any) -> list[tuple[str, int, dict[str, Any], str]]:
        """Return what a search must give: id, distance, metadata and text of each."""
        found = model.nearest(self.entries, np.frombuffer(query, np.uint8), **options)
        return [
            (id, far, self.documents[id].metadata, self.documents[id].text) for far, id in found
        ]

    def ask_all(self, docs: la.Collection, rng: random.Random, target: Path) -> str:
        """Ask for everything with every plan, and return the verdict."""
        return worst([verdict(*question) for question in self.questions(docs, rng, target)])

    def questions(
        self, docs: la.Collection, rng: random.Random, target: Path
    ) -> Iterator[tuple[Any, ...]]:
        """Yield what to ask, in words, how, what has to come back, and what may stand in for it.

        SQLite has no checksums of its own: an entry of its index that has changed hides a document
        from whoever looks it up there. `verify` tells; an answer that lacks it may not say more
        than what is true.
        """
        near = self.documents[rng.choice(self.ids)].signature
        row = np.frombuffer(near, np.uint8) ^ np.uint8(1 << rng.randrange(8))
        query = row.tobytes()
        excluded = rng.sample(self.ids, 5)
        some = rng.choice(self.ids)
        signed = SIGNER.sign([TEXT])[0].tobytes()
        own = self.documents[some].signature
        for plan in PLANS:
            options: dict[str, Any] = {"text": True, "plan": plan}
            met = {"where": WHERE, **options}
            yield (
                f"search, {plan}",
                partial(_flat, docs.search, row, 7, **options),
                self.matches(query, k=7),
                partial(self.is_true, query),
            )
            yield (
                f"search with conditions, {plan}",
                partial(_flat, docs.search, row, 7, exclude=excluded, **met),
                self.matches(query, k=7, where=_met, exclude=excluded),
                partial(self.is_true, query),
            )
            yield (
                f"search for a text, {plan}",
                partial(_flat, docs.search, TEXT, 3, explain=True, **options),
                self.matches(signed, k=3),
                partial(self.is_true, signed),
            )
            yield (
                f"within, {plan}",
                partial(_flat, docs.within, row, RADIUS, **options),
                self.matches(query, radius=RADIUS),
                partial(self.is_true, query),
            )
            yield (
                f"duplicates_of, {plan}",
                partial(_flat, docs.duplicates_of, some, RADIUS, **met),
                self.matches(own, radius=RADIUS, where=_met, exclude=[some]),
                partial(self.is_true, own),
            )
        yield "pairs", partial(_pairs, docs), self.pairs
        whole = [self._whole(id) for id in self.ids]
        for begin in range(0, COUNT, 32):
            end = begin + 32
            yield (
                "get_many",
                partial(_got, docs, self.ids[begin:end]),
                whole[begin:end],
                lambda document: document is None,
            )
        yield "get of what is not there", partial(docs.get, "gone-3"), None
        yield "scroll", partial(_scrolled, docs), whole, lambda document: False
        yield "count", lambda: (docs.count(), len(docs)), (COUNT, COUNT)
        target.unlink(missing_ok=True)
        yield "export", partial(_exported, docs, target), whole

    def is_true(self, query: bytes, match: tuple[str, int, dict[str, Any], str]) -> bool:
        """Return whether a match is a document as it was given, at its true distance."""
        return match in self.matches(query)

    def _whole(self, id: str) -> tuple[Any, ...]:
        kept = self.documents[id]
        return id, kept.text, kept.metadata, kept.signature


def _met(metadata: dict[str, Any]) -> bool:
    """Say what `WHERE` says."""
    return bool(metadata["lang"] == "en" and metadata["year"] >= 2010)


def _flat(search: Callable[..., la.results.Answer], *arguments: Any, **options: Any) -> list[Any]:
    answer = search(*arguments, **options)
    assert answer.exact
    found = [(match.id, match.distance, match.metadata, match.text) for match in answer]
    assert found == sorted(found, key=lambda match: (match[1], match[0])), "not in order"
    assert len({match[0] for match in found}) == len(found), "a document came twice"
    return found


def _pairs(docs: la.Collection) -> list[tuple[str, str, int]]:
    return [(pair.left, pair.right, pair.distance) for pair in docs.pairs(6)]


def _got(docs: la.Collection, ids: list[str]) -> list[Any]:
    return [document and _whole(document) for document in docs.get_many(ids)]


def _whole(document: la.results.Document) -> tuple[Any, ...]:
    return document.id, document.text, document.metadata, document.signature.tobytes()


def _scrolled(docs: la.Collection) -> list[tuple[Any, ...]]:
    """Go through all documents; as a caller would, who takes the last id for the next page."""
    result: list[tuple[Any, ...]] = []
    after = ""
    while page := docs.scroll(after, 50):
        result += map(_whole, page)
        after = page[-1].id
        if len(result) > 10 * COUNT:
            return ["scrolling does not end"]  # type: ignore[list-item]
    return result


def _exported(docs: la.Collection, target: Path) -> list[tuple[Any, ...]]:
    try:
        docs.export(target)
    except la.LookalikeError:
        assert not target.exists(), "a part of an export was left"
        raise
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    return [
        (row["id"], row["text"], json.loads(row["metadata"]), bytes.fromhex(row["signature"]))
        for row in rows
    ]
