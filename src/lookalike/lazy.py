"""What is imported when it is first asked for: importing a package stays quick."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from lookalike.checks import optional_module


def names_from(
    package: dict[str, Any], later: Mapping[str, str | Sequence[str]]
) -> Callable[[str], Any]:
    """Return a package's `__getattr__` (PEP 562): names that come from modules, and those modules.

    `package` is its `globals()`, where a name is kept once it was asked for. Names may be one text,
    with spaces between them.
    """

    def attribute(name: str) -> Any:
        for module, names in later.items():
            if name in (names.split() if isinstance(names, str) else names):
                value = package[name] = getattr(import_module(module), name)
                return value
            if module == f"{package['__name__']}.{name}":
                return import_module(module)
        raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")

    return attribute


class LazyModule:
    """A package that takes long to import; `purpose` is what needs it. It comes with lookalike, or
    with one of its extras.
    """

    def __init__(self, name: str, purpose: str, *, extra: str = "") -> None:
        self._name = name
        self._purpose = purpose
        self._extra = extra

    def __reduce__(self) -> tuple[Any, ...]:
        return LazyModule, (self._name, self._purpose)  # a package goes nowhere; its name does

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        setattr(self, name, value)
        return value

    @cached_property
    def _module(self) -> Any:
        return optional_module(self._name, self._purpose, extra=self._extra)
