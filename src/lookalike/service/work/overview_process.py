"""The process that computes overviews, one order after the other; see `overviews`."""

from __future__ import annotations

import os
import select
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from lookalike import _native
from lookalike.collection import Collection
from lookalike.collection.overview import distances, groups, map_of
from lookalike.features import Words
from lookalike.media import medium_of_signer
from lookalike.processes import serve
from lookalike.service.library import open_library
from lookalike.service.problems import problem_for_strangers
from lookalike.topics.words import WordCounts, cluster_words

__all__ = ["main"]

_LETTERS = 160
_WORDS = 5
_LONGEST = 10_000
"""Characters of a text that are looked at for words: a map is drawn while somebody waits."""
Order = dict[str, Any]


def main() -> None:
    """Answer until the service ends, and end with it whatever is being computed."""
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    serve(_answers)


def _answers(order: Order) -> Iterator[dict[str, Any]]:
    library = open_library(order["source"])
    try:
        yield {"value": library.use(order["name"], lambda docs: _KINDS[order["kind"]](docs, order))}
    except Exception as error:
        problem = problem_for_strangers(error, library.shown)
        answer: dict[str, Any] = {
            "problem": {
                "status": problem.status, "code": problem.code, "message": str(problem),
                "kind": problem.kind, "retry_after": problem.retry_after,
            },
        }  # fmt: skip
        if problem.logged:
            answer["failed"] = {"kind": type(error).__name__, "error": "".join(
                traceback.format_exception(error)[-4:])}  # fmt: skip
        yield answer
    finally:
        library.close()


def _groups(docs: Collection, order: Order) -> dict[str, Any]:
    # Of another width, if it was made anew meanwhile.
    radius = min(order["radius"], docs.bits)
    largest, version = groups(
        docs, radius, most=order["most"], members=order["members"], threads=order["threads"]
    )
    shown = [
        {
            "size": group.size,
            "largest_distance": group.largest_distance,
            "members": [{"id": id, "distance": far} for id, far in group.members],
        }
        for group in largest
    ]
    return {"radius": radius, "version": version, "groups": shown}


def _map(docs: Collection, order: Order) -> dict[str, Any]:
    drawn = asdict(map_of(docs, most=order["most"], regions=order["regions"]))
    examples = docs.get_many([one["example"] for one in drawn["regions"]])
    words = _words(docs, drawn["places"], len(examples))
    for region, document, told in zip(drawn["regions"], examples, words, strict=True):
        text = None if document is None else document.text
        region["text"] = None if text is None else text[:_LETTERS]
        region["words"] = told
    return drawn


def _distances(docs: Collection, order: Order) -> dict[str, Any]:
    return asdict(distances(docs, threads=order["threads"]))


_KINDS: dict[str, Callable[[Collection, Order], dict[str, Any]]] = {
    "groups": _groups,
    "map": _map,
    "distances": _distances,
}


def _words(docs: Collection, places: list[dict[str, Any]], regions: int) -> list[list[str]]:
    """Return the words that tell each region of the map from the others; none without texts."""
    found = docs.get_many([place["id"] for place in places])
    texts = ["" if one is None or one.text is None else one.text[:_LONGEST] for one in found]
    if not any(texts) or medium_of_signer(docs.signer) is not None:
        return [[] for _ in range(regions)]
    labels = np.array([place["region"] for place in places], np.int64)
    documents, kind = _native.Documents.from_list(texts, 0), Words(stopwords="english")
    counts = WordCounts.of(kind, documents, labels, regions, 1)
    return [[word for word, _ in told] for told in cluster_words(counts, documents, labels, _WORDS)]


def _end_with_the_service() -> None:
    """End this process when nobody holds the other end of the pipe with orders any more."""
    pipe = select.poll()
    pipe.register(0, 0)  # for nothing but its end
    pipe.poll()
    os._exit(1)
