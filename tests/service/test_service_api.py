"""The routes of a service, asked over HTTP: what they do, and what they refuse."""

from __future__ import annotations

import base64
import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

import lookalike as la
from lookalike.service import jobs
from support.running.waiting import wait_until
from support.services.running import Running, running

TEXTS = {
    "fox": "the quick brown fox jumps over the lazy dog near the river bank",
    "owl": "a quick brown fox jumps over the lazy dog near the river bank",
    "law": "minimum wage legislation was debated in parliament on tuesday",
}
BASE = "/v1/collections/pages"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "data").mkdir()
    with running(folder / "data", folder, max_text=2_000, max_batch=50, max_k=100) as service:
        yield service


@pytest.fixture
def pages(served: Running) -> Iterator[Running]:
    """A service with three documents in the collection `pages`."""
    served.good("POST", "/v1/collections", {"name": "pages", "signer": {"bits": 64}})
    documents = [
        {"id": id, "text": text, "metadata": {"words": len(text.split()), "lang": "en"}}
        for id, text in TEXTS.items()
    ]
    served.good("PUT", f"{BASE}/documents", {"documents": documents})
    yield served
    served.good("DELETE", BASE)


def test_collections_are_made_listed_described_and_deleted(served: Running) -> None:
    assert served.good("GET", "/v1/collections") == {"collections": []}
    status, _, made = served.ask("POST", "/v1/collections", {"name": "a.b-c_1", "bits": 32})
    assert status == 201 and (made["bits"], made["signer"], made["documents"]) == (32, None, 0)
    served.refused(409, "exists", "POST", "/v1/collections", {"name": "a.b-c_1", "bits": 32})
    names = [one["name"] for one in served.good("GET", "/v1/collections")["collections"]]
    assert names == ["a.b-c_1"]
    assert served.good("GET", "/v1/collections/a.b-c_1") == {**made}
    assert served.good("DELETE", "/v1/collections/a.b-c_1") == {"deleted": "a.b-c_1"}
    served.refused(404, "not_found", "GET", "/v1/collections/a.b-c_1")
    served.refused(404, "not_found", "DELETE", "/v1/collections/a.b-c_1")


@pytest.mark.parametrize(
    "signer", [la.SimHash(64), la.TopSig(128), la.BBitMinHash(64), la.SimHash(64, la.Chars(4))]
)
def test_a_signer_can_be_described_as_python_does(served: Running, signer: Any) -> None:
    body = {"name": "signed", "description": signer.to_dict()}
    made = served.good("POST", "/v1/collections", body)
    try:
        assert made["signer"] == json.loads(json.dumps(signer.to_dict()))
    finally:
        served.good("DELETE", "/v1/collections/signed")


def test_items_of_a_batch_have_their_own_results(pages: Running) -> None:
    documents = [
        {"id": "new", "text": "something new"},
        {"id": "", "text": "no id"},
        {"id": "fox", "text": "replaced"},
        {"id": "long", "text": "x" * 2_001},
        {"id": "deep", "text": "x", "metadata": [1]},
        {"id": 7, "text": "a number"},
    ]
    done = pages.good("PUT", f"{BASE}/documents", {"documents": documents})
    assert (done["added"], done["updated"]) == (1, 1)
    stati = [one["status"] for one in done["results"]]
    assert stati == ["written", "refused", "written", "refused", "refused", "refused"]
    assert "has 2001 bytes; expected at most 2000" in done["results"][3]["message"]
    before = pages.good("GET", BASE)["version"]
    body = {"documents": documents, "on_error": "raise"}
    status, _, value = pages.ask("PUT", f"{BASE}/documents", body)
    assert status == 422 and value["error"]["kind"] == "BatchError"
    assert [one["position"] for one in value["error"]["items"]] == [3]
    assert pages.good("GET", BASE)["version"] == before, "nothing was written"
    body = {"documents": [{"id": "fox", "text": "again"}], "mode": "add"}
    done = pages.good("PUT", f"{BASE}/documents", body)
    assert done["results"][0]["status"] == "refused"


def test_documents_are_read_and_deleted(pages: Running) -> None:
    fox = pages.good("GET", f"{BASE}/documents/fox")
    assert (fox["text"], fox["metadata"]["lang"]) == (TEXTS["fox"], "en")
    found = pages.good("POST", f"{BASE}/documents/get", {"ids": ["owl", "none", "fox"]})
    assert [one and one["id"] for one in found["documents"]] == ["owl", None, "fox"]
    first = pages.good("GET", f"{BASE}/documents?limit=2")
    assert [one["id"] for one in first["documents"]] == ["fox", "law"] and first["next"] == "law"
    rest = pages.good("POST", f"{BASE}/documents/scroll", {"after": first["next"], "limit": 2})
    assert [one["id"] for one in rest["documents"]] == ["owl"] and rest["next"] is None
    assert pages.good("POST", f"{BASE}/documents/count")["count"] == 3
    where = {"words": {">": 9}}
    assert pages.good("POST", f"{BASE}/documents/count", {"where": where})["count"] == 2
    assert pages.good("POST", f"{BASE}/documents/delete", {"where": where})["deleted"] == 2
    assert pages.good("DELETE", f"{BASE}/documents/law")["deleted"] == 1
    assert pages.good("DELETE", f"{BASE}/documents/law")["deleted"] == 0
    pages.refused(404, "not_found", "GET", f"{BASE}/documents/law")


def test_ids_with_every_character_go_through_addresses(pages: Running) -> None:
    ids = ["a/b", "a b?c#d", "ünïcode/ß", "%2e%2e", "..x"]
    body = {"documents": [{"id": id, "text": "text"} for id in ids]}
    pages.good("PUT", f"{BASE}/documents", body)
    from urllib.parse import quote

    for id in ids:
        assert pages.good("GET", f"{BASE}/documents/{quote(id, safe='')}")["id"] == id
        assert pages.good("DELETE", f"{BASE}/documents/{quote(id)}")["deleted"] == 1


def test_queries_by_text_id_and_signature_agree(pages: Running) -> None:
    by_text = pages.good("POST", f"{BASE}/query", {"text": TEXTS["fox"], "k": 3})
    assert by_text["matches"][0]["id"] == "fox"
    assert by_text["matches"][0]["similarity"] == 1.0 and by_text["exact"]
    signature = pages.good("GET", f"{BASE}/documents/fox")["signature"]
    by_hex = pages.good("POST", f"{BASE}/query", {"signature": signature, "k": 3})
    encoded = base64.b64encode(bytes.fromhex(signature)).decode()
    by_base64 = pages.good("POST", f"{BASE}/query", {"signature_base64": encoded, "k": 3})
    assert by_text["matches"] == by_hex["matches"] == by_base64["matches"]
    by_id = pages.good("POST", f"{BASE}/query", {"id": "fox", "k": 2})
    assert by_id["matches"] == by_text["matches"][1:]
    body = {"text": TEXTS["fox"], "radius": 64, "where": {"words": {"<": 10}}, "explain": True,
            "include_text": True, "exclude": ["owl"]}  # fmt: skip
    told = pages.good("POST", f"{BASE}/query", body)
    (law,) = told["matches"]
    assert law["id"] == "law" and law["text"] == TEXTS["law"]
    assert len(law["differing_bits"]) == law["distance"] and told["work"]["candidates"] >= 1
    assert "differing_bits" not in by_text["matches"][0] and "work" not in by_text


def test_a_batch_answers_as_single_queries_do(pages: Running) -> None:
    texts = [TEXTS["fox"], "nothing alike", TEXTS["law"]]
    signatures = [pages.good("GET", f"{BASE}/documents/{id}")["signature"] for id in TEXTS]
    for one, many, values in (
        ("text", "texts", texts),
        ("id", "ids", list(TEXTS)),
        ("signature", "signatures", signatures),
    ):
        for asked in ({"k": 2}, {"radius": 30}, {"radius": 64, "limit": 1}, {"k": 1, "radius": 9}):
            answers = pages.good("POST", f"{BASE}/query/batch", {many: values, **asked})["answers"]
            alone = [pages.good("POST", f"{BASE}/query", {one: v, **asked}) for v in values]
            assert answers == alone, (one, asked)
    assert pages.good("POST", f"{BASE}/query/batch", {"texts": []}) == {"answers": []}
    pages.refused(404, "not_found", "POST", f"{BASE}/query/batch", {"ids": ["fox", "none"]})


def test_messagepack_says_what_json_says(pages: Running) -> None:
    body = {"text": TEXTS["owl"], "k": 3, "explain": True}
    packed = msgpack.packb(body)
    kinds = {"content_type": "application/msgpack", "accept": "application/msgpack"}
    status, headers, raw = pages.raw("POST", f"{BASE}/query", packed, **kinds)
    assert (status, headers["content-type"]) == (200, "application/msgpack")
    assert msgpack.unpackb(raw) == pages.good("POST", f"{BASE}/query", body)
    pages.refused(400, "not_messagepack", "POST", f"{BASE}/query", b"\xc1", content_type=MSGPACK)
    pages.refused(
        422, "bad_body", "POST", f"{BASE}/query", msgpack.packb([1]), content_type=MSGPACK
    )
    large = {"documents": [{"id": "large", "text": "x", "metadata": {"n": 2**70}}]}
    pages.good("PUT", f"{BASE}/documents", large)
    assert pages.good("GET", f"{BASE}/documents/large")["metadata"] == {"n": 2**70}
    pages.refused(406, "not_in_messagepack", "GET", f"{BASE}/documents/large", accept=MSGPACK)


MSGPACK = "application/msgpack"


def test_two_texts_are_compared_word_by_word(pages: Running) -> None:
    body = {"left": {"id": "fox"}, "right": {"text": TEXTS["owl"]}}
    found = pages.good("POST", f"{BASE}/compare", body)
    expected = la.compare_texts(TEXTS["fox"], TEXTS["owl"]).to_dict()
    own = found.pop("signer")
    assert found == json.loads(json.dumps(expected))
    left, right = (Counter(TEXTS[id].lower().split()) for id in ("fox", "owl"))
    dot = sum(count * right[word] for word, count in left.items())
    lengths = [math.sqrt(sum(count**2 for count in one.values())) for one in (left, right)]
    assert own["exact"] == pytest.approx(dot / math.prod(lengths))
    assert (own["measure"], own["unit"], own["weights"]) == ("cosine", "words", "count")
    (match,) = pages.good("POST", f"{BASE}/query", {"id": "fox", "k": 1})["matches"]
    assert (match["id"], match["distance"]) == ("owl", own["distance"])
    assert own["estimate"] == pytest.approx(math.cos(math.pi * own["distance"] / own["bits"]))
    assert match["similarity"] == pytest.approx(own["estimate"], abs=1e-4)
    pages.refused(404, "not_found", "POST", f"{BASE}/compare", {**body, "left": {"id": "none"}})


def test_what_a_page_shows_of_a_collection(pages: Running) -> None:
    groups = pages.good("GET", f"{BASE}/groups?radius=20")
    assert [one["size"] for one in groups["groups"]] == [2]
    assert [one["id"] for one in groups["groups"][0]["members"]] == ["fox", "owl"]
    drawn = pages.good("GET", f"{BASE}/map")
    assert sorted(one["id"] for one in drawn["places"]) == sorted(TEXTS)
    assert all(-1 <= one[axis] <= 1 for one in drawn["places"] for axis in "xy")
    apart = pages.good("GET", f"{BASE}/distances")
    assert len(apart["random_pairs"]) == 65 and sum(apart["nearest"]) == 3
    pages.good("PUT", f"{BASE}/documents", {"documents": [{"id": "elk", "text": TEXTS["fox"]}]})
    again = pages.good("GET", f"{BASE}/groups?radius=20")
    assert again["version"] > groups["version"] and again["groups"][0]["size"] == 3


def test_jobs_find_pairs_and_duplicates(pages: Running) -> None:
    done = pages.job(f"{BASE}/pairs", {"radius": 20})
    assert (done["state"], done["summary"]) == ("done", {"pairs": 1})
    found = pages.good("GET", f"/v1/jobs/{done['id']}/results")
    assert [(one["left"], one["right"]) for one in found["results"]] == [("fox", "owl")]
    failed = pages.job(f"{BASE}/pairs", {"radius": 64, "limit": 1})
    assert failed["state"] == "failed" and "more than limit=1" in failed["error"]
    pages.refused(409, "not_done", "GET", f"/v1/jobs/{failed['id']}/results")
    by_text = pages.job(f"{BASE}/dedup", {"threshold": 0.6, "keep": "newest"})
    found = {"duplicates": 1, "groups": 1, "deleted": 0, "changed": 0}
    reason = "100% of the documents have at most 120 characters"
    assert by_text["summary"] == {**found, "features": "short", "features_reason": reason}
    by_words = pages.job(f"{BASE}/dedup", {"threshold": 0.6, "features": "words"})
    assert by_words["summary"] == {**found, "features": "words", "features_reason": None}
    strict = pages.job(f"{BASE}/dedup", {"threshold": 0.95, "features": "words"})
    assert strict["summary"]["duplicates"] == 0
    refused = {"radius": 20, "features": "short"}
    pages.refused(422, "bad_body", "POST", f"{BASE}/dedup", refused)
    deleted = pages.job(f"{BASE}/dedup", {"radius": 20, "delete": True})
    assert deleted["summary"] == {"duplicates": 1, "groups": 1, "deleted": 1, "changed": 0}
    rows = pages.good("GET", f"/v1/jobs/{deleted['id']}/results")["results"]
    assert [(one["id"], one["duplicate_of"]) for one in rows] == [("owl", "fox")]
    assert pages.good("POST", f"{BASE}/documents/count")["count"] == 2
    assert len(pages.good("GET", "/v1/jobs")["jobs"]) == 6
    for job in pages.good("GET", "/v1/jobs")["jobs"]:
        pages.good("DELETE", f"/v1/jobs/{job['id']}")
    assert pages.good("GET", "/v1/jobs") == {"jobs": []}


@pytest.mark.parametrize("how", [{"radius": 0}, {"threshold": 0.95, "features": "words"}])
def test_what_is_written_while_a_job_compares_is_not_deleted(
    pages: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    monkeypatch.setattr(jobs, "_MODULE", "support.services.held_jobs")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("GO_ON", str(tmp_path / "go-on"))
    texts = {f"{group}{member}": f"{group * 3} {TEXTS['law']} {group * 5}" for group in "abcd"
             for member in range(3)}  # fmt: skip

    def put(documents: dict[str, str]) -> None:
        items = [{"id": id, "text": text} for id, text in documents.items()]
        pages.good("PUT", f"{BASE}/documents", {"documents": items})

    put(texts)
    job = pages.good("POST", f"{BASE}/dedup", {**how, "delete": True})["id"]
    wait_until(lambda: pages.good("GET", f"/v1/jobs/{job}")["step"] == "deleting")
    put({"a1": "a new text that resembles nothing"})  # a duplicate has another text
    pages.good("DELETE", f"{BASE}/documents/b0")  # the kept document is gone
    put({"c0": "another text of a kept document"})  # the kept document has another text
    (tmp_path / "go-on").touch()
    done = pages.ended(job)
    expected = {"duplicates": 8, "groups": 4, "deleted": 3, "changed": 5}
    assert {name: done["summary"][name] for name in expected} == expected
    found = pages.good("POST", f"{BASE}/documents/scroll", {"limit": 50})["documents"]
    left = {"a0", "a1", "b1", "b2", "c0", "c1", "c2", "d0", *TEXTS}
    assert {one["id"] for one in found} == left
    pages.good("DELETE", f"/v1/jobs/{job}")


def test_a_job_that_runs_is_cancelled_and_others_wait(
    pages: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_MODULE", "support.services.held_jobs")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("GO_ON", str(tmp_path / "go-on"))
    started = [pages.good("POST", f"{BASE}/pairs", {"radius": 1})["id"] for _ in range(2)]
    pages.refused(429, "too_many_jobs", "POST", f"{BASE}/pairs", {"radius": 1})
    assert pages.good("DELETE", f"/v1/jobs/{started[0]}")["state"] == "canceled"
    # One that is told before it listens is ended all the same.
    monkeypatch.setattr(jobs, "_PATIENCE", 0.0)
    started.append(pages.good("POST", f"{BASE}/pairs", {"radius": 1})["id"])
    assert pages.good("DELETE", f"/v1/jobs/{started[2]}")["state"] == "canceled"
    (tmp_path / "go-on").touch()
    assert pages.ended(started[1])["state"] == "done"
    for id in started:
        pages.good("DELETE", f"/v1/jobs/{id}")
        pages.refused(404, "not_found", "GET", f"/v1/jobs/{id}")


def test_a_file_is_uploaded(pages: Running) -> None:
    lines = [{"id": f"u{n}", "text": f"uploaded text number {n}", "n": n} for n in range(120)]
    data = (
        b"".join(json.dumps(one).encode() + b"\n" for one in lines) + b'{"id": "", "text": "x"}\n'
    )
    octets = "application/octet-stream"
    status, _, job = pages.ask("POST", f"{BASE}/upload?format=jsonl", data, content_type=octets)
    assert status == 202
    done = pages.ended(job["id"])
    assert (done["state"], done["summary"]["added"], done["summary"]["bad"]) == ("done", 120, 1)
    assert pages.good("GET", f"{BASE}/documents/u7")["metadata"] == {"n": 7}
    pages.refused(415, "content_type", "POST", f"{BASE}/upload", data, content_type="text/plain")
    pages.refused(422, "empty_file", "POST", f"{BASE}/upload", b"", content_type=octets)
    path = f"{BASE}/upload?format=parquet"
    pages.refused(422, "bad_parameter", "POST", path, data, content_type=octets)


def test_an_upload_in_another_encoding_says_so(pages: Running) -> None:
    """What was guessed is in the collection: the summary tells, as the command does."""
    octets = "application/octet-stream"
    text = "Größe über der Straße"

    def uploaded(data: bytes) -> dict[str, Any]:
        path = f"{BASE}/upload?format=csv"
        status, _, job = pages.ask("POST", path, data, content_type=octets)
        assert status == 202
        done: dict[str, Any] = pages.ended(job["id"])
        assert done["state"] == "done"
        return dict(done["summary"])

    rows = f"id,text\nenc1,{text}\n"
    (warning,) = uploaded(rows.encode("latin-1"))["warnings"]
    assert warning == (
        "the file was read as cp1252, which was detected; if that is wrong, upload it in UTF-8"
    )
    assert pages.good("GET", f"{BASE}/documents/enc1")["text"] == text
    for encoding in ("utf-8", "utf-16"):
        assert uploaded(rows.encode(encoding))["warnings"] == []
    bad = uploaded(rows.encode() + b"enc2,\xff\n")
    assert bad["bad"] == 1 and "upload it in UTF-8" in bad["examples"][0]
    assert "--encoding" not in bad["examples"][0]


def test_snapshots_are_downloaded_and_can_be_opened(pages: Running, tmp_path: Path) -> None:
    made = pages.good("POST", f"{BASE}/snapshots")
    assert pages.good("GET", f"{BASE}/snapshots") == {"snapshots": [made]}
    status, headers, raw = pages.raw("GET", f"{BASE}/snapshots/{made['name']}")
    assert status == 200 and len(raw) == made["bytes"]
    assert headers["content-disposition"].startswith("attachment")
    (tmp_path / "copy.db").write_bytes(raw)
    with la.open_collection(tmp_path / "copy.db", "pages", create=False) as docs:
        assert [one.id for one in docs] == ["fox", "law", "owl"]
    assert sqlite3.connect(tmp_path / "copy.db").execute("PRAGMA integrity_check").fetchone()
    pages.good("DELETE", f"{BASE}/snapshots/{made['name']}")
    pages.refused(404, "not_found", "GET", f"{BASE}/snapshots/{made['name']}")
    for name in ("..%2F..%2Fpages.db", "..%2Fpages.db", "x.db"):
        assert pages.ask("GET", f"{BASE}/snapshots/{name}")[0] in (404, 422)


def test_health_metrics_and_description(pages: Running) -> None:
    pages.good("POST", f"{BASE}/query", {"text": "x"})
    pages.good("POST", f"{BASE}/query", {"text": "x", "explain": True})  # always counted
    assert pages.good("GET", "/healthz")["status"] == "ok"
    assert pages.good("GET", "/readyz")["status"] == "ready"
    _, _, raw = pages.ask("GET", "/metrics")
    text = raw.decode()
    for name in (
        'lookalike_requests_total{method="POST",route="/v1/collections/{name}/query",status="200"}',
        'lookalike_request_seconds_bucket{le="0.001",route="/v1/collections/{name}/query"}',
        "lookalike_query_candidates_count", "lookalike_queries_together_sum",
        'lookalike_collection_index_lag{collection="pages"}',
    ):  # fmt: skip
        assert name in text, name
    described = pages.good("GET", "/v1/openapi.json")
    assert described["openapi"].startswith("3.1")
    for path, operations in described["paths"].items():
        for operation in operations.values():
            good = next(code for code in operation["responses"] if code.startswith("2"))
            assert operation["responses"][good]["content"], path
            assert {"401", "403", "429"} <= set(operation["responses"]), path


def test_what_is_not_there(served: Running) -> None:
    for path in ("/docs", "/redoc", "/openapi.json", "/v1", "/v1/nothing", "/page/../app.py",
                 "/page/%2e%2e/app.py", "/page//etc/passwd", "/page/none.js"):  # fmt: skip
        assert served.refused(404, "no_route", "GET", path)
    served.refused(405, "method", "PATCH", "/v1/collections")
