"""A service in processes of its own: killed under load, several workers, its end, its settings."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.service.keys import KeyFile
from lookalike.service.settings import ServeSettings, setting_options
from support.running.refusals import refused
from support.running.waiting import wait_until
from support.services.running import Running, process


@dataclass
class Writer:
    """Writes and deletes documents in a thread, and notes what was acknowledged."""

    number: int
    texts: dict[str, str] = field(default_factory=dict)
    """What is surely there."""
    unsure: tuple[str, str] | None = None
    """What may be so by now: an id and its text, none if it may be deleted."""
    acknowledged: int = 0

    def write_until_it_fails(self, url: str) -> None:
        count = 0
        with la.connect(url, "documents", timeout=120, retries=0) as docs:
            while True:
                id, text = f"w{self.number}-{count % 40}", f"text {count} of writer {self.number}"
                gone = count % 5 == 4
                self.unsure = (id, "" if gone else text)
                try:
                    docs.delete([id]) if gone else docs.upsert([id], [text])
                except la.errors.CollectionError:
                    return
                self.texts.pop(id, None)
                if not gone:
                    self.texts[id] = text
                self.unsure = None
                count += 1
                self.acknowledged += 1

    def check(self, docs: la.Collection) -> None:
        """Find what was acknowledged; what was not is there whole or not at all."""
        if self.unsure is not None:
            id, new = self.unsure
            found = docs.get(id)
            text = "" if found is None else found.text or ""
            assert text in (new, self.texts.pop(id, ""))
            if text:
                self.texts[id] = text
        known = docs.get_many(list(self.texts))
        assert [one and one.text for one in known] == list(self.texts.values())


def put_under_load(url: str, writers: list[Writer], kill: Callable[[], object]) -> None:
    """Write and search until each has written a while, and kill the service in the middle of it."""
    threads = [threading.Thread(target=one.write_until_it_fails, args=(url,)) for one in writers]
    goal = min(one.acknowledged for one in writers) + 15
    with la.connect(url, "documents", timeout=120, retries=0) as reader:
        for one in writers:  # what they wrote before is there, after a restart
            assert [found and found.text for found in reader.get_many(list(one.texts))] == list(
                one.texts.values()
            )
        for thread in threads:
            thread.start()
        try:
            while min(one.acknowledged for one in writers) < goal:
                assert len(reader.search("text of writer", 3)) <= 3
                assert all(thread.is_alive() for thread in threads)
        finally:
            kill()
            for thread in threads:
                thread.join()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_killed_under_load_every_acknowledged_write_is_there(tmp_path: Path, workers: str) -> None:
    path = tmp_path / "docs.db"
    la.open_collection(path, signer=la.SimHash(64)).close()
    writers = [Writer(number) for number in range(3)]
    for _ in range(2):
        with process(str(path), "--workers", workers) as started:
            put_under_load(
                started.service.url, writers, partial(os.killpg, started.pid, signal.SIGKILL)
            )  # workers, too
            started.wait()
        with la.open_collection(path, create=False) as docs:
            assert docs.verify().ok
            for writer in writers:
                writer.check(docs)
            assert sum(len(writer.texts) for writer in writers) == docs.count() > 0


def test_two_workers_see_what_the_other_has_written(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    la.open_collection(path, signer=la.SimHash(64)).close()
    with process(str(path), "--workers", "2", "--log-level", "info") as started:
        service = started.service
        for number in range(60):  # each on a connection of its own, whichever worker takes it
            body = {"documents": [{"id": f"d{number}", "text": f"text number {number}"}]}
            service.good("PUT", "/v1/collections/documents/documents", body)
            asked = {"text": f"text number {number}", "k": 1}
            (match,) = service.good("POST", "/v1/collections/documents/query", asked)["matches"]
            assert match["distance"] == 0
        job = service.job("/v1/collections/documents/pairs", {"radius": 1})
        assert job["state"] == "done"
        text = service.raw("GET", "/metrics")[2].decode()
        counted = sum(
            float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if line.startswith("lookalike_requests_total") and "/query" in line
        )
        assert counted == 60, "of all workers together"
        started.send_signal(signal.SIGTERM)
        assert started.wait(120) == 0
        lines = [json.loads(line) for line in started.stderr.read().splitlines()]
    assert len({line["process"] for line in lines if line["event"] == "ending"}) == 2


def test_two_services_of_one_database_see_what_the_other_has_written(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    la.open_collection(path, signer=la.SimHash(64)).close()
    with (
        process(str(path)) as one,
        process(str(path)) as two,
        la.connect(one.service.url) as left,
        la.connect(two.service.url) as right,
    ):
        for number in range(30):
            writer, reader = (left, right) if number % 2 else (right, left)
            writer.upsert([f"d{number}"], [f"text number {number}"])
            assert reader.search(f"text number {number}", 1)[0].distance == 0
            assert reader.version == number + 1
        left.delete(["d3"])
        assert right.get("d3") is None and len(right) == 29


def test_it_ends_in_good_order(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    la.open_collection(path, signer=la.SimHash(64)).close()
    for number in (signal.SIGTERM, signal.SIGINT):
        with process(str(path)) as started:
            connection = started.service.connection()
            body = b'{"documents": [{"id": "%d", "text": "a text"}]}' % number
            connection.sendall(
                b"PUT /v1/collections/documents/documents HTTP/1.1\r\nhost: localhost\r\n"
                b"content-type: application/json\r\nexpect: 100-continue\r\n"
                b"content-length: %d\r\n\r\n" % len(body)
            )
            assert b" 100 Continue" in connection.recv(65536)
            started.send_signal(number)
            wait_until(lambda: not listens(started.service))
            connection.sendall(body)  # what has begun is answered
            assert b" 200 OK" in connection.recv(65536)
            connection.close()
            assert started.wait(120) == 0
            assert '"ending"' in started.stderr.read()
    with la.open_collection(path, create=False) as docs:
        assert {one.id for one in docs} == {str(int(signal.SIGINT)), str(int(signal.SIGTERM))}


def listens(service: Running) -> bool:
    try:
        service.connection().close()
    except ConnectionRefusedError:
        return False
    return True


def test_alone_it_makes_an_example_and_says_so() -> None:
    with process() as started:
        assert "serving an example" in started.said[0]
        (one,) = started.service.good("GET", "/v1/collections")["collections"]
        assert one["documents"] > 1_000
        asked = {"text": "Return the sum of a list of numbers", "k": 3}
        path = f"/v1/collections/{one['name']}/query"
        assert len(started.service.good("POST", path, asked)["matches"]) == 3
        assert [line.split()[:3] for line in started.said[2:4]] == [
            ["lookalike", "collection", action] for action in ("create", "import")
        ]
        (serves,) = (line for line in started.said if " serves " in line)
        folder = Path(serves.split("serves ")[1].split(" at ")[0]).parent
        assert folder.is_dir()
        started.send_signal(signal.SIGTERM)
        assert started.wait(120) == 0
        assert not folder.exists()


def test_settings_come_from_options_the_environment_and_defaults() -> None:
    variables = {"LOOKALIKE_SERVE_PORT": "9", "LOOKALIKE_SERVE_MAX_BODY": "2MiB",
                 "LOOKALIKE_SERVE_ALLOW_HOST": "a.example, b.example"}  # fmt: skip
    found = ServeSettings.read({"port": "7", "host": None}, variables)
    assert (found.port, found.max_body, found.max_k) == (7, 2 << 20, 10_000)
    assert found.allow_host == ("a.example", "b.example")
    assert ServeSettings.read({}, variables).port == 9
    assert set(setting_options()) == set(vars(ServeSettings()))
    with pytest.raises(
        la.errors.ArgumentError, match=r"LOOKALIKE_SERVE_MAX_K is 'x'; expected a whole"
    ):
        ServeSettings.read({}, {"LOOKALIKE_SERVE_MAX_K": "x"})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "x"], "--port is 'x'; expected a whole number"),
        (["--port", "70000"], "--port is 70000; expected 0 to 65535"),
        (["--max-body", "5 apples"], "--max-body is '5 apples'; expected a size such as"),
        (["--workers", "0"], "--workers is 0; expected at least 1"),
        (["--time-limit", "0"], "--time-limit is '0'; expected a number of seconds above 0"),
        (["--log-level", "loud"], "--log-level is 'loud'; expected one of debug, info"),
        (["--host", "0.0.0.0"], "--host is '0.0.0.0', which other machines can reach"),
        (["--new-key"], "--keys is missing; name the file for the new key"),
        (["--key-name", "x"], "--key-name needs --new-key"),
        (["--read-only"], "--read-only needs --new-key"),
        (["docs.db", "--keys", "none.json"], "--keys is 'none.json', which has no keys"),
        (["--bad"], "unknown option --bad"),
    ],
)
def test_wrong_usage_is_told_in_two_lines(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], in_folder: Path
) -> None:
    assert said in refused(["serve", *arguments], capsys)


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_key_is_printed_once(capsys: pytest.CaptureFixture[str], in_folder: Path) -> None:
    arguments = ["serve", "--new-key", "--keys", "keys.json", "--read-only", "--collections", "a,b"]
    assert main(arguments) == 0
    key = KeyFile(in_folder / "keys.json").find(capsys.readouterr().out.strip())
    assert key is not None and (key.access, key.collections) == ("read-only", ("a", "b"))


def test_without_its_packages_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], in_folder: Path
) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "pip install 'lookalike[serve]'" in refused(["serve", "docs.db"], capsys)
