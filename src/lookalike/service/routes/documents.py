"""Write, read, delete, count and compare documents."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Path, Query
from fastapi.responses import Response

from lookalike.collection import Collection, Written
from lookalike.collection.documents import as_id, is_id
from lookalike.collection.reading import delete_meeting, documents_with, page_of
from lookalike.collection.vectors import decoded_vector
from lookalike.compare.texts import compare_texts
from lookalike.errors import BatchError, ItemError
from lookalike.service import shapes
from lookalike.service.formats import check_count, encode
from lookalike.service.problems import Problem, item_values
from lookalike.service.routing import CollectionName, Context, answers, new_router, writes
from lookalike.shown import brief, escape_terminal
from lookalike.signatures import Signer, hamming
from lookalike.signatures.estimates import estimated_pairs, exact_similarity, set_bits
from lookalike.signatures.signer import DocumentSigner

documents = new_router("documents")
compare = new_router("compare")

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
_COMPARED = {
    "equal": False, "bytes": [19, 17], "words": [4, 4],
    "methods": [{"method": "minhash", "measure": "jaccard", "exact": 0.6, "estimate": 0.58}],
    "signer": {
        "measure": "cosine", "unit": "words", "weights": "count", "exact": 0.75, "estimate": 0.71,
        "distance": 32, "bits": 128,
    },
    "diff": {
        "parts": [{"kind": "equal", "text": "quick brown"}, {"kind": "delete", "text": "fox"}],
        "complete": True,
    },
}  # fmt: skip
_PAGE_BYTES = 16 << 20
"""Maximum size of the texts and metadata of a page."""
_FEW, _FEW_BYTES = 100, 4 << 20
"""Documents and bytes of a small page, which is read by the threads of searches."""
_EVERYTHING, _ALL = shapes.ScrollBody(), shapes.CountBody()


@documents.put(_BASE, responses=answers(_WRITTEN, 404))
@writes
async def write_documents(
    context: Context, name: CollectionName, body: shapes.WriteBody
) -> Response:
    """Add documents, or replace documents with the same ids. Each document has its own result.

    All documents are written in one transaction, which is durable when the response arrives.
    """
    check_count("documents", len(body.documents), context.service.settings.max_batch)
    limit = context.service.settings.max_text

    def written(docs: Collection) -> dict[str, Any]:
        return _written_value(_write(docs, body, limit), body)

    value = await context.service.write(name, written)
    count = value["added"] + value["updated"]
    if count:
        context.service.metrics.written.labels(name).inc(count)
    return await context.reply(value)


@documents.get(_BASE, responses=answers({"documents": [_DOCUMENT], "next": "fox"}, 404))
async def list_documents(
    context: Context,
    name: CollectionName,
    after: str = Query("", max_length=1000, description="`next` of the previous page"),
    limit: int = Query(100, ge=1, le=1_000_000, description="maximum number of documents"),
) -> Response:
    """List documents sorted by id; `next` is null on the last page.

    A page of long texts has fewer than `limit` documents.
    """
    return await _scroll(context, name, shapes.ScrollBody(after=after, limit=limit))


@documents.post(f"{_BASE}/scroll", responses=answers({"documents": [_DOCUMENT], "next": None}, 404))
async def scroll_documents(
    context: Context, name: CollectionName, body: shapes.ScrollBody = _EVERYTHING
) -> Response:
    """List documents that match conditions, sorted by id; `next` is null on the last page.

    A page of long texts has fewer than `limit` documents.
    """
    return await _scroll(context, name, body)


@documents.post(f"{_BASE}/count", responses=answers({"count": 3}, 404))
async def count_documents(
    context: Context, name: CollectionName, body: shapes.CountBody = _ALL
) -> Response:
    """Count documents. With conditions, all documents are read."""
    where, service = body.where, context.service
    reading = service.read if where is None else service.read_filtered
    count = await reading(service.library.use, name, lambda docs: docs.count(where))
    return await context.reply({"count": count})


@documents.post(f"{_BASE}/get", responses=answers({"documents": [_DOCUMENT, None]}, 404))
async def get_documents(context: Context, name: CollectionName, body: shapes.GetBody) -> Response:
    """Get documents by id, null for each id that does not exist."""
    check_count("ids", len(body.ids), context.service.settings.max_batch)

    def found(docs: Collection) -> list[Any]:
        with context.service.answering() as budget:
            return [
                None if one is None else shapes.document_value(one, body.include_text)
                for one in documents_with(
                    docs, body.ids, body.include_text, budget, body.include_vectors
                )
            ]

    some = await context.service.read_much(context.service.library.use, name, found)
    return await context.reply({"documents": some})


@documents.post(f"{_BASE}/delete", responses=answers({"deleted": 2, "version": 8}, 404))
@writes
async def delete_documents(
    context: Context, name: CollectionName, body: shapes.DeleteBody
) -> Response:
    """Delete documents: by id in one transaction, by conditions in batches of 5,000.

    Unknown ids are ignored. A document that is replaced meanwhile is deleted if it matches the
    conditions at that moment.
    """
    if body.ids is not None:
        check_count("ids", len(body.ids), context.service.settings.max_batch)

    def delete(docs: Collection) -> Written:
        return delete_meeting(docs, body.where) if body.ids is None else docs.delete(body.ids)

    written = await context.service.write(name, delete)
    if written.deleted:
        context.service.metrics.written.labels(name).inc(written.deleted)
    return await context.reply({"deleted": written.deleted, "version": written.version})


DocumentId = Annotated[str, Path(max_length=1000, description="Document id")]


@documents.get(f"{_BASE}/{{id:anything}}", responses=answers(_DOCUMENT, 404))
async def get_document(context: Context, name: CollectionName, id: DocumentId) -> Response:
    """Get a document."""
    document = await context.service.use(name, lambda docs: docs.get(id))
    if document is None:
        raise no_document(id, name)
    return await context.reply(shapes.document_value(document))


@documents.delete(f"{_BASE}/{{id:anything}}", responses=answers({"deleted": 1, "version": 8}, 404))
@writes
async def delete_document(context: Context, name: CollectionName, id: DocumentId) -> Response:
    """Delete a document. `deleted` is 0 if it does not exist."""
    written = await context.service.write(name, lambda docs: docs.delete([as_id(id)]))
    return await context.reply({"deleted": written.deleted, "version": written.version})


@compare.post("/v1/collections/{name}/compare", responses=answers(_COMPARED, 404))
async def compare_documents(
    context: Context, name: CollectionName, body: shapes.CompareBody
) -> Response:
    """Compare two texts: their similarity by several methods, and the words that differ.

    `signer` has the similarity that the collection's signatures estimate: computed from the texts
    (`exact`) and from the signatures (`estimate`). It is null if the collection does not sign
    texts; `exact` and `estimate` are null if a text has no features.
    """
    longest = context.service.settings.max_text

    def compared(docs: Collection) -> dict[str, Any]:
        left, right = (_text(docs, name, side, longest) for side in (body.left, body.right))
        told = compare_texts(left, right, threads=1).to_dict()
        return {**told, "signer": _by_signer(docs.signer, docs.bits, left, right)}

    service = context.service
    return await context.reply(await service.slowly(service.library.use, name, compared))


def no_document(id: str, name: str) -> Problem:
    """Return the error for a document that does not exist."""
    return Problem(404, "not_found", f"there is no document {id[:80]!r} in {name!r}")


def check_text(what: str, text: str, most: int) -> None:
    """Refuse a text that is too long."""
    if 4 * len(text) <= most:
        return
    size = len(text) if len(text) > most or text.isascii() else len(text.encode("utf-8", "replace"))
    if size > most:
        raise Problem(
            422, "text_too_long", f"{what} has {size} bytes; expected at most {most}. Shorten it, "
            "or start the service with a larger --max-text",
        )  # fmt: skip


async def _scroll(context: Context, name: str, body: shapes.ScrollBody) -> Response:
    service = context.service
    most = service.settings.max_batch
    if body.limit > most:
        message = f"limit is {body.limit}; expected at most {most}. Get more pages with `next`"
        raise Problem(422, "limit_too_large", message)
    much = body.limit > _FEW and body.where is None
    most_bytes = min(_PAGE_BYTES, service.settings.max_answer)
    if not much:
        most_bytes = min(most_bytes, _FEW_BYTES)

    def page(docs: Collection) -> bytes:
        some, following = page_of(
            docs, body.after, body.limit, most_bytes, where=body.where, text=body.include_text,
            vectors=body.include_vectors, count=context.held.add_text,
        )  # fmt: skip
        found = [shapes.document_value(one, body.include_text) for one in some]
        return encode({"documents": found, "next": following}, context.format)

    threads = service.read_much if much else service.read
    if body.where is not None:
        threads = service.read_filtered
    # A page has at least one document, however large.
    return await context.reply(await threads(service.library.use, name, page), bounded=True)


def _write(docs: Collection, body: shapes.WriteBody, longest: int) -> Written:
    """Write the valid documents; the result lists the errors of the others."""
    given, errors = body.documents, []
    signed = any(one.signature or one.signature_base64 for one in given)
    if signed and docs.parts:
        raise Problem(
            422, "parts", "documents of this collection have many signatures each; "
            "send texts, or files to PUT .../files/ID",
        )  # fmt: skip
    good: list[int] = []
    rows: list[bytes] = []
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
        None if signed and all(text is None for text in texts) else texts,
        signatures=shapes.as_array(rows) if signed else None,
        metadata=[one.metadata for one in chosen],
        vectors=_vectors(chosen),
        on_error=body.on_error,
    )
    errors += [
        ItemError(good[one.position], one.id, one.message, one.remedy) for one in written.errors
    ]
    errors.sort(key=lambda error: error.position)
    return Written(written.added, written.updated, errors=errors, version=written.version)


def _as_json(metadata: Any) -> str:
    """Return metadata as stored; "" if it is invalid, which is refused later."""
    try:
        return json.dumps(metadata) if metadata else ""
    except (TypeError, ValueError, RecursionError):
        return ""


def _vectors(chosen: list[shapes.DocumentBody]) -> list[Any] | None:
    vectors = [decoded_vector(one.vector) for one in chosen]
    return None if all(one is None for one in vectors) else vectors


def _signature(one: shapes.DocumentBody, bits: int) -> bytes:
    if one.signature and one.signature_base64:
        raise Problem(422, "bad_signature", "the document has two signatures; send one")
    if not one.signature and not one.signature_base64:
        message = "the document has no signature, but others of the batch do"
        raise Problem(422, "bad_signature", f"{message}; send them in separate requests")
    return shapes.signature_row(one.signature, one.signature_base64, bits)


def _written_value(written: Written, body: shapes.WriteBody) -> dict[str, Any]:
    refused = {error.position: item_values(error)["message"] for error in written.errors}
    results = []
    for place, one in enumerate(body.documents):
        result = {"id": one.id if isinstance(one.id, str) else None, "status": "written"}
        if place in refused:
            result.update(status="refused", message=refused[place])
            if isinstance(one.id, str) and not is_id(one.id):  # it may have any length
                result["id"] = escape_terminal(one.id, 200)
        results.append(result)
    counts = {"added": written.added, "updated": written.updated, "version": written.version}
    return {**counts, "results": results}


def _by_signer(signer: Signer | None, bits: int, left: str, right: str) -> dict[str, Any] | None:
    """Return the similarity that the collection's signatures estimate, and the estimate."""
    if not isinstance(signer, DocumentSigner):
        return None
    texts = [left, right]
    signatures = signer.sign(texts, threads=1)
    distance = int(hamming(*signatures)[0])
    exact = estimate = None
    if signer.feature_counts(texts, threads=1).min() > 0:
        exact = float(exact_similarity(signer, texts, [0], [1], threads=1)[0])
        ones = int(set_bits(signatures).sum())
        estimate = float(estimated_pairs(signer, distance, bits, ones))
    found = {"exact": exact, "estimate": estimate, "distance": distance, "bits": bits}
    return {**(shapes.measure_value(signer) or {}), **found}


def _text(docs: Collection, name: str, side: shapes.SideBody, longest: int) -> str:
    text = side.text
    if side.id is not None:
        document = docs.get(side.id)
        if document is None:
            raise no_document(side.id, name)
        text = document.text
        if text is None:
            message = f"the collection does not store the text of {brief(side.id)}"
            raise Problem(422, "no_text", f"{message}; send the text instead of the id")
    text = text or ""
    check_text("a text", text, longest)
    return text
