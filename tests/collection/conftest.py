"""Databases for tests: SQLite files, and a PostgreSQL server that lives as long as the session."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tools.postgres_server import PostgresServer

from lookalike.collection.search import sql

KINDS = ("sqlite", "postgresql")
_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def new_database(server: PostgresServer) -> str:
    """Return the address of a database without collections: one of four, emptied."""
    name = f"test_{next(_numbers) % 4}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        if known.fetchone() is None:
            connection.execute(f'CREATE DATABASE "{name}"')
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
    with psycopg.connect(server.database_url(name), autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA IF EXISTS lookalike CASCADE")
    return server.database_url(name)


@pytest.fixture
def new_postgresql(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The address of a database on a server that nobody has used."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return new_database(postgres)


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


@pytest.fixture
def probes_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make reading everything look so dear that slices are looked up wherever that can be done."""
    monkeypatch.setattr(sql, "SCAN_COST", 1e6)
    sql._plan.cache_clear()
    yield
    sql._plan.cache_clear()
