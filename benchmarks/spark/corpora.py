"""Abstracts in any number: after the real ones, the same again with other words."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["FILE", "write_corpus"]

FILE = "arxiv_abstracts_120k.jsonl.gz"
_ROWS_A_FILE = 20_000


def write_corpus(data: Path, folder: Path, count: int) -> Path:
    """Write so many abstracts to files of Parquet, unless they are there; return the folder.

    Beyond the real ones, each word has a number added that says how often the corpus has begun
    again: so documents are alike within one run as before, and with none of another.
    """
    folder = folder / f"abstracts-{count}"
    if (folder / "done").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(data / FILE, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["abstract"] for line in lines]
    for begin in range(0, count, _ROWS_A_FILE):
        rows = range(begin, min(count, begin + _ROWS_A_FILE))
        some = [_text(texts, row) for row in rows]
        table = pa.table({"id": pa.array(rows, pa.int64()), "text": pa.array(some)})
        pq.write_table(table, folder / f"{begin:09}.parquet")
    (folder / "done").touch()
    return folder


def _text(texts: list[str], row: int) -> str:
    run, at = divmod(row, len(texts))
    return " ".join(texts[at].split()).replace(" ", f"{run} ") + str(run) if run else texts[at]
