"""Sizes as people write them: 500MB, 8GB."""

from __future__ import annotations

import argparse
import re
from fractions import Fraction

__all__ = ["byte_count"]

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def byte_count(text: str) -> int:
    """Return the bytes that "8GB", "500 MB" or "2GiB" stands for."""
    pattern = r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([KMGT]?)(i?)B?\s*"
    match = re.fullmatch(pattern, text, re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; expected one such as 500MB or 8GB")
    number, unit, binary = match.groups()
    factor = _UNITS[unit.upper()]
    if binary:
        factor = 1024 ** list(_UNITS).index(unit.upper())
    return int(Fraction(number) * factor)
