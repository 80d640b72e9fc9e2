"""What the input is: text, vectors, images, recordings or files of another medium."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from lookalike.checks import is_address
from lookalike.cli.common import typed_settings
from lookalike.cli.parser import VALUES
from lookalike.cli.terminal import is_standard, warn, warn_left_out
from lookalike.dedup.kinds import KINDS, OPTIONS, TEXT, kind_name, kind_of
from lookalike.dedup.settings import DedupSettings
from lookalike.media import Medium, Problem
from lookalike.shown import escape_terminal

_NAMED = 20
"""Files that were left out, of which the names are printed."""
_UNSET = {"device": "cpu", "engine": ("local", None), "cache": True}
_SETTINGS = {one.name: one.default for one in fields(DedupSettings)}


VALUES["KIND"] = kind_name
KIND = f"""\
  --kind KIND=auto     kind of items: auto, {", ".join(KINDS)} (or from a plugin)"""
NO_CACHE = """\
  cache:--no-cache     read unchanged images, recordings and videos again, and keep nothing of them
                       in the user's cache folder"""
HASH = "  --hash NAME          image hash: dct, gradient or pdq (default: dct)"


def input_kind(options: argparse.Namespace) -> str:
    """Return the kind of the input."""
    if options.kind != "auto":
        return str(options.kind)
    spark = getattr(options, "engine", _UNSET["engine"]) != _UNSET["engine"]
    vectors = getattr(options, "vectors", None)
    unnamed = any(is_standard(path) or is_address(path) for path in options.input)
    if vectors is None and (spark or unnamed):
        return TEXT
    return kind_of([Path(path) for path in options.input], vars(options))


def tell_medium(options: argparse.Namespace, medium: Medium[Any]) -> None:
    """Print which medium the input has, if that was found out."""
    if options.kind == "auto":
        named = options.input[0] if len(options.input) == 1 else "the input"
        mostly = f"{escape_terminal(named)} has mostly {medium.name}"
        warn(f"{mostly}; --kind text compares the files as texts", kind="")


def has_parts(signer: object) -> bool:
    """Return whether items have many signatures each: recordings, and texts in passages."""
    from lookalike.parts.signer import PartSigner  # most commands do not need it

    return isinstance(signer, PartSigner)


def typed_options(options: argparse.Namespace) -> list[str]:
    """Return the options of the support table that were typed."""
    typed = set(typed_settings(options))

    def is_typed(name: str) -> bool:
        value = getattr(options, name, None)
        if name in _SETTINGS:
            return name in typed or (isinstance(value, bool) and value != _SETTINGS[name])
        usual = (None, _UNSET[name]) if name in _UNSET else (None, False, 0)
        return value not in usual

    return [name for name in OPTIONS if is_typed(name)]


def warn_problems(problems: Sequence[Problem]) -> None:
    """Print which files were left out, or some of them, and why."""
    named = [escape_terminal(f"{one.path}: {one.reason}", 500) for one in problems[:_NAMED]]
    warn_left_out(len(problems), named)
