"""Abstracts in any number: after the real ones, the same again with other words."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

__all__ = ["FILE", "write_corpus"]

FILE = "arxiv_abstracts_120k.jsonl.gz"
_ROWS_A_FILE = 20_000


def write_corpus(data: Path, folder: Path, count: int) -> Path:
    """Write so many abstracts to files of JSON Lines, unless they are there; return the folder.

    Beyond the real ones, each word has a number added that says how often the corpus has begun
    again: so documents are alike within one run as before, and with none of another.
    """
    folder = folder / f"abstracts-{count}"
    if (folder / "done").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    written, run = 0, 0
    stream = None
    while written < count:
        with gzip.open(data / FILE, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                text = row.get("abstract") or row.get("text")
                if run:
                    text = " ".join(f"{word}{run}" for word in text.split())
                if written % _ROWS_A_FILE == 0:
                    if stream is not None:
                        stream.close()
                    stream = open(folder / f"{written:09}.jsonl", "w", encoding="utf-8")  # noqa: SIM115
                assert stream is not None  # noqa: S101
                stream.write(json.dumps({"id": written, "text": text}) + "\n")
                written += 1
                if written == count:
                    break
        run += 1
    if stream is not None:
        stream.close()
    (folder / "done").touch()
    return folder
