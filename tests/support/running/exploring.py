"""More examples of property tests than `make test` draws, as `make crash` asks for, or fewer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import settings

EXPLORE = float(os.environ.get("LOOKALIKE_EXPLORE", "0"))
"""How many times as many examples each property test draws, from random seeds; 0: fixed seeds."""

_SETTINGS = "_hypothesis_internal_use_settings"
"""Where Hypothesis keeps the settings of a test, also those that `@settings` gave it."""


def examples(count: int) -> int:
    """Return how many examples to draw where `make test` draws `count`."""
    return max(1, round(count * EXPLORE)) if EXPLORE else count


def more_examples(items: Iterable[Any]) -> None:
    """Let tests draw as many examples as exploring asks for, whatever their `@settings` say."""
    if EXPLORE not in (0, 1):
        drawing = {id(place): (place, name) for item in items for place, name in _settings_of(item)}
        for place, name in drawing.values():  # of a test with parameters once
            now: settings = getattr(place, name)
            setattr(place, name, settings(now, max_examples=examples(now.max_examples)))


def _settings_of(item: Any) -> Iterator[tuple[Any, str]]:
    """Yield what has the settings of a property test or a state machine, and their name there."""
    test = getattr(item, "obj", None)
    test = getattr(test, "__func__", test)
    if hasattr(test, _SETTINGS):
        yield test, _SETTINGS
    elif isinstance(getattr(getattr(item, "cls", None), "settings", None), settings):
        yield item.cls, "settings"
