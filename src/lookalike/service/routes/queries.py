"""Queries: what is near a text, a document or a signature.

The hot route. Queries of the same sort that arrive together are one native call; answers are
encoded in the thread that has found them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, TypeAlias, TypeVar

import numpy as np
from fastapi.responses import Response
from numpy.typing import NDArray

from lookalike.collection import Answer, Collection
from lookalike.collection.answers import Work
from lookalike.collection.query import Question
from lookalike.collection.reading import signatures_with
from lookalike.collection.search.answer import Budget
from lookalike.errors import CollectionError, LookalikeError, ResultTooLargeError
from lookalike.service.batching import Later
from lookalike.service.formats import Counter, answers_together, encode
from lookalike.service.problems import Problem
from lookalike.service.routes.documents import check_count, check_text, no_document
from lookalike.service.routing import CollectionName, Context, new_router, told
from lookalike.service.service import Service
from lookalike.service.shapes import (
    Asked,
    BatchQueryBody,
    QueryBody,
    answer_value,
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
"""One batch in so many tells how many candidates a query has."""

_MANY = 100
"""Matches up to which an answer is small, unless metadata are large."""

_CHEAP = 1_000
"""Matches of all queries of a request together, up to which it is cheap."""

_WIDE = 4
"""A radius of more than this share of the bits may have everything within it."""

_EACH = 64
"""Queries by radius that are worth a thread."""

Signature: TypeAlias = NDArray[np.uint8]
T = TypeVar("T")
Reading: TypeAlias = Callable[..., Awaitable[Any]]
_batches = count()


@dataclass(frozen=True)
class _Sort:
    """What queries have in common that are answered by one call."""

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
        """Whether an answer may be so large that it is better computed alone."""
        return self.include_text or max(self.k or 0, self.limit or 0) > _MANY

    def reading(self, service: Service, docs: Collection, queries: int) -> Reading:
        """Return the threads for a number of queries, by what these may cost."""
        each = self.k or self.limit or _MANY
        if self.k is None and self.limit is None and (self.radius or 0) > docs.bits // _WIDE:
            each = service.settings.max_k
        many = queries * each > _CHEAP
        if many or not docs.has_index or self.explain or self.include_text or self.way == "sql":
            return service.read_much
        return service.read if self.where is None else service.read_filtered

    def ask(
        self,
        docs: Collection,
        asked: Sequence[str] | Signature,
        threads: int,
        take: Callable[[int, Answer], T],
        budget: Budget,
    ) -> list[T]:
        """Return what `take` makes of the answers of a collection."""
        question = Question(
            k=self.k, radius=self.radius, limit=self.limit,
            where=None if self.where is None else json.loads(self.where), exclude=self.exclude,
            explain=self.explain, text=self.include_text, threads=threads,
            mask=self.mask, way=self.way,  # type: ignore[arg-type]
        )  # fmt: skip
        return docs.answers_each(asked, question, take, budget)


@queries.post("/v1/collections/{name}/query", responses=told(_ANSWER, 404))
async def query(context: Context, name: CollectionName, body: QueryBody) -> Response:
    """Find what is nearest to a text, a document or a signature.

    The k nearest, or all within a radius, or the k nearest of these; by (distance, id), and exact.
    """
    service = context.service
    _check(body, 1, service)
    docs = await service.collection(name)
    question: Any
    if body.text is not None:
        check_text("the text", body.text, service.settings.max_text)
        by, question = "text", body.text
    elif body.id is None:
        by = "signature"
        question = _rows(body.signature, body.signature_base64, docs.bits)
    else:
        by, question = "signature", None
    sort = _Sort.of(by, body)
    reading = sort.reading(service, docs, 1)
    if question is None:
        return await context.reply(await reading(_like, service, name, body, context.format))
    answer = partial(_answer_all, service, name, sort, context.format)
    if sort.large or reading != service.read:  # in company, they would wait for each other
        reply = (await reading(answer, [question]))[0]
    else:
        reply = await service.lanes.ask((name, context.format, sort), answer, question)
    if isinstance(reply, Exception):
        raise reply
    return await context.reply(reply)


@queries.post("/v1/collections/{name}/query/batch", responses=told({"answers": [_ANSWER]}, 404))
async def query_batch(context: Context, name: CollectionName, body: BatchQueryBody) -> Response:
    """Answer many queries of one sort by one native call, at one version of the collection."""
    service = context.service
    given = next(
        one for one in (body.texts, body.ids, body.signatures, body.signatures_base64)
        if one is not None
    )  # fmt: skip
    check_count("queries", len(given), service.settings.max_batch)
    _check(body, len(given), service)
    for place, text in enumerate(body.texts or ()):
        check_text(f"text {place}", text, service.settings.max_text)
    docs = await service.collection(name)
    reading = _Sort.of("signature", body).reading(service, docs, len(given))
    return await context.reply(await reading(_answer_batch, service, name, body, context.format))


def _check(body: Asked, number: int, service: Service) -> None:
    settings = service.settings
    for what in ("k", "limit"):
        value = getattr(body, what)
        if value is not None and value > settings.max_k:
            raise Problem(
                422, f"{what}_too_large", f"{what} is {value}; expected at most {settings.max_k}"
            )
    check_count("ids in exclude", len(body.exclude), settings.max_batch)
    each = body.k or body.limit or (10 if body.radius is None else 1)
    if number * each > settings.max_results:
        raise Problem(
            422, "result_too_large", f"{number} queries ask for {each} matches each; expected at "
            f"most {settings.max_results} in all: ask for less at once",
            kind="ResultTooLargeError",
        )  # fmt: skip


def _rows(hex: str | None, base64: str | None, bits: int) -> Signature:
    if hex is not None:
        return signature_rows([hex], None, bits)
    return signature_rows(None, [base64 or ""], bits)


def _answer_all(
    service: Service, name: str, sort: _Sort, format: str, questions: Sequence[Any]
) -> list[bytes | Exception]:
    """Return the encoded answers to queries of one sort.

    Together they are no larger than one may be: those that have no room are for the next time.
    """
    asked = list(questions) if sort.by == "text" else np.concatenate(questions)

    def found(docs: Collection) -> list[bytes | Problem]:
        similarities = service.similarities(docs)
        return _ask(
            service, name, sort, asked, docs,
            lambda _, answer: _encoded(answer_value(answer, similarities), format),
        )  # fmt: skip

    replies: Iterable[bytes | Exception]
    try:
        replies = service.library.use(name, found)
    except ResultTooLargeError:
        if len(questions) == 1:
            raise
        replies = _one_by_one(service, name, sort, format, questions)
    return _fitting(replies, len(questions), service)


def _encoded(value: Any, format: str) -> bytes | Problem:
    """Return an answer in a format, or why it cannot be told in it: others' answers may be."""
    try:
        return encode(value, format)
    except Problem as problem:
        return problem


def _one_by_one(
    service: Service, name: str, sort: _Sort, format: str, questions: Sequence[Any]
) -> Iterator[bytes | Exception]:
    for question in questions:
        try:
            yield from _answer_all(service, name, sort, format, [question])
        except LookalikeError as error:
            yield error


def _fitting(
    replies: Iterable[bytes | Exception], count: int, service: Service
) -> list[bytes | Exception]:
    """Return the replies, in memory at once, that there is room for: one at least."""
    found: list[bytes | Exception] = []
    room = service.settings.max_answer
    for reply in replies:
        size = len(reply) if isinstance(reply, bytes) else 0
        if found and size > room:
            break
        room -= size
        found.append(reply)
    return [*found, *(Later() for _ in range(count - len(found)))]


def _ask(
    service: Service,
    name: str,
    sort: _Sort,
    asked: Sequence[str] | Signature,
    docs: Collection,
    take: Callable[[int, Answer], T],
    beside: int = 0,
) -> list[T]:
    """Return what `take` makes of the answers, which have no more matches than a request may.

    `beside` are matches that `take` leaves out.
    """
    _check_width(asked, docs)
    sampled = not next(_batches) % _SAMPLED
    if sort.k is None and sort.limit is None:
        sort = replace(sort, limit=min(10_000, service.settings.max_k))
    threads = service.threads
    if sort.radius is not None:  # then a few queries take less than it takes to wake threads up
        threads = min(threads, 1 + len(asked) // _EACH)
    done: list[Work] | None = [] if sort.explain or sampled else None
    with service.answering(beside, done) as budget:
        answers = sort.ask(docs, asked, threads, take, budget)
    if done:
        candidates = service.metrics.candidates.labels(name)
        for work in done:
            candidates.observe(work.candidates)
    return answers


def _check_width(asked: Sequence[str] | Signature, docs: Collection) -> None:
    """Tell that the collection has been replaced by one of another width meanwhile."""
    if isinstance(asked, np.ndarray) and asked.shape[1] * 8 != docs.bits:
        raise CollectionError("the collection was replaced by one of another width; ask again")


def _like(service: Service, name: str, body: QueryBody, format: str) -> bytes:
    """Answer by the signature of a document, which is left out."""

    def found(docs: Collection) -> bytes:
        document = docs.get(body.id or "")
        if document is None:
            raise no_document(body.id or "", name)
        sort = _Sort.of("signature", body)
        sort = replace(sort, exclude=(*sort.exclude, document.id))
        similarities = service.similarities(docs)

        def take(position: int, answer: Answer) -> bytes:
            return encode(answer_value(answer, similarities), format)

        return _ask(service, name, sort, document.signature[None], docs, take)[0]

    return service.library.use(name, found)


def _answer_batch(service: Service, name: str, body: BatchQueryBody, format: str) -> bytes:
    by = "text" if body.texts is not None else "signature"
    sort = _Sort.of(by, body)
    size = Counter(service.settings.max_answer)

    def found(docs: Collection) -> list[bytes]:
        if body.ids is not None:
            return _like_all(service, name, body.ids, sort, docs, size, format)
        asked: Any = body.texts
        if asked is None:
            asked = signature_rows(body.signatures, body.signatures_base64, docs.bits)
        similarities = service.similarities(docs)

        def take(position: int, answer: Answer) -> bytes:
            return size.counted(position, encode(answer_value(answer, similarities), format))

        return _ask(service, name, sort, asked, docs, take) if len(asked) else []

    return answers_together(service.library.use(name, found), format)


def _like_all(
    service: Service,
    name: str,
    ids: list[str],
    sort: _Sort,
    docs: Collection,
    size: Counter,
    format: str,
) -> list[bytes]:
    """Answer for many documents; one more is asked for, since each finds itself."""
    if not ids:
        return []
    most = sort.limit or min(10_000, service.settings.max_k)
    more = replace(sort, limit=most + 1) if sort.k is None else replace(sort, k=sort.k + 1)
    cut = sort.k or most
    known = signatures_with(docs, ids)
    for id, signature in zip(ids, known, strict=True):
        if signature is None:
            raise no_document(id, name)
    rows = np.frombuffer(b"".join(filter(None, known)), np.uint8).reshape(len(ids), -1)
    similarities = service.similarities(docs)

    def take(position: int, answer: Answer) -> bytes:
        others = [match for match in answer if match.id != ids[position]]
        exact = answer.exact and (sort.k is not None or len(others) <= cut)
        whole = Answer(
            others[:cut], version=answer.version, exact=exact, work=answer.work,
            masked=answer.masked,
        )  # fmt: skip
        return size.counted(position, encode(answer_value(whole, similarities), format))

    return _ask(service, name, more, rows, docs, take, beside=len(ids))
