"""HTTP as it is sent on bare connections: what is refused, in which shape, and what is closed."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lookalike.service import protocol
from lookalike.service.protocol import IDLE, LINGERING, WAITING, WORKING, Connections
from support.running.waiting import wait_until
from support.services.guarded import BASE, Served, guarded_service
from support.services.running import Running, running


class Bare:
    """A connection, and the answers that are read from it one after the other."""

    def __init__(self, service: Running) -> None:
        self.socket = service.connection()
        self._read = b""

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self.socket.sendall(data)

    def answer(self) -> tuple[int, dict[str, str], Any]:
        """Return status, headers and what the next answer says."""
        while b"\r\n\r\n" not in self._read:
            self._more()
        head, _, self._read = self._read.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}
        length = int(headers["content-length"])
        while len(self._read) < length:
            self._more()
        body, self._read = self._read[:length], self._read[length:]
        return int(status.split()[1]), headers, json.loads(body)

    def refused(self, status: int, code: str) -> None:
        """Read an answer that must be this error, after which the connection is closed."""
        found, headers, value = self.answer()
        assert (found, value["error"]["code"]) == (status, code), value
        assert set(value["error"]) == {"code", "kind", "message"}
        assert headers["content-type"] == "application/json"
        assert headers["connection"] == "close"
        assert self.ended()

    def ended(self) -> bool:
        """Return whether the other side closes, and sends nothing more."""
        try:
            return not self._read and self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _more(self) -> None:
        more = self.socket.recv(65536)
        assert more, f"the connection was closed after {self._read!r}"
        self._read += more


def request(target: str = "/healthz", *lines: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", "host: localhost", *lines, "", ""]).encode()


CHUNKED = "transfer-encoding: chunked"
TOO_LARGE = {
    "one header": (request()[:-2] + b"x: " + b"y" * 40_000, 431, "headers_too_large"),
    "whole header": (request("/healthz", "x: " + "y" * 33_000), 431, "headers_too_large"),
    "name": (request()[:-2] + b"x" * 60_000, 431, "headers_too_large"),
    "many headers": (request("/healthz", *["x: y"] * 101), 431, "headers_too_large"),
    "url": (b"GET /" + b"x" * 9000, 414, "url_too_long"),
    "whole url": (request("/" + "x" * 9000), 414, "url_too_long"),
    "query string": (request("/healthz?" + "x" * 9000), 414, "url_too_long"),
    "method": (b"G" * 60_000, 400, "bad_http"),
    "line ends": (b"\r\n" * 40_000, 431, "headers_too_large"),
    "trailers": (
        request(f"{BASE}/query", CHUNKED, method="POST") + b"0\r\n" + b"x: y\r\n" * 105,
        431, "headers_too_large",
    ),
    "one trailer": (
        request(f"{BASE}/query", CHUNKED, method="POST") + b"0\r\nx: " + b"y" * 60_000,
        431, "headers_too_large",
    ),
    "extension": (
        request(f"{BASE}/query", CHUNKED, method="POST") + b"5;x=" + b"y" * 60_000,
        431, "headers_too_large",
    ),
}  # fmt: skip
MALFORMED = {
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no http": b"hello\r\n\r\n",
    "version": b"GET /healthz HTTP/9.9\r\nhost: localhost\r\n\r\n",
    "http 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "length": request("/healthz", "content-length: -5"),
    "two lengths": request("/healthz", "content-length: 5", "content-length: 6"),
    "both lengths": request("/healthz", "content-length: 5", CHUNKED),
    "chunk": request(f"{BASE}/query", CHUNKED, method="POST") + b"zz\r\n",
    "bytes in the path": b"GET /\xff HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "nul": b"GET /healthz\x00 HTTP/1.1\r\nhost: localhost\r\n\r\n",
}


@pytest.fixture(scope="module")
def open_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service without keys, so that bodies are waited for."""
    folder = tmp_path_factory.mktemp("open")
    with running(folder / "new.db", folder) as service:
        service.good("POST", "/v1/collections", {"name": "pages", "bits": 64})
        yield service


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_what_is_too_large_is_refused_and_closed(kind: str, open_service: Running) -> None:
    sent, status, code = TOO_LARGE[kind]
    with Bare(open_service) as bare:
        bare.send(sent)
        bare.refused(status, code)
    with Bare(open_service) as bare:  # byte by byte, as far as it takes to be too large
        for begin in range(0, len(sent), 3001):
            bare.send(sent[begin : begin + 3001])
        bare.refused(status, code)


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_requests_get_the_shape_of_errors(kind: str, open_service: Running) -> None:
    with Bare(open_service) as bare:
        bare.send(MALFORMED[kind])
        bare.refused(400, "bad_http")


def test_requests_below_the_limits_are_answered(open_service: Running) -> None:
    for sent in (
        request("/healthz", "x: " + "y" * 32_000), request("/healthz?x=" + "y" * 8000),
        request("/healthz", *["x: y"] * 98), b"\r\n" * 100 + request(),
        request("/healthz", CHUNKED) + b"1;x=y\r\nz\r\n0\r\nx: y\r\n\r\n",
    ):  # fmt: skip
        with Bare(open_service) as bare:
            for _ in range(3):
                bare.send(sent)
                status, headers, _ = bare.answer()
                assert status == 200 and "connection" not in headers


def test_trailers_are_no_headers(guarded: Served) -> None:
    body = b'{"text": "some text"}'
    sent = request(f"{BASE}/query", CHUNKED, "content-type: application/json", method="POST")
    for name in ("authorization: Bearer ", "x-api-key: "):
        trailer = f"{name}{guarded.keys['writer']}\r\n\r\n".encode()
        with Bare(guarded.service) as bare:
            bare.send(sent + b"%x\r\n" % len(body) + body + b"\r\n0\r\n" + trailer)
            assert bare.answer()[0] == 401


def refusals(guarded: Served) -> dict[str, tuple[int, str, list[str], str, str]]:
    """Return requests that are refused before their bodies are read."""
    key = f"authorization: Bearer {guarded.keys['writer']}"
    reader = f"authorization: Bearer {guarded.keys['reader']}"
    kind = "content-type: application/json"
    return {
        "no key": (401, "key", [kind], "POST", f"{BASE}/query"),
        "read-only": (403, "read_only", [reader, kind], "PUT", f"{BASE}/documents"),
        "origin": (403, "origin", [key, kind, "origin: http://x"], "POST", f"{BASE}/query"),
        "no route": (404, "no_route", [key, kind], "POST", "/v1/nothing"),
        "method": (405, "method", [key, kind], "DELETE", f"{BASE}/query"),
        "too large": (413, "body_too_large", [key, kind], "POST", f"{BASE}/query"),
        "upload": (415, "content_type", [key, kind], "POST", f"{BASE}/upload"),
        "encoding": (400, "encoding", [key], "DELETE", f"{BASE}/documents/%FF"),
        "page": (404, "no_route", [], "GET", "/page/nothing"),
    }


def test_a_refused_request_with_an_unread_body_ends_its_connection(guarded: Served) -> None:
    for name, (status, code, lines, method, target) in refusals(guarded).items():
        for length in ("content-length: 1000000000", CHUNKED):
            if name == "too large" and length == CHUNKED:
                continue
            with Bare(guarded.service) as bare:
                bare.send(request(target, length, *lines, method=method) + b"5\r\nxxxxx\r\n")
                bare.refused(status, code)
        if name in ("too large", "page"):
            continue
        with Bare(guarded.service) as bare:  # one whose body has arrived goes on
            bare.send(request(target, "content-length: 2", *lines, method=method) + b"{}")
            found, _, value = bare.answer()
            assert (found, value["error"]["code"]) == (status, code), name
            bare.send(request())
            assert bare.answer()[0] == 200, name


def test_an_answer_reaches_who_sends_all_first(guarded: Served) -> None:
    body = b"x" * (4 << 20)
    guarded.service.refused(
        401, "key", "POST", f"{BASE}/query", body, content_type="application/json"
    )
    guarded.with_key("writer").refused(
        413, "body_too_large", "POST", f"{BASE}/query", body, content_type="application/json"
    )


def test_refused_connections_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_LINGER", 0.2)
    with guarded_service(tmp_path, max_connections=5) as guarded:
        sent = request(f"{BASE}/query", "content-length: 1000000", method="POST")
        held = [Bare(guarded.service) for _ in range(20)]
        for bare in held:
            bare.send(sent)
        wait_until(lambda: guarded.service.raw("GET", "/healthz")[0] == 200)
        for bare in held:
            wait_until(lambda bare=bare: cannot_send(bare.socket))  # type: ignore[misc]
            bare.socket.close()


def cannot_send(connection: socket.socket, data: bytes = b"x") -> bool:
    try:
        connection.sendall(data)
    except OSError:
        return True
    return False


def test_slow_headers_get_the_shape_of_errors(tmp_path: Path) -> None:
    with guarded_service(tmp_path, slow_limit=0.5) as guarded:
        for answered in (False, True):
            for sent in (b"GET /heal", b"\r\n", request()[:-2] + b"x: y"):
                with Bare(guarded.service) as bare:
                    if answered:
                        bare.send(request())
                        assert bare.answer()[0] == 200
                    bare.send(sent)
                    bare.refused(408, "slow_request")
        with Bare(guarded.service) as bare:
            bare.refused(408, "slow_request")


def test_a_client_that_takes_no_answers_is_cut(tmp_path: Path) -> None:
    """Without a key, and by answers of the usual size: they fill the buffers after a while."""
    with guarded_service(tmp_path, slow_limit=0.5) as guarded, socket.socket() as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        idle.connect((guarded.service.host, guarded.service.port))
        wait_until(lambda: cannot_send(idle, request("/v1/openapi.json")))


def test_a_file_that_drips_is_refused(tmp_path: Path) -> None:
    with guarded_service(tmp_path, slow_limit=0.5) as guarded, Bare(guarded.service) as bare:
        key = f"authorization: Bearer {guarded.keys['writer']}"
        lines = ["content-length: 20000", "content-type: application/octet-stream", key]
        bare.send(request(f"{BASE}/upload", *lines, method="POST"))
        bare.socket.settimeout(0.05)
        while True:
            bare.send(b"x")
            try:
                bare._more()
                break
            except TimeoutError:
                continue
        bare.socket.settimeout(60)
        bare.refused(408, "slow_request")


def test_pipelined_requests_are_answered_in_order_and_bounded(open_service: Running) -> None:
    paths = ["/healthz", "/v1/collections", "/nothing", "/v1/collections/pages"]
    expected = [200, 200, 404, 200]
    with Bare(open_service) as bare:
        for _ in range(3):
            bare.send(b"".join(map(request, paths)))
            assert [bare.answer()[0] for _ in paths] == expected
    with Bare(open_service) as bare:  # too many: some are answered, then it is closed
        bare.send(request("/v1/collections") * 1000)
        count = 0
        while not bare.ended():
            bare._read = b"" if count else bare._read
            count += 1
            assert count < 200_000
    with Bare(open_service) as bare:  # what is wrong with the last does not harm the others
        bare.send(request("/v1/collections") * 2 + b"nonsense\r\n\r\n")
        assert [bare.answer()[0] for _ in range(2)] == [200, 200]
        assert bare.ended()
    assert open_service.good("GET", "/healthz")["status"] == "ok"


def test_a_request_to_upgrade_is_answered_and_closed(open_service: Running) -> None:
    with Bare(open_service) as bare:
        bare.send(request("/healthz", "upgrade: websocket", "connection: upgrade") + b"more")
        assert bare.answer()[0] == 200
        assert bare.ended()


PATHS = ["%FF", "%C3", "%C0%AF", "%ED%A0%80", "%F4%90%80%80", "a%FFb", "%E4"]


@pytest.mark.parametrize("part", PATHS)
def test_what_is_not_utf_8_is_refused(part: str, open_service: Running) -> None:
    with Bare(open_service) as bare:
        for method, target in (
            ("GET", f"{BASE}/documents/{part}"), ("DELETE", f"{BASE}/documents/{part}"),
            ("GET", f"/v1/collections/{part}"), ("DELETE", f"/v1/collections/{part}"),
            ("GET", f"/v1/jobs/{part}"), ("DELETE", f"{BASE}/snapshots/{part}"),
            ("GET", f"/page/{part}"), ("GET", f"{BASE}/documents?after={part}"),
            ("GET", f"{BASE}/documents?{part}=1"), ("GET", f"{BASE}/groups?radius={part}"),
            ("GET", f"/healthz?{part}"),
        ):  # fmt: skip
            bare.send(request(target, method=method))
            status, _, value = bare.answer()
            assert (status, value["error"]["code"]) == (400, "encoding"), (target, value)
            assert "UTF-8" in value["error"]["message"]


def test_a_document_named_like_a_replacement_stays(open_service: Running) -> None:
    body = {"documents": [{"id": "\ufffd", "signature": "00" * 8}]}
    assert open_service.good("PUT", f"{BASE}/documents", body)["added"] == 1
    open_service.refused(400, "encoding", "DELETE", f"{BASE}/documents/%FF")
    assert open_service.good("GET", f"{BASE}/documents/%EF%BF%BD")["id"] == "\ufffd"
    assert open_service.good("DELETE", f"{BASE}/documents/%EF%BF%BD")["deleted"] == 1


class Fake:
    """A connection that notes that it had to give way."""

    gone = False

    def give_way(self) -> None:
        self.gone = True


def admitted(known: Connections, address: str, state: int = WAITING) -> Fake | None:
    fake = Fake()
    if not known.admit(fake, address):
        return None
    known.mark(fake, state)
    return fake


def test_which_connections_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    known = Connections(5)
    working = admitted(known, "10.0.0.1", WORKING)
    first, second = (admitted(known, "10.0.0.1") for _ in range(2))
    idle, lingering = admitted(known, "10.0.0.1", IDLE), admitted(known, "10.0.0.1", LINGERING)
    assert working and first and second and idle and lingering
    for expected in (lingering, idle):
        assert not expected.gone
        assert admitted(known, "10.0.0.1", WORKING) is not None
        assert expected.gone and len(known) == 5
    assert admitted(known, "10.0.0.1") is None, "from the same address, and they wait not for long"
    assert admitted(known, "10.0.0.2", WORKING) is not None, "another address has its share"
    assert first.gone and not second.gone
    assert admitted(known, "10.0.0.1") is None
    now[0] = 2.0
    assert admitted(known, "10.0.0.1") is not None, "it has waited for long enough"
    assert second.gone and not working.gone
    assert admitted(known, "10.0.0.1") is None


def test_networks_of_version_6_are_one_client() -> None:
    known = Connections(4)
    for number in range(3):
        assert admitted(known, f"2001:db8::{number}") is not None
    other = admitted(known, "::ffff:10.0.0.1")
    assert other is not None
    assert admitted(known, "10.0.0.1") is not None, "one of the three gives way"
    assert not other.gone
    assert admitted(known, "2001:db8::9") is None
    assert admitted(known, "2001:db9::9") is not None
