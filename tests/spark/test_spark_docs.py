"""The page on Spark is run on a master and two workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.running.doc_pages import run_page

PAGE = Path(__file__).parent.parent.parent / "docs" / "spark.md"


def test_the_page_runs_from_top_to_bottom(session: Any, tmp_path: Path) -> None:
    names: dict[str, object] = {"spark": session}
    assert run_page(PAGE, names, {"hdfs://": f"file://{tmp_path}"}) >= 3
    assert list((tmp_path / "crawl" / "unique").glob("*.parquet"))
