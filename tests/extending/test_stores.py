"""A store of another package: one file of code, and everything works with its addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

import lookalike as la
from lookalike.cli import main

TEXTS = ["the quick brown fox jumps", "the quick brown fox jumped", "something else entirely"]


def test_a_collection_lives_in_a_store_of_another_package(toys: None, tmp_path: Path) -> None:
    url = f"drawer://{tmp_path}/first"
    with la.open_collection(url, signer=la.SimHash(64)) as docs:
        docs.add(["a", "b", "c"], TEXTS)
        assert docs.search(TEXTS[0], 1).ids == docs.search(TEXTS[0], 1, plan="sql").ids == ["a"]
        assert docs.stats()["database"] == f"drawer {tmp_path}/first"
        assert docs.verify().ok
        docs.snapshot(tmp_path / "snapshot.db")
    assert (tmp_path / "first.drawer").is_file()
    assert la.restore_collection(tmp_path / "snapshot.db", f"drawer://{tmp_path}/second")
    with la.open_collection(f"drawer://{tmp_path}/second") as docs:
        assert [one.id for one in docs] == ["a", "b", "c"]
    la.drop_collection(url, "documents")
    assert la.list_collections(url) == []
    with pytest.raises(la.errors.ArgumentError, match="not an absolute path"):
        la.open_collection("drawer://somewhere")


def test_the_command_line_takes_its_addresses(
    toys: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"drawer://{tmp_path}/docs"
    for command in ("create", "add"):
        more = ["fox", TEXTS[0]] if command == "add" else []
        assert main(["collection", command, url, *more]) == 0
    capsys.readouterr()
    assert main(["collection", "search", url, TEXTS[0], "--json"]) == 0
    assert '"id": "fox"' in capsys.readouterr().out


def test_a_scheme_of_no_store_is_refused(toys: None) -> None:
    with pytest.raises(
        la.errors.ArgumentError, match=r"of the kind shelf://; expected a file name"
    ):
        la.open_collection("shelf://a", bits=64)
