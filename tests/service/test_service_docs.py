"""What the documentation says of settings is so, and each limit is in it."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from lookalike.service.settings import ENVIRONMENT, ServeSettings

TEXT = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
KEYS = {"new-key", "key-name", "read-only", "collections", "help", "only"}
OTHERS = {"no-cache-dir", "system", "preview", "previews"}
"""Options of pip and useradd, in the container file, and of `lookalike collection`."""


def test_options_and_variables_in_the_documentation_are_there() -> None:
    known = {one.name for one in fields(ServeSettings)}
    options = set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", TEXT)) - KEYS - OTHERS
    assert {name.replace("-", "_") for name in options} <= known
    variables = set(re.findall(rf"{ENVIRONMENT}([A-Z_]+)", TEXT))
    assert variables and {name.lower() for name in variables} <= known


def test_each_limit_is_in_the_documentation() -> None:
    limits = {
        one.name
        for one in fields(ServeSettings)
        if one.name.startswith("max_") or "limit" in one.name
    }
    told = {name for name in limits if f"`--{name.replace('_', '-')}`" in TEXT}
    assert told == limits


def test_codes_of_refusals_in_the_documentation_are_there() -> None:
    package = Path(__file__).parents[2] / "src" / "lookalike" / "service"
    code = "".join(path.read_text() for path in package.rglob("*.py"))
    codes = re.findall(r"\d{3} `(\w+)`(?:, `(\w+)`)?", TEXT)
    named = {name for both in codes for name in both if name}
    assert len(named) > 10
    assert not [name for name in named if f'"{name}"' not in code]
