"""Databases for tests: SQLite files, and a PostgreSQL server that lives as long as the session."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tools.postgres_server import PostgresServer

KINDS = ("sqlite", "postgresql")
_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def new_database(server: PostgresServer) -> str:
    name = f"test_{next(_numbers)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return server.database_url(name)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def new_url(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], str]:
    """Make addresses of databases that nobody has used."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    if kind == "postgresql":
        server = request.getfixturevalue("postgres")
        return lambda: new_database(server)
    return lambda: str(tmp_path / f"docs-{next(_numbers)}.db")


@pytest.fixture
def url(new_url: Callable[[], str]) -> str:
    return new_url()
