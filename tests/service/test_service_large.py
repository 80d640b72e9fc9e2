"""Large answers: refused while they grow, or given in pages; memory is bounded whoever reads."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import lookalike as la
from lookalike.collection.query import Question
from lookalike.collection.reading import documents_with, page_of
from lookalike.collection.search.answer import Budget
from lookalike.operation import stop_if_canceled
from lookalike.service.batching import Lanes, Later
from lookalike.service.formats import JSON, MESSAGEPACK
from lookalike.service.library import open_library
from lookalike.service.problems import problem_of
from lookalike.service.routes import queries
from lookalike.service.service import Service
from lookalike.service.settings import ServeSettings
from lookalike.service.shapes import BatchQueryBody, QueryBody
from lookalike.service.telemetry import Log
from support.running.waiting import wait_until
from support.services.running import Running, running

BASE = "/v1/collections/pages"
COUNT = 40
LONG = 10_000
MOST = 120_000
IDS = [f"d{number:02}" for number in range(COUNT)]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`pages` has long texts, `told` long metadata."""
    path = tmp_path_factory.mktemp("large") / "docs.db"
    texts = [f"number {number} " + "x" * (LONG - 12) for number in range(COUNT)]
    with la.open_collection(path, "pages", signer=la.SimHash(64), durable=False) as docs:
        docs.add(IDS, texts, metadata=[{"n": number} for number in range(COUNT)])
    with la.open_collection(path, "told", signer=la.SimHash(64), durable=False) as docs:
        docs.add(IDS, [text[:20] for text in texts], metadata=[{"told": text} for text in texts])
    return path


@pytest.fixture
def served(database: Path, tmp_path: Path) -> Iterator[Running]:
    with running(database, tmp_path, max_answer=MOST) as service:
        yield service


@pytest.fixture
def service(database: Path, tmp_path: Path) -> Iterator[Service]:
    """What the routes use, without anything around it."""
    log = Log("error", io.StringIO())
    made = Service(ServeSettings(max_answer=MOST), open_library(database), tmp_path, log)
    yield made
    made.close()
    log.close()


@pytest.mark.parametrize("how", [{"k": COUNT}, {"radius": 64}, {"k": COUNT, "radius": 64}])
def test_texts_of_many_matches_are_refused(served: Running, how: dict[str, int]) -> None:
    for asked in ({"text": "number"}, {"id": "d00"}):
        body = {**asked, **how}
        matches = served.good("POST", f"{BASE}/query", body)["matches"]
        assert len(matches) >= COUNT - 1
        told = served.refused(
            422, "answer_too_large", "POST", f"{BASE}/query", {**body, "include_text": True}
        )
        assert "fewer" in told and "texts" in told
        few = {**body, "k": 5, "include_text": True}
        found = served.good("POST", f"{BASE}/query", few)["matches"]
        assert [len(one["text"]) > 9_000 for one in found] == [True] * 5
    with la.connect(served.url, "pages") as docs, pytest.raises(la.errors.ResultTooLargeError):
        docs.search("number", COUNT, text=True)


def test_a_batch_counts_each_time_that_a_document_is_in_it(served: Running) -> None:
    one = {"k": 3, "include_text": True}
    for many in ({"texts": ["number"] * 5}, {"ids": ["d00"] * 5}):
        body = {**many, **one}
        served.refused(422, "answer_too_large", "POST", f"{BASE}/query/batch", body)
        few = {**{name: values[:3] for name, values in many.items()}, **one}
        answers = served.good("POST", f"{BASE}/query/batch", few)["answers"]
        assert [len(answer["matches"]) for answer in answers] == [3] * 3
        status, _, raw = served.raw(
            "POST", f"{BASE}/query/batch", msgpack.packb(few),
            content_type="application/msgpack", accept="application/msgpack",
        )  # fmt: skip
        assert status == 200, raw
        assert msgpack.unpackb(raw) == {"answers": answers}


@pytest.mark.parametrize(
    "how", [{"k": 5}, {"radius": 999, "limit": 5}, {"k": 5, "radius": 999}, {"k": 5, "plan": "sql"}]
)
def test_whoever_is_counted_has_the_same_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    with la.open_collection(tmp_path / "docs.db", "wide", signer=la.SimHash(1024)) as docs:
        docs.add(IDS, [f"number {id}" for id in IDS])
    log = Log("error", io.StringIO())
    service = Service(ServeSettings(), open_library(tmp_path / "docs.db"), tmp_path, log)
    body = BatchQueryBody.model_validate({"texts": ["number"] * 3, "include_text": True, **how})
    asking = queries.Queries(service, "wide", JSON, queries.question_options(body, service))
    whole = asking.answer_batch(body)
    service.settings = ServeSettings(max_answer=len(whole))
    counted = service.metrics.candidates.labels("wide")._sum
    for each in (1 << 60, 1):
        monkeypatch.setattr(queries, "_SAMPLED", each)
        before = counted.get()
        assert asking.answer_batch(body) == whole
        assert (counted.get() > before) == (each == 1)
    service.close()
    log.close()


def test_metadata_count_too(served: Running) -> None:
    path = "/v1/collections/told/query"
    served.refused(422, "answer_too_large", "POST", path, {"text": "number", "k": COUNT})
    assert len(served.good("POST", path, {"text": "number", "k": 5})["matches"]) == 5
    body = {"documents": [{"id": "new", "text": "x", "metadata": {"long": "x" * (1 << 20)}}]}
    (result,) = served.good("PUT", "/v1/collections/told/documents", body | {"on_error": "skip"})[
        "results"
    ]
    assert result["status"] == "refused" and "the metadata has 10485" in result["message"]


def test_documents_by_id_are_refused_and_pages_end_early(served: Running) -> None:
    served.refused(422, "answer_too_large", "POST", f"{BASE}/documents/get", {"ids": IDS})
    few = served.good("POST", f"{BASE}/documents/get", {"ids": [*IDS[:3], "none", IDS[0]]})
    assert [one and one["id"] for one in few["documents"]] == ["d00", "d01", "d02", None, "d00"]
    told = served.good("POST", f"{BASE}/documents/get", {"ids": IDS, "include_text": False})
    assert [(one["id"], "text" in one) for one in told["documents"]] == [(id, False) for id in IDS]
    for where in (None, {"n": {">=": 3}}):
        found: list[str] = []
        after: str | None = ""
        while after is not None:
            body: dict[str, Any] = {"after": after, "limit": COUNT, "where": where}
            page = served.good("POST", f"{BASE}/documents/scroll", body)
            assert len(json.dumps(page)) < MOST + 2 * LONG
            found += [one["id"] for one in page["documents"]]
            after = page["next"]
        assert found == (IDS if where is None else IDS[3:])
        one = served.good("POST", f"{BASE}/documents/scroll", {"limit": 1, "where": where})
        assert [one["next"]] == [document["id"] for document in one["documents"]] == found[:1]
        count = served.good("POST", f"{BASE}/documents/count", {"where": where})
        assert count == {"count": len(found)}


def test_results_of_jobs_come_in_pages(tmp_path: Path) -> None:
    ids = [f"{number:02}" + "\u00e4" * 400 for number in range(COUNT)]
    with la.open_collection(tmp_path / "docs.db", "plain", bits=64) as docs:
        docs.add(ids, signatures=np.zeros((COUNT, 8), np.uint8))
    with running(tmp_path / "docs.db", tmp_path, max_answer=MOST) as service:
        job = service.job("/v1/collections/plain/pairs", {"radius": 0})
        found: list[Any] = []
        pages, after = 0, 0
        while after is not None:
            page = service.good("GET", f"/v1/jobs/{job['id']}/results?limit=5000&after={after}")
            found += [(one["left"], one["right"]) for one in page["results"]]
            pages, after = pages + 1, page["next"]
    assert found == list(combinations(ids, 2)) and pages > 10


def test_a_document_counts_as_often_as_it_is_asked_for(database: Path) -> None:
    with la.open_collection(database, "pages") as docs, Budget(MOST) as budget:
        assert len(documents_with(docs, IDS[:1] * 5, True, budget)) == 5
        assert len(documents_with(docs, IDS * 10, False, budget)) == 10 * COUNT
        with pytest.raises(la.errors.ResultTooLargeError):
            documents_with(docs, IDS[:1] * 12, True, budget)
        # What is not wanted does not fill the memory either.
        page, _ = page_of(docs, "", COUNT, MOST, text=False)
        assert [one.text for one in page] == [None] * COUNT


def test_explanations_count(tmp_path: Path) -> None:
    with la.open_collection(tmp_path / "plain.db", bits=64) as docs:
        rows = np.arange(COUNT, dtype=np.uint8)[:, None].repeat(8, axis=1)
        docs.add(IDS, signatures=rows)

        def search(k: int, explain: bool, budget: Budget | None) -> int:
            question = Question(k=k, explain=explain)
            (found,) = docs.answers_each(rows[:1], question, lambda _, answer: len(answer), budget)
            return found

        with Budget(64 * 20) as budget:
            assert search(10, True, budget) == 10
            assert search(1, False, budget) == 1
        with pytest.raises(la.errors.ResultTooLargeError, match="more than 1280"):
            search(20, True, Budget(64 * 20))
        assert search(20, True, None) == 20


def test_answers_together_are_no_larger_than_one(service: Service) -> None:
    told = service.library.collection("told")
    for k, together in ((5, True), (9, False)):  # 50,000 bytes each; 90,000 of other documents each
        body = QueryBody.model_validate({"id": "d00", "k": k})
        asking = queries.Queries(service, "told", JSON, queries.question_options(body, service))
        asked = [told.get(id).signature.tobytes() for id in ("d00", "d20", "d39")]  # type: ignore[union-attr]
        replies = asking.answer_all(asked)
        sizes = [len(reply) for reply in replies if isinstance(reply, bytes)]
        assert sizes and sum(sizes) <= MOST
        late = [reply for reply in replies if isinstance(reply, Later)]
        assert len(sizes) + len(late) == 3 and len(sizes) == (2 if together else 1)


def test_whoever_is_answered_with_others_gets_what_they_get_alone(service: Service) -> None:
    told = service.library.collection("told")
    told.upsert(["huge"], ["entirely different"], metadata=[{"told": "x" * MOST}])
    asked = ["entirely different" if number % 5 == 2 else "number" for number in range(40)]
    question = queries.question_options(
        QueryBody.model_validate({"text": "number", "k": 5}), service
    )
    answer = queries.Queries(service, "told", JSON, question).answer_all
    alone = answer(["number"])[0]
    batches: list[int] = []

    async def ask() -> list[Any]:
        with ThreadPoolExecutor(2) as threads:
            lanes: Lanes[str, Any] = Lanes(threads.submit, batches.append)
            each = [lanes.ask("a", answer, text) for text in asked]
            return await asyncio.gather(*each, return_exceptions=True)

    for text, reply in zip(asked, asyncio.run(ask()), strict=True):
        if text == "number":
            assert reply == alone
        else:
            assert problem_of(reply).code == "answer_too_large"
    assert batches[0] == 40 > batches[1]
    told.delete(["huge"])


def test_answers_together_fail_alone(service: Service) -> None:
    pages, told = service.library.collection("pages"), service.library.collection("told")
    pages.upsert(["huge"], ["entirely different"], metadata=[{"n": 1 << 70}])
    told.upsert(["huge"], ["entirely different"], metadata=[{"told": "x" * MOST}])
    asked = ["number", "entirely different", "number"]
    question = queries.question_options(
        QueryBody.model_validate({"text": "number", "k": 1}), service
    )
    for name, format, code in (
        ("pages", MESSAGEPACK, "not_in_messagepack"),
        ("told", JSON, "answer_too_large"),
    ):
        first, refused, last = queries.Queries(service, name, format, question).answer_all(asked)
        assert isinstance(first, bytes) and first == last
        assert isinstance(refused, Exception) and problem_of(refused).code == code
    for docs in (pages, told):
        docs.delete(["huge"])


def test_whoever_does_not_read_gets_no_more(database: Path, tmp_path: Path) -> None:
    path, large = f"{BASE}/query/batch", 16 << 20
    body = json.dumps({"texts": ["number"] * (large // (COUNT * LONG)), "k": COUNT,
                       "include_text": True}).encode()  # fmt: skip
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {JSON}\r\n".encode()
    limits: dict[str, Any] = {"max_answer": 20 << 20, "max_memory": 72 << 20, "slow_limit": 3.0}
    with running(database, tmp_path, **limits) as service:
        idle = socket.socket()
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        idle.connect((service.host, service.port))
        idle.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        assert idle.recv(10) == b"HTTP/1.1 2"
        service.refused(429, "too_much_at_once", "POST", path, body, content_type=JSON)
        # Whoever asks for little is not concerned, and after a while nobody is.
        assert service.good("POST", f"{BASE}/query", {"text": "x", "k": 1})["matches"]
        wait_until(lambda: service.raw("POST", path, body, content_type=JSON)[0] == 200)
        idle.close()


def test_whoever_does_not_read_does_not_keep_the_connection(database: Path, tmp_path: Path) -> None:
    large = 16 << 20  # more than what the sockets hold for whoever does not read
    body = json.dumps({"texts": ["number"] * (large // (COUNT * LONG)), "k": COUNT,
                       "include_text": True}).encode()  # fmt: skip
    head = f"POST {BASE}/query/batch HTTP/1.1\r\nhost: localhost\r\ncontent-type: {JSON}\r\n"
    sent = head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body
    with (
        running(database, tmp_path, slow_limit=1.0, max_connections=2) as service,
        socket.socket() as first,
        socket.socket() as second,
    ):
        for one in (first, second):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect((service.host, service.port))
            one.sendall(sent)
        assert first.recv(10) == second.recv(10) == b"HTTP/1.1 2"
        wait_until(lambda: service.raw("GET", "/healthz")[0] == 200)


def test_what_nobody_waits_for_is_cancelled(service: Service) -> None:
    kinds = (service.read, service.read_filtered, service.read_much, service.slowly, service.probe)
    for threads in kinds:
        begun, ended = threading.Event(), threading.Event()

        def work(begun: threading.Event = begun, ended: threading.Event = ended) -> None:
            try:
                while True:
                    begun.set()
                    stop_if_canceled()
            finally:
                ended.set()

        async def give_up(
            threads: Any = threads, work: Any = work, begun: threading.Event = begun
        ) -> None:
            task = asyncio.ensure_future(threads(work))
            await asyncio.to_thread(begun.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(give_up())
        assert ended.wait(60)
