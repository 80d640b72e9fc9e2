"""Import names and modules when they are first used, so that importing a package is quick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any

from lookalike.checks import optional_module


def lazy_names(
    package: dict[str, Any], table: Mapping[str, str], modules: str = ""
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package that imports names when used.

    Args:
        package: The `globals()` of the package, where a name is kept once it was used.
        table: The names that come from each module, with spaces between them.
        modules: Modules of the package that are imported when they are used, with spaces between.
    """
    home = package["__name__"]
    module_of = {name: module for module, names in table.items() for name in names.split()}
    public = sorted(module_of)

    def attribute(name: str) -> Any:
        if name in module_of:
            value = package[name] = getattr(import_module(module_of[name]), name)
            return value
        if name in modules.split():
            return import_module(f"{home}.{name}")
        raise AttributeError(f"module {home!r} has no attribute {name!r}")

    def names() -> list[str]:
        own = (name for name in package if name.startswith("__"))
        return sorted({*public, *modules.split(), *own})

    return public, attribute, names


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
