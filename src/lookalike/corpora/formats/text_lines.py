"""Plain text: a document a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lookalike.corpora.base import Problems, Rows, chosen_columns, compute, pa
from lookalike.corpora.encodings import Encodings
from lookalike.corpora.formats.lines import LineCorpus


class TextLinesCorpus(LineCorpus):
    """Files with a document a line; its one column is `text`. Empty lines are documents too."""

    def __init__(self, paths: Sequence[Path], encodings: Encodings | None = None) -> None:
        super().__init__(paths, "text", encodings)

    def columns(self) -> list[str]:
        """Return the one there is."""
        return ["text"]

    def lines(self, problems: Problems) -> Iterator[Any]:
        """Yield the lines, as they are, with their ends."""
        for batch in self.batches(problems):
            try:
                yield batch.lines.cast(pa.large_string())
            except pa.ArrowInvalid:
                yield pa.array([text for _, text in batch.decoded(problems)], pa.large_string())
            self.done = batch.done

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        """Yield batches of lines without their ends."""
        for lines in self.lines(problems):
            texts = compute.utf8_rtrim(lines, characters="\r\n")
            yield chosen_columns(pa.record_batch({"text": texts}), columns, pa.large_string())
