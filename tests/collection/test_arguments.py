"""Odd values for every argument of every method: they work, or one of our errors says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.cli import main

ODD: list[Any] = [
    2**31, 2**63 - 1, 2**63, 2**64, -1, 0, True, False, 1.0, float("nan"), float("inf"), "1", "",
    "\ud800", "a\0b", "x" * 5000, None, np.int64(3), np.uint64(2**63), np.float32(2),
    np.bool_(True), np.array([1, 2]), np.array(3), [], [1], [None], [["a"]], {}, (), b"x",
    object(), {"a": {1}},
]  # fmt: skip
COMMON = ("where", "exclude", "explain", "text", "plan", "threads")


@pytest.fixture
def docs(url: str) -> Iterator[la.Collection]:
    with la.open_collection(url, signer=la.SimHash(bits=64), cache=False) as collection:
        collection.add(
            ["a", "b", "c"], ["text one", "text two", "other"], metadata=[{"x": 1}, {}, {"y": "z"}]
        )
        yield collection


def ours(call: Callable[..., object], **arguments: Any) -> bool:
    """Return whether it works; an error that is not ours fails the test."""
    try:
        call(**arguments)
    except la.LookalikeError:
        return False
    except BaseException as error:
        pytest.fail(f"{arguments} raise {type(error).__name__}: {error}")
    return True


@pytest.mark.parametrize("plan", ["native", "sql"])
def test_searches(docs: la.Collection, plan: Any) -> None:
    searches: list[tuple[Callable[..., object], dict[str, Any], tuple[str, ...]]] = [
        (docs.search, {"query": "text one", "k": 2}, ("query", "k", "radius", "mask", *COMMON)),
        (docs.search_many, {"queries": ["text one"]}, ("queries", "k", "radius", "mask", *COMMON)),
        (docs.within, {"query": "text", "radius": 9}, ("query", "radius", "limit", *COMMON)),
        (docs.within_many, {"queries": ["t"], "radius": 9}, ("queries", "limit", "radius")),
        (docs.duplicates_of, {"id": "a", "radius": 9}, ("id", "limit", "radius", "explain")),
    ]
    for search, usual, names in searches:
        assert ours(search, plan=plan, **usual)
        for name in names:
            works = [ours(search, **{"plan": plan, **usual, name: value}) for value in ODD]
            if name in ("explain", "text"):
                taken = [value for value, fine in zip(ODD, works, strict=True) if fine]
                assert taken == [True, False, np.bool_(True)]
                assert {type(value) for value in taken} <= {bool, np.bool_}


@pytest.mark.parametrize("plan", ["native", "sql"])
def test_as_many_as_there_are(docs: la.Collection, plan: Any) -> None:
    everything = docs.search("text one", 3, plan=plan)
    assert len(everything) == 3
    for many in (4, 2**31, 2**40, 2**63 - 1, np.int64(2**62)):
        for exclude in ([], ["b"]):
            expected = [id for id in everything.ids if id not in exclude]
            options: dict[str, Any] = {"exclude": exclude, "plan": plan}
            assert docs.search("text one", many, **options).ids == expected
            assert docs.search("text one", many, radius=2**62, **options).ids == expected
            assert docs.search("text one", many, where=lambda m: True, **options).ids == expected
            answer = docs.within("text one", 2**62, limit=many, **options)
            assert answer.ids == expected
            assert answer.exact
        assert [document.id for document in docs.scroll(limit=many)] == ["a", "b", "c"]
        assert len(docs.pairs(2**62, limit=many)) == 3


def test_everything_else(docs: la.Collection, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"id": "q", "text": "hello"}\n')
    calls: list[tuple[Callable[..., object], dict[str, Any], tuple[str, ...]]] = [
        (docs.pairs, {"radius": 3}, ("radius", "limit", "threads", "recall")),
        (docs.upsert, {"ids": ["n"], "texts": ["t"]}, ("ids", "texts", "metadata", "on_error")),
        (docs.upsert, {"ids": ["n"]}, ("signatures",)),
        (docs.get, {}, ("id",)),
        (docs.get_many, {}, ("ids",)),
        (docs.count, {}, ("where",)),
        (docs.scroll, {}, ("after", "limit", "where")),
        (docs.import_file, {"source": lines, "replace": True},
         ("text", "id", "signature", "format", "replace", "skip_bad", "batch", "progress")),
        (docs.export, {"path": tmp_path / "o.jsonl"}, ("where", "progress")),
        (docs.delete, {}, ("ids",)),
    ]  # fmt: skip
    for call, usual, names in calls:
        for name in names:
            for value in ODD:
                ours(call, **{**usual, name: value})
    for value in ODD:
        if isinstance(value, np.ndarray) or value != "1":
            assert not ours(docs.snapshot, path=value)
            assert not ours(docs.export, path=value)
    assert docs.verify().ok


def test_opening_and_restoring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "docs.db"
    with la.open_collection(path, bits=64) as docs:
        docs.snapshot(tmp_path / "copy.db")
    new = {"url": path, "name": "new", "bits": 64}
    old = {"url": path}
    for name in ("signer", "bits", "slice_bits", "keep_text", "create", "plan", "cache", "timeout"):
        for value in ODD:
            ours(lambda **settings: la.open_collection(**settings).close(), **{**new, name: value})
            ours(lambda **settings: la.open_collection(**settings).close(), **{**old, name: value})
    for value in ODD:
        for name in ("url", "name", "durable"):
            ours(lambda **settings: la.open_collection(**settings).close(), **{**old, name: value})
        ours(la.list_collections, url=value)
        ours(la.drop_collection, url=value, name="none")
        ours(la.drop_collection, url=path, name=value)
        for name in ("path", "url", "name", "source", "replace"):
            usual = {"path": tmp_path / "copy.db", "url": tmp_path / "restored.db", "replace": True}
            ours(la.restore_collection, **{**usual, name: value})
    for flag in ("keep_text", "create", "durable"):
        for value in (0, 1, "no", None, 1.0):
            with pytest.raises(
                la.errors.ArgumentError, match=f"{flag} is {value!r}; expected True or"
            ):
                la.open_collection(**{**new, "name": "other", flag: value})  # type: ignore[arg-type]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = str(tmp_path / "docs.db")
    assert main(["collection", "create", database]) == 0
    assert main(["collection", "add", database, "fox", "the quick brown fox"]) == 0
    nested = '{"not":' * 200 + "{}" + "}" * 200
    values = ["0", "-1", str(2**31), str(2**64), "9" * 5000, "nan", "", "a\0b", nested]
    statuses = set()
    for value in values:
        for arguments in (
            *(["create", database, "--name", "n", option, value]
              for option in ("--bits", "--ngram", "--chars", "--seed", "--method")),
            *(["search", database, "fox", option, value, "--plan", plan]
              for option in ("-k", "--radius", "--where", "--name") for plan in ("sql", "native")),
            ["search", database, value, "--by-id"],
            ["search", database, value, "--file"],
            ["add", database, "m", value, "--file"],
            ["add", database, value, "text"],
            ["get", database, value],
            ["delete", database, value],
            ["stats", value],
            ["verify", database, "--name", value],
            ["restore", value, database],
        ):  # fmt: skip
            try:
                statuses.add(main(["collection", *arguments]))
            except SystemExit as stop:
                statuses.add(stop.code)  # type: ignore[arg-type]
            except BaseException as error:
                pytest.fail(f"{arguments} raise {type(error).__name__}: {error}")
    assert statuses == {0, 1, 2}
    assert main(["collection", "create", database, "--name", "zero", "--bits", "0"]) == 2
    assert "--bits is 0" in capsys.readouterr().err
