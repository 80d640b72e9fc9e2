"""Addresses of databases: what they mean, and that nobody gets to read their passwords."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest
from tools.postgres_server import PostgresServer

import lookalike as la
from collection.conftest import new_database
from lookalike.cli import main
from lookalike.collection.stores.address import hide_passwords, parse_address

SECRETS = [
    "postgresql://me:sesame@127.0.0.1:1/nothing",
    "postgres://me:sesame@127.0.0.1:1/nothing",
    "postgresql://:sesame@127.0.0.1:1/nothing",
    "postgresql://me:sesame@127.0.0.1:1,127.0.0.1:2/nothing",
    "postgresql://me:sesame@[::1]:1/nothing",
    "postgresql://me:sesame@127.0.0.1:1/nothing?connect_timeout=1&application_name=a@b",
    "postgresql://me@127.0.0.1:1/nothing?password=sesame",
    "postgresql://127.0.0.1:1/nothing?user=me&p%61ssword=sesame&sslpassword=sesame",
    # Characters that should be encoded, in passwords of which libpq takes parts for hosts and ports
    "postgresql://me:a#sesame@127.0.0.1:1/nothing",
    "postgresql://me:a?sesame@127.0.0.1:1/nothing",
    "postgresql://me:a@sesame@127.0.0.1:1/nothing",
    "postgresql://me:sesame@b@127.0.0.1:1/nothing",
    "postgresql://me:a/sesame@127.0.0.1:1/nothing",
    "postgresql://me:sesame/b@127.0.0.1:1/nothing",
    "postgresql://me:1/sesame@127.0.0.1:1/nothing",
    "postgresql://me:1/sesame?b@127.0.0.1:1/nothing",
    "postgresql://me:a:sesame@127.0.0.1:1/nothing",
    "postgresql://me:%sesame@127.0.0.1:1/nothing",
    "postgresql://me:sesame%00@127.0.0.1:1/nothing",
    "postgresql://me:sesame@127.0.0.1:1/nothing?unknown=1",
    "postgresql://me:sesame@127.0.0.1:1/nothing?unknown",
    "postgresql://me:sesame@127.0.0.1:port/nothing",
    "postgresql+psycopg://me:sesame@127.0.0.1/nothing",
    "mysql://me:sesame@127.0.0.1/nothing",
    "sqlite://me:sesame@127.0.0.1/nothing",
    "host=127.0.0.1 password=sesame dbname=nothing",
    "postgresql://me:sesame@127.0.0.1:1/nothing\0",
]


@pytest.mark.parametrize("address", SECRETS)
def test_passwords_are_nowhere_to_be_read(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the message nor in whatever else a traceback or a log would show."""
    monkeypatch.chdir(tmp_path)
    given: list[Any] = [address, address.encode(), [address]]
    if "\0" not in address:
        given.append(Path(address))
    for one in given:
        with pytest.raises(la.LookalikeError) as caught:
            la.open_collection(one, bits=64, timeout=1)
        shown = "".join(traceback.format_exception(caught.value, chain=True))
        error: BaseException | None = caught.value
        while error is not None:
            shown += f"{error} {error!r} {error.args}"
            error = error.__cause__ or error.__context__
        assert "sesame" not in shown.replace(f"{address!r}", "")
    assert "sesame" not in "".join(map(str, tmp_path.iterdir()))


@pytest.mark.parametrize("address", SECRETS[:8])
def test_addresses_with_passwords_are_shown_without(address: str) -> None:
    parsed = parse_address(address)
    assert "sesame" in parsed.url
    assert "sesame" not in parsed.shown
    assert parsed.shown == parsed.url.replace("sesame", "***")
    assert "sesame" not in repr(parsed)


def test_a_password_is_not_printed_by_any_action(
    postgres: PostgresServer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    address = new_database(postgres).replace("lookalike@", "lookalike:sesame@")
    assert ":sesame@" in address
    copy, lines = str(tmp_path / "copy.db"), str(tmp_path / "all.jsonl")
    for status, arguments in [
        (1, ["stats", address, "--name", "x"]),
        (0, ["create", address]),
        (1, ["create", address]),
        (0, ["add", address, "fox", "The quick brown fox"]),
        (1, ["add", address, "fox", "The quick brown fox"]),
        (0, ["search", address, "a quick fox", "--explain"]),
        (0, ["get", address, "fox"]),
        (0, ["stats", address]),
        (0, ["verify", address]),
        (0, ["snapshot", address, copy]),
        (1, ["restore", copy, address]),
        (0, ["restore", copy, address, "--replace"]),
        (1, ["restore", address, address]),
        (1, ["restore", str(tmp_path / "none.db"), address]),
        (0, ["export", address, lines, "--quiet"]),
        (1, ["import", address, lines, "--quiet"]),
        (1, ["search", address, "fox", "--name", "none"]),
        (0, ["delete", address, "fox"]),
        (2, [address]),
        (2, ["stats", address, address]),
    ]:
        try:
            result = main(["collection", *arguments])
        except SystemExit as stop:
            result = stop.code  # type: ignore[assignment]
        assert result == status, arguments
    with la.open_collection(address, cache=False) as docs:
        print(docs, vars(docs), docs.stats())
        with docs._store.writing() as writer:
            writer._execute("UPDATE lookalike.collections SET documents = 7")
    assert main(["collection", "verify", address]) == 1
    printed = capfd.readouterr()
    assert "sesame" not in printed.out + printed.err
    assert printed.out.count("lookalike:***@") >= 3
    assert "is damaged" in printed.err


def test_text_with_passwords() -> None:
    for text in (
        "a://me:sesame@b x",
        "'a://:se@sa/sesame@b'",
        "x=1 PASSWORD=sesame",
        "?sslpassword=sesame&a=b",
    ):
        hidden = hide_passwords(text)
        assert "sesame" not in hidden
        assert "***" in hidden
    for text in ("a://me@b", "10:30 me@b", "a://b:5/c", "password"):
        assert hide_passwords(text) == text
