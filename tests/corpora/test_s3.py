"""Corpora on S3: a server on this machine, and requests to it that fail."""

from __future__ import annotations

import http.client
import json
import logging
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.corpora import remote

pytest.importorskip("moto")
pytest.importorskip("pyarrow.fs").S3FileSystem  # noqa: B018  # not in every build

TEXTS = [f"the quick brown fox number {at % 7} jumps over the lazy dog" for at in range(3000)]
LINES = "".join(json.dumps({"id": at, "text": text}) + "\n" for at, text in enumerate(TEXTS))
_TOLD_BY_PROXY = ("transfer-encoding", "connection", "content-length", "date", "server")


class Proxy(BaseHTTPRequestHandler):
    """Passes requests on to the server, or lets them fail as `fails` says."""

    protocol_version = "HTTP/1.1"
    port = 0
    fails: str | None = None
    after = 0
    """Requests that still succeed."""
    seen = 0
    ended = threading.Event()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer a request."""
        kind = type(self)
        kind.seen += 1
        fails = kind.fails if kind.seen > kind.after else None
        if fails == "drop":
            self.close_connection = True
            return
        if fails == "silent":
            self.ended.wait(30)
            self.close_connection = True
            return
        if fails == "error":
            self._answer(500, [], b"")
            return
        there = http.client.HTTPConnection("127.0.0.1", self.port)
        there.request(self.command, self.path, headers=dict(self.headers))
        answer = there.getresponse()
        body = answer.read()
        told = [pair for pair in answer.getheaders() if pair[0].lower() not in _TOLD_BY_PROXY]
        length = answer.getheader("Content-Length") or str(len(body))
        self._answer(answer.status, told, body, length, cut=fails == "cut" and len(body) > 1000)
        there.close()

    do_HEAD = do_GET  # noqa: N815  # the name that BaseHTTPRequestHandler looks for

    def _answer(
        self,
        status: int,
        headers: list[tuple[str, str]],
        body: bytes,
        length: str = "0",
        cut: bool = False,
    ) -> None:
        self.send_response(status)
        for name, value in [*headers, ("Content-Length", length)]:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = cut


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    """A server of S3 with a bucket `corpus`; yields its port."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    _, port = server.get_host_and_port()
    put(port, "/corpus", b"")
    put(port, "/corpus/a.jsonl", LINES.encode())
    for at in range(3):
        put(port, f"/corpus/crawl/day{at}/part.jsonl", LINES.encode())
    yield port
    server.stop()


def put(port: int, path: str, body: bytes) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("PUT", path, body)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    connection.close()


@pytest.fixture
def address(
    server: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, type[Proxy]]]:
    """Where the bucket is, through a proxy of one's own; what to ask of an address."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(remote, "CONNECT_SECONDS", 5.0)
    monkeypatch.setattr(remote, "SILENT_SECONDS", 1.0)
    handler: type[Proxy] = type("Own", (Proxy,), {"port": server, "ended": threading.Event()})
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    proxy.daemon_threads = True
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    yield (
        f"?endpoint_override=127.0.0.1:{proxy.server_address[1]}&scheme=http&region=us-east-1",
        handler,
    )
    handler.ended.set()
    proxy.shutdown()
    thread.join()
    proxy.server_close()


def test_a_file_and_a_folder(address: tuple[str, type[Proxy]], tmp_path: Path) -> None:
    query, _ = address
    result = la.dedup(f"s3://corpus/a.jsonl{query}")
    assert (result.counts.documents, result.counts.kept) == (3000, 7)
    assert result.write(tmp_path / "kept.jsonl") == 7
    assert (tmp_path / "kept.jsonl").read_text() == "".join(LINES.splitlines(True)[:7])
    result = la.dedup(f"s3://corpus/crawl{query}")
    assert (result.counts.documents, result.counts.kept) == (9000, 7)
    with pytest.raises(la.FileError, match="no such file or folder"):
        la.dedup(f"s3://corpus/nowhere.jsonl{query}")


@pytest.mark.parametrize("fails", ["drop", "error", "cut", "silent"])
@pytest.mark.parametrize("after", [0, 2], ids=["at once", "later"])
def test_requests_that_fail(
    address: tuple[str, type[Proxy]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    fails: str,
    after: int,
) -> None:
    """It gives up after some attempts, says so, and leaves nothing behind, neither a copy nor an
    output.
    """
    query, proxy = address
    proxy.fails, proxy.after = fails, after
    begin = time.monotonic()
    out = tmp_path / "out.jsonl"
    out.write_text("what was there before\n")
    name = f"s3://testing:secret@corpus/a.jsonl{query}"
    assert main(["dedup", name, "-o", str(out), "--quiet"]) == 1
    assert time.monotonic() - begin < 120
    message = capsys.readouterr().err
    assert "cannot be read" in message and "secret" not in message
    assert out.read_text() == "what was there before\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "temporary"]
    assert not list((tmp_path / "temporary").iterdir())
    # Of a file read in pieces, some of which are asked for at the same time.
    assert proxy.seen <= after + remote.ATTEMPTS * 8
    proxy.fails = None
    assert main(["dedup", name, "-o", str(out), "--quiet"]) == 0
    assert len(out.read_text().splitlines()) == 7


def test_a_request_that_fails_once(address: tuple[str, type[Proxy]]) -> None:
    """It is made again."""
    query, proxy = address

    class Once(threading.Thread):
        def run(self) -> None:
            while proxy.seen < 1:
                time.sleep(0.01)
            proxy.fails = None

    proxy.fails = "error"
    watch = Once()
    watch.start()
    assert la.dedup(f"s3://corpus/a.jsonl{query}").counts.kept == 7
    watch.join()
    assert proxy.seen > 1


def test_outputs_at_an_address_are_refused_before_the_work(
    address: tuple[str, type[Proxy]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query, proxy = address
    source = tmp_path / "a.jsonl"
    source.write_text(LINES)
    assert main(["dedup", str(source), "-o", f"s3://corpus/out.jsonl{query}"]) == 1
    assert "-o - | aws s3 cp -" in capsys.readouterr().err
    assert proxy.seen == 0
