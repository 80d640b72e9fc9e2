"""Queries: what is near a text, a document or a signature.

The hot route. Queries of the same sort that arrive together are one native call; answers are
encoded in the thread that has found them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeAlias, TypeVar

import numpy as np
from fastapi.responses import Response
from numpy.typing import NDArray

from lookalike.collection import Answer, Collection
from lookalike.collection.answers import Work
from lookalike.collection.query import Question
from lookalike.collection.reading import signatures_with
from lookalike.errors import CollectionError, LookalikeError, ResultTooLargeError
from lookalike.service.batching import Later
from lookalike.service.formats import Counter, answers_together, check_count, encode
from lookalike.service.problems import Problem
from lookalike.service.routes.documents import check_text, no_document
from lookalike.service.routing import CollectionName, Context, new_router, told
from lookalike.service.service import Service, Threads
from lookalike.service.shapes import (
    Asked,
    BatchQueryBody,
    QueryBody,
    answer_value,
    signature_row,
    signature_rows,
)

queries = new_router("queries")

_ANSWER = {
    "matches": [
        {"id": "fox", "distance": 12, "similarity": 0.957, "metadata": {"lang": "en"}}
    ],
    "exact": True, "version": 7, "masked": False,
}  # fmt: skip
_SAMPLED = 32
"""The candidates of one batch in so many are counted."""
_MANY = 100
"""Matches up to which an answer is small, unless metadata are large."""
_CHEAP = 1_000
"""Matches of all queries of a request together, up to which it is cheap."""
_WIDE = 4
"""A radius of more than a quarter of the bits may have everything within it."""
_EACH = 64
"""Queries by radius that are worth a thread."""
_MOST = 10_000
"""Matches of a query by radius without a limit."""
Signature: TypeAlias = NDArray[np.uint8]
T = TypeVar("T")
_batches = count()


@dataclass(frozen=True)
class _Sort:
    """What the queries that are answered by one call have in common."""

    by: str
    """"text" or "signature"."""
    k: int | None
    radius: int | None
    limit: int | None
    where: str | None
    exclude: tuple[str, ...]
    explain: bool
    include_text: bool
    mask: str | bool
    way: str | None

    @classmethod
    def of(cls, by: str, body: Asked) -> _Sort:
        where = None if body.where is None else json.dumps(body.where)
        k = 10 if body.k is None and body.radius is None else body.k
        return cls(
            by, k, body.radius, body.limit, where, tuple(body.exclude), body.explain,
            body.include_text, body.mask, body.way,
        )  # fmt: skip

    @property
    def large(self) -> bool:
        """Whether an answer may be so large that it is computed alone."""
        return self.include_text or max(self.k or 0, self.limit or 0) > _MANY

    def threads(self, service: Service, docs: Collection, queries: int) -> Threads:
        """Return the threads for a number of queries, by what these may cost."""
        each = self.k or self.limit or _MANY
        if self.k is None and self.limit is None and (self.radius or 0) > docs.bits // _WIDE:
            each = service.settings.max_k
        many = queries * each > _CHEAP
        if many or not docs.has_index or self.explain or self.include_text or self.way == "sql":
            return service.read_much
        return service.read if self.where is None else service.read_filtered


@queries.post("/v1/collections/{name}/query", responses=told(_ANSWER, 404))
async def query(context: Context, name: CollectionName, body: QueryBody) -> Response:
    """Find what is nearest to a text, a document or a signature.

    The k nearest, or all within a radius, or the k nearest of these; by (distance, id), and exact.
    """
    service = context.service
    _check(body, 1, service)
    docs = await service.collection(name)
    sort = _Sort.of("signature" if body.text is None else "text", body)
    asking = _Queries(service, name, context.format, sort)
    threads = sort.threads(service, docs, 1)
    if body.id is not None:
        return await context.reply(await threads(asking.like, body.id))
    question: Any = body.text
    if body.text is None:
        question = signature_row(body.signature, body.signature_base64, docs.bits)
    else:
        check_text("the text", body.text, service.settings.max_text)
    if sort.large or threads is not service.read:  # in a batch, others would wait for it
        reply = (await threads(asking.answer_all, [question]))[0]
    else:
        lane = name, context.format, sort
        reply = await service.lanes.ask(lane, asking.answer_all, question)
    if isinstance(reply, Exception):
        raise reply
    return await context.reply(reply)


@queries.post("/v1/collections/{name}/query/batch", responses=told({"answers": [_ANSWER]}, 404))
async def query_batch(context: Context, name: CollectionName, body: BatchQueryBody) -> Response:
    """Answer many queries of one sort by one native call, at one version of the collection."""
    service = context.service
    kinds = (body.texts, body.ids, body.signatures, body.signatures_base64)
    number = next(len(one) for one in kinds if one is not None)
    check_count("queries", number, service.settings.max_batch)
    _check(body, number, service)
    for place, text in enumerate(body.texts or ()):
        check_text(f"text {place}", text, service.settings.max_text)
    docs = await service.collection(name)
    sort = _Sort.of("signature" if body.texts is None else "text", body)
    asking = _Queries(service, name, context.format, sort)
    threads = sort.threads(service, docs, number)
    return await context.reply(await threads(asking.answer_batch, body))


def _check(body: Asked, number: int, service: Service) -> None:
    settings = service.settings
    for what in ("k", "limit"):
        value = getattr(body, what)
        if value is not None and value > settings.max_k:
            message = f"{what} is {value}; expected at most {settings.max_k}"
            raise Problem(422, f"{what}_too_large", message)
    check_count("ids in exclude", len(body.exclude), settings.max_batch)
    each = body.k or body.limit or (10 if body.radius is None else 1)
    if number * each > settings.max_results:
        raise Problem(
            422, "result_too_large", f"{number} queries ask for {each} matches each; expected at "
            f"most {settings.max_results} in all: ask for less at once",
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Queries:
    """Queries of one sort to a collection; their answers have one format."""

    service: Service
    name: str
    format: str
    sort: _Sort

    def answer_all(self, questions: Sequence[Any]) -> list[bytes | Exception]:
        """Return encoded answers, together no larger than one may be; the others are `Later`."""
        asked = list(questions) if self.sort.by == "text" else np.concatenate(questions)

        def found(docs: Collection) -> list[bytes | Problem]:
            return self._ask(docs, asked, lambda _, answer: self._encoded_or_refused(docs, answer))

        replies: Iterable[bytes | Exception]
        try:
            replies = self.service.library.use(self.name, found)
        except ResultTooLargeError:
            if len(questions) == 1:
                raise
            replies = self._one_by_one(questions)
        return _fitting(replies, len(questions), self.service.settings.max_answer)

    def like(self, id: str) -> bytes:
        """Answer by the signature of a document, which is left out."""

        def found(docs: Collection) -> bytes:
            document = docs.get(id)
            if document is None:
                raise no_document(id, self.name)
            sort = replace(self.sort, exclude=(*self.sort.exclude, document.id))
            rows = document.signature[None]
            return self._ask(docs, rows, lambda _, answer: self._encoded(docs, answer), sort)[0]

        return self.service.library.use(self.name, found)

    def answer_batch(self, body: BatchQueryBody) -> bytes:
        """Return the answers to all queries of a body."""
        size = Counter(self.service.settings.max_answer)

        def found(docs: Collection) -> list[bytes]:
            if body.ids is not None:
                return self._like_all(docs, body.ids, size)
            asked: Any = body.texts
            if asked is None:
                asked = signature_rows(body.signatures, body.signatures_base64, docs.bits)

            def take(position: int, answer: Answer) -> bytes:
                return size.counted(position, self._encoded(docs, answer))

            return self._ask(docs, asked, take) if len(asked) else []

        return answers_together(self.service.library.use(self.name, found), self.format)

    def _like_all(self, docs: Collection, ids: list[str], size: Counter) -> list[bytes]:
        """Answer for many documents; one more is asked for, since each finds itself."""
        if not ids:
            return []
        sort = self.sort
        most = sort.limit or min(_MOST, self.service.settings.max_k)
        more = replace(sort, limit=most + 1) if sort.k is None else replace(sort, k=sort.k + 1)
        cut = sort.k or most
        known = signatures_with(docs, ids)
        for id, signature in zip(ids, known, strict=True):
            if signature is None:
                raise no_document(id, self.name)
        rows = np.frombuffer(b"".join(filter(None, known)), np.uint8).reshape(len(ids), -1)

        def take(position: int, answer: Answer) -> bytes:
            others = [match for match in answer if match.id != ids[position]]
            exact = answer.exact and (sort.k is not None or len(others) <= cut)
            whole = Answer(
                others[:cut], version=answer.version, exact=exact, work=answer.work,
                masked=answer.masked,
            )  # fmt: skip
            return size.counted(position, self._encoded(docs, whole))

        return self._ask(docs, rows, take, more, beside=len(ids))

    def _ask(
        self,
        docs: Collection,
        asked: Sequence[str] | Signature,
        take: Callable[[int, Answer], T],
        sort: _Sort | None = None,
        beside: int = 0,
    ) -> list[T]:
        """Return what `take` makes of the answers; it leaves out `beside` of their matches."""
        if isinstance(asked, np.ndarray) and asked.shape[1] * 8 != docs.bits:
            raise CollectionError("the collection was replaced by one of another width; ask again")
        sort, service = sort or self.sort, self.service
        limit, threads = sort.limit, service.threads
        if sort.k is None and limit is None:
            limit = min(_MOST, service.settings.max_k)
        if sort.radius is not None:  # a few queries take less time than waking threads up
            threads = min(threads, 1 + len(asked) // _EACH)
        done: list[Work] | None = [] if sort.explain or not next(_batches) % _SAMPLED else None
        question = Question(
            k=sort.k, radius=sort.radius, limit=limit,
            where=None if sort.where is None else json.loads(sort.where), exclude=sort.exclude,
            explain=sort.explain, text=sort.include_text, threads=threads,
            mask=sort.mask, way=sort.way,  # type: ignore[arg-type]
        )  # fmt: skip
        with service.answering(beside, done) as budget:
            answers = docs.answers_each(asked, question, take, budget)
        for work in done or ():
            service.metrics.candidates.labels(self.name).observe(work.candidates)
        return answers

    def _encoded(self, docs: Collection, answer: Answer) -> bytes:
        return encode(answer_value(answer, self.service.similarities(docs)), self.format)

    def _encoded_or_refused(self, docs: Collection, answer: Answer) -> bytes | Problem:
        """Return an answer, or why the format does not have it: it may have those of others."""
        try:
            return self._encoded(docs, answer)
        except Problem as problem:
            return problem

    def _one_by_one(self, questions: Sequence[Any]) -> Iterator[bytes | Exception]:
        for question in questions:
            try:
                yield from self.answer_all([question])
            except LookalikeError as error:
                yield error


def _fitting(
    replies: Iterable[bytes | Exception], count: int, room: int
) -> list[bytes | Exception]:
    """Return the replies that fit into so many bytes, at least one; the others are `Later`."""
    found: list[bytes | Exception] = []
    for reply in replies:
        size = len(reply) if isinstance(reply, bytes) else 0
        if found and size > room:
            break
        room -= size
        found.append(reply)
    return [*found, *(Later() for _ in range(count - len(found)))]
