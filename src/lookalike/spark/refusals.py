"""What the local job does and Spark does not."""

from __future__ import annotations

from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError, Said

__all__ = ["check_settings"]


def check_settings(settings: DedupSettings) -> None:
    """Refuse what is not done on Spark."""
    if settings.measure == "containment":
        raise ArgumentError(
            Said("measure='containment'", "--measure containment"),
            " looks up every feature of every document, which is ten times as much to shuffle as "
            "signatures are, and is not done on Spark; leave it out, or use one machine",
        )
