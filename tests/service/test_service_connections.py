"""Bare connections that send too much, too slowly, half of it or something else."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lookalike.service import protocol as connections
from support.running.waiting import wait_until
from support.services.guarded import BASE, Served, guarded_service
from support.services.running import Running


def exchange(service: Running, *parts: bytes) -> bytes:
    """Send parts and return everything that comes back until the other side hangs up."""
    with service.connection() as connection:
        try:
            for part in parts:
                connection.sendall(part)
            connection.shutdown(socket.SHUT_WR)
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


def head(
    guarded: Served,
    length: str,
    path: str = f"{BASE}/query",
    more: str = "",
    key: str = "writer",
) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {guarded.keys[key]}\r\n"
        f"content-type: application/json\r\n{length}{more}\r\n"
    ).encode()


def test_answers_without_a_body_are_followed_by_others(guarded: Served) -> None:
    """Headers are written with the first of the body; answers to HEAD have none."""
    ask, host = b"%s /healthz HTTP/1.1\r\n", b"host: localhost\r\n\r\n"
    with guarded.service.connection() as connection:
        for method in (b"HEAD", b"GET", b"HEAD"):
            connection.sendall(ask % method + host)
            answer = connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 ") and b"\r\n\r\n" in answer
            headers, _, body = answer.partition(b"\r\n\r\n")
            assert bool(body) == (method == b"GET")
            assert b"content-length: " in headers.lower()
    with guarded.service.connection() as connection:
        connection.sendall(ask % b"HEAD" + host + ask % b"GET" + b"connection: close\r\n" + host)
        first, second = read_all(connection).split(b"HTTP/1.1 ")[1:]
        assert first.endswith(b"\r\n\r\n") and second.endswith(b"}")


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Served]:
    """A service that waits for a second; whoever is slow for other reasons has another one."""
    with guarded_service(tmp_path, slow_limit=1.0) as served:
        yield served


def test_slow_requests_are_ended(impatient: Served) -> None:
    service = impatient.service
    with service.connection() as silent, service.connection() as headers:
        headers.sendall(b"GET /healthz HTTP/1.1\r\nhost: localh")
        with service.connection() as body:
            body.sendall(head(impatient, "content-length: 50\r\n") + b'{"te')
            assert b" 408 " in read_all(body).partition(b"\r\n")[0]
        assert b" 408 " in read_all(headers).partition(b"\r\n")[0]
        assert b" 408 " in read_all(silent).partition(b"\r\n")[0]
    with service.connection() as drip:
        drip.sendall(head(impatient, "transfer-encoding: chunked\r\n"))
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
    wait_until(lambda: service.raw("GET", "/healthz")[0] == 200)


def test_bodies_without_end_are_refused_before_they_are_there(guarded: Served) -> None:
    with guarded.service.connection() as endless:
        endless.sendall(head(guarded, "transfer-encoding: chunked\r\n"))
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
    lying = exchange(guarded.service, head(guarded, "content-length: 999999999999\r\n"))
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
def test_odd_requests_are_answered_with_4xx_or_not_at_all(guarded: Served, sent: bytes) -> None:
    answer = exchange(guarded.service, sent)
    status = answer.partition(b" ")[2][:3]
    assert status in (b"", b"200") or status.startswith(b"4"), answer[:200]
    assert b"HTTP/1.1 5" not in answer
    assert guarded.service.good("GET", "/healthz")["status"] == "ok"


def test_requests_that_are_cut_off_leave_nothing(guarded: Served) -> None:
    whole = head(guarded, "content-length: 60\r\n") + b'{"text": "some text", "k": 3}' + b" " * 31
    for end in range(1, len(whole), 7):
        with guarded.service.connection() as connection:
            connection.sendall(whole[:end])
    upload = head(guarded, "content-length: 9000\r\n", f"{BASE}/upload").replace(
        b"application/json", b"application/octet-stream"
    )
    for _ in range(5):
        with guarded.service.connection() as connection:
            connection.sendall(upload + b"x" * 100)
    assert guarded.service.good("GET", "/healthz")["status"] == "ok"
    # In the end there is only the one that asks.
    wait_until(
        lambda: (
            b"lookalike_requests_running 1.0"
            in guarded.with_key("writer").raw("GET", "/metrics")[2]
        )
    )


def test_too_many_connections_and_requests_are_told_to_come_again(
    guarded: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_PATIENCE", 1e6)
    open_ones = [guarded.service.connection() for _ in range(40)]
    try:
        wait_until(lambda: b" 429 " in read_first(guarded.service))
    finally:
        for connection in open_ones:
            connection.close()
    waiting: list[socket.socket] = []
    try:
        wait_until(lambda: begun(guarded, waiting) == 15)
        guarded.with_key("writer").refused(429, "too_many_requests", "GET", BASE)
        assert guarded.with_key("reader").good("GET", BASE)["documents"] == 2
        wait_until(lambda: begun(guarded, waiting, "reader") == 20)
        for key in ("reader", "peek"):
            guarded.with_key(key).refused(429, "too_many_requests", "GET", BASE)
        assert guarded.service.good("GET", "/healthz")["status"] == "ok"
    finally:
        for connection in waiting:
            connection.close()


def begun(guarded: Served, waiting: list[socket.socket], key: str = "writer") -> int:
    """Begin one more request, whose body is waited for; return how many there are."""
    connection = guarded.service.connection()
    more = "expect: 100-continue\r\n"
    connection.sendall(head(guarded, "content-length: 50\r\n", more=more, key=key))
    if b" 100 Continue" in connection.recv(65536):
        waiting.append(connection)
    else:  # those from before are not all gone yet
        connection.close()
    return len(waiting)


def read_first(service: Running) -> bytes:
    with service.connection() as connection:
        try:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            return connection.recv(65536)
        except OSError:
            return b""


def test_memory_is_bounded_whatever_comes(guarded: Served) -> None:
    """Many bodies at once, each of which goes on: they are refused, and nothing stays."""
    before = resident()
    for _ in range(3):
        threads = [
            threading.Thread(
                target=exchange,
                args=(guarded.service, head(guarded, "content-length: 19000\r\n"), b"x" * 19_000),
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
