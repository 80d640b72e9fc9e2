"""Documents of a corpus, as they come and as they are held."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from typing import Any, SupportsIndex

from lookalike.checks import flag, whole_number
from lookalike.corpora import Corpus, Problems, open_corpus
from lookalike.corpora.columns import find_columns, text_strings

__all__ = ["CorpusTexts", "HeldTexts"]

Progress = Callable[[str, float], None]


class CorpusTexts:
    """The texts of a corpus, which are read once."""

    def __init__(
        self,
        source: Any,
        *,
        text: str | None,
        id: str | None,
        format: str | None,
        encoding: str | None,
        skip_bad: bool,
        max_document: SupportsIndex | None,
        progress: Progress | None,
    ) -> None:
        self.problems = Problems(flag("skip_bad", skip_bad))
        self._corpus: Corpus = open_corpus(source, format, encoding=encoding)
        if max_document is not None:
            most = whole_number("max_document", max_document, at_least=1)
            self._corpus.max_document = most
        self._columns = find_columns(self._corpus, text, id)
        self._tell = progress or (lambda step, share: None)
        self.documents = 0

    def batches(self) -> Iterator[tuple[int, Any, Any]]:
        """Yield the row of the first document, texts and ids, some at a time."""
        identity = self._corpus.identity()
        for batch in self._corpus.read(self._columns.names, self.problems):
            texts = text_strings(batch.column(0), self._columns.text, self._corpus).fill_null("")
            ids = self._columns.ids(batch, self.documents)
            first, self.documents = self.documents, self.documents + len(texts)
            if len(texts):
                yield first, texts, ids
            self._tell("read", self._corpus.done)
        self._corpus.check_identity(identity)
        self._tell("read", 1.0)

    def left_out(self) -> dict[str, Any]:
        """Return what could not be read, as results tell it."""
        return {
            "bad_rows": self.problems.bad,
            "binary_files": self.problems.binary,
            "examples": tuple(self.problems.examples),
            "left_out": dict(self.problems.left_out),
            "files_left_out": tuple(self.problems.files),
            "notices": tuple(self.problems.notices()),
        }


class HeldTexts:
    """Texts and ids that are held in memory, as Arrow has them."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: list[tuple[Any, Any]] = []

    def add(self, first: int, texts: Any, ids: Any) -> None:
        """Hold some more, which come behind those before."""
        self._firsts.append(first)
        self._batches.append((texts, ids))

    def text(self, row: int) -> str:
        """Return the text of a document."""
        return str(self._at(row, 0))

    def id(self, row: int) -> str:
        """Return the id of a document, or its row where it has none."""
        return str(self._at(row, 1))

    def _at(self, row: int, which: int) -> Any:
        place = bisect.bisect_right(self._firsts, row) - 1
        return self._batches[place][which][row - self._firsts[place]].as_py()
