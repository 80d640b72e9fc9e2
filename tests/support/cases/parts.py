"""Calls that work of all that is public about parts and passages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la

__all__ = ["ANSWERS", "part_calls"]

ANSWERS = {
    "IncomingLinks",
    "Overlap",
    "OverlapPair",
    "Overlaps",
    "PartAnswer",
    "PartMatch",
    "Passage",
    "Passages",
}
"""Made by the package and not by callers."""


def _parts(rows: NDArray[np.uint8]) -> la.PartIndex:
    parts = la.PartIndex(64)
    parts.add_many(["one", 2], [rows[:9], rows[9:12]])
    return parts


def part_calls(
    folder: Path, rows: NDArray[np.uint8], texts: list[str]
) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Return a function and arguments that work, by name."""
    queries = rows[:5]
    passages = la.PassageHash(la.SimHash(64), words=3, step=2)
    _parts(rows).save(folder / "parts")
    return {
        "PartIndex": (la.PartIndex, {}),
        "PartIndex.add": (
            lambda **given: _parts(rows).add(**given),
            {"item": "new", "signatures": queries, "offsets": range(5)},
        ),
        "PartIndex.add_many": (
            lambda **given: _parts(rows).add_many(**given),
            {"items": ["new"], "signatures": [queries], "offsets": [range(5)]},
        ),
        "PartIndex.parts_of": (_parts(rows).parts_of, {"item": 2}),
        "PartIndex.remove": (lambda **given: _parts(rows).remove(**given), {"item": 2}),
        "PartIndex.remove_many": (
            lambda **given: _parts(rows).remove_many(**given),
            {"items": ["one"]},
        ),
        "PartIndex.search": (
            _parts(rows).search,
            {"signatures": queries, "offsets": range(5), "radius": 2},
        ),
        "PartIndex.search_many": (
            _parts(rows).search_many,
            {"signatures": [queries], "offsets": [range(5)]},
        ),
        "PartIndex.save": (_parts(rows).save, {"path": folder / "saved parts"}),
        "PartIndex.name": (_parts(rows).name, {"id": 3}),
        "PartIndex.load": (la.PartIndex.load, {"path": folder / "parts"}),
        "PartIndex.from_bytes": (la.PartIndex.from_bytes, {"data": _parts(rows).to_bytes()}),
        "PassageHash": (la.PassageHash, {"by": la.SimHash(64), "words": 3}),
        "PassageHash.from_bytes": (la.PassageHash.from_bytes, {"data": passages.to_bytes()}),
        "PassageHash.from_dict": (
            la.PassageHash.from_dict,
            {"description": passages.to_dict()},
        ),
        "PassageHash.save": (passages.save, {"path": folder / "PassageHash"}),
        "PassageHash.sign": (passages.sign, {"document": texts[0]}),
        "PassageHash.sign_parts": (passages.sign_parts, {"document": texts[0]}),
        "PassageHash.sign_query": (passages.sign_query, {"thing": texts[0]}),
        "Overlap.to_dict": (la.overlaps(texts, min_words=5)[0].to_dict, {}),
        "overlaps": (la.overlaps, {"source": texts, "min_words": 5}),
        "incoming_links": (
            la.incoming_links,
            {
                "source": [{"source": "http://a.org/", "target": "http://b.org/"}],
                "output": folder / "incoming.jsonl",
                "around": 2,
                "max_links": 3,
            },
        ),
        "passages": (la.passages, {"source": texts, "query": "two three four"}),
        "sign_passages": (
            la.sign_passages,
            {"signer": la.SimHash(), "documents": texts, "words": 3},
        ),
    }
