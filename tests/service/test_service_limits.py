"""Each limit has its own answer; names and paths lead nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

import lookalike as la
from support.services.guarded import BASE, Served
from support.services.running import running


@pytest.mark.parametrize(
    ("status", "code", "path", "body"),
    [
        (422, "k_too_large", "query", {"text": "x", "k": 21}),
        (422, "limit_too_large", "query", {"text": "x", "radius": 1, "limit": 21}),
        (422, "result_too_large", "query/batch", {"texts": ["x"] * 3, "k": 20}),
        (422, "batch_too_large", "query/batch", {"texts": ["x"] * 11}),
        (422, "text_too_long", "query", {"text": "x" * 501}),
        (422, "text_too_long", "query", {"text": "ü" * 251}),
        (422, "text_too_long", "query/batch", {"texts": ["x" * 501]}),
        (422, "batch_too_large", "documents/get", {"ids": ["x"] * 11}),
        (422, "batch_too_large", "documents/delete", {"ids": ["x"] * 11}),
        (422, "limit_too_large", "documents/scroll", {"limit": 11}),
        (422, "batch_too_large", "query", {"text": "x", "exclude": ["x"] * 11}),
        (422, "text_too_long", "compare", {"left": {"text": "x" * 501}, "right": {"text": ""}}),
        (422, "bad_body", "query", {"text": "x", "k": 0}),
        (422, "bad_body", "query", {"text": "x", "k": "1"}),
        (422, "bad_body", "query", {"text": "x", "k": 1.5}),
        (422, "bad_body", "query", {"text": "x", "kk": 1}),
        (422, "bad_body", "query", {"text": "x", "id": "one"}),
        (422, "bad_body", "query", {}),
        (422, "bad_body", "query", {"text": "x", "limit": 5}),
        (422, "bad_signature", "query", {"signature": "ff"}),
        (422, "bad_body", "query", {"signature": "xyz"}),
        (422, "bad_argument", "query", {"text": "x", "where": {"n": {"; DROP TABLE": 1}}}),
        (400, "not_json", "query", b"{"),
        (400, "not_json", "query", b'{"text": "\xff"}'),
        (400, "not_json", "query", b"[" * 10_000),
        (413, "body_too_large", "query", b'"' + b"x" * 20_001 + b'"'),
    ],
)
def test_each_limit_has_its_own_answer(
    guarded: Served, status: int, code: str, path: str, body: Any
) -> None:
    kind = {"content_type": "application/json"} if isinstance(body, bytes) else {}
    guarded.with_key("writer").refused(status, code, "POST", f"{BASE}/{path}", body, **kind)


def test_other_types_and_large_files_are_refused(guarded: Served) -> None:
    writer = guarded.with_key("writer")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        body = b'{"text": "x"}'
        writer.refused(415, "content_type", "POST", f"{BASE}/query", body, content_type=kind)
    path, octets = f"{BASE}/upload", "application/octet-stream"
    writer.refused(413, "body_too_large", "POST", path, b"x" * 30_001, content_type=octets)
    documents = [{"id": str(n), "text": "x"} for n in range(11)]
    path = f"{BASE}/documents"
    writer.refused(422, "batch_too_large", "PUT", path, {"documents": documents})


NAMES = ["..", "../pages", "..%2Fpages", "%2e%2e", "a/b", ".hidden", "a%00b", "x" * 65, "a b", "ü",
         "pages.db-journal/../x", "-rf", "a%0d%0aX-Y: z", "'; DROP TABLE x; --"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_lead_nowhere(guarded: Served, name: str, tmp_path_factory: Any) -> None:
    writer = guarded.with_key("writer")
    status, headers, _ = writer.ask("GET", f"/v1/collections/{quote(name, safe='%')}")
    assert status in (404, 422) and "x-y" not in headers
    status = writer.ask("POST", "/v1/collections", {"name": unquote(name), "bits": 64})[0]
    assert status == 422


def test_a_collection_of_images_opens_no_paths(tmp_path: Path) -> None:
    from PIL import Image

    photo = tmp_path / "secret.png"
    Image.effect_noise((64, 64), 90).save(photo)
    (tmp_path / "data").mkdir()
    with la.open_collection(
        tmp_path / "data" / "photos.db", "photos", signer=la.ImageHash(bits=64)
    ) as docs:
        docs.add(["own"], [str(photo)])  # whose machine it is may
        own = docs.get("own")
        assert own is not None
    base = "/v1/collections/photos"
    with running(tmp_path / "data", tmp_path) as service:
        asked = {"documents": [{"id": "a", "text": str(photo)}]}
        wrong = service.refused(422, "bad_argument", "PUT", f"{base}/documents", asked)
        assert "not opened by path here" in wrong
        for path in ("/query", "/query/batch"):
            text: Any = {"text": str(photo)} if path == "/query" else {"texts": [str(photo)]}
            assert "not opened" in service.refused(422, "bad_argument", "POST", base + path, text)
        answer = service.good(
            "POST", f"{base}/query", {"signature": own.signature.tobytes().hex(), "k": 1}
        )
        assert [match["id"] for match in answer["matches"]] == ["own"]
        line = json.dumps({"id": "b", "text": str(photo)}).encode()
        job = service.ask("POST", f"{base}/upload", line, content_type="application/octet-stream")
        ended = service.ended(job[2]["id"])
        assert ended["state"] == "failed" and "not opened" in ended["error"]
        assert service.good("POST", f"{base}/documents/count") == {"count": 1}
        assert service.good("GET", f"{base}/map")["regions"][0].get("words", []) == []
