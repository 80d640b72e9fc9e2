"""Who may come in: keys, what they are for, and what is told of them."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest

import lookalike as la
from lookalike.service.keys import KeyFile, make_key
from lookalike.service.settings import ServeSettings
from lookalike.service.telemetry import Log
from support.running.waiting import wait_until
from support.services.guarded import BASE, Served


def test_without_a_key_nothing_is_said(guarded: Served) -> None:
    nobody = guarded.with_key(None)
    for method, path in (
        ("GET", "/v1/collections"), ("GET", BASE), ("GET", "/metrics"), ("GET", "/v1/jobs"),
        ("POST", f"{BASE}/query"), ("DELETE", BASE), ("GET", "/v1/nothing"),
    ):  # fmt: skip
        assert "missing API key" in nobody.refused(401, "key", method, path)
    for wrong in ("x", "Bearer ", "Bearer nope", "Basic eDp5", "Bearer " + "ü" * 10):
        nobody.refused(401, "key", "GET", BASE, authorization=wrong)
    secret = guarded.keys["writer"]
    for near in (secret[:-1], secret + "x", secret.upper(), " ".join(secret)):
        nobody.refused(401, "key", "GET", BASE, authorization=f"Bearer {near}")
    assert nobody.ask("GET", BASE, x_api_key=secret)[0] == 200
    for path in ("/healthz", "/readyz", "/", "/v1/openapi.json"):
        assert nobody.ask("GET", path)[0] == 200


def test_keys_for_reading_do_not_write(guarded: Served) -> None:
    reader = guarded.with_key("reader")
    assert reader.good("POST", f"{BASE}/query", {"text": "some text"})["matches"]
    for method, path, body in (
        ("PUT", f"{BASE}/documents", {"documents": []}),
        ("POST", f"{BASE}/documents/delete", {"ids": ["one"]}),
        ("DELETE", f"{BASE}/documents/one", None),
        ("POST", "/v1/collections", {"name": "new", "bits": 64}),
        ("DELETE", BASE, None),
        ("POST", f"{BASE}/snapshots", None),
        ("POST", f"{BASE}/upload", b"x"),
        ("POST", f"{BASE}/dedup", {"radius": 1, "delete": True}),
    ):
        assert "is read-only" in reader.refused(403, "read_only", method, path, body)
    assert reader.good("GET", f"{BASE}/documents/one")["text"] == "some text"


def test_keys_reach_their_collections_only(guarded: Served) -> None:
    for name in ("pages", "peek"):
        scoped = guarded.with_key(name)
        listed = scoped.good("GET", "/v1/collections")["collections"]
        assert [one["name"] for one in listed] == ["pages"]
        for path in ("", "/documents/one", "/groups", "/map", "/snapshots"):
            scoped.refused(403, "collection_scope", "GET", f"/v1/collections/secret{path}")
        scoped.refused(403, "collection_scope", "GET", "/v1/collections/none")
        body = {"text": "some text"}
        scoped.refused(403, "collection_scope", "POST", "/v1/collections/secret/query", body)
        scoped.refused(403, "collection_scope", "GET", "/metrics")
    made = {"name": "other", "bits": 64}
    guarded.with_key("pages").refused(403, "collection_scope", "POST", "/v1/collections", made)
    job = guarded.with_key("writer").good("POST", "/v1/collections/secret/pairs", {"radius": 1})
    for path in ("", "/results"):
        guarded.with_key("peek").refused(
            403, "collection_scope", "GET", f"/v1/jobs/{job['id']}{path}"
        )
    assert guarded.with_key("peek").good("GET", "/v1/jobs") == {"jobs": []}
    guarded.with_key("writer").ended(job["id"])


def test_keys_are_kept_hashed_and_come_and_go_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    first, second = make_key(path, "a"), make_key(path, "b", "read-only", ["x"])
    text = path.read_text()
    assert first not in text and second not in text and path.stat().st_mode & 0o777 == 0o600
    keys = KeyFile(path)
    assert (found := keys.find(first)) and found.name == "a" and found.writes
    assert (found := keys.find(second)) and not found.writes and not found.reaches("y")
    kept = json.loads(text)
    kept["keys"].pop()
    path.write_text(json.dumps(kept))
    keys._looked = 0.0
    assert keys.find(second) is None and keys.find(first) is not None
    path.write_text("[")
    keys._looked = 0.0
    assert keys.find(first) is None, "a file that cannot be read lets nobody in"
    with pytest.raises(la.errors.FormatError, match="is not a file of API keys"):
        KeyFile(path)
    path.write_text('{"keys": []}')
    with pytest.raises(la.errors.ArgumentError, match="has no keys; create one with"):
        KeyFile(path)
    with pytest.raises(la.errors.ArgumentError, match="has a key of that name"):
        make_key(tmp_path / "new.json", "x") and make_key(tmp_path / "new.json", "x")
    with pytest.raises(la.errors.ArgumentError, match="expected 1 to 64 letters"):
        make_key(tmp_path / "new.json", "../x")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.1.org"])
def test_off_loopback_it_does_not_start_without_keys(host: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match="there are no keys; create one with"):
        ServeSettings(host=host)
    assert ServeSettings(host=host, keys="keys.json").host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_on_loopback_it_starts(host: str) -> None:
    assert ServeSettings(host=host).host == host


def test_logs_have_no_keys_and_no_texts_and_one_line_for_each_request(guarded: Served) -> None:
    writer = guarded.with_key("writer")
    writer.good("POST", f"{BASE}/query", {"text": "a very private text"})
    writer.ask("GET", "/v1/collections/%1b%5b31m%0a%22%7d/x?token=private")
    guarded.with_key(None).ask("GET", f"{BASE}/last", authorization="Bearer private-key")
    wait_until(lambda: f"{BASE}/last" in guarded.log.getvalue())
    text = guarded.log.getvalue()
    assert '\\"}' in text or "%22" in text
    assert "private" not in text and not any(key in text for key in guarded.keys.values())
    assert text.isascii() and "\x1b" not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert {"request"} <= {line["event"] for line in lines}
    assert any(line.get("key") == "writer" and line["status"] == 200 for line in lines)


def test_a_log_that_nobody_reads_holds_nobody_up() -> None:
    begun, let_go = threading.Event(), threading.Event()

    class Stuck(io.StringIO):
        def write(self, text: str) -> int:
            begun.set()
            let_go.wait()
            return super().write(text)

    stream = Stuck()
    log = Log("info", stream)
    log.say("info", "first")
    assert begun.wait(120)

    def say_much() -> None:
        for number in range(25_000):
            log.say("info", "x", number=number)

    saying = threading.Thread(target=say_much, daemon=True)
    saying.start()
    saying.join(120)
    assert not saying.is_alive()
    let_go.set()
    log.close()
    wait_until(lambda: '"lines lost"' in stream.getvalue())
