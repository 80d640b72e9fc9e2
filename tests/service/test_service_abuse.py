"""What somebody may send who means no good, or has odd documents: nobody else comes to harm."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgpack
import pytest

import lookalike as la
from lookalike.service import jobs
from lookalike.service.keys import make_key
from lookalike.service.library import open_library
from lookalike.service.routes import documents
from lookalike.service.telemetry import Log
from support.services.running import Running, process, running

BASE = "/v1/collections/pages"
IDS = ["a", "a\n", "a\nb", "\n", "\r\n", "..", ".", "a/b", "/", "//", "x/", "get", "%2F", "%0A",
       "?", "#", " ", "\u2028", "i" * 1000]  # fmt: skip


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Running, Running]]:
    """A service, for somebody who may write and for somebody who may only read."""
    with la.open_collection(tmp_path / "docs.db", "pages", signer=la.SimHash(64)) as docs:
        docs.add(IDS, [f"the text of number {place}" for place in range(len(IDS))])
    path = tmp_path / "keys.json"
    writer, reader = make_key(path, "writer"), make_key(path, "reader", "read-only")
    with running(tmp_path / "docs.db", tmp_path, keys=str(path)) as service:
        yield (
            Running(service.host, service.port, writer),
            Running(service.host, service.port, reader),
        )


def test_each_id_in_an_address_is_that_id(served: tuple[Running, Running]) -> None:
    writer, _ = served
    for id in IDS:
        assert writer.good("GET", f"{BASE}/documents/{quote(id, safe='')}")["id"] == id
    left = set(IDS)
    for id in IDS:
        done = writer.good("DELETE", f"{BASE}/documents/{quote(id, safe='')}")
        assert done["deleted"] == 1
        left.remove(id)
        there = writer.good("GET", f"{BASE}/documents?limit=100")["documents"]
        assert {one["id"] for one in there} == left


@pytest.mark.parametrize(
    "value", [b"", b"abc", msgpack.Timestamp(5), msgpack.ExtType(5, b""), {"=": b""}, [b"a"]]
)
def test_conditions_are_of_what_json_has(value: Any, served: tuple[Running, Running]) -> None:
    _, reader = served
    for path, body in (
        ("query", {"text": "a"}), ("query/batch", {"texts": ["a"]}), ("documents/count", {}),
        ("documents/scroll", {}),
    ):  # fmt: skip
        raw = msgpack.packb({**body, "where": {"x": value}})
        reader.refused(422, "bad_body", "POST", f"{BASE}/{path}", raw,
                       content_type="application/msgpack")  # fmt: skip


def test_a_signer_of_another_version_is_the_askers_mistake(
    served: tuple[Running, Running],
) -> None:
    writer, _ = served
    description = {**la.SimHash(64).to_dict(), "version": 99}
    body = {"name": "other", "description": description}
    told = writer.refused(422, "bad_argument", "POST", "/v1/collections", body)
    assert "version 99" in told


def test_long_texts_come_in_smaller_pages(
    served: tuple[Running, Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = served
    # Texts have some 20 characters, and metadata two: with the third of a page there is enough.
    monkeypatch.setattr(documents, "_PAGE_BYTES", 50)
    found: list[str] = []
    after, pages = "", 0
    while after is not None:
        page = reader.good("GET", f"{BASE}/documents?limit=10&after={quote(after)}")
        assert len(page["documents"]) == min(3, len(IDS) - len(found))
        found += [one["id"] for one in page["documents"]]
        after, pages = page["next"], pages + 1
    assert found == sorted(IDS)
    assert pages == -(-len(IDS) // 3)
    short = reader.good("POST", f"{BASE}/documents/scroll", {"limit": 10, "include_text": False})
    assert [one["id"] for one in short["documents"]] == sorted(IDS)[:10]
    assert short["next"] == sorted(IDS)[9]
    with la.connect(reader.url, "pages", key=reader.key) as docs:
        assert [one.id for one in docs.scroll("", 15)] == sorted(IDS)[:15]
    done = writer.good("POST", f"{BASE}/documents/delete", {"where": {"x": {"exists": False}}})
    assert done["deleted"] == len(IDS)
    assert reader.good("GET", f"{BASE}/documents") == {"documents": [], "next": None}


def test_a_key_for_reading_cancels_what_does_not_write(served: tuple[Running, Running]) -> None:
    writer, reader = served
    for service, path, body, may in (
        (reader, "pairs", {"radius": 1}, True),
        (reader, "dedup", {"radius": 1}, True),
        (writer, "dedup", {"radius": 0, "delete": True}, False),
    ):
        job = service.good("POST", f"{BASE}/{path}", body)
        assert job["writes"] is not may
        if may:
            reader.good("DELETE", f"/v1/jobs/{job['id']}")
        else:
            reader.refused(403, "read_only", "DELETE", f"/v1/jobs/{job['id']}")
            writer.good("DELETE", f"/v1/jobs/{job['id']}")


def test_results_that_are_kept_do_not_fill_the_disk(
    served: tuple[Running, Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, reader = served
    monkeypatch.setattr(jobs, "_MOST_BYTES", 15_000)
    sizes = []
    for _ in range(3):
        job = reader.job(f"{BASE}/pairs", {"radius": 64})
        assert job["state"] == "done"
        found = reader.good("GET", f"/v1/jobs/{job['id']}/results?limit=1000")["results"]
        assert len(found) == len(IDS) * (len(IDS) - 1) // 2
        sizes.append(len(str(found)))
    assert min(sizes) < 30_000 < 3 * min(sizes)
    reader.job(f"{BASE}/pairs", {"radius": 0})
    there = reader.good("GET", "/v1/jobs")["jobs"]
    assert len(there) < 4


def test_jobs_that_have_ended_leave_no_processes(tmp_path: Path) -> None:
    log = Log("error", io.StringIO())
    several = jobs.Jobs(tmp_path / "jobs", 2, log)
    order = {"kind": "pairs", "url": str(tmp_path / "none.db"), "name": "none", "radius": 1}
    ended: list[str] = []
    for _ in range(3):
        job = several.start("none", order)
        assert len(several._processes) == 1
        (process,) = several._processes.values()
        if ended:
            process.kill()  # one that cannot tell how it ended
        process.wait()
        if not ended:
            assert several.get(job["id"])["state"] == "failed"
            several.cancel(job["id"])  # which forgets it
        ended.append(job["id"])
    states = [several.get(id)["state"] for id in ended[1:]]
    assert states == ["failed", "failed"]
    several.close()
    log.close()


def test_a_file_to_bring_in_is_gone_however_the_job_ends(tmp_path: Path) -> None:
    log = Log("error", io.StringIO())
    several = jobs.Jobs(tmp_path / "jobs", 3, log)
    order = {"kind": "import", "url": str(tmp_path / "none.db"), "name": "none", "format": "jsonl",
             "max_text": 100}  # fmt: skip
    started = {}
    for name in ("canceled", "failed", "killed"):
        path = tmp_path / f"{name}.jsonl"
        path.write_text('{"id": "a", "text": "b"}\n')
        started[name] = several.start("none", {**order, "path": str(path)})["id"]
    assert several.cancel(started["canceled"])["state"] == "canceled"
    several._processes[started["killed"]].kill()
    for name in ("failed", "killed"):
        several._processes[started[name]].wait()
        assert several.get(started[name])["state"] == "failed"
    assert list(tmp_path.glob("*.jsonl")) == []
    several.close()
    log.close()


def test_a_collection_that_is_replaced_twice_while_it_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    la.open_collection(path, "pages", signer=la.SimHash(64)).close()
    library, widths = open_library(path), []

    def work(docs: la.Collection) -> int:
        widths.append(docs.bits)
        if len(widths) <= times:
            la.drop_collection(path, "pages")
            la.open_collection(path, "pages", signer=la.SimHash(64 * (1 + len(widths)))).close()
        return len(docs.search("a text", 1))

    times = 3
    assert library.use("pages", work) == 0
    assert widths == [64, 128, 192, 256]
    times = 10**6
    with pytest.raises(la.errors.CollectionBusyError, match="again and again"):
        library.use("pages", work)
    library.close()


def test_a_collection_that_goes_and_comes_while_it_is_asked(
    served: tuple[Running, Running],
) -> None:
    writer, reader = served
    end = time.monotonic() + 1.5
    seen = set()

    def ask(number: int) -> None:
        paths = [("POST", "query", {"text": "a"}), ("GET", "map", None), ("GET", "groups", None),
                 ("POST", "documents/get", {"ids": ["a"]}), ("GET", "distances", None)]  # fmt: skip
        while time.monotonic() < end:
            method, path, body = paths[number % len(paths)]
            number += 1
            status, _, value = reader.ask(method, f"{BASE}/{path}", body)
            seen.add((status, value.get("error", {}).get("message")))

    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(ask, number) for number in range(4)]
        width = 0
        while time.monotonic() < end:
            writer.ask("DELETE", BASE)
            width = 64 if width == 128 else 128
            body = {"name": "pages", "signer": {"bits": width}}
            assert writer.ask("POST", "/v1/collections", body)[0] == 201
            document = {"id": "a", "text": "some text", "metadata": {}}
            done = writer.good("PUT", f"{BASE}/documents", {"documents": [document]})
            assert done["added"] == 1
        for one in asked:
            one.result()
    assert {status for status, _ in seen} <= {200, 202, 404, 429, 503}, seen
    assert writer.good("GET", BASE)["documents"] == 1


def test_a_database_that_is_not_there_is_told(tmp_path: Path) -> None:
    with process(str(tmp_path / "new.db")) as service:
        assert "the file does not exist yet" in service.stdout.readline()
        service.service.good("POST", "/v1/collections", {"name": "pages"})
    assert (tmp_path / "new.db").is_file()
    with process(str(tmp_path / "new.db")) as service:
        assert "Ctrl-C" in service.stdout.readline()
    for place in (f"{tmp_path}/none/docs.db", f"{tmp_path}/none/"):
        with pytest.raises(AssertionError, match="does not exist"), process(place):
            pass
