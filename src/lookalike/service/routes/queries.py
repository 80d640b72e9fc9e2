"""Queries: the nearest documents to a text, a document or a signature.

This is the hot route. Queries of the same kind that arrive together become one native call, and
answers are encoded in the thread that found them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, TypeVar

import numpy as np
from fastapi.responses import Response
from numpy.typing import NDArray

from lookalike.collection import Answer, Collection
from lookalike.collection.answers import Work
from lookalike.collection.query import Question
from lookalike.collection.reading import signatures_with
from lookalike.collection.vectors import decoded_vector
from lookalike.errors import CollectionError, LookalikeError, ResultTooLargeError
from lookalike.media import SignedFile
from lookalike.parts.signer import SignedParts
from lookalike.service.batching import Later
from lookalike.service.formats import answers_together, check_answer, check_count, encode
from lookalike.service.problems import Problem
from lookalike.service.routes.documents import check_text, no_document
from lookalike.service.routing import CollectionName, Context, answers, new_router
from lookalike.service.service import Service, Threads
from lookalike.service.shapes import (
    BatchQueryBody,
    QueryBody,
    QueryOptions,
    answer_value,
    as_array,
    signature_row,
    signature_rows,
)

queries = new_router("queries")

_ANSWER = {
    "matches": [
        {"id": "fox", "distance": 12, "similarity": 0.957, "metadata": {"lang": "en"}}
    ],
    "exact": True, "version": 7, "masked": False, "by": "similar",
    "no_match": "", "chance_distance": 34,
}  # fmt: skip
_SAMPLED = 32
"""Candidates are counted for one batch in 32."""
_MANY = 100
"""Up to this number of matches an answer is small, unless the metadata is large."""
_CHEAP = 1_000
"""Up to this number of matches of all its queries a request is cheap."""
_WIDE = 4
"""A radius of more than a quarter of the bits may match every document."""
_EACH = 64
"""Number of queries by radius per thread."""
_MOST = 10_000
"""Matches of a query by radius, by default."""
_USUAL = 10
"""Documents that parts vote for, by default; here a radius says which parts vote."""
T = TypeVar("T")
_batches = count()


@queries.post("/v1/collections/{name}/query", responses=answers(_ANSWER, 404))
async def query(context: Context, name: CollectionName, body: QueryBody) -> Response:
    """Find the documents nearest to a text, a document or a signature.

    Returns the `k` nearest documents, all within `radius`, or the `k` nearest within `radius`.
    Matches are exact and sorted by (distance, id). `by` of the answer says whether they were found
    by the words of a short text. They then have a `score`, the share of these words from 0 to 1,
    and the `words` that they have. `no_match` says why nothing matches: no document has the words,
    or all are farther than `chance_distance`, as random signatures are.

    In a collection of passages, recordings or videos, parts of the query vote for documents.
    `similarity` is then the share of the query's parts that vote, and `place` says which stretch
    of the document and of the query matches. Search for a file with POST .../query/file.

    A `vector` finds the documents whose vectors have the largest cosine, which is their `score`.
    With a text or a signature as well, both rankings are fused. The `score` is then the sum of
    1 / (60 + rank), and `ranks` are those by the text and by the vector.
    """
    service = context.service
    check_options(body, 1, service)
    docs = await service.collection(name)
    asking = Queries(service, name, context.format, question_options(body, service, docs.parts))
    threads = _threads(body, service, docs, 1)
    if body.id is not None:
        return await context.reply(await threads(asking.like, body.id))
    asked: str | bytes | None = None
    if body.text is None:
        if body.vector is None or body.signature or body.signature_base64:
            _refuse_signature(docs)
            asked = signature_row(body.signature, body.signature_base64, docs.bits)
    else:
        asked = body.text
        check_text("the text", asked, service.settings.max_text)
    if body.vector is not None:
        several = None if asked is None else [asked]
        vector = await service.read_much(asking.answer_vector, several, body.vector)
        return await context.reply(vector)
    large = max(body.k or 0, body.limit or 0) > _MANY
    if large or threads is not service.read:  # in a batch, others would wait for it
        reply = (await threads(asking.answer_all, [asked]))[0]
    else:
        # All options are hashable: a query with conditions does not get here.
        lane = name, context.format, type(asked), docs.bits, *asking.options.values()
        reply = await service.lanes.ask(lane, asking.answer_all, asked)
    if isinstance(reply, Exception):
        raise reply
    return await context.reply(reply)


@queries.post("/v1/collections/{name}/query/batch", responses=answers({"answers": [_ANSWER]}, 404))
async def query_batch(context: Context, name: CollectionName, body: BatchQueryBody) -> Response:
    """Answer many queries with the same options at one version of the collection."""
    service = context.service
    kinds = (body.texts, body.ids, body.signatures, body.signatures_base64, body.vectors)
    number = next(len(one) for one in kinds if one is not None)
    check_count("queries", number, service.settings.max_batch)
    check_options(body, number, service)
    for place, text in enumerate(body.texts or ()):
        check_text(f"text {place}", text, service.settings.max_text)
    docs = await service.collection(name)
    asking = Queries(service, name, context.format, question_options(body, service, docs.parts))
    threads = _threads(body, service, docs, number)
    return await context.reply(await threads(asking.answer_batch, body))


def question_options(body: QueryOptions, service: Service, parts: bool = False) -> dict[str, Any]:
    """Return the options of the `Question` about each query of a body."""
    return {
        "k": body.k or (_USUAL if parts else None), "radius": body.radius,
        "limit": body.limit or min(_MOST, service.settings.max_k), "where": body.where,
        "exclude": tuple(body.exclude), "explain": body.explain, "text": body.include_text,
        "mask": body.mask, "plan": body.plan, "by": body.by, "min_score": body.min_score,
        "exact": body.exact_vectors,
    }  # fmt: skip


def _threads(body: QueryOptions, service: Service, docs: Collection, queries: int) -> Threads:
    """Return the threads for this number of queries, by their likely cost."""
    each = body.k or body.limit or _MANY
    if body.k is None and body.limit is None and (body.radius or 0) > docs.bits // _WIDE:
        each = service.settings.max_k
    many = queries * each > _CHEAP or docs.parts
    if many or not docs.has_index or body.explain or body.include_text or body.plan == "sql":
        return service.read_much
    return service.read if body.where is None else service.read_filtered


def check_options(body: QueryOptions, number: int, service: Service) -> None:
    """Refuse options that exceed the limits of the service, for this number of queries."""
    settings = service.settings
    for what in ("k", "limit"):
        value = getattr(body, what)
        if value is not None and value > settings.max_k:
            message = f"{what} is {value}; expected at most {settings.max_k}"
            raise Problem(422, f"{what}_too_large", message)
    check_count("ids in exclude", len(body.exclude), settings.max_batch)
    each = body.k or body.limit or 1
    if number * each > settings.max_results:
        raise Problem(
            422, "result_too_large", f"{number} queries ask for {each} matches each; expected at "
            f"most {settings.max_results} in total. Send fewer queries at once",
        )  # fmt: skip


def _refuse_signature(docs: Collection) -> None:
    if docs.parts:
        raise Problem(
            422, "parts", "documents of this collection have many signatures each, "
            "so one signature cannot be searched for; send a text, an id or a file",
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries to a collection with the same question and the same format of answers."""

    service: Service
    name: str
    format: str
    options: dict[str, Any]

    def answer_all(self, queries: Sequence[Any]) -> list[bytes | Exception]:
        """Return encoded answers up to the size limit of one answer, and `Later` for the rest."""
        asked = list(queries) if isinstance(queries[0], str) else as_array(queries)

        def found(docs: Collection) -> list[bytes | Problem]:
            return self._ask(docs, asked, partial(self._encoded_or_refused, docs, asked))

        replies: Iterable[bytes | Exception]
        try:
            replies = self.service.library.use(self.name, found)
        except ResultTooLargeError:
            if len(queries) == 1:
                raise
            replies = self._one_by_one(queries)
        return _fitting(replies, len(queries), self.service.settings.max_answer)

    def answer_vector(self, query: list[Any] | None, vector: Any) -> bytes:
        """Return the answer for a vector, and for one text or signature if it is given."""
        asked = as_array(query) if query and isinstance(query[0], bytes) else query

        def found(docs: Collection) -> bytes:
            rows = docs.query_vectors([decoded_vector(vector)], "vector")
            return self._ask(docs, asked, partial(self._encoded, docs, ()), vectors=rows)[0]

        return self.service.library.use(self.name, found)

    def like(self, id: str) -> bytes:
        """Return the answer for a document, without the document itself."""

        def found(docs: Collection) -> bytes:
            document = docs.get(id)
            if document is None:
                raise no_document(id, self.name)
            exclude = (*self.options["exclude"], document.id)
            rows: Any = [docs.parts_of(id)] if docs.parts else document.signature[None]
            take = partial(self._encoded, docs, (document.text,))
            return self._ask(docs, rows, take, exclude=exclude)[0]

        return self.service.library.use(self.name, found)

    def answer_batch(self, body: BatchQueryBody) -> bytes:
        """Return the answers to all queries of a body."""
        size, most = 0, self.service.settings.max_answer

        def encoded(docs: Collection, position: int, answer: Answer) -> bytes:
            nonlocal size
            part = self._encoded(docs, body.texts or (), position, answer)
            size = len(part) + (size if position else 0)  # the first one begins again
            check_answer(size, most)
            return part

        def found(docs: Collection) -> list[bytes]:
            if body.ids is not None:
                _refuse_signature(docs)
                return self._like_all(docs, body.ids, body, partial(encoded, docs))
            asked: Any = body.texts
            if body.signatures is not None or body.signatures_base64 is not None:
                _refuse_signature(docs)
                asked = signature_rows(body.signatures, body.signatures_base64, docs.bits)
                asked = as_array(asked) if asked else asked
            take = partial(encoded, docs)
            if body.vectors is not None:
                given = [decoded_vector(vector) for vector in body.vectors]
                vectors = docs.query_vectors(given, "vectors")
                return self._ask(docs, asked, take, vectors=vectors)
            return self._ask(docs, asked, take) if len(asked) else []

        return answers_together(self.service.library.use(self.name, found), self.format)

    def _like_all(
        self,
        docs: Collection,
        ids: list[str],
        body: QueryOptions,
        encoded: Callable[[int, Answer], bytes],
    ) -> list[bytes]:
        """Answer for many documents; each finds itself, so one more match is requested."""
        if not ids:
            return []
        cut = body.k or body.limit or min(_MOST, self.service.settings.max_k)
        more: dict[str, Any] = {"limit" if body.k is None else "k": cut + 1}
        known = signatures_with(docs, ids)
        for id, signature in zip(ids, known, strict=True):
            if signature is None:
                raise no_document(id, self.name)
        rows = as_array(list(filter(None, known)))

        def take(position: int, answer: Answer) -> bytes:
            others = [match for match in answer if match.id != ids[position]]
            exact = answer.exact and (body.k is not None or len(others) <= cut)
            whole = Answer(
                others[:cut], version=answer.version, exact=exact, work=answer.work,
                masked=answer.masked, chance_distance=answer.chance_distance,
            )  # fmt: skip
            return encoded(position, whole)

        return self._ask(docs, rows, take, beside=len(ids), **more)

    def _ask(
        self,
        docs: Collection,
        asked: Sequence[str] | Sequence[SignedParts] | NDArray[np.uint8] | None,
        take: Callable[[int, Answer], T],
        beside: int = 0,
        vectors: NDArray[np.float32] | None = None,
        **changed: Any,
    ) -> list[T]:
        """Return what `take` makes of each answer to the question, with these options changed.

        `take` drops `beside` of the matches.
        """
        if isinstance(asked, np.ndarray) and asked.shape[1] * 8 != docs.bits:
            message = "the collection was replaced by one with another number of bits"
            raise CollectionError(f"{message}; try again")
        service, threads = self.service, self.service.threads
        if self.options["radius"] is not None:  # waking threads up takes longer than a few queries
            threads = min(threads, 1 + (0 if asked is None else len(asked)) // _EACH)
        question = Question(**{**self.options, "threads": threads, **changed})
        done: list[Work] | None = [] if question.explain or not next(_batches) % _SAMPLED else None
        with service.answering(beside, done) as budget:
            found = docs.answers_each(asked, question, take, budget, vectors)
        for work in done or ():
            service.metrics.candidates.labels(self.name).observe(work.candidates)
        return found

    def of_file(self, docs: Collection, signed: SignedFile) -> bytes:
        """Return the answer for a file, with its preview."""
        rows: Any = [signed.signature] if docs.parts else signed.signature[None]

        def encoded(position: int, answer: Answer) -> bytes:
            return encode({**self._value(docs, answer), "query": signed.preview}, self.format)

        return self._ask(docs, rows, encoded)[0]

    def _value(self, docs: Collection, answer: Answer, query: str | None = None) -> dict[str, Any]:
        signer = docs.signer if docs.parts else None
        return answer_value(answer, self.service.similarities(docs, answer), signer, query)

    def _encoded(self, docs: Collection, asked: Any, position: int, answer: Answer) -> bytes:
        """Return an answer; where parts match is told of queries that are texts."""
        query = asked[position] if docs.parts and position < len(asked) else None
        return encode(self._value(docs, answer, query), self.format)

    def _encoded_or_refused(
        self, docs: Collection, asked: Any, position: int, answer: Answer
    ) -> bytes | Problem:
        """Return an answer, or the error if only this answer cannot be encoded."""
        try:
            return self._encoded(docs, asked, position, answer)
        except Problem as problem:
            return problem

    def _one_by_one(self, queries: Sequence[Any]) -> Iterator[bytes | Exception]:
        for query in queries:
            try:
                yield from self.answer_all([query])
            except LookalikeError as error:
                yield error


def _fitting(
    replies: Iterable[bytes | Exception], count: int, room: int
) -> list[bytes | Exception]:
    """Return the replies that fit into `room` bytes, at least one, and `Later` for the rest."""
    found: list[bytes | Exception] = []
    for reply in replies:
        size = len(reply) if isinstance(reply, bytes) else 0
        if found and size > room:
            break
        room -= size
        found.append(reply)
    return [*found, *(Later() for _ in range(count - len(found)))]
