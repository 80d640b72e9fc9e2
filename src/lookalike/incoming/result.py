"""What a job over the links of a crawl has found."""

from __future__ import annotations

from dataclasses import dataclass

from lookalike.display import Displayed


@dataclass(frozen=True, repr=False)
class IncomingLinks(Displayed):
    """How many links were inverted, and where the rows are."""

    file: str
    """File with a row for each page that is linked."""
    rows: int
    links: int
    """Links of these pages, equal ones of a source counted once."""
    sampled: int
    """Pages with more links than became features."""
    bad_rows: int
    binary_files: int
    left_out: dict[str, int]
    """Counts of unreadable pages and records."""
    examples: list[str]
    notices: list[str]
