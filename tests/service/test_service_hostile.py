"""A hostile client: whatever it sends, memory stays below a bound and others are answered.

`make test` runs every attack at an eighth of its size against a service with an eighth of the
limits. With LOOKALIKE_HOSTILE=all, each runs at full size against the defaults: the peak memory of
the service is at most 512 MiB above what it takes before.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lookalike.service.keys import make_key
from support.services.running import Running, process

ALL = os.environ.get("LOOKALIKE_HOSTILE") == "all"
SHARE = 1 if ALL else 8
MIB = 1 << 20
BODY = 32 * MIB // SHARE
CONNECTIONS = 1024 // SHARE
BOUND = 512 * MIB if ALL else 192 * MIB
"""With an eighth of the limits, buffers and threads are not an eighth as large, and what one attack
leaves in the allocator is still there in the next."""
LIMITS = [] if ALL else [
    "--max-body", str(BODY), "--max-memory", str(288 * MIB // SHARE), "--max-answer",
    str(32 * MIB // SHARE), "--max-connections", str(CONNECTIONS),
]  # fmt: skip
DOCUMENTS = "/v1/collections/pages/documents"
BATCH = "/v1/collections/pages/query/batch"
PHOTOS = "/v1/collections/photos/query/file"
MSGPACK = "application/msgpack"
JSON = "application/json"


@dataclass
class Target:
    """A service in a process of its own, with a key for writing and one for reading."""

    service: Running
    reader: Running
    pid: int
    base: int = 0

    def head(self, method: str, path: str, key: bool = True, **headers: object) -> bytes:
        """Return the headers of a request."""
        lines = [f"{method} {path} HTTP/1.1", "host: localhost"]
        if key:
            lines.append(f"authorization: Bearer {self.service.key}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode()

    def send(self, *parts: bytes, seconds: float = 60.0) -> bytes:
        """Send bytes on a connection of their own; return what comes back, as far as it does."""
        with self.service.connection() as connection:
            connection.settimeout(seconds)
            with contextlib.suppress(OSError):
                for part in parts:
                    connection.sendall(part)
            return received(connection)

    def body(self, method: str, path: str, body: bytes, kind: str = JSON) -> bytes:
        """Send a request with a body; return what comes back."""
        length = len(body)
        return self.send(
            self.head(method, path, content_type=kind, content_length=length, connection="close"),
            body,
        )

    def memory(self, name: str) -> int:
        """Return VmRSS or VmHWM, in bytes."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
        raise AssertionError(name)


def received(connection: socket.socket) -> bytes:
    found = b""
    with contextlib.suppress(OSError):
        while more := connection.recv(65536):
            found += more
    return found


def status(answer: bytes) -> int:
    """Return the status of an answer; 0 if the connection was cut before it came."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def code(answer: bytes) -> str:
    """Return the code of an error, which must have the one shape that errors have."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head.lower()
    return str(json.loads(body)["error"]["code"])


@pytest.fixture(scope="function" if ALL else "module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A service of its own for each attack; at an eighth of the size, one for all of them."""
    folder = tmp_path_factory.mktemp("hostile")
    keys = folder / "keys.json"
    writer, reader = make_key(keys, "writer"), make_key(keys, "reader", "read-only")
    with process(str(folder / "docs.db"), "--keys", str(keys), *LIMITS) as started:
        host, port = started.service.host, started.service.port
        service = Running(host, port, writer)
        service.good("POST", "/v1/collections", {"name": "pages", "signer": {"bits": 64}})
        body = {"documents": [{"id": f"d{n}", "text": f"text {n}"} for n in range(100)]}
        service.good("PUT", DOCUMENTS, body)
        service.good("POST", BATCH, {"texts": ["text 1"], "k": 3})
        made = Target(service, Running(host, port, reader), started.pid)
        made.base = made.memory("VmRSS")
        yield made


def zeros(size: int) -> bytes:
    return b'{"documents":[' + b"0," * (size // 2 - 10) + b"0]}"


def items(field: str, item: str, size: int, **others: Any) -> bytes:
    """Return a body of this size, whose field is a list of equal items."""
    rest = json.dumps(others)[1:-1]
    begin = f'{{{rest + "," if rest else ""}"{field}":['
    return f"{begin}{','.join([item] * (size // (len(item) + 1) - 20))}]}}".encode()


def packed(element: bytes, size: int) -> bytes:
    count = (size - 20) // len(element)
    return b"\x81\xa9documents\xdd" + count.to_bytes(4, "big") + element * count


def keys_of(size: int) -> bytes:
    return b"{" + b",".join(b'"%07d":0' % number for number in range(size // 12)) + b"}"


def nested(size: int) -> bytes:
    part = "[" * 150 + "]" * 150
    return items("documents", f'{{"id":"a","metadata":{{"x":{part}}}}}', size)


def texts(size: int, widest: str) -> bytes:
    """Return documents whose texts are as wide in memory as their widest character."""
    text = widest + "some words " * 9000
    count = size // (len(text.encode()) + 40)
    documents = [{"id": f"w{number}", "text": text} for number in range(count)]
    return json.dumps({"documents": documents}, ensure_ascii=False).encode()


BODIES: dict[str, Callable[[int], tuple[str, bytes, str]]] = {
    "zeros": lambda size: (DOCUMENTS, zeros(size), JSON),
    "empty objects": lambda size: (DOCUMENTS, items("documents", "{}", size), JSON),
    "unknown fields": lambda size: (DOCUMENTS, keys_of(size), JSON),
    "nested lists": lambda size: (DOCUMENTS, nested(size), JSON),
    "MessagePack maps": lambda size: (DOCUMENTS, packed(b"\x80", size), MSGPACK),
    "MessagePack bytes": lambda size: (DOCUMENTS, packed(b"\xc4\x00", size), MSGPACK),
    "MessagePack lengths": lambda size: (DOCUMENTS, b"\xdd\x01\xff\xff\xff" * (size // 5), MSGPACK),
    "ids": lambda size: (BATCH, items("ids", '""', size), JSON),
    "numbers": lambda size: (BATCH, items("texts", "7", size), JSON),
    "conditions": lambda size: (BATCH, items("where", "[]", size, texts=["a"]), JSON),
    "excluded": lambda size: (BATCH, items("exclude", '"a"', size, texts=["a"]), JSON),
    "wide texts": lambda size: (DOCUMENTS, texts(size, "\U0001f600"), JSON),
    "plain texts": lambda size: (DOCUMENTS, texts(size, "a"), JSON),
    "digits": lambda size: (BATCH, b'{"k":' + b"7" * (size - 10) + b"}", JSON),
}
VALID = ("nested lists", "wide texts", "plain texts")


def large_bodies(target: Target) -> None:
    for name, make in BODIES.items():
        for part in (32, 8, 1):
            path, body, kind = make((BODY - MIB // SHARE) // part)
            method = "PUT" if path == DOCUMENTS else "POST"
            answer = target.body(method, path, body, kind)
            found = status(answer)
            expected = (400, 413, 422) if name not in VALID else (200, 413, 422)
            assert found in expected, (name, part, answer[:500])
            if found != 200:
                code(answer)


def many_bodies(target: Target) -> None:
    """500 bodies of 26 MiB at once; each that is not taken is told to come again.

    On a busy machine a body may take longer to arrive than it is given (408).
    """
    count = 500 // SHARE
    body = texts(26 * MIB // SHARE, "a")
    with ThreadPoolExecutor(count) as threads:
        found = list(threads.map(lambda _: target.body("PUT", DOCUMENTS, body), range(count)))
    states = {status(one) for one in found}
    assert states <= {0, 200, 408, 429}, states
    assert 200 in states
    assert {code(one) for one in found if status(one) == 429} <= {
        "too_much_at_once", "too_many_requests", "too_many_connections",
    }  # fmt: skip


def small_bodies(target: Target) -> None:
    """Bodies of a megabyte that decode to as much as possible, by many requests at once."""
    body = items("documents", '{"id":"a","metadata":{"a":[]}}', MIB)
    count = 400 // SHARE
    with ThreadPoolExecutor(count) as threads:
        found = set(
            threads.map(lambda _: status(target.body("PUT", DOCUMENTS, body)), range(count))
        )
    assert found <= {0, 413, 422, 429}, found


def unfinished_bodies(target: Target) -> None:
    """Bodies that never end, on every connection that there may be."""
    head = target.head("PUT", DOCUMENTS, content_type=JSON, content_length=8 * MIB // SHARE)
    hold(target, head + b" " * (4 * MIB // SHARE))


def uploads(target: Target) -> None:
    head = target.head("POST", "/v1/collections/pages/upload", content_length=512 * MIB // SHARE,
                       content_type="application/octet-stream")  # fmt: skip
    hold(target, head + b" " * (3 * MIB))


def files(target: Target) -> None:
    """Images that are large once decoded, or garbage, or never end, by many clients at once."""
    target.service.ask(
        "POST", "/v1/collections", {"name": "photos", "signer": {"method": "images"}}
    )
    made = io.BytesIO()
    Image.new("L", (12_000 // SHARE, 12_000), 7).save(made, "PNG")
    garbage = b"\x89PNG\r\n\x1a\n" + random.Random(6).randbytes(24 * MIB // SHARE)
    count = 64 // SHARE
    for data, fine in ((made.getvalue(), (200,)), (garbage, (422,))):
        with ThreadPoolExecutor(count) as threads:
            found = list(threads.map(lambda _: target.body("POST", PHOTOS, data), range(count)))  # noqa: B023
        states = {status(one) for one in found}
        assert states <= {0, 408, 429, *fine} and states & set(fine), states
        assert {code(one) for one in found if status(one) == 429} <= {
            "too_many_files", "too_much_at_once", "too_many_requests", "too_many_connections",
        }  # fmt: skip
    head = target.head("POST", PHOTOS, content_length=512 * MIB // SHARE)
    hold(target, head + garbage[: 3 * MIB])


def hold(target: Target, sent: bytes, count: int = CONNECTIONS) -> list[int]:
    """Send the same on many connections, keep them open, and return the status of each."""
    open_ones: list[socket.socket] = []
    try:
        with ThreadPoolExecutor(32) as threads:
            list(threads.map(lambda _: send_in_vain(target, sent, open_ones), range(count)))
        found = []
        for connection in open_ones:
            connection.settimeout(0.01)
            with contextlib.suppress(OSError):
                found.append(status(connection.recv(4096)))
        return found
    finally:
        begin = time.monotonic()
        for connection in open_ones:
            connection.close()
        # Until the service has seen that they are closed, it has no room for others (429).
        while not has_room(target):
            assert time.monotonic() - begin < 60
            time.sleep(0.05)


def has_room(target: Target, count: int = 8) -> bool:
    """Return whether new connections are answered, several at once."""
    with contextlib.ExitStack() as left, contextlib.suppress(OSError):
        opened = [left.enter_context(target.service.connection()) for _ in range(count)]
        for connection in opened:
            connection.sendall(target.head("GET", "/healthz", key=False, connection="close"))
        return all(status(received(connection)) == 200 for connection in opened)
    return False


def send_in_vain(target: Target, sent: bytes, kept: list[socket.socket]) -> None:
    connection = target.service.connection()
    kept.append(connection)
    connection.settimeout(1.0)
    with contextlib.suppress(OSError):
        connection.sendall(sent)


FLOODS: dict[str, tuple[bytes, bytes, int]] = {
    "headers": (b"", b"".join(b"x%d: y\r\n" % (n % 10) for n in range(8000)), 431),
    "value": (b"x: ", b"a" * 65536, 431),
    "url": (b"URL", b"a" * 65536, 414),
    "trailers": (b"transfer-encoding: chunked\r\n\r\n0\r\n", b"x: yyyyyyy\r\n" * 5000, 431),
    "trailer": (b"transfer-encoding: chunked\r\n\r\n0\r\nx: ", b"y" * 65536, 431),
    "extension": (b"transfer-encoding: chunked\r\n\r\n5;", b"y" * 65536, 431),
    "line ends": (b"NOTHING", b"\r\n" * 32768, 431),
}


def header_floods(target: Target) -> None:
    for name, (begin, part, expected) in FLOODS.items():
        first = target.head("PUT", DOCUMENTS, content_type=JSON)[:-2] + begin
        if begin == b"URL":
            first = b"GET /v1/"
        elif begin == b"NOTHING":
            first = b""
        answer = target.send(first, *[part] * (2000 // SHARE))
        assert status(answer) in (expected, 0), (name, answer[:500])
        # All of it may have been dropped, and the connection cut; a smaller flood is answered.
        answer = target.send(first, part, part)
        assert status(answer) == expected, (name, answer[:500])
        code(answer)
        hold(target, first + part[: 30 << 10])


def pipelined(target: Target) -> None:
    """Requests after requests, of which the answers are not read."""
    hold(target, target.head("GET", "/healthz", key=False) * 20_000)
    hold(target, target.head("GET", DOCUMENTS) * 5_000)


def refused_bodies(target: Target) -> None:
    """Requests without a key, whose bodies never end: none of them keeps its connection."""
    head = target.head("PUT", DOCUMENTS, key=False, content_length=1_000_000_000)
    found = hold(target, head + b"x" * 1000, CONNECTIONS + 6)
    assert set(found) <= {401, 429, 0} and 401 in found


def unread_answers(target: Target) -> None:
    """Answers that are asked for, also without a key, and never taken."""
    ids = [f"d{number}" for number in range(100)]
    long = {"documents": [{"id": id, "text": "long text " * 6000} for id in ids[: 100 // SHARE]]}
    target.service.good("PUT", DOCUMENTS, long)
    sent = target.head("GET", "/v1/openapi.json", key=False) * 40
    hold(target, sent)
    body = json.dumps({"ids": ids}).encode()
    head = target.head("POST", f"{DOCUMENTS}/get", content_type=JSON, content_length=len(body))
    hold(target, (head + body) * 3)
    hold(target, target.head("GET", f"{DOCUMENTS}?limit=100") * 3)


def noise(target: Target) -> None:
    """Bytes that are not HTTP, and some that begin like it."""
    draw = random.Random(5)
    begin = target.head("PUT", DOCUMENTS, content_type=JSON, content_length=100)
    for number in range(800 // SHARE):
        cut = draw.randrange(len(begin))
        sent = begin[:cut] + draw.randbytes(draw.randrange(1, 2000)) + begin[cut:]
        with target.service.connection() as connection:
            with contextlib.suppress(OSError):
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
            answer = received(connection)
        assert status(answer) in (0, 400, 401, 404, 405, 408, 413, 414, 415, 421, 422, 431), number
        if answer:
            code(answer)


ATTACKS = [large_bodies, many_bodies, small_bodies, unfinished_bodies, uploads, files,
           header_floods, pipelined, refused_bodies, unread_answers, noise]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: one.__name__)
def test_memory_is_bounded_and_others_are_answered(
    attack: Callable[[Target], None], target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    base = target.base
    Path(f"/proc/{target.pid}/clear_refs").write_text("5")  # the peak begins anew
    ended = threading.Event()
    waited: list[float] = []

    def probe() -> None:
        while not ended.wait(0.1):
            begin = time.monotonic()
            while not healthy(target.service):  # as after 429, a client tries again
                assert time.monotonic() - begin < 60
                time.sleep(0.05)
            waited.append(time.monotonic() - begin)

    with ThreadPoolExecutor(1) as threads:
        probing = threads.submit(probe)
        try:
            attack(target)
        finally:
            ended.set()
        probing.result()
    peak = target.memory("VmHWM")
    with capsys.disabled():
        if ALL:
            print(f"{attack.__name__}: {(peak - base) / MIB:.0f} MiB above {base / MIB:.0f}, "
                  f"/healthz within {max(waited, default=0):.2f} s")  # fmt: skip
    assert peak - base < BOUND, f"{(peak - base) / MIB:.0f} MiB"
    found = target.reader.good("POST", BATCH, {"texts": ["text 1"], "k": 3})
    assert len(found["answers"][0]["matches"]) == 3


def healthy(service: Running) -> bool:
    try:
        return service.raw("GET", "/healthz")[0] == 200
    except OSError:
        return False
