"""Registries: signers, index kinds, formats and media by name, also from other packages.

A built-in entry is imported when it is first asked for, so a registry costs nothing at start-up. An
installed package adds entries through an entry point:

    [project.entry-points."lookalike.signers"]
    my-signer = "my_package.signing:MySigner"

Entry points are loaded only when a name is not known. A built-in name therefore cannot be replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from lookalike.errors import ArgumentError, MissingDependencyError, Said
from lookalike.shown import brief
from lookalike.suggestions import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """Entries by name, in the order in which they were registered.

    Args:
        noun: What an entry is called in messages, such as "signer".
        group: The entry point group of other packages, such as "lookalike.signers".
        builtin: The entries of lookalike. A value is the entry itself, or "module:attribute",
            which is imported when the entry is first asked for.
    """

    def __init__(
        self, noun: str, group: str, builtin: Mapping[str, str | Entry] | None = None
    ) -> None:
        self.noun = noun
        self.group = group
        self._entries: dict[str, str | Entry] = dict(builtin or {})

    def register(self, name: str, entry: Entry) -> Entry:
        """Add an entry under a new name and return it."""
        if name in self._entries:
            taken = f"there is already a {self.noun} called {name!r}"
            raise ArgumentError(f"{taken}; choose another name")
        self._entries[name] = entry
        return entry

    def names(self) -> tuple[str, ...]:
        """Return the names that are known without loading other packages."""
        return tuple(self._entries)

    def __contains__(self, name: object) -> bool:
        """Return whether an entry has this name, in lookalike or in an installed package."""
        return isinstance(name, str) and (name in self._entries or name in self._found())

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries that are known without loading other packages; all are imported."""
        for name in self.names():
            yield self[name]

    def __getitem__(self, name: str) -> Entry:
        """Return the entry with this name, imported if needed, or raise `ArgumentError`."""
        return self.get(name)

    def get(self, name: object, argument: str | None = None) -> Entry:
        """Return the entry with this name; an error names the `argument` that it was given for."""
        if isinstance(name, str):
            if name in self._entries:
                return self._loaded(name)
            if name in self._found():
                self._entries[name] = entry = self._load_installed(name)
                return entry
        known = list(dict.fromkeys([*self._entries, *self._found()]))
        raise ArgumentError(
            *((Said(argument), " is ") if argument else ()),
            f"{brief(name)}{'' if argument else f' is not a known {self.noun}'}; "
            f"expected one of {', '.join(known)}{did_you_mean(name, known)}",
        )

    def all(self) -> Iterator[Entry]:
        """Yield all entries: built-in ones, then those of other packages, loaded one by one."""
        for name in self.names():
            yield self._loaded(name)
        for name in sorted(self._found()):
            if name not in self._entries:
                yield self._load_installed(name)

    def find(self, wanted: Callable[[Entry], bool]) -> Entry | None:
        """Return the first entry for which `wanted` is true, or None; built-in entries first."""
        return next((entry for entry in self.all() if wanted(entry)), None)

    def _loaded(self, name: str) -> Entry:
        entry = self._entries[name]
        if isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            self._entries[name] = entry = cast(Entry, getattr(import_module(module), attribute))
        return entry

    def _found(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        return _installed(self.group, tuple(sys.path))

    def _load_installed(self, name: str) -> Entry:
        points = self._found()[name]
        if len({point.value for point in points}) > 1:
            packages = " and ".join(sorted(_package(point) for point in points))
            raise ArgumentError(
                f"{packages} both provide a {self.noun} called {name!r}; uninstall one of them"
            )
        try:
            return cast(Entry, points[0].load())
        except Exception as error:
            raise MissingDependencyError(
                f"the {self.noun} {name!r} of {_package(points[0])} cannot be imported: "
                f"{type(error).__name__}: {error}; update or uninstall that package"
            ) from error


@lru_cache
def _installed(group: str, path: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of a group by name, of the packages that this import path has."""
    from importlib.metadata import entry_points  # takes long to import, and is seldom needed

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=group):
        found[point.name] = (*found.get(point.name, ()), point)
    return found


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value.partition(":")[0]
