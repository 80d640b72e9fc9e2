"""By which names it is called, and which pages may ask: browsers are told to be strict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lookalike as la
from lookalike.service.middleware import Hosts
from lookalike.service.problems import Problem
from support.services.guarded import BASE, Served


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b", "x:y",
             "localhost:80:80", "[::1", "localhost/", "10.0.0.1"],
)  # fmt: skip
def test_other_names_are_refused(guarded: Served, host: str) -> None:
    for path in ("/", "/healthz", "/v1/collections"):
        status, _, value = guarded.with_key("writer").ask("GET", path, host=host)
        assert status in (400, 421) and value["error"]["code"] == "host"


def test_own_names_are_taken(guarded: Served) -> None:
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8600"):
        assert guarded.with_key("writer").ask("GET", BASE, host=host)[0] == 200
    away = Hosts("0.0.0.0", ["docs.example"])
    for name in ("docs.example", "192.0.2.7:8600", "[2001:db8::1]", "localhost"):
        away.check(name)
    for other in ("evil.example", "", None, "x" * 300, "\xff"):
        with pytest.raises(Problem):
            away.check(other)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil", "x"])
def test_pages_of_others_are_refused(guarded: Served, origin: str) -> None:
    writer = guarded.with_key("writer")
    for method, path in (("GET", BASE), ("POST", f"{BASE}/query"), ("GET", "/")):
        writer.refused(403, "origin", method, path, origin=origin)
    for site in ("cross-site", "same-site"):
        writer.refused(403, "origin", "GET", BASE, sec_fetch_site=site)
    own = f"http://localhost:{writer.port}"
    host = own.partition("//")[2]
    assert writer.ask("GET", BASE, origin=own, host=host)[0] == 200
    assert writer.ask("GET", "/", sec_fetch_site="cross-site")[0] == 200, "a link to the page"


def test_answers_tell_browsers_to_be_strict(guarded: Served) -> None:
    for path in ("/", BASE, "/nothing", "/v1/openapi.json"):
        _, headers, _ = guarded.with_key("writer").ask("GET", path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers and "server" not in headers
    status, headers, _ = guarded.with_key("writer").raw("OPTIONS", f"{BASE}/query")
    assert status == 405 and "access-control-allow-methods" not in headers


def test_the_page_loads_nothing_from_elsewhere(guarded: Served) -> None:
    folder = Path(la.__file__).parent / "service" / "page"
    files = [path for path in folder.rglob("*") if path.suffix in (".html", ".css", ".js")]
    assert files
    for path in files:
        text = path.read_text()
        outside = re.findall(r"""(?:src|href|url|import|fetch)\s*[=(]?\s*["']?(https?:)?//""", text)
        assert not outside, path
    html = guarded.service.raw("GET", "/")[2].decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>|\son\w+=|<style|\sstyle=", html)
