"""Who may come in, and with how much: keys, hosts, sizes, times; and what hostile requests get."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lookalike as la
from lookalike.service.guard.hosts import Hosts
from lookalike.service.guard.keys import KeyFile, make_key
from lookalike.service.logs import Log
from lookalike.service.problems import Problem
from lookalike.service.settings import ServeSettings
from support.running_service import Running, running

BASE = "/v1/collections/pages"
SLOW = 1.0


class Served:
    """A service with keys, and what it has logged."""

    def __init__(self, service: Running, keys: dict[str, str], log: io.StringIO) -> None:
        self.service, self.keys, self.log = service, keys, log

    def with_key(self, name: str | None) -> Running:
        key = None if name is None else self.keys[name]
        return Running(self.service.host, self.service.port, key)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "data").mkdir()
    for name in ("pages", "secret"):
        with la.open_collection(
            folder / "data" / f"{name}.db", name, signer=la.SimHash(64)
        ) as docs:
            docs.add(["one", "two"], ["some text", "another text"])
    path = folder / "keys.json"
    keys = {
        "writer": make_key(path, "writer"),
        "reader": make_key(path, "reader", "read-only"),
        "pages": make_key(path, "pages", "read-write", ["pages", "new"]),
        "peek": make_key(path, "peek", "read-only", ["pages"]),
    }
    log = io.StringIO()
    with running(
        folder / "data", folder, log, keys=str(path), max_body=20_000, max_upload=30_000,
        max_text=500, max_batch=10, max_k=20, max_results=50, slow_limit=SLOW, max_connections=40,
        max_concurrent=20,
    ) as service:  # fmt: skip
        yield Served(service, keys, log)


# Keys


def test_without_a_key_nothing_is_said(served: Served) -> None:
    nobody = served.with_key(None)
    for method, path in (
        ("GET", "/v1/collections"), ("GET", BASE), ("GET", "/metrics"), ("GET", "/v1/jobs"),
        ("POST", f"{BASE}/query"), ("DELETE", BASE), ("GET", "/v1/nothing"),
    ):  # fmt: skip
        assert "no key" in nobody.refused(401, "key", method, path)
    for wrong in ("x", "Bearer ", "Bearer nope", "Basic eDp5", "Bearer " + "ü" * 10):
        nobody.refused(401, "key", "GET", BASE, authorization=wrong)
    secret = served.keys["writer"]
    for near in (secret[:-1], secret + "x", secret.upper(), " ".join(secret)):
        nobody.refused(401, "key", "GET", BASE, authorization=f"Bearer {near}")
    assert nobody.ask("GET", BASE, x_api_key=secret)[0] == 200
    for path in ("/healthz", "/readyz", "/", "/v1/openapi.json"):
        assert nobody.ask("GET", path)[0] == 200


def test_keys_for_reading_do_not_write(served: Served) -> None:
    reader = served.with_key("reader")
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
        assert "is for reading" in reader.refused(403, "read_only", method, path, body)
    assert reader.good("GET", f"{BASE}/documents/one")["text"] == "some text"


def test_keys_reach_their_collections_only(served: Served) -> None:
    for name in ("pages", "peek"):
        scoped = served.with_key(name)
        listed = scoped.good("GET", "/v1/collections")["collections"]
        assert [one["name"] for one in listed] == ["pages"]
        for path in ("", "/documents/one", "/groups", "/map", "/snapshots"):
            scoped.refused(403, "collection_scope", "GET", f"/v1/collections/secret{path}")
        scoped.refused(403, "collection_scope", "GET", "/v1/collections/none")
        body = {"text": "some text"}
        scoped.refused(403, "collection_scope", "POST", "/v1/collections/secret/query", body)
        scoped.refused(403, "collection_scope", "GET", "/metrics")
    made = {"name": "other", "bits": 64}
    served.with_key("pages").refused(403, "collection_scope", "POST", "/v1/collections", made)
    job = served.with_key("writer").good("POST", "/v1/collections/secret/pairs", {"radius": 1})
    for path in ("", "/results"):
        served.with_key("peek").refused(
            403, "collection_scope", "GET", f"/v1/jobs/{job['id']}{path}"
        )
    assert served.with_key("peek").good("GET", "/v1/jobs") == {"jobs": []}
    served.with_key("writer").ended(job["id"])


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
    with pytest.raises(la.FormatError, match="is no file of keys"):
        KeyFile(path)
    path.write_text('{"keys": []}')
    with pytest.raises(la.ArgumentError, match="holds no keys; make one with"):
        KeyFile(path)
    with pytest.raises(la.ArgumentError, match="has a key of that name"):
        make_key(tmp_path / "new.json", "x") and make_key(tmp_path / "new.json", "x")
    with pytest.raises(la.ArgumentError, match="expected 1 to 64 letters"):
        make_key(tmp_path / "new.json", "../x")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.1.org"])
def test_off_loopback_it_does_not_start_without_keys(host: str) -> None:
    with pytest.raises(la.ArgumentError, match="there are no keys: make one with"):
        ServeSettings(host=host)
    assert ServeSettings(host=host, keys="keys.json").host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_on_loopback_it_starts(host: str) -> None:
    assert ServeSettings(host=host).host == host


def test_logs_have_no_keys_and_no_texts_and_one_line_for_each_request(served: Served) -> None:
    writer = served.with_key("writer")
    writer.good("POST", f"{BASE}/query", {"text": "a very private text"})
    writer.ask("GET", "/v1/collections/%1b%5b31m%0a%22%7d/x?token=private")
    served.with_key(None).ask("GET", BASE, authorization="Bearer private-key")
    deadline = time.monotonic() + 5
    while "%22" not in served.log.getvalue() and '\\"}' not in served.log.getvalue():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.2)
    text = served.log.getvalue()
    assert "private" not in text and not any(key in text for key in served.keys.values())
    assert text.isascii() and "\x1b" not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert {"request"} <= {line["event"] for line in lines}
    assert any(line.get("key") == "writer" and line["status"] == 200 for line in lines)


# Hosts and origins


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b", "x:y",
             "localhost:80:80", "[::1", "localhost/", "10.0.0.1"],
)  # fmt: skip
def test_other_names_are_refused(served: Served, host: str) -> None:
    for path in ("/", "/healthz", "/v1/collections"):
        status, _, value = served.with_key("writer").ask("GET", path, host=host)
        assert status in (400, 421) and value["error"]["code"] == "host"


def test_own_names_are_taken(served: Served) -> None:
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8600"):
        assert served.with_key("writer").ask("GET", BASE, host=host)[0] == 200
    away = Hosts("0.0.0.0", ["docs.example"])
    for name in (b"docs.example", b"192.0.2.7:8600", b"[2001:db8::1]", b"localhost"):
        away.check(name)
    for other in (b"evil.example", b"", None, b"x" * 300, b"\xff"):
        with pytest.raises(Problem):
            away.check(other)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil", "x"])
def test_pages_of_others_are_refused(served: Served, origin: str) -> None:
    writer = served.with_key("writer")
    for method, path in (("GET", BASE), ("POST", f"{BASE}/query"), ("GET", "/")):
        writer.refused(403, "origin", method, path, origin=origin)
    for site in ("cross-site", "same-site"):
        writer.refused(403, "origin", "GET", BASE, sec_fetch_site=site)
    own = f"http://localhost:{writer.port}"
    host = own.partition("//")[2]
    assert writer.ask("GET", BASE, origin=own, host=host)[0] == 200
    assert writer.ask("GET", "/", sec_fetch_site="cross-site")[0] == 200, "a link to the page"


def test_answers_tell_browsers_to_be_strict(served: Served) -> None:
    for path in ("/", BASE, "/nothing", "/v1/openapi.json"):
        _, headers, _ = served.with_key("writer").ask("GET", path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers and "server" not in headers
    status, headers, _ = served.with_key("writer").raw("OPTIONS", f"{BASE}/query")
    assert status == 405 and "access-control-allow-methods" not in headers


def test_the_page_loads_nothing_from_elsewhere(served: Served) -> None:
    folder = Path(la.__file__).parent / "service" / "page"
    files = [path for path in folder.rglob("*") if path.suffix in (".html", ".css", ".js")]
    assert files
    for path in files:
        text = path.read_text()
        outside = re.findall(r"""(?:src|href|url|import|fetch)\s*[=(]?\s*["']?(https?:)?//""", text)
        assert not outside, path
    html = served.service.raw("GET", "/")[2].decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>|\son\w+=|<style|\sstyle=", html)


# Limits


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
    served: Served, status: int, code: str, path: str, body: Any
) -> None:
    kind = {"content_type": "application/json"} if isinstance(body, bytes) else {}
    served.with_key("writer").refused(status, code, "POST", f"{BASE}/{path}", body, **kind)


def test_other_types_and_large_files_are_refused(served: Served) -> None:
    writer = served.with_key("writer")
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
def test_names_lead_nowhere(served: Served, name: str, tmp_path_factory: Any) -> None:
    writer = served.with_key("writer")
    from urllib.parse import quote, unquote

    status, headers, _ = writer.ask("GET", f"/v1/collections/{quote(name, safe='%')}")
    assert status in (404, 422) and "x-y" not in headers
    status = writer.ask("POST", "/v1/collections", {"name": unquote(name), "bits": 64})[0]
    assert status == 422


# Bare connections


def exchange(service: Running, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send parts and return everything that comes back until the other side hangs up."""
    with service.connection() as connection:
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            connection.shutdown(socket.SHUT_WR) if not pause else None
        except OSError:
            pass
        return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    read = b""
    try:
        while more := connection.recv(65536):
            read += more
    except (ConnectionError, TimeoutError):
        pass
    return read


def head(served: Served, length: str, path: str = f"{BASE}/query", more: str = "") -> bytes:
    key = served.keys["writer"]
    return (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n"
        f"content-type: application/json\r\n{length}{more}\r\n"
    ).encode()


def test_slow_requests_are_ended(served: Served) -> None:
    service = served.service
    begin = time.monotonic()
    with service.connection() as silent, service.connection() as headers:
        headers.sendall(b"GET /healthz HTTP/1.1\r\nhost: localh")
        with service.connection() as body:
            body.sendall(head(served, "content-length: 50\r\n") + b'{"te')
            assert b" 408 " in read_all(body).partition(b"\r\n")[0]
        assert b" 408 " in read_all(headers).partition(b"\r\n")[0]
        assert b" 408 " in read_all(silent).partition(b"\r\n")[0]
    with service.connection() as drip:
        drip.sendall(head(served, "transfer-encoding: chunked\r\n"))
        stop = threading.Event()

        def send() -> None:
            while not stop.wait(0.1):
                try:
                    drip.sendall(b"1\r\nx\r\n")
                except OSError:
                    return

        sender = threading.Thread(target=send)
        sender.start()
        assert b" 408 " in read_all(drip).partition(b"\r\n")[0]
        stop.set()
        sender.join()
    assert time.monotonic() - begin < 10 * SLOW
    assert service.good("GET", "/healthz")["status"] == "ok"


def test_bodies_without_end_are_refused_before_they_are_there(served: Served) -> None:
    with served.service.connection() as endless:
        endless.sendall(head(served, "transfer-encoding: chunked\r\n"))
        sent = 0
        try:
            for _ in range(1000):
                endless.sendall(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
                sent += 0x4000
        except OSError:
            pass
        answer = read_all(endless)
    assert b" 413 " in answer.partition(b"\r\n")[0] or not answer, "or hung up in the middle"
    assert sent < 16 << 20
    lying = exchange(served.service, head(served, "content-length: 999999999999\r\n"))
    assert b" 413 " in lying.partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\nhost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET " + b"/x" * 40_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 200_000 + b"\r\n\r\n",
        b"POST /v1/collections HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/collections HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n"
        b"transfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/collections HTTP/1.1\r\n\r\n",
        b"GET /healthz\x00 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nhost: evil.example\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\n"
        b"connection: upgrade\r\n\r\n",
        b"\r\n" * 1000,
    ],
)
def test_odd_requests_are_answered_with_4xx_or_not_at_all(served: Served, sent: bytes) -> None:
    answer = exchange(served.service, sent)
    status = answer.partition(b" ")[2][:3]
    assert status in (b"", b"200") or status.startswith(b"4"), answer[:200]
    assert b"HTTP/1.1 5" not in answer
    assert served.service.good("GET", "/healthz")["status"] == "ok"


def test_requests_that_are_cut_off_leave_nothing(served: Served) -> None:
    whole = head(served, "content-length: 60\r\n") + b'{"text": "some text", "k": 3}' + b" " * 31
    for end in range(1, len(whole), 7):
        with served.service.connection() as connection:
            connection.sendall(whole[:end])
    upload = head(served, "content-length: 9000\r\n", f"{BASE}/upload").replace(
        b"application/json", b"application/octet-stream"
    )
    for _ in range(5):
        with served.service.connection() as connection:
            connection.sendall(upload + b"x" * 100)
    time.sleep(0.3)
    assert served.service.good("GET", "/healthz")["status"] == "ok"
    metrics = served.with_key("writer").raw("GET", "/metrics")[2].decode()
    assert "lookalike_requests_running 1.0" in metrics, "only the one that asks"


def test_too_many_connections_and_requests_are_told_to_come_again(served: Served) -> None:
    open_ones = [served.service.connection() for _ in range(40)]
    try:
        time.sleep(0.2)
        answers = [read_first(served.service) for _ in range(3)]
        assert any(b" 429 " in one for one in answers), answers
    finally:
        for connection in open_ones:
            connection.close()
    time.sleep(0.2)
    waiting = [served.service.connection() for _ in range(20)]
    try:
        for connection in waiting:
            connection.sendall(head(served, "content-length: 50\r\n"))
        time.sleep(0.2)
        served.with_key("writer").refused(429, "too_many_requests", "GET", BASE)
        assert served.service.good("GET", "/healthz")["status"] == "ok"
    finally:
        for connection in waiting:
            connection.close()


def read_first(service: Running) -> bytes:
    with service.connection() as connection:
        try:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            return connection.recv(65536)
        except OSError:
            return b""


def test_memory_is_bounded_whatever_comes(served: Served) -> None:
    """Many bodies at once, each of which goes on: they are refused, and nothing stays."""
    before = resident()
    for _ in range(3):
        threads = [
            threading.Thread(
                target=exchange,
                args=(served.service, head(served, "content-length: 19000\r\n"), b"x" * 19_000),
            )
            for _ in range(15)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert resident() - before < 64 << 20


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_log_that_nobody_reads_holds_nobody_up() -> None:
    let_go = threading.Event()

    class Stuck(io.StringIO):
        def write(self, text: str) -> int:
            let_go.wait()
            return super().write(text)

    stream = Stuck()
    log = Log("info", stream)
    begin = time.monotonic()
    for number in range(25_000):
        log.say("info", "x", number=number)
    assert time.monotonic() - begin < 5
    let_go.set()
    log.close()
    assert '"lines lost"' in stream.getvalue()


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
        hexes = own.signature.tobytes().hex()
    base = "/v1/collections/photos"
    with running(tmp_path / "data", tmp_path) as service:
        asked = {"documents": [{"id": "a", "text": str(photo)}]}
        wrong = service.refused(422, "bad_argument", "PUT", f"{base}/documents", asked)
        assert "not opened by their paths here" in wrong
        for path in ("/query", "/query/batch"):
            text: Any = {"text": str(photo)} if path == "/query" else {"texts": [str(photo)]}
            assert "not opened" in service.refused(422, "bad_argument", "POST", base + path, text)
        answer = service.good("POST", f"{base}/query", {"signature": hexes, "k": 1})
        assert [match["id"] for match in answer["matches"]] == ["own"]
        line = json.dumps({"id": "b", "text": str(photo)}).encode()
        job = service.ask("POST", f"{base}/upload", line, content_type="application/octet-stream")
        ended = service.ended(job[2]["id"])
        assert ended["state"] == "failed" and "not opened" in ended["error"]
        assert service.good("POST", f"{base}/documents/count") == {"count": 1}
        assert service.good("GET", f"{base}/map")["regions"][0].get("words", []) == []
