"""What the local job does and Spark does not."""

from __future__ import annotations

from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError

__all__ = ["check_settings"]


def check_settings(settings: DedupSettings) -> None:
    """Refuse what is not done on Spark."""
    if not settings.by_signatures:
        raise ArgumentError(
            settings.said_reason,
            " compares documents by joins that need all features in one memory, and is not done "
            "on Spark; leave it out, or de-duplicate on one machine",
        )
