"""Step 9, report: one page that shows what was found, and needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lookalike.dedup.report.page import page
from lookalike.storage import whole_file

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult

__all__ = ["write_report"]


def write_report(result: DedupResult, path: Path, command: Sequence[str] | None = None) -> None:
    """Write the page; an interrupted run leaves what was there before.

    The same result gives the same page. Its size is bounded, however large the corpus: it shows
    the pairs nearest to the threshold, of clusters as many as fit, of long documents the beginning.
    `command` is what was typed for it, to be shown there.
    """
    with whole_file(path) as temporary:
        temporary.write_text(page(result, command), encoding="utf-8", newline="\n")
