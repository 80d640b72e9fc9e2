"""Step 9, report: one page that shows what was found, and needs nothing but itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lookalike.dedup.report.page import page
from lookalike.storage import whole_file

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult

__all__ = ["write_report"]


def write_report(result: DedupResult, path: Path) -> None:
    """Write the page; an interrupted run leaves what was there before.

    The same result gives the same page. Its size is bounded, however large the corpus: it shows
    the largest clusters and the pairs nearest to the threshold, of long documents the beginning.
    """
    with whole_file(path) as temporary:
        temporary.write_text(page(result), encoding="utf-8", newline="\n")
