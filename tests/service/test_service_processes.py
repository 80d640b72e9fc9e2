"""A service in processes of its own: killed under load, several workers, its end, its settings."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.service.guard.keys import KeyFile
from lookalike.service.settings import ServeSettings, setting_options
from support.refusals import refused
from support.running_service import process


def write_until_it_fails(
    url: str, number: int, acknowledged: dict[str, str], stop: threading.Event
) -> None:
    """Write documents, and note each that was acknowledged, and each that was deleted."""
    count = 0
    with la.connect(url, "documents", retries=0) as docs:
        while not stop.is_set():
            id, text = f"w{number}-{count % 40}", f"text {count} of writer {number}"
            gone = count % 5 == 4
            acknowledged[f"?{id}"] = "" if gone else text  # may be so from now on
            try:
                if gone:
                    docs.delete([id])
                    acknowledged.pop(id, None)
                else:
                    docs.upsert([id], [text])
                    acknowledged[id] = text
            except la.CollectionError:
                return
            del acknowledged[f"?{id}"]
            count += 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_killed_under_load_every_acknowledged_write_is_there(tmp_path: Path, workers: str) -> None:
    path = tmp_path / "docs.db"
    la.open_collection(path, signer=la.SimHash(64)).close()
    acknowledged: list[dict[str, str]] = [{} for _ in range(3)]
    for _ in range(2):
        stop = threading.Event()
        with process(str(path), "--workers", workers) as started:
            threads = [
                threading.Thread(
                    target=write_until_it_fails, args=(started.service.url, number, known, stop)
                )
                for number, known in enumerate(acknowledged)
            ]
            for thread in threads:
                thread.start()
            reader = la.connect(started.service.url, "documents", retries=0)
            deadline = time.monotonic() + 1.0
            while time.monotonic() < deadline:
                assert len(reader.search("text of writer", 3)) <= 3
            os.killpg(started.pid, signal.SIGKILL)  # workers, too
            started.wait()
            stop.set()
            for thread in threads:
                thread.join()
            reader.close()
        with la.open_collection(path, create=False) as docs:
            assert docs.verify().ok
            sure = 0
            for known in acknowledged:
                for unsure in [id for id in known if id.startswith("?")]:
                    # What was not acknowledged is there whole or not at all.
                    new, old = known.pop(unsure), known.pop(unsure[1:], "")
                    found = docs.get(unsure[1:])
                    text = "" if found is None else found.text
                    assert text in (new, old)
                    if text:
                        known[unsure[1:]] = text
                for id, text in known.items():
                    found = docs.get(id)
                    assert found is not None and found.text == text, id
                    sure += 1
            assert sum(map(len, acknowledged)) == docs.count()
        assert sure > 0


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
        assert started.wait(20) == 0
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
                b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
            )
            time.sleep(0.1)
            started.send_signal(number)
            time.sleep(0.2)
            connection.sendall(body)  # what has begun is answered
            assert b" 200 OK" in connection.recv(65536)
            connection.close()
            assert started.wait(20) == 0
            assert '"ending"' in started.stderr.read()
    with la.open_collection(path, create=False) as docs:
        assert {one.id for one in docs} == {str(int(signal.SIGINT)), str(int(signal.SIGTERM))}


def test_alone_it_makes_an_example_and_says_so() -> None:
    with process() as started:
        assert "this is an example" in started.said[0]
        (one,) = started.service.good("GET", "/v1/collections")["collections"]
        assert one["documents"] > 1_000
        asked = {"text": "Return the sum of a list of numbers", "k": 3}
        path = f"/v1/collections/{one['name']}/query"
        assert len(started.service.good("POST", path, asked)["matches"]) == 3
        folder = Path(started.said[1].split("serves ")[1].split(" at ")[0]).parent
        assert folder.is_dir()
        started.send_signal(signal.SIGTERM)
        assert started.wait(20) == 0
        assert not folder.exists()


def test_settings_come_from_options_the_environment_and_defaults() -> None:
    variables = {"LOOKALIKE_SERVE_PORT": "9", "LOOKALIKE_SERVE_MAX_BODY": "2MiB",
                 "LOOKALIKE_SERVE_ALLOW_HOST": "a.example, b.example"}  # fmt: skip
    found = ServeSettings.read({"port": "7", "host": None}, variables)
    assert (found.port, found.max_body, found.max_k) == (7, 2 << 20, 10_000)
    assert found.allow_host == ("a.example", "b.example")
    assert ServeSettings.read({}, variables).port == 9
    assert {one.name for one in setting_options()} == set(vars(ServeSettings()))
    with pytest.raises(la.ArgumentError, match=r"LOOKALIKE_SERVE_MAX_K is 'x'; expected a whole"):
        ServeSettings.read({}, {"LOOKALIKE_SERVE_MAX_K": "x"})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "x"], "--port is 'x'; expected a whole number"),
        (["--port", "70000"], "--port is 70000; expected 0 to 65535"),
        (["--max-body", "5 apples"], "--max-body is '5 apples'; expected a size such as"),
        (["--workers", "0"], "--workers is 0; expected at least 1"),
        (["--time-limit", "0"], "--time-limit is '0'; expected seconds, more than 0"),
        (["--log-level", "loud"], "--log-level is 'loud'; expected one of debug, info"),
        (["--host", "0.0.0.0"], "--host is '0.0.0.0', which others can reach"),
        (["--new-key"], "--keys is missing: say in which file the new key is kept"),
        (["--key-name", "x"], "--key-name is for --new-key"),
        (["--read-only"], "--read-only is for --new-key"),
        (["docs.db", "--keys", "none.json"], "--keys is 'none.json', which holds no keys"),
        (["--bad"], "there is no option --bad"),
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
