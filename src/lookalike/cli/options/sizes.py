"""Sizes as people write them: 500MB, 8GB, and numbers of things: 60M."""

from __future__ import annotations

import argparse
import re
from fractions import Fraction

_UNITS = ("", "K", "M", "G", "T")
_AMOUNT = r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([KMGT]?)"


def byte_count(text: str) -> int:
    """Return the bytes that "8GB", "500 MB", "1.5G" or "2GiB" stands for."""
    match = re.fullmatch(_AMOUNT + r"(i?)B?\s*", text, re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; expected one such as 500MB or 8GB")
    return _times(match[1], match[2], 1024 if match[3] else 1000)


def number(text: str) -> int:
    """Return how many "60M" or "1.5G" are. "8B" is refused: billions to some, bytes elsewhere."""
    match = re.fullmatch(_AMOUNT + r"\s*", text, re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of things; expected one such as 60000000, 60M or 1.5G (K, M, G "
            "and T are thousands, millions, billions and trillions)"
        )
    return _times(match[1], match[2], 1000)


def _times(amount: str, unit: str, step: int) -> int:
    return int(Fraction(amount) * step ** _UNITS.index(unit.upper()))
