"""Documents: writing, reading, deleting and counting them."""

from __future__ import annotations

import json
from typing import Annotated, Any

import numpy as np
from fastapi import Path, Query

from lookalike.collection import Collection, Written
from lookalike.collection.documents import as_id, is_id
from lookalike.collection.reading import delete_meeting, documents_with, page_of
from lookalike.errors import BatchError, ItemError
from lookalike.service.answers import LargeResponse
from lookalike.service.endpoint import Ask, Routes
from lookalike.service.formats import encode, too_many_items
from lookalike.service.problems import Problem, item_values
from lookalike.service.shapes import (
    CountBody,
    DeleteBody,
    DocumentBody,
    GetBody,
    ScrollBody,
    WriteBody,
)
from lookalike.service.values import document_value, signature_rows
from lookalike.shown import shown

documents = Routes("documents")

_BASE = "/v1/collections/{name}/documents"
_DOCUMENT = {
    "id": "fox", "text": "The quick brown fox", "metadata": {"lang": "en"},
    "signature": "00ff00ff00ff00ff00ff00ff00ff00ff", "added": "2026-01-01T00:00:00+00:00",
    "updated": "2026-01-01T00:00:00+00:00",
}  # fmt: skip
_WRITTEN = {
    "added": 1, "updated": 0, "version": 7,
    "results": [
        {"id": "fox", "status": "written"},
        {"id": "", "status": "refused", "message": "the id is empty; expected ..."},
    ],
}  # fmt: skip
_PAGE_BYTES = 16 << 20
"""Bytes of texts and metadata with which a page ends, however many documents were asked for."""
_FEW, _FEW_BYTES = 100, 4 << 20
"""Documents of a page that is read beside searches, and its bytes."""
_FOUND = (404, 422)


@documents.add("PUT", _BASE, body=WriteBody, writes=True, example=_WRITTEN, errors=(404,))
async def write_documents(ask: Ask, name: str) -> Any:
    """Add documents, or replace those of the same ids; each item has its own result.

    All that are written are written in one transaction, and are durable when this is answered.
    """
    body: WriteBody = ask.body
    check_count("documents", len(body.documents), ask.service.settings.max_batch)
    limit = ask.service.settings.max_text

    def written(docs: Collection) -> dict[str, Any]:
        return _written_value(_write(docs, body, limit), body)

    value = await ask.service.write(name, written)
    count = value["added"] + value["updated"]
    if count:
        ask.service.metrics.written.labels(name).inc(count)
    return value


@documents.add("GET", _BASE, example={"documents": [_DOCUMENT], "next": "fox"}, errors=_FOUND)
async def list_documents(
    ask: Ask,
    name: str,
    after: Annotated[str, Query(max_length=1000, description="the `next` of the page before")] = "",
    limit: Annotated[int, Query(ge=1, le=1_000_000)] = 100,
) -> Any:
    """Return the next documents by id; `next` is null at the end.

    Where texts are long there are fewer than `limit`.
    """
    return await _scroll(ask, name, ScrollBody(after=after, limit=limit))


@documents.add(
    "POST", f"{_BASE}/scroll", body=ScrollBody, optional_body=True,
    example={"documents": [_DOCUMENT], "next": None}, errors=(404,),
)  # fmt: skip
async def scroll_documents(ask: Ask, name: str) -> Any:
    """Return the next documents by id that meet a condition; `next` is null at the end.

    Where texts are long there are fewer than `limit`.
    """
    return await _scroll(ask, name, ask.body)


@documents.add(
    "POST", f"{_BASE}/count", body=CountBody, optional_body=True, example={"count": 3},
    errors=(404,),
)  # fmt: skip
async def count_documents(ask: Ask, name: str) -> Any:
    """Count the documents, or those that meet a condition, for which all are read."""
    where, service = ask.body.where, ask.service
    reading = service.read if where is None else service.read_filtered
    return {"count": await reading(service.library.use, name, lambda docs: docs.count(where))}


@documents.add(
    "POST", f"{_BASE}/get", body=GetBody, example={"documents": [_DOCUMENT, None]}, errors=(404,)
)
async def get_documents(ask: Ask, name: str) -> Any:
    """Return the documents of these ids, null for each that is not there."""
    body: GetBody = ask.body
    check_count("ids", len(body.ids), ask.service.settings.max_batch)

    def found(docs: Collection) -> list[Any]:
        with ask.service.answering() as budget:
            return [
                None if one is None else document_value(one, body.include_text)
                for one in documents_with(docs, body.ids, body.include_text, budget)
            ]

    return {"documents": await ask.service.read_much(ask.service.library.use, name, found)}


@documents.add(
    "POST", f"{_BASE}/delete", body=DeleteBody, writes=True, example={"deleted": 2, "version": 8},
    errors=(404,),
)  # fmt: skip
async def delete_documents(ask: Ask, name: str) -> Any:
    """Delete documents: by id in one step, by a condition 5,000 at a time.

    Ids that are not there are passed over. Of documents that are replaced meanwhile, those are
    deleted that meet the condition at that moment.
    """
    body: DeleteBody = ask.body
    if body.ids is not None:
        check_count("ids", len(body.ids), ask.service.settings.max_batch)
    written = await ask.service.write(name, lambda docs: _delete(docs, body))
    if written.deleted:
        ask.service.metrics.written.labels(name).inc(written.deleted)
    return {"deleted": written.deleted, "version": written.version}


DocumentId = Annotated[str, Path(max_length=1000, description="The id of a document")]


@documents.add("GET", f"{_BASE}/{{id:anything}}", example=_DOCUMENT, errors=_FOUND)
async def get_document(ask: Ask, name: str, id: DocumentId) -> Any:
    """Return a document."""
    document = await ask.service.use(name, lambda docs: docs.get(id))
    if document is None:
        raise no_document(id, name)
    return document_value(document)


@documents.add(
    "DELETE", f"{_BASE}/{{id:anything}}", writes=True, example={"deleted": 1, "version": 8},
    errors=_FOUND,
)  # fmt: skip
async def delete_document(ask: Ask, name: str, id: DocumentId) -> Any:
    """Delete a document; 0 are deleted if it is not there."""
    written = await ask.service.write(name, lambda docs: docs.delete([as_id(id)]))
    return {"deleted": written.deleted, "version": written.version}


def no_document(id: str, name: str) -> Problem:
    """Return the answer for a document that is not there."""
    return Problem(
        404, "not_found", f"there is no document {id[:80]!r} in {name!r}", kind="NotFoundError"
    )


def check_count(what: str, count: int, most: int) -> None:
    """Refuse more than the service takes at once."""
    if count > most:
        raise too_many_items(what, count, most)


def check_text(what: str, text: str, most: int) -> None:
    """Refuse a text that is longer than the service takes."""
    if 4 * len(text) <= most:
        return
    size = len(text) if len(text) > most or text.isascii() else len(text.encode("utf-8", "replace"))
    if size > most:
        raise Problem(
            422, "text_too_long", f"{what} has {size} bytes; expected at most {most}: send less, "
            "or start the service with a larger --max-text",
        )  # fmt: skip


async def _scroll(ask: Ask, name: str, body: ScrollBody) -> Any:
    service = ask.service
    most = service.settings.max_batch
    if body.limit > most:
        raise Problem(
            422, "limit_too_large", f"limit is {body.limit}; expected at most {most}: go on with "
            "`next`",
        )  # fmt: skip

    much = body.limit > _FEW and body.where is None
    most_bytes = min(_PAGE_BYTES, service.settings.max_answer)
    if not much:
        most_bytes = min(most_bytes, _FEW_BYTES)

    def page(docs: Collection) -> bytes:
        some, following = page_of(
            docs, body.after, body.limit, most_bytes, where=body.where, text=body.include_text,
            count=ask.held.add_answer,
        )  # fmt: skip
        found = [document_value(one, body.include_text) for one in some]
        return encode({"documents": found, "next": following}, ask.format)

    # Which is bounded by itself, and has a document at least: or nobody could get past a large one.
    reading = service.read_much if much else service.read
    if body.where is not None:
        reading = service.read_filtered
    whole = await reading(service.library.use, name, page)
    return LargeResponse(whole, 200, ask.format, service)


def _delete(docs: Collection, body: DeleteBody) -> Written:
    if body.ids is not None:
        return docs.delete(body.ids)
    return delete_meeting(docs, body.where)


def _write(docs: Collection, body: WriteBody, longest: int) -> Written:
    """Write what can be written; what the service refuses has the errors of its items."""
    given, errors = body.documents, []
    signed = any(_has_signature(one) for one in given)
    good: list[int] = []
    rows: list[Any] = []
    for place, one in enumerate(given):
        try:
            if isinstance(one.text, str):
                check_text("the text", one.text, longest)
            check_text("the metadata", _as_json(one.metadata), longest)
            if signed:
                rows.append(_signature(one, docs.bits))
        except Problem as problem:
            errors.append(ItemError(place, one.id, str(problem)))
            continue
        good.append(place)
    if errors and body.on_error == "raise":
        raise BatchError(errors, len(given))
    chosen = [given[place] for place in good]
    if not chosen:
        return Written(errors=errors, version=docs.version)
    texts = [one.text for one in chosen]
    write = docs.upsert if body.mode == "upsert" else docs.add
    written = write(
        [one.id for one in chosen],
        None if signed and not any(text is not None for text in texts) else texts,
        signatures=np.stack(rows) if signed else None,
        metadata=[one.metadata for one in chosen],
        on_error=body.on_error,
    )
    errors += [
        ItemError(good[one.position], one.id, one.message, one.remedy) for one in written.errors
    ]
    errors.sort(key=lambda error: error.position)
    return Written(written.added, written.updated, errors=errors, version=written.version)


def _as_json(metadata: Any) -> str:
    """Return metadata as they are kept; nothing where they cannot be, which is refused later."""
    try:
        return json.dumps(metadata) if metadata else ""
    except (TypeError, ValueError, RecursionError):
        return ""


def _has_signature(one: DocumentBody) -> bool:
    return one.signature is not None or one.signature_base64 is not None


def _signature(one: DocumentBody, bits: int) -> Any:
    if one.signature is not None and one.signature_base64 is not None:
        raise Problem(422, "bad_signature", "there are two signatures; give one of them")
    if not _has_signature(one):
        raise Problem(
            422, "bad_signature", "there is no signature, though others of the batch have one; "
            "send those apart from each other",
        )  # fmt: skip
    if one.signature is not None:
        return signature_rows([one.signature], None, bits)[0]
    return signature_rows(None, [one.signature_base64 or ""], bits)[0]


def _written_value(written: Written, body: WriteBody) -> dict[str, Any]:
    refused = {error.position: item_values(error)["message"] for error in written.errors}
    results = []
    for place, one in enumerate(body.documents):
        result = {"id": one.id if isinstance(one.id, str) else None, "status": "written"}
        if place in refused:
            result.update(status="refused", message=refused[place])
            if isinstance(one.id, str) and not is_id(one.id):
                result["id"] = shown(one.id, 200)  # an answer is bounded, but such an id is not
        results.append(result)
    return {
        "added": written.added,
        "updated": written.updated,
        "version": written.version,
        "results": results,
    }
