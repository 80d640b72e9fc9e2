"""A collection of a service beside one that is here: the same answers, the same errors."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import lookalike as la
from lookalike.signatures.estimates import estimated_pairs
from support.services.running import Running, running

BITS = 32
words = st.sampled_from("alpha beta gamma delta fox owl law river bank dog".split())
texts = st.lists(words, min_size=0, max_size=8).map(" ".join)
ids = st.one_of(
    st.integers(0, 12).map(lambda number: f"d'{number}"),
    st.sampled_from(["a/b", "ü%2f", "..", "", "x" * 1001]),
)
vectors = st.one_of(
    st.none(), st.none(), st.integers(1, 9).map(lambda n: [1.0, n * n, -n]),
    st.sampled_from([[0, 0, 0], [1.0], [1.0, float("nan"), 0], "text", [1e300, 0, 0]]),
)  # fmt: skip
metadata = st.one_of(
    st.none(),
    st.fixed_dictionaries({"n": st.one_of(st.integers(0, 3), st.just(2**80), st.just(0.1))}),
    st.just({"nested": {"list": [1, None, "ß\ud7ff"]}}),
)
wheres = st.one_of(
    st.none(), st.integers(0, 3).map(lambda n: {"n": {"<=": n}}), st.just({"n": {"in": (1, 2)}}),
    st.just({"n": {"no such": 1}}),
)  # fmt: skip


class Both:
    """The same call here and there must return the same, or raise the same."""

    def __init__(self, here: la.Collection, there: la.client.RemoteCollection) -> None:
        self.here, self.there = here, there

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        here = outcome(lambda: getattr(self.here, name)(*arguments, **options))
        there = outcome(lambda: getattr(self.there, name)(*arguments, **options))
        assert there == here, (name, arguments, options)
        return here


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return comparable(call())
    except la.LookalikeError as error:
        return type(error).__name__, str(error), [str(one) for one in getattr(error, "errors", [])]


def comparable(value: Any) -> Any:
    """Return what two collections must agree on: everything but the times of documents."""
    if isinstance(value, la.results.Document):
        signature = value.signature.tobytes()
        vector = None if value.vector is None else value.vector.tobytes()
        return value.id, signature, value.metadata, value.text, vector, value.added <= value.updated
    if isinstance(value, la.results.Answer):
        names = [field.name for field in fields(la.results.Match)]
        matches = [{name: getattr(one, name) for name in names} for one in value]
        words = value.by, value.unknown, value.searched, value.no_match, value.by_chance
        return matches, value.exact, value.version, value.masked, value.work, words
    if isinstance(value, la.results.Written):
        errors = [str(one) for one in value.errors]
        return value.added, value.updated, value.deleted, errors, value.version
    return [comparable(one) for one in value] if isinstance(value, list) else value


class ServiceBesideCollection(RuleBasedStateMachine):
    service: Running
    count = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).count += 1
        self.folder = tempfile.TemporaryDirectory()
        name, signer = f"c{self.count}", la.SimHash(bits=BITS)
        here = la.open_collection(Path(self.folder.name) / "here.db", name, signer=signer,
                                  durable=False, words="porter")  # fmt: skip
        there = la.connect(self.service.url, name, signer=signer, words="porter")
        self.both = Both(here, there)

    def teardown(self) -> None:
        self.both.here.close()
        self.both.there.close()
        self.service.good("DELETE", f"/v1/collections/c{self.count}")
        self.folder.cleanup()

    @rule(
        name=st.sampled_from(["add", "upsert"]), on_error=st.sampled_from(["raise", "skip"]),
        items=st.lists(st.tuples(ids, texts, metadata), max_size=5), signed=st.booleans(),
        seed=st.integers(0, 99), beside=st.lists(vectors, min_size=5, max_size=5),
    )  # fmt: skip
    def write(
        self, name: str, on_error: str, items: Any, signed: bool, seed: int, beside: list[Any]
    ) -> None:
        rows = np.random.default_rng(seed).integers(0, 256, (len(items), BITS // 8), np.uint8)
        self.both.call(
            name, [one[0] for one in items], None if signed and seed % 2 else [o[1] for o in items],
            signatures=rows if signed else None, metadata=[one[2] for one in items],
            vectors=beside[: len(items)], on_error=on_error,
        )  # fmt: skip

    @rule(names=st.lists(ids, max_size=4))
    def delete(self, names: list[str]) -> None:
        self.both.call("delete", names)

    @rule(names=st.lists(ids, max_size=4), where=wheres)
    def read(self, names: list[str], where: Any) -> None:
        self.both.call("get_many", names)
        self.both.call("count", where)
        self.both.call("scroll", names[0] if names else "", 3, where=where)

    @rule(
        query=st.one_of(texts, st.integers(0, 99)), k=st.integers(0, 6),
        radius=st.one_of(st.none(), st.integers(0, 40)), where=wheres,
        exclude=st.lists(ids, max_size=2), explain=st.booleans(), text=st.booleans(),
        plan=st.sampled_from([None, "native", "sql"]), mask=st.sampled_from(["auto", True, False]),
        by=st.sampled_from(["auto", "auto", "words", "similar"]), vector=vectors,
        exact=st.booleans(),
    )  # fmt: skip
    def search(
        self, query: Any, k: int, radius: int | None, mask: Any, by: Any, vector: Any, exact: bool,
        **options: Any,
    ) -> None:  # fmt: skip
        if isinstance(query, int):
            query = np.random.default_rng(query).integers(0, 256, BITS // 8, np.uint8)
        self.both.call("search", query, k, radius=radius, mask=mask, by=by, **options)
        limits: dict[str, Any] = {"radius": radius, "mask": mask, "by": by, **options}
        self.both.call("search", query, k, vector=vector, exact=exact, **limits)
        del options["explain"]
        self.both.call("search", None, k, vector=vector, exact=exact, **options)
        if radius is not None:
            self.both.call("within", query, radius, limit=max(1, k), **options)

    @rule(queries=st.lists(texts, max_size=3), radius=st.integers(0, 32), id=ids)
    def many(self, queries: list[str], radius: int, id: str) -> None:
        self.both.call("search_many", queries, 2)
        self.both.call("within_many", queries, radius, limit=2)
        self.both.call("duplicates_of", id, radius, limit=2)

    @invariant()
    def alike(self) -> None:
        assert len(self.both.here) == len(self.both.there)
        assert self.both.here.version == self.both.there.version


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("client")
    (folder / "data").mkdir()
    with running(folder / "data", folder) as service:
        yield service


@pytest.mark.hypothesis
def test_a_service_is_as_a_collection_in_any_sequence(served: Running) -> None:
    machine = type("OverHttp", (ServiceBesideCollection,), {"service": served})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=int(os.environ.get("LOOKALIKE_STATES", 10)), stateful_step_count=15,
            deadline=None, suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip


@pytest.fixture
def both(served: Running, tmp_path: Path) -> Iterator[Both]:
    signer = la.SimHash(bits=BITS)
    here = la.open_collection(tmp_path / "here.db", "both", signer=signer)
    there = la.connect(served.url, "both", signer=signer)
    made = Both(here, there)
    made.call("add", ["fox", "owl", "law"], ["quick fox", "quick fox", "a law"])
    yield made
    here.close()
    there.close()
    served.good("DELETE", "/v1/collections/both")


def test_what_is_more_than_a_request(both: Both, tmp_path: Path) -> None:
    both.call("pairs", 8)
    both.call("pairs", 32, limit=1)
    names = [f"n{number:04d}" for number in range(1_234)]
    both.call("add", names, ["text " + name for name in names])
    for one in (both.here, both.there):
        assert [document.id for document in one] == sorted([*names, "fox", "owl", "law"])
    assert [len(page) for page in both.there.pages(1_100)] == [1_100, 137]
    assert "fox" in both.there and "none" not in both.there
    both.there.snapshot(tmp_path / "copy.db")
    with la.open_collection(tmp_path / "copy.db", "both", create=False) as copy:
        assert len(copy) == 1_237
    with pytest.raises(la.errors.FileError, match="already exists"):
        both.there.snapshot(tmp_path / "copy.db")
    assert both.there.signer == both.here.signer and both.there.bits == BITS


def test_a_few_words(served: Running) -> None:
    with la.connect(served.url, "words", signer=la.SimHash(bits=BITS), words="porter") as docs:
        docs.add(["fox", "owl"], ["foxes jump over dogs", "owls sleep"])
        assert served.good("GET", "/v1/collections/words")["words"] == "porter"
        found = served.good("POST", "/v1/collections/words/query", {"text": "jumping zebra"})
        assert [(one["id"], one["words"]) for one in found["matches"]] == [("fox", ["jumping"])]
        assert 0 < found["matches"][0]["score"] < 1 and "similarity" not in found["matches"][0]
        assert (found["by"], found["unknown"], found["no_match"]) == ("words", ["zebra"], "")
        found = served.good("POST", "/v1/collections/words/query", {"text": "zxqv blorp"})
        said = "no match: no document has 'zxqv' or 'blorp'"
        assert (found["matches"], found["no_match"]) == ([], said)
        assert docs.search("zxqv blorp").no_match == said
        similar = {"text": "jumping zebra", "by": "similar"}
        found = served.good("POST", "/v1/collections/words/query", similar)
        assert len(found["matches"]) == 2 and found["by"] == "similar"
    with pytest.raises(la.errors.ArgumentError, match="words is 'none'"):
        la.connect(served.url, "other", bits=BITS, words="none")  # type: ignore[call-overload]
    served.good("DELETE", "/v1/collections/words")


def test_vectors_beside_texts(served: Running, tmp_path: Path) -> None:
    path = "/v1/collections/beside/query"
    with la.connect(served.url, "beside", signer=la.SimHash(bits=BITS), words="porter") as docs:
        assert docs.dimensions == 0
        docs.add(["fox", "owl"], ["foxes jump over dogs", "owls sleep"], vectors=[[1, 0], None])
        body = {"documents": [{"id": "sea", "text": "waves", "vector": [0.5, 1]}]}
        served.good("PUT", "/v1/collections/beside/documents", body)
        about = served.good("GET", "/v1/collections/beside")
        assert (about["vectors"], about["dimensions"]) == (2, 2)
        found = served.good("POST", path, {"vector": [1, 0], "k": 2})
        assert [one["id"] for one in found["matches"]] == ["fox", "sea"]
        assert (found["matches"][0]["score"], found["by"], found["exact"]) == (1, "vector", True)
        packed = base64.b64encode(np.array([1, 0], "<f4").tobytes()).decode()
        assert served.good("POST", path, {"vector": packed, "k": 2}) == found
        both = served.good("POST", path, {"vector": packed, "text": "waves"})
        assert [(one["id"], one["ranks"]) for one in both["matches"]] == [
            ("sea", [1, 2]), ("fox", [0, 1]),
        ]  # fmt: skip
        many = served.good("POST", f"{path}/batch", {"vectors": [packed, [0, 1]], "k": 1})
        assert [one["matches"][0]["id"] for one in many["answers"]] == ["fox", "sea"]
        whole = {"ids": ["sea"], "include_vectors": True}
        (sea,) = served.good("POST", "/v1/collections/beside/documents/get", whole)["documents"]
        assert np.frombuffer(base64.b64decode(sea["vector"]), "<f4").tolist() == [0.5, 1]
        assert docs.get("sea").vector.tolist() == [0.5, 1]  # type: ignore[union-attr]
        bodies: list[dict[str, Any]] = [
            {"vector": [1]}, {"vector": "abc"}, {"vector": [0, 0]}, {"vector": True},
            {"vector": {}}, {"vector": [1, 0], "id": "fox"}, {"vector": [1, 0], "radius": 3}, {},
        ]  # fmt: skip
        for wrong in bodies:
            status, _, problem = served.ask("POST", path, wrong)
            assert status == 422, (wrong, problem)
        docs.export(tmp_path / "out.jsonl")
        docs.delete(["fox", "sea"])
        assert docs.import_file(tmp_path / "out.jsonl", replace=True).added == 2
        assert docs.search(vector=[1, 0.1], k=1).ids == ["fox"]
    served.good("DELETE", "/v1/collections/beside")


def test_files_are_imported_and_exported(served: Running, tmp_path: Path) -> None:
    """As a local collection does it, in requests of few bytes."""
    rows: list[dict[str, Any]] = [
        {"id": f"d{at:04}", "text": "狐 fox " * (at % 7 * 3_000), "year": 2000 + at % 9}
        for at in range(60)
    ]
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    told: list[float] = []
    with (
        la.connect(served.url, "files", signer=la.SimHash(bits=BITS)) as there,
        la.open_collection(tmp_path / "here.db", signer=la.SimHash(bits=BITS)) as here,
    ):
        done = there.import_file(source, progress=lambda step, share: told.append(share))
        assert vars(done) == vars(here.import_file(source)) and done.added == 60
        assert len(told) > 1 and there.version == len(told)
        for docs in (there, here):
            with pytest.raises(la.errors.BatchError, match="exists"):
                docs.import_file(source)
            again = docs.import_file([*rows[:3], {"id": "", "text": "x"}], replace=True,
                                     skip_bad=True, batch=2)  # fmt: skip
            assert (again.added, again.updated, again.bad) == (0, 3, 1)
            with pytest.raises(la.errors.ArgumentError, match="batch is 0"):
                docs.import_file(source, batch=0)
        files = tmp_path / "there.jsonl", tmp_path / "here.jsonl"
        for export, path in zip((there.export, here.export), files, strict=True):
            assert export(path, where={"year": {"<": 2005}}) == 35

        def content(path: Path) -> list[dict[str, Any]]:
            found = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            return [{name: row[name] for name in row if name not in ("added", "updated")}
                    for row in found]  # fmt: skip

        assert content(files[0]) == content(files[1])
        with pytest.raises(la.errors.FileError):
            there.import_file(tmp_path / "missing.jsonl")
        with pytest.raises(la.errors.ArgumentError, match="function, which cannot be sent"):
            there.export(tmp_path / "out.jsonl", where=lambda metadata: True)
        assert not (tmp_path / "out.jsonl").exists()
    served.good("DELETE", "/v1/collections/files")


def test_estimates_of_sparse_signatures(served: Running) -> None:
    """Bits that no word decides do not count: unrelated short texts are not similar."""
    texts = ["quick fox", "sleeping owl", "a quick brown fox jumps over the lazy dog", "fox"]
    signer = la.TopSig(1024, features=la.Words(ngram=1))
    rows = signer.sign(texts)
    ones = np.bitwise_count(rows).sum(axis=1, dtype=int)
    with la.connect(served.url, "sparse", signer=signer) as docs:
        docs.add([str(at) for at in range(len(texts))], texts)
        for mask in (True, False):
            for plan in ("native", "sql"):
                body = {"texts": texts, "k": 9, "mask": mask, "plan": plan}
                found = served.good("POST", "/v1/collections/sparse/query/batch", body)
                for left, answer in enumerate(found["answers"]):
                    assert len(answer["matches"]) == len(texts)
                    for match in answer["matches"]:
                        right = int(match["id"])
                        far = int(la.hamming(rows[left], rows[right])[0])
                        expected = estimated_pairs(signer, far, 1024, ones[left] + ones[right])
                        assert match["similarity"] == round(float(expected), 4)
                        assert left == right or match["similarity"] < 0.8
        like = served.good("POST", "/v1/collections/sparse/query", {"id": "0", "k": 9})
        assert {one["id"]: one["similarity"] < 0.5 for one in like["matches"]}["1"]
    served.good("DELETE", "/v1/collections/sparse")


def test_what_a_collection_is_for(served: Running, tmp_path: Path) -> None:
    """A purpose has the same defaults over HTTP, in the client and locally."""
    made = ({"name": "all"}, {"name": "dups", "purpose": "duplicates"},
            {"name": "cjk", "purpose": "search", "words": "trigram"})  # fmt: skip
    for body, words in zip(made, ("porter", None, "trigram"), strict=True):
        found = served.good("POST", "/v1/collections", body)
        assert (found["words"], found["bits"]) == (words, 128)
    for purpose in ("search", "duplicates"):
        with (
            la.connect(served.url, f"for-{purpose}", purpose=purpose) as there,
            la.open_collection(tmp_path / "docs.db", purpose, purpose=purpose) as here,
            la.connect(served.url, f"for-{purpose}", purpose="search"),  # it exists
        ):
            assert there.signer == here.signer
            assert there.stats()["words"] == here.stats()["words"]
    with pytest.raises(la.errors.ArgumentError, match="purpose is 'reading'"):
        la.connect(served.url, "x", purpose="reading")  # type: ignore[call-overload]
    with pytest.raises(la.errors.ArgumentError, match="purpose is 'search', which is for texts"):
        la.connect(served.url, "x", purpose="search", signer=la.ImageHash())
    body = {"name": "x", "purpose": "reading"}
    status, _, said = served.ask("POST", "/v1/collections", body)
    assert status == 422 and "purpose" in str(said)
    for name in ("all", "dups", "cjk", "for-search", "for-duplicates"):
        served.good("DELETE", f"/v1/collections/{name}")


def test_vectors_are_asked_for_as_they_are(served: Running, tmp_path: Path) -> None:
    signer = la.Projection(BITS, 6)
    vectors = np.random.default_rng(2).normal(size=(9, 6))
    here = la.open_collection(tmp_path / "here.db", "vectors", signer=signer)
    there = la.connect(served.url, "vectors", signer=signer)
    with here, there:
        both = Both(here, there)
        both.call("add", list("abcdefghi"), signatures=signer.sign(vectors))
        ((nearest, *_), *_) = both.call("search", vectors[4], 2)
        assert nearest["id"] == "e" and nearest["distance"] == 0
        both.call("within", vectors[4].tolist(), 12)
        both.call("search_many", vectors, 3)
        both.call("within_many", vectors, 9)
        both.call("search", vectors[:2], 2)
        both.call("search", vectors[4, :5], 2)
    served.good("DELETE", "/v1/collections/vectors")


BAD: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("add", (["a"],), {}),
    ("add", (["a"], ["x", "y"]), {}),
    ("add", ("ab", ["x", "y"]), {}),
    ("add", (["a"], ["x"]), {"on_error": "ignore"}),
    ("add", ([b"a", None, "\ud800"], ["x", "y", "z"]), {}),
    ("add", (["a", "b", "c"], ["x", 5, "\ud800"]), {}),
    ("add", (["a", "b"], ["x", "y"]), {"metadata": [{"n": float("nan")}, {1, 2}]}),
    ("add", (["a"],), {"signatures": np.zeros((1, 3), np.uint8)}),
    ("upsert", (["a", "a", "b"], ["x", "y", "z"]), {}),
    ("delete", ([7],), {}),
    ("delete", ("fox",), {}),
    ("get", (7,), {}),
    ("count", ({"n": {"no": 1}},), {}),
    ("scroll", ("", 0), {}),
    ("scroll", (7,), {}),
    ("search", ("x", 0), {}),
    ("search", ("x", "y"), {}),
    ("search", ("x",), {"plan": "fast"}),
    ("search", ("x",), {"radius": -1}),
    ("search", ("x",), {"explain": 1}),
    ("search", ("x",), {"exclude": "fox"}),
    ("search", ("x",), {"threads": 0}),
    ("search", ("x",), {"mask": "maybe"}),
    ("search", (np.zeros(3, np.uint8),), {}),
    ("search", (np.zeros((2, BITS // 8), np.uint8),), {}),
    ("search", (np.zeros(BITS // 8, np.uint8),), {"mask": True}),
    ("search_many", ("x",), {}),
    ("within", ("x", None), {}),
    ("within", ("x", 5), {"limit": 0}),
    ("duplicates_of", ("none", 5), {}),
    ("duplicates_of", (5, 5), {}),
    ("pairs", (-1,), {}),
    ("pairs", (1,), {"limit": -1}),
]


@pytest.mark.parametrize(("name", "arguments", "options"), BAD)
def test_bad_input_is_told_in_the_same_words(
    both: Both, name: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    both.call(name, *arguments, **options)


def test_what_cannot_be_sent(both: Both) -> None:
    with pytest.raises(la.errors.ArgumentError, match="where is a function, which cannot be sent"):
        both.there.search("x", where=lambda metadata: True)
    with pytest.raises(la.errors.ArgumentError, match="expected at most 10000"):
        both.there.search("x", 10_001)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((7,), {}, "of type int; expected one such as http"),
        (("docs.db",), {}, "expected one such as http://127.0.0.1:8600"),
        (("ftp://x",), {}, "expected one such as http"),
        (("http://user:pass@host",), {}, "set the API key with key="),
        (("http://host:99999",), {}, "cannot be read"),
        (("http://127.0.0.1:1", "x"), {"timeout": 0}, "timeout is 0; expected seconds"),
        (("http://127.0.0.1:1", "x"), {"retries": -1}, "retries is -1"),
        (("http://127.0.0.1:1", "x"), {"key": "a\nb"}, "invalid API key"),
        (("http://127.0.0.1:1", "x"), {"signer": 5}, "signer is 5; expected one such as la"),
        (("http://127.0.0.1:1", ""), {}, "the name of the collection is ''"),
        (("http://127.0.0.1:1", "x"), {"keep_text": 1}, "keep_text is 1; expected True or False"),
        (("http://127.0.0.1:1", "x"), {"bits": 3}, "bits is 3"),
    ],
)
def test_bad_addresses_and_arguments(arguments: Any, options: Any, said: str) -> None:
    with pytest.raises(la.errors.ArgumentError) as caught:
        la.connect(*arguments, **options)
    assert said in str(caught.value) and "pass" not in str(caught.value).replace("password", "")


def test_services_that_are_not_there_or_none(served: Running) -> None:
    with pytest.raises(la.errors.NotFoundError, match="serves 0 collections|choose one"):
        la.connect(served.url)
    with pytest.raises(la.errors.NotFoundError, match="there is no collection 'none'"):
        la.connect(served.url, "none")
    with pytest.raises(la.errors.CollectionError, match="cannot be reached"):
        la.connect("http://127.0.0.1:1", "x", retries=0)


class Talker:
    """A server that answers each connection's requests by a list of replies."""

    def __init__(self, *replies: bytes | None) -> None:
        self.replies = list(replies)
        self.asked: list[bytes] = []
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while self.replies:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                while self.replies and (request := whole_request(connection)):
                    self.asked.append(request)
                    reply = self.replies.pop(0)
                    if reply is None:
                        break  # hang up without a word
                    connection.sendall(reply)

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)  # or who accepts would not hear of it
        self.listener.close()
        self.thread.join(120)
        assert not self.thread.is_alive()


def whole_request(connection: socket.socket) -> bytes:
    read = b""
    while b"\r\n\r\n" not in read:
        more = connection.recv(65536)
        if not more:
            return b""
        read += more
    head, _, body = read.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    while length and len(body) < int(length[1]):
        body += connection.recv(65536)
    return head + body


def reply(value: Any, status: int = 200) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%s" % (status, len(body), body)


DESCRIBED = {"name": "x", "bits": 32, "keeps_text": True, "signer": la.SimHash(32).to_dict(),
             "version": 1}  # fmt: skip
BUSY = reply({"error": {"code": "busy", "kind": "CollectionBusyError", "message": "m"}}, 503)


def test_reads_are_tried_again_and_writes_are_not() -> None:
    talker = Talker(
        reply(DESCRIBED), None, BUSY, reply({"count": 5}), None, reply({"count": 6}), BUSY, BUSY,
        BUSY,
    )  # fmt: skip
    docs = la.connect(talker.url, "x")
    assert docs.count() == 5, "after a hang-up and a refusal"
    before = len(talker.asked)
    with pytest.raises(la.errors.CollectionError, match="The write may have been applied"):
        docs.upsert(["a"], ["text"])
    assert len(talker.asked) == before + 1, "once"
    assert docs.count() == 6
    with pytest.raises(la.errors.CollectionBusyError):
        docs.count()
    docs.close()
    with pytest.raises(la.errors.CollectionError, match="is closed; connect again"):
        docs.count()
    talker.close()


def test_connections_stay_open() -> None:
    talker = Talker(reply(DESCRIBED), *[reply({"count": 1})] * 5)
    docs = la.connect(talker.url, "x", timeout=120, retries=0)
    for _ in range(5):
        docs.count()
    assert talker.connections == 1
    docs.close()
    talker.close()


def test_answers_are_waited_for_no_longer_than_told() -> None:
    talker = Talker(b"HTTP/1.1 200 X\r\n", None)  # which is not the whole of an answer
    with pytest.raises(la.errors.CollectionBusyError, match=r"did not answer within 0.3 s"):
        la.connect(talker.url, "x", timeout=0.3, retries=0)
    talker.close()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 X\r\ncontent-length: 2\r\n\r\nhi",
                                    b"HTTP/1.1 500 X\r\ncontent-length: 2\r\n\r\n[]",
                                    b"nonsense\r\n\r\n"])  # fmt: skip
def test_other_services_are_told_from_ours(answer: bytes) -> None:
    talker = Talker(answer)
    with pytest.raises(la.errors.CollectionError):
        la.connect(talker.url, "x", retries=0)
    talker.close()
