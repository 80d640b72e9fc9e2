"""Corpora on S3: a server on this machine, and requests to it that fail."""

from __future__ import annotations

import gc
import gzip
import http.client
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.corpora import remote

pytest.importorskip("moto")
pytest.importorskip("pyarrow.fs").S3FileSystem  # noqa: B018  # not in every build

TEXTS = [f"the quick brown fox number {at % 7} jumps over the lazy dog" for at in range(3000)]
LINES = "".join(json.dumps({"id": at, "text": text}) + "\n" for at, text in enumerate(TEXTS))
_TOLD_BY_PROXY = ("transfer-encoding", "connection", "content-length", "date", "server")
LARGE = 24 << 20
"""Bytes that are uploaded in three parts."""
_OF_BODY = ("transfer-encoding", "content-length", "expect")


class Proxy(BaseHTTPRequestHandler):
    """Passes requests on to the server, or lets them fail as `fails` says."""

    protocol_version = "HTTP/1.1"
    port = 0
    fails: str | None = None
    after = 0
    """Requests that still succeed."""
    most = 1 << 30
    """Requests that fail."""
    methods: tuple[str, ...] = ("GET", "HEAD", "PUT", "POST")
    """Requests that may fail, and are counted."""
    seen = 0
    ended = threading.Event()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer a request."""
        kind = type(self)
        counted = self.command in kind.methods
        kind.seen += counted
        failing = counted and 0 < kind.seen - kind.after <= kind.most
        fails = kind.fails if failing else None
        sent = None if fails == "silent" else self._body()
        if fails == "drop":
            self.close_connection = True
            return
        if fails == "silent":
            self.ended.wait(30)
            self.close_connection = True
            return
        if fails == "slow":
            self.ended.wait(0.5)
        if fails == "error":
            self._answer(500, [], b"")
            return
        there = http.client.HTTPConnection("127.0.0.1", self.port)
        headers = {name: value for name, value in self.headers.items() if name not in _OF_BODY}
        there.request(self.command, self.path, sent, headers)
        answer = there.getresponse()
        body = answer.read()
        told = [pair for pair in answer.getheaders() if pair[0].lower() not in _TOLD_BY_PROXY]
        length = answer.getheader("Content-Length") or str(len(body))
        self._answer(answer.status, told, body, length, cut=fails == "cut" and len(body) > 1000)
        there.close()

    do_HEAD = do_PUT = do_POST = do_GET  # noqa: N815  # names that BaseHTTPRequestHandler looks for

    def _body(self) -> bytes:
        """Return what was sent, which may come in chunks."""
        if self.headers["transfer-encoding"] != "chunked":
            return self.rfile.read(int(self.headers["content-length"] or 0))
        body = b""
        while length := int(self.rfile.readline(), 16):
            body += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return body

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
    put(port, "/corpus/folder.jsonl/part.jsonl", b"")
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
    with pytest.raises(la.errors.FileError, match="no such file or folder"):
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


def fetched(port: int, path: str) -> bytes | None:
    """Return an object as the server has it; None if it has none."""
    files = pyarrow.fs.S3FileSystem(
        endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1"
    )
    if files.get_file_info(path).type == pyarrow.fs.FileType.NotFound:
        return None
    with files.open_input_stream(path, compression=None) as stream:
        return bytes(stream.read())


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.parquet", "a b/out%20.csv"])
@pytest.mark.parametrize("annotate", [False, True])
def test_from_s3_to_s3(
    address: tuple[str, type[Proxy]], tmp_path: Path, name: str, annotate: bool
) -> None:
    """The object is what the same job writes to a local file."""
    query, proxy = address
    source = tmp_path / "a.jsonl"
    source.write_text(LINES)
    local = tmp_path / name.rpartition("/")[2]
    more = ["--annotate", "--quiet"] if annotate else ["--quiet"]
    assert main(["dedup", str(source), "-o", str(local), *more]) == 0
    place = f"s3://corpus/new/{quote(name)}{query}"
    assert main(["dedup", f"s3://corpus/a.jsonl{query}", "-o", place, *more]) == 0
    written = fetched(proxy.port, f"corpus/new/{name}")
    assert written is not None
    if name.endswith(".gz"):
        assert gzip.decompress(written) == gzip.decompress(local.read_bytes())
    elif name.endswith(".parquet"):
        assert pq.read_table(pa.BufferReader(written)).equals(pq.read_table(local))
    else:
        assert written == local.read_bytes()
    assert not list((tmp_path / "temporary").iterdir())


def test_every_output_at_an_address(
    address: tuple[str, type[Proxy]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query, proxy = address
    source = tmp_path / "a.jsonl"
    source.write_text(LINES)
    names = {
        "-o": "all.csv",
        "--pairs": "all-pairs.csv",
        "--report": "all.html",
        "--save-signatures": "all.lookalike",
    }
    outputs, at_s3 = [], []
    for option, name in names.items():
        outputs += [option, str(tmp_path / name)]
        at_s3 += [option, f"s3://testing:testing@corpus/{name}{query}"]
    assert main(["dedup", str(source), *outputs, "--quiet"]) == 0
    assert main(["dedup", str(source), *at_s3, "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["written"]
    assert sorted(written.values()) == sorted(
        f"s3://***@corpus/{name}{query}" for name in names.values()
    )
    for name in ("all.csv", "all-pairs.csv", "all.lookalike"):
        assert fetched(proxy.port, f"corpus/{name}") == (tmp_path / name).read_bytes()
    report = fetched(proxy.port, "corpus/all.html")
    assert report is not None and b"testing:testing" not in report


def test_from_python(address: tuple[str, type[Proxy]], tmp_path: Path) -> None:
    query, proxy = address
    result = la.dedup(f"s3://corpus/a.jsonl{query}")
    assert result.write(f"s3://corpus/python.jsonl{query}") == 7
    assert (
        fetched(proxy.port, "corpus/python.jsonl") == "".join(LINES.splitlines(True)[:7]).encode()
    )
    assert result.write_annotated(f"s3://corpus/python.csv{query}") == 3000
    assert result.write_pairs(f"s3://corpus/pairs.csv{query}") == len(result.pairs)
    with pytest.raises(la.errors.ArgumentError, match="which is also read or written"):
        result.write(f"s3://testing:secret@corpus//a.jsonl{query}")
    with pytest.raises(la.errors.ArgumentError, match="is not an output format"):
        result.write(f"s3://corpus/page.html{query}")
    assert fetched(proxy.port, "corpus/a.jsonl") == LINES.encode()
    vectors = la.dedup(
        pa.table({"vector": [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]}), kind="vectors", vectors="vector"
    )
    assert vectors.write(f"s3://corpus/vectors.parquet{query}") == 2
    written = fetched(proxy.port, "corpus/vectors.parquet")
    assert pq.read_table(pa.BufferReader(written)).num_rows == 2
    nothing = la.dedup([])
    assert nothing.write(f"s3://corpus/nothing.jsonl{query}") == 0
    assert fetched(proxy.port, "corpus/nothing.jsonl") == b""


_WAITS = pytest.mark.skipif(
    not os.environ.get("LOOKALIKE_CRASHES"),
    reason="waits half a minute or longer; set LOOKALIKE_CRASHES=1 or run `make crash`",
)


@pytest.mark.parametrize(
    ("fails", "size", "after"),
    [
        ("drop", 100, 0),
        ("error", 100, 0),
        ("drop", LARGE, 2),  # the first request begins the upload, the second brings a part
        ("error", LARGE, 2),
        ("error", LARGE, 4),  # all parts have come
        ("silent", LARGE, 0),
        pytest.param("silent", 100, 0, marks=_WAITS),
        pytest.param("silent", LARGE, 2, marks=_WAITS),
    ],
)
def test_uploads_that_fail(
    address: tuple[str, type[Proxy]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    fails: str,
    size: int,
    after: int,
) -> None:
    """It gives up after some attempts, says so, and publishes nothing; a second run succeeds."""
    query, proxy = address
    source = tmp_path / "a.jsonl"
    before = b"the object that was there before\n"
    key = f"corpus/{fails}-{size}-{after}.jsonl"
    put(proxy.port, f"/{key}", before)
    text = json.dumps({"text": "long", "more": "x" * size}) + "\n"
    source.write_text(text)
    proxy.methods = ("PUT", "POST")
    proxy.fails, proxy.after = fails, after
    if after != 2:  # parts are sent at the same time, other requests one after the other
        # The next one would succeed: nothing may be sent after the upload has failed.
        proxy.most = remote.ATTEMPTS
    begin = time.monotonic()
    name = f"s3://testing:secret@{key}{query}"
    signatures = tmp_path / "seen.lookalike"
    arguments = ["dedup", str(source), "-o", name, "--save-signatures", str(signatures), "--quiet"]
    assert main(arguments) == 1
    assert time.monotonic() - begin < 120
    message = capsys.readouterr().err
    assert f"s3://***@{key}" in message and "cannot be written" in message
    assert "No partial file is there" in message and "secret" not in message
    assert fetched(proxy.port, key) == before
    # The documents are not known when the job is tried again.
    assert not signatures.exists()
    assert not list((tmp_path / "temporary").iterdir())
    gc.collect()
    assert proxy.seen <= after + remote.ATTEMPTS * (2 if after == 2 else 1)
    proxy.fails = None
    assert main(arguments) == 0
    assert fetched(proxy.port, key) == text.encode()


def test_an_upload_that_fails_once(address: tuple[str, type[Proxy]], tmp_path: Path) -> None:
    """The request is made again."""
    query, proxy = address
    proxy.methods, proxy.fails, proxy.most = ("PUT", "POST"), "error", 1
    source = tmp_path / "a.jsonl"
    source.write_text(LINES)
    assert main(["dedup", str(source), "-o", f"s3://corpus/once.jsonl{query}", "--quiet"]) == 0
    assert proxy.seen == 2
    assert fetched(proxy.port, "corpus/once.jsonl") is not None


def test_an_object_of_another_size_is_an_error(
    address: tuple[str, type[Proxy]], monkeypatch: pytest.MonkeyPatch
) -> None:
    query, _ = address
    send = remote._send
    monkeypatch.setattr(remote, "_send", lambda *places: send(*places) + 1)
    with pytest.raises(la.errors.FileError, match="bytes, but has .* bytes now"):
        la.dedup(["a", "b"]).write(f"s3://corpus/disturbed.jsonl{query}")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("s3://nowhere/out.jsonl", "there is no bucket 'nowhere'"),
        ("s3://corpus/a.jsonl", "which is also read or written"),
        ("s3://k:se/cret@corpus/./a.jsonl", "s3://***@corpus"),
        ("s3://corpus/crawl/out/", "does not name a file"),
        ("s3://corpus/unique", "does not name a file"),
        ("s3://corpus", "does not name a file"),
        ("s3://corpus/folder.jsonl", "is a folder with files in it"),
        ("s3://corpus/out.warc", ".warc is not an output format"),
        ("gs://corpus/out.jsonl", "s3:// addresses only"),
        ("file:///corpus/out.jsonl", "s3:// addresses only"),
    ],
)
def test_outputs_that_are_refused_before_the_work(
    address: tuple[str, type[Proxy]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
    message: str,
) -> None:
    query, _ = address
    monkeypatch.setattr("lookalike.cli.commands.dedup.dedup", None)
    arguments = ["dedup", f"s3://corpus/a.jsonl{query}", "-o", f"{place}{query}"]
    assert main(arguments) == 1
    told = capsys.readouterr().err
    assert message in told and "cret" not in told and str(tmp_path) not in told
    assert not list((tmp_path / "temporary").iterdir())


def test_outputs_among_what_is_read_or_written(
    address: tuple[str, type[Proxy]], capsys: pytest.CaptureFixture[str]
) -> None:
    query, _ = address
    crawl, old = f"s3://corpus/crawl{query}", f"s3://corpus/a.jsonl{query}"
    out = f"s3://corpus/out.csv{query}"
    for arguments in [
        [crawl, "-o", f"s3://corpus/crawl/day0/new.jsonl{query}"],
        [crawl, "--against", old, "-o", old],
        [crawl, "-o", out, "--pairs", out],
    ]:
        assert main(["dedup", *arguments]) == 1
        assert "which is also read or written" in capsys.readouterr().err


def test_a_bucket_out_of_reach_is_found_before_the_work(
    address: tuple[str, type[Proxy]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    query, proxy = address
    monkeypatch.setattr("lookalike.cli.common.corpus_of", None)
    proxy.fails = "drop"
    source = tmp_path / "a.jsonl"
    source.write_text(LINES)
    assert main(["dedup", str(source), "-o", f"s3://corpus/out.jsonl{query}"]) == 1
    assert "cannot be written" in capsys.readouterr().err
    assert proxy.seen <= remote.ATTEMPTS * 2


@pytest.mark.parametrize(
    ("number", "fails", "size"),
    [
        (signal.SIGTERM, "silent", 100),
        (signal.SIGTERM, "slow", LARGE),
        (signal.SIGINT, "slow", LARGE),
    ],
)
def test_a_signal_during_the_upload(
    address: tuple[str, type[Proxy]],
    tmp_path: Path,
    number: signal.Signals,
    fails: str,
    size: int,
) -> None:
    """No temporary file is left, and no part of an object; Ctrl-C may let an upload end."""
    query, proxy = address
    proxy.methods, proxy.fails = ("PUT", "POST"), fails
    source = tmp_path / "a.jsonl"
    source.write_text(json.dumps({"text": "long", "more": "x" * size}) + "\n")
    key = f"corpus/{number.name}-{fails}.jsonl"
    run = "import sys; from lookalike.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["dedup", str(source), "-o", f"s3://{key}{query}", "--quiet"]
    job = subprocess.Popen([sys.executable, "-c", run, *arguments])
    try:
        while not proxy.seen and job.poll() is None:
            time.sleep(0.01)
        job.send_signal(number)
        assert job.wait(60) == 128 + number
    finally:
        job.kill()
        job.wait()
    left = [None] if number == signal.SIGTERM else [None, source.read_bytes()]
    assert fetched(proxy.port, key) in left
    assert not list((tmp_path / "temporary").iterdir())


def test_a_failed_upload_is_not_completed_later(
    address: tuple[str, type[Proxy]], tmp_path: Path
) -> None:
    """A stream that pyarrow destroys would send what it has, and the server would take it."""
    query, proxy = address
    proxy.methods, proxy.fails, proxy.most = ("PUT", "POST"), "error", remote.ATTEMPTS
    with remote.Upload(f"s3://corpus/later.jsonl{query}") as upload:
        upload.path.write_bytes(b"x" * LARGE)
        with pytest.raises(la.errors.FileError, match="No partial file is there"):
            upload.publish()
    gc.collect()
    assert proxy.seen == remote.ATTEMPTS
    assert fetched(proxy.port, "corpus/later.jsonl") is None
