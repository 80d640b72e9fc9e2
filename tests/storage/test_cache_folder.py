"""The one folder for what can be made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookalike.advice.machine import machine_costs
from lookalike.collection.stores.address import parse_address
from lookalike.storage.files import user_cache_folder
from support.running.planned import COSTS

SERVER = "postgresql://host/database"


def test_the_standard_is_kept_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An absolute folder as named; a relative one, or none, is the one in the user's home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert user_cache_folder() == tmp_path / "caches" / "lookalike"
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")
    assert user_cache_folder() == tmp_path / ".cache" / "lookalike"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert user_cache_folder() == tmp_path / ".cache" / "lookalike"


@pytest.mark.parametrize("named", ["", "caches", None])
def test_plans_and_collections_have_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if named is None:
        monkeypatch.delenv("XDG_CACHE_HOME")
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", named)
    monkeypatch.setattr("lookalike.advice.machine._known", {})
    monkeypatch.setattr("lookalike.advice.machine.measure_costs", lambda: COSTS)
    machine_costs()
    folder = parse_address(SERVER).cache_folder()
    assert folder is not None
    assert folder.parent == tmp_path / "home" / ".cache" / "lookalike"
    assert [path.suffix for path in folder.parent.iterdir()] == [".json"]


def test_without_a_home_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nobody)
    assert user_cache_folder() is None
    assert parse_address(SERVER).cache_folder() is None
    assert parse_address("docs.db").cache_folder() == Path("docs.db.cache").absolute()
