"""Plain text: a document a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lookalike.corpora.base import Problems, arrow, arrow_compute
from lookalike.corpora.files import FileCorpus
from lookalike.corpora.lines import LineBatch, line_batches

if TYPE_CHECKING:
    import pyarrow

__all__ = ["TextLinesCorpus"]


class TextLinesCorpus(FileCorpus):
    """Files with a document a line; its one column is `text`. Empty lines are documents too."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(paths, "text")

    def columns(self) -> list[str]:
        """Return the one there is."""
        return ["text"]

    def lines(self, problems: Problems) -> Iterator[pyarrow.LargeStringArray]:
        """Yield the lines, as they are, with their ends."""
        pa = arrow()
        read = 0
        for path, size in zip(self.paths, self.sizes, strict=True):
            for batch in line_batches(path, self.max_document, problems):
                try:
                    yield batch.lines.cast(pa.large_string())
                except pa.ArrowInvalid:
                    yield _decoded(batch, problems)
                self.done = min(1.0, (read + batch.done) / self.total_bytes)
            read += size

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[pyarrow.RecordBatch]:
        """Yield batches of lines without their ends."""
        pa = arrow()
        for lines in self.lines(problems):
            texts = arrow_compute().utf8_rtrim(lines, characters="\r\n")
            nulls = pa.nulls(len(lines), pa.large_string())
            yield pa.record_batch(
                [texts if column == "text" else nulls for column in columns], names=list(columns)
            )

    def rows(self, problems: Problems) -> Iterator[pyarrow.RecordBatch]:
        """Yield the same."""
        return self.read(["text"], problems)


def _decoded(batch: LineBatch, problems: Problems) -> pyarrow.LargeStringArray:
    good: list[str] = []
    for index, raw in enumerate(batch.lines.to_pylist()):
        try:
            good.append(raw.decode())
        except UnicodeDecodeError as error:
            problems.report(batch.where(index), f"is not UTF-8 ({error.reason})")
    return arrow().array(good, arrow().large_string())
