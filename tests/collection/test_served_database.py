"""`lookalike serve postgresql://...`: a database that several processes serve together."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from tools.postgres_server import PostgresServer

import lookalike as la
from support.services.running import process

BASE = "/v1/collections/pages"


def test_two_workers_serve_a_database(new_postgresql: str, tmp_path: Path) -> None:
    with process(
        new_postgresql, "--workers", "2", "--snapshots", str(tmp_path / "kept")
    ) as started:
        service = started.service
        assert service.good("GET", "/v1/collections") == {"collections": []}
        made = service.good("POST", "/v1/collections", {"name": "pages", "signer": {"bits": 64}})
        assert made["documents"] == 0
        for number in range(40):  # each on a connection of its own, whichever worker takes it
            document = {
                "id": f"d{number}",
                "text": f"text number {number}",
                "metadata": {"n": number},
            }
            service.good("PUT", f"{BASE}/documents", {"documents": [document]})
            asked = {"text": f"text number {number}", "k": 1, "include_text": True}
            (match,) = service.good("POST", f"{BASE}/query", asked)["matches"]
            assert (match["distance"], match["text"]) == (0, f"text number {number}")
        assert service.good("POST", f"{BASE}/documents/count", {"where": {"n": {"<": 7}}}) == {
            "count": 7
        }
        page = service.good("POST", f"{BASE}/documents/scroll", {"where": {"n": {">=": 38}}})
        assert [one["id"] for one in page["documents"]] == ["d38", "d39"]
        assert service.good("GET", f"{BASE}/groups?radius=64")["groups"][0]["size"] == 40
        assert service.job(f"{BASE}/pairs", {"radius": 0})["state"] == "done"
        assert service.good("DELETE", f"{BASE}/documents/d0")["deleted"] == 1
        taken = service.good("POST", f"{BASE}/snapshots")
        raw = service.raw("GET", f"{BASE}/snapshots/{taken['name']}")[2]
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()
    (tmp_path / "copy.db").write_bytes(raw)
    with (
        la.open_collection(new_postgresql, "pages", create=False) as docs,
        la.open_collection(tmp_path / "copy.db", "pages", create=False) as copy,
    ):
        assert docs.verify().ok
        assert sorted(one.id for one in docs) == sorted(f"d{number}" for number in range(1, 40))
        assert list(docs) == list(copy)


def test_snapshots_need_a_folder_and_passwords_are_not_shown(new_postgresql: str) -> None:
    secret = new_postgresql.replace("://", "://postgres:very-secret@", 1)
    if "@" in new_postgresql.partition("://")[2]:
        before, _, after = new_postgresql.partition("://")[2].partition("@")
        secret = f"postgresql://{before.partition(':')[0]}:very-secret@{after}"
    with process(secret, "--log-level", "info") as started:
        service = started.service
        service.good("POST", "/v1/collections", {"name": "pages", "bits": 64})
        told = service.refused(409, "no_folder", "POST", f"{BASE}/snapshots")
        assert "--snapshots DIR" in told
        service.refused(409, "no_folder", "GET", f"{BASE}/snapshots")
        started.send_signal(signal.SIGTERM)
        assert started.wait(60) == 0
        lines = started.stderr.read()
        assert all(json.loads(line) for line in lines.splitlines())
        assert "very-secret" not in "".join(started.said) + lines


def test_a_server_that_goes_away_and_comes_back(
    postgres: PostgresServer, new_postgresql: str
) -> None:
    folder = str(postgres.folder)
    with process(new_postgresql) as started:
        service = started.service
        service.good("POST", "/v1/collections", {"name": "pages", "signer": {"bits": 64}})
        document = {"documents": [{"id": "a", "text": "some text"}]}
        service.good("PUT", f"{BASE}/documents", document)
        postgres.stop()
        try:
            for method, path, body in (
                ("POST", f"{BASE}/query", {"text": "x"}), ("PUT", f"{BASE}/documents", document),
                ("GET", "/readyz", None), ("GET", "/v1/collections", None),
                ("GET", f"{BASE}/map", None),
            ):  # fmt: skip
                told = service.refused(503, "database_away", method, path, body)
                assert "see the log of the service" in told
                assert folder not in told, "where the database is, is nobody's business"
            assert service.good("GET", "/healthz")["status"] == "ok"
        finally:
            postgres.start()
        assert service.good("POST", f"{BASE}/query", {"text": "x"})["matches"][0]["id"] == "a"
        assert service.good("GET", "/readyz")["status"] == "ready"
        started.send_signal(signal.SIGTERM)
        assert started.wait(60) == 0
        assert folder in started.stderr.read()


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1:1/none", "postgresql:///none?host=/none"])
def test_a_server_that_is_not_there_is_told_at_once(url: str) -> None:
    with pytest.raises(AssertionError, match="it does not serve") as told, process(url):
        pass
    assert "PostgreSQL reports: connection" in str(told.value)
    assert "Traceback" not in str(told.value)
