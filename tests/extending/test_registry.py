"""Registries: built-in entries, entries of other packages, and what happens to unknown names."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lookalike.errors import ArgumentError, MissingDependencyError
from lookalike.registry import Registry

Sound = tuple[object, ...]


@pytest.fixture
def sounds() -> Registry[Sound]:
    """Return a registry with an entry, a lazy entry, and a group that the toys are in."""
    registry: Registry[Sound] = Registry("sound", "lookalike.test", {"hiss": "sys:version_info"})
    registry.register("drum", ("boom",))
    return registry


def test_builtin_entries_are_imported_when_asked_for() -> None:
    code = (
        "import sys; from lookalike.registry import Registry;"
        "r = Registry('n', 'lookalike.test', {'a': 'colorsys:rgb_to_hsv'});"
        "assert r.names() == ('a',) and 'a' in r and 'colorsys' not in sys.modules;"
        "r['a']; assert 'colorsys' in sys.modules and 'lookalike_toys' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_entries_of_other_packages(sounds: Registry[Sound]) -> None:
    assert "bell" not in sounds.names()
    assert "bell" in sounds
    assert sounds["bell"] == ("ding", "dong")
    assert sounds.names() == ("hiss", "drum", "bell")  # known from now on
    assert list(sounds) == [sys.version_info, ("boom",), ("ding", "dong")]


def test_find_prefers_builtin_entries(sounds: Registry[Sound]) -> None:
    assert sounds.find(lambda sound: len(sound) == 1) == ("boom",)
    assert "bell" not in sounds.names()
    assert sounds.find(lambda sound: len(sound) == 2) == ("ding", "dong")


def test_a_name_may_be_taken_once(sounds: Registry[Sound]) -> None:
    with pytest.raises(ArgumentError, match="already a sound called 'drum'"):
        sounds.register("drum", ("bang",))


@pytest.mark.parametrize("name", ["dram", "", None, 3, ["drum"]])
def test_an_unknown_name_is_refused(sounds: Registry[Sound], name: object) -> None:
    with pytest.raises(ArgumentError, match="expected one of hiss, drum, bell") as told:
        sounds.get(name, "sound")
    assert str(told.value).startswith(f"sound is {name!r}")
    assert name not in sounds
    assert ("did you mean 'drum'?" in str(told.value)) == (name == "dram")


def test_nothing_is_found_where_nothing_fits() -> None:
    empty: Registry[Sound] = Registry("sound", "lookalike.no_such_group", {"drum": ("boom",)})
    assert empty.find(lambda sound: not sound) is None


def test_a_package_that_cannot_be_imported_is_named(sounds: Registry[Sound]) -> None:
    with pytest.raises(MissingDependencyError, match="sound 'broken' of lookalike-toys"):
        sounds["broken"]
