"""Queries to a saved index: its nearest signatures, or all within a radius.

A request reserves the memory of its queries and of the largest answer it may get before it starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from fastapi.responses import Response
from numpy.typing import NDArray

from lookalike.client.packing import PACKED_BYTES, result_value, unpacked
from lookalike.errors import ArgumentError
from lookalike.indexes import Index, Matches, Neighbors
from lookalike.indexes.filters import Among, Chosen
from lookalike.media import medium_of_signer
from lookalike.service.formats import check_count, encode
from lookalike.service.library import IndexLibrary
from lookalike.service.problems import Problem
from lookalike.service.routes.documents import check_text
from lookalike.service.routing import Context, answers, new_router
from lookalike.service.service import Service, Threads
from lookalike.service.settings import ServeSettings
from lookalike.service.shapes import IndexOptions, IndexSearchBody, IndexWithinBody, NamesBody

indexes = new_router("index")

_FEW = 16
"""Up to this number of queries a request does not wait for large ones."""
_OPTIONS = {
    "search": (
        *("expand", "admit", "rerank", "cull", "examine", "probe", "recall", "exact", "explain"),
    ),
    "within": ("examine", "flips", "recall", "first", "exact", "explain"),
}
_LIMITS = ("max_body", "max_batch", "max_k", "max_results", "max_answer")
_NEIGHBORS = {"ids": [[7, 3]], "distances": [[0, 2]], "exact": True, "digest": "5f0c…"}
_MATCHES = {"offsets": [0, 1], "ids": [7], "distances": [0], "exact": True, "digest": "5f0c…"}
_DESCRIBED = {
    "name": "pages", "kind": "slices", "signatures": 1000, "bits": 64, "digest": "5f0c…"
}  # fmt: skip


def _library(context: Context) -> IndexLibrary:
    """Return the served index; refuse a key that is not for it."""
    library = context.service.library
    if not isinstance(library, IndexLibrary):
        raise RuntimeError("these routes are for a service of an index")
    context.authorize(library.name)
    return library


@indexes.get("/v1/index", responses=answers(_DESCRIBED))
async def describe_index(context: Context) -> Response:
    """Describe the index: its kind and size, the options it takes, and limits of requests.

    `digest` is a hash of the contents. Answers have it, too, so that clients notice when a service
    was restarted with another index.
    """
    library, settings = _library(context), context.service.settings
    return await context.reply(await context.service.read(_described, library, settings))


def _described(library: IndexLibrary, settings: ServeSettings) -> dict[str, Any]:
    index = library.index
    taken = {
        method: [name for name in names if name in index.settings(method)]
        for method, names in _OPTIONS.items()
    }
    scored = getattr(index, "is_scored", index.kind == "slices")
    return {
        "name": library.name, "kind": index.kind, "signatures": len(index), "bits": index.bits,
        "next_id": index.next_id, "own_ids": index.own_ids, "takes_masks": index.takes_masks,
        "is_scored": scored, "slice_bits": getattr(index, "slice_bits", None),
        "memory_bytes": index.memory_bytes, "digest": library.digest, "options": taken,
        "signer": None if index.signer is None else index.signer.to_dict(),
        "has_names": index.names is not None,
        "limits": {name: getattr(settings, name) for name in _LIMITS},
        "stats": {**index.stats(), "file": None},
    }  # fmt: skip


@indexes.post("/v1/index/search", responses=answers(_NEIGHBORS))
async def search_index(context: Context, body: IndexSearchBody) -> Response:
    """Find the k nearest signatures of each query, nearest first, ties by id."""
    library, settings = _library(context), context.service.settings
    if body.k > settings.max_k:
        message = f"k is {body.k}; expected at most {settings.max_k}"
        raise Problem(422, "k_too_large", message)
    count = _query_count(body, library.index, settings)
    if count * body.k > settings.max_results:
        raise Problem(
            422, "result_too_large", f"{count} queries ask for {body.k} neighbors each; expected "
            f"at most {settings.max_results} in total. Send fewer queries at once",
        )  # fmt: skip
    context.held.add_answer(2 * PACKED_BYTES * count * body.k + _bytes_of(body))
    work = _Work(library, body, "search", {"k": body.k}, context.service.threads)
    reply = await _threads(context.service, count)(work.answer, context.format)
    return await context.reply(reply)


@indexes.post("/v1/index/within", responses=answers(_MATCHES))
async def search_index_within(context: Context, body: IndexWithinBody) -> Response:
    """Find all signatures within a radius of each query, sorted by (distance, id).

    The matches of query i are at `offsets[i]` to `offsets[i + 1]`.
    """
    library, settings = _library(context), context.service.settings
    count = _query_count(body, library.index, settings)
    most = settings.max_results if body.limit is None else min(body.limit, settings.max_results)
    context.held.add_answer(PACKED_BYTES * most + _bytes_of(body))
    wanted = {"radius": body.radius, "limit": most}
    work = _Work(library, body, "within", wanted, context.service.threads)
    reply = await _threads(context.service, count)(work.answer, context.format)
    return await context.reply(reply)


@indexes.post("/v1/index/names", responses=answers({"names": ["a.txt", None]}))
async def name_ids(context: Context, body: NamesBody) -> Response:
    """Return the names of documents by id; null for an id without a name."""
    library = _library(context)
    names = library.index.names
    found = [
        None if names is None or id >= len(names) else names[id] for id in body.ids
    ]  # fmt: skip
    return await context.reply({"names": found, "digest": library.digest})


def _threads(service: Service, queries: int) -> Threads:
    return service.read if queries <= _FEW else service.read_much


def _bytes_of(body: IndexOptions) -> int:
    """Return the memory of arrays that are decoded from a body."""
    texts = (body.packed, body.packed_masks, body.packed_among, body.packed_among_mask)
    sizes = [len(text) for text in texts if text is not None]
    return sum(sizes) + 8 * len(body.packed_among_mask or "")


def _query_count(body: IndexOptions, index: Index, settings: ServeSettings) -> int:
    """Return the number of queries; refuse too many, and texts that cannot be signed."""
    if body.packed is not None:
        size = 3 * (len(body.packed) // 4) - body.packed.count("=", -2)
        count = size // (index.bits // 8)
    elif body.texts is not None:
        count = len(body.texts)
        if index.signer is None or medium_of_signer(index.signer) is not None:
            message = "the index has no signer of texts; send signatures"
            raise Problem(422, "no_signer", message)
        for place, text in enumerate(body.texts):
            check_text(f"text {place}", text, settings.max_text)
    else:
        count = len(body.signatures or ())
    check_count("queries", count, settings.max_batch)
    return count


class _Work:
    """A search, for a thread."""

    def __init__(
        self, library: IndexLibrary, body: Any, method: str, wanted: dict[str, Any], threads: int
    ) -> None:
        self._library, self._body, self._method = library, body, method
        self._wanted, self._threads = wanted, threads

    def answer(self, format: str) -> bytes:
        """Return the encoded answer."""
        index, body = self._library.index, self._body
        options = {**self._wanted, **self._options(index), "threads": self._threads}
        if body.masks is not None or body.packed_masks is not None:
            options["masks"] = _rows("masks", body.masks, body.packed_masks, index.bits)
        asked = body.texts
        if asked is None:
            asked = _rows("signatures", body.signatures, body.packed, index.bits)
        elif not asked:
            asked = np.empty((0, index.bits // 8), np.uint8)
        search: Callable[..., Neighbors | Matches] = getattr(index, self._method)
        found = search(asked, among=_among(body, index), **options)
        return encode(
            {**result_value(found, pack=body.pack), "digest": self._library.digest}, format
        )

    def _options(self, index: Index) -> dict[str, Any]:
        """Return the given options; raise if the kind of index does not have one."""
        taken = index.settings(self._method)
        given = {}
        for name in _OPTIONS[self._method]:
            value = getattr(self._body, name)
            if value is None or value is False:
                continue
            if name not in taken:
                raise ArgumentError(
                    f"{name} is not an option of this index, which is of kind {index.kind}"
                )
            given[name] = value
        return given


def _rows(name: str, hex: list[str] | None, text: str | None, bits: int) -> NDArray[np.uint8]:
    """Return signatures or masks of a body."""
    width = bits // 8
    for place, one in enumerate(hex or ()):
        if len(one) != 2 * width:
            raise ArgumentError(
                f"{name}: row {place} has {4 * len(one)} bits; the index has {bits}"
            )
    raw = _unpacked(name, text, np.uint8) if text is not None else np.frombuffer(
        bytes.fromhex("".join(hex or ())), np.uint8
    )  # fmt: skip
    if len(raw) % width:
        raise ArgumentError(
            f"{name} have {len(raw)} bytes, not a multiple of {width}, the bytes of {bits} bits"
        )
    return raw.reshape(-1, width)


def _among(body: IndexOptions, index: Index) -> Among:
    """Return the ids that are searched."""
    if body.packed_among_mask is not None:
        packed = _unpacked("packed_among_mask", body.packed_among_mask, np.uint8)
        if len(packed) != -(-index.next_id // 8):
            raise ArgumentError(
                f"packed_among_mask has {len(packed)} bytes; the index has {index.next_id} ids"
            )
        return Chosen(None, np.unpackbits(packed, count=index.next_id).astype(bool))
    if body.packed_among is not None:
        return _unpacked("packed_among", body.packed_among, "<i8")
    return None if body.among is None else np.array(body.among, np.int64)


def _unpacked(name: str, text: str, dtype: Any) -> NDArray[Any]:
    try:
        return unpacked(text, dtype)
    except ValueError as error:
        raise ArgumentError(f"{name} cannot be read: {error}") from None
