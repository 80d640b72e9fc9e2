"""Costs of the machine: what is measured, and how it is remembered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lookalike.advice import machine as measuring
from lookalike.advice import machine as module
from lookalike.advice.machine import MachineCosts, explain_times, machine_costs
from lookalike.signatures.arrays import select_kernel
from support.running.planned import COSTS


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of our own, and nothing remembered from before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "_known", {})
    yield tmp_path / "lookalike"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts measurements, which take no time here."""
    calls: list[int] = []

    def measure() -> MachineCosts:
        calls.append(1)
        return COSTS

    monkeypatch.setattr(measuring, "measure_costs", measure)
    return calls


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_known", {})


def test_measuring_gives_costs_that_make_sense(empty_cache: Path) -> None:
    found = machine_costs()
    assert MachineCosts.from_dict(found.to_dict()) == found
    assert found.access == tuple(sorted(found.access))
    assert 0 < 8 * found.scanned_byte < 100
    assert found.waiting == tuple(sorted(found.waiting))
    assert found.missing_wait(2**27) > found.missing(2**27)
    assert [path.suffix for path in empty_cache.iterdir()] == [".json"]


def test_measured_once_and_kept(monkeypatch: pytest.MonkeyPatch, measured: list[int]) -> None:
    assert machine_costs() == machine_costs() == COSTS
    forget(monkeypatch)
    assert machine_costs() == COSTS
    assert len(measured) == 1
    machine_costs(refresh=True)
    assert len(measured) == 2


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xff\xfe",
        b"{}",
        b"[1, 2]",
        b"null",
        b'{"machine": 3, "costs": {}}',
    ],
)
def test_a_damaged_cache_is_measured_again(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, measured: list[int], damage: bytes
) -> None:
    machine_costs()
    (path,) = empty_cache.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage)
    forget(monkeypatch)
    assert machine_costs() == COSTS
    assert len(measured) == 2
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("query", -1.0),
        ("query", "fast"),
        ("query", None),
        ("query", True),
        ("query", 1e999),
        ("access", []),
        ("access", [[1, 2]]),
        ("access", [[2, 1], [1, 2]]),
        ("access", [[0, 1], [1, 2]]),
        ("access", [1, 2]),
        ("access", 7),
        ("waiting", [[2, 1], [1, 2]]),
        ("waiting", 100.0),
    ],
)
def test_costs_that_are_none_are_measured_again(
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    measured: list[int],
    name: str,
    value: object,
) -> None:
    machine_costs()
    (path,) = empty_cache.iterdir()
    contents = json.loads(path.read_text())
    contents["costs"][name] = value
    path.write_text(json.dumps(contents))
    forget(monkeypatch)
    assert machine_costs() == COSTS
    assert len(measured) == 2


def test_a_cut_file_and_another_machine(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, measured: list[int]
) -> None:
    machine_costs()
    (path,) = empty_cache.iterdir()
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    forget(monkeypatch)
    machine_costs()
    path.write_text(text.replace('"processor": "', '"processor": "another '))
    forget(monkeypatch)
    machine_costs()
    assert len(measured) == 3


def test_another_kernel_has_costs_of_its_own(
    empty_cache: Path, measured: list[int], kernel: str
) -> None:
    machine_costs()
    assert len(measured) == 1
    select_kernel("scalar")
    machine_costs()
    assert len(measured) == (1 if kernel == "scalar" else 2)
    assert len(list(empty_cache.iterdir())) == len(measured)


def test_where_nothing_can_be_written_it_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: list[int]
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert machine_costs() == machine_costs() == COSTS
    assert len(measured) == 1


def test_a_relative_cache_folder_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: list[int]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    machine_costs()
    assert not (tmp_path / "here").exists()
    assert len(list((tmp_path / "home" / ".cache" / "lookalike").iterdir())) == 1


def test_without_a_home_it_is_remembered(
    monkeypatch: pytest.MonkeyPatch, measured: list[int]
) -> None:
    def nobody() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nobody)
    assert machine_costs() == machine_costs() == COSTS
    assert len(measured) == 1


def test_access_is_interpolated_and_goes_on() -> None:
    small, large = COSTS.access[0], COSTS.access[-1]
    assert COSTS.access_to(1) == COSTS.access_to(small[0]) == small[1]
    assert COSTS.missing(1) == COSTS.missing_wait(1) == 0
    assert COSTS.access_to(large[0]) == pytest.approx(large[1])
    between = COSTS.access_to(2 * small[0])
    assert small[1] < between < large[1]
    assert COSTS.access_to(4 * large[0]) > large[1]


def test_times_are_explained_by_their_steps() -> None:
    steps = [[1.0, 0.0], [1.0, 10.0], [1.0, 100.0]]
    assert explain_times(steps, [5, 25, 205]) == pytest.approx([5, 2])


def test_no_step_costs_less_than_nothing() -> None:
    """The second step seems to save time; it is left out, and the first explains what it can."""
    found = explain_times([[1.0, 0.0], [1.0, 1.0]], [10, 8])
    assert found[1] == 0
    assert 8 <= found[0] <= 10
