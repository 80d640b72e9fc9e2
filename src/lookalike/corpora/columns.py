"""Which columns have texts and ids, and which documents are processed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import flag, share, whole_number
from lookalike.corpora.base import (
    Added,
    Corpus,
    DerivedCorpus,
    Problems,
    Rows,
    arrow_positions,
    chosen_columns,
    compute,
    pa,
)
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.features import FeatureKind, Words
from lookalike.features.base import reads_links
from lookalike.pages.extract import detect_language
from lookalike.pages.marks import without_marks
from lookalike.shown import brief

TEXT_GUESSES = ("text", "content", "body", "document", "abstract", "description", "sentence")
ID_GUESSES = (
    "id", "_id", "doc_id", "docid", "document_id", "uid", "key", "path", "url", "file",
)  # fmt: skip
TITLE_GUESSES = ("title", "headline", "heading", "subject")
_EXAMPLES = 3
_REPEATED = 5
"""Words of the runs whose repetition counts."""
_URL = re.compile(r"(?:\b[a-z][a-z0-9+.-]*://|\bwww\.)[^\s<>\"'\U0010f100-\U0010f202]+", re.I)
_TRAILING = ".,;:!?)]}"
_LANGUAGE = re.compile(r"[a-z]{2,3}")


@dataclass(frozen=True)
class Columns:
    """Which columns of a corpus are what."""

    text: str
    id: str | None
    order: str | None = None  # the column that decides which documents are kept
    title: str | None = None

    @property
    def names(self) -> list[str]:
        """The columns to read."""
        others = (self.id, self.title, self.order)
        return [self.text, *(name for name in others if name)]

    def to_dict(self) -> dict[str, str | None]:
        """Return which column is what; the title only if there is one."""
        known = vars(self)
        return {name: known[name] for name in known if name != "title" or self.title}

    def ids(self, batch: Rows, first_row: int) -> Any:
        """Return the ids of a batch of `names`, or the numbers of its rows."""
        column = batch.column(1) if self.id else pa.nulls(len(batch))
        return id_strings(column, first_row)


def find_columns(
    corpus: Corpus, text: str | None, id: str | None, order: str | None = None
) -> Columns:
    """Return the columns to read: those given, or else detected."""
    chosen = text_column(corpus, text)
    if chosen is None:
        columns = corpus.columns()
        if not columns:
            return Columns("text", None)  # there is nothing to read
        raise ArgumentError(
            f"{corpus.name} has the columns {', '.join(columns)}; name the text column",
            Said(" with text=", " with --text COLUMN"),
        )
    if order is not None:
        corpus.column_for(order, (), "choice of kept documents")
    return Columns(chosen, id_column(corpus, id), order)


def columns_for(corpus: Corpus, columns: Columns, features: FeatureKind) -> Columns:
    """Return the columns for these features: texts with marked links if they use links."""
    if corpus.marked_text is None or columns.text != corpus.page_text or not reads_links(features):
        return columns
    return replace(columns, text=corpus.marked_text)


def text_column(corpus: Corpus, given: str | None) -> str | None:
    """Return the text column: the given one, or one with a usual name, or the only one."""
    if given is None and corpus.page_text is not None:
        return corpus.page_text
    columns = corpus.columns()
    only = columns[0] if len(columns) == 1 else None
    return corpus.column_for(given, TEXT_GUESSES, "text") or only


def id_column(corpus: Corpus, given: str | None) -> str | None:
    """Return the id column: the given one, or one with a usual name."""
    return corpus.column_for(given, ID_GUESSES, "ids")


def title_column(corpus: Corpus, given: str | None, text: str) -> str | None:
    """Return the title column: the given one, or one with a usual name that is not the text."""
    found = corpus.column_for(given, TITLE_GUESSES, "titles")
    return None if found == text else found


def text_strings(column: Any, name: str, corpus: Corpus) -> Any:
    """Return a column of text as `large_string`; raise `DocumentError` for other types."""
    if isinstance(column.type, pa.BaseExtensionType):  # such as JSON, which is text beneath
        column = column.storage
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not is_string(kind) and not pa.types.is_null(kind):
        raise DocumentError(f"{corpus.name}: the column {name!r} is of type {kind}; expected text")
    return _large(undictionaried(column))


def is_string(kind: Any) -> bool:
    """Return whether a type of Arrow is text, in whatever form."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _large(column: Any) -> Any:
    """Return a column as `large_string`; strings over the same bytes, with wider offsets."""
    kind = pa.large_string()
    if column.type == kind:
        return column
    if column.type != pa.string() or not len(column):
        return column.cast(kind)
    valid, offsets, data = column.buffers()
    wide = np.frombuffer(offsets, np.int32, column.offset + len(column) + 1).astype(np.int64)
    return pa.Array.from_buffers(
        kind, len(column), [valid, pa.py_buffer(wide), data], column.null_count, column.offset
    )


def undictionaried(column: Any) -> Any:
    """Return a column without a dictionary; Arrow cannot cast every type of dictionary."""
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.large_string())
    return values.take(column.indices)


def id_strings(column: Any, first_row: int) -> Any:
    """Return ids as strings; a row without an id gets its row number."""
    strings = _as_strings(column)
    if strings.null_count:
        rows = arrow_positions(np.arange(first_row, first_row + len(strings), dtype=np.int64))
        strings = compute.coalesce(strings, rows.cast(pa.large_string()))
    return strings


def title_strings(column: Any) -> Any:
    """Return titles as strings; a row without a title gets an empty one."""
    return _as_strings(column).fill_null("")


def _as_strings(column: Any) -> Any:
    """Return values of any type as strings."""
    try:
        return _large(undictionaried(column))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([str(value.as_py()) for value in column], pa.large_string())


def find_documents(
    corpus: Corpus, columns: Columns, wanted: Sequence[str], *, skip_bad: bool = False
) -> list[str]:
    """Return the first texts with these ids, or row numbers if there is no id column."""
    found: dict[str, str] = {}
    examples: list[str] = []
    rows = 0
    for batch in corpus.read(columns.names, Problems(skip_bad)):
        texts = text_strings(batch.column(0), columns.text, corpus)
        ids = columns.ids(batch, rows)
        examples += ids[: _EXAMPLES - len(examples)].to_pylist()
        for name in wanted:
            if name not in found and (at := compute.index(ids, name).as_py()) >= 0:
                found[name] = texts[at].as_py() or ""
        rows += len(batch)
        if len(found) == len(set(wanted)):
            return [found[name] for name in wanted]
    missing = next(name for name in wanted if name not in found)
    what = f"no document whose {columns.id!r} is" if columns.id else "no row"
    shown = f"the first are {', '.join(map(repr, examples))}" if examples else "it is empty"
    raise ArgumentError(f"{corpus.name} has {what} {missing!r} among {rows:,} documents; {shown}")


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Conditions that documents must meet; those that do not are skipped, counted and named.

    Args:
        min_words: minimum number of words, as `la.Words` counts them (default: 0).
        max_repetition: maximum share of runs of five words that repeat an earlier one of the same
            document (default: 1).
        language: accepted languages, such as "en" or "en,de", detected from texts (default: all).
        min_links: minimum number of links of a page, or of URLs in a text (default: 0).
        strip_urls: ignore URLs when comparing texts (default: False).
        min_bytes: minimum size of a text in UTF-8, or of the HTML of a page (default: 0).
    """

    min_words: int = 0
    max_repetition: float = 1.0
    language: str | None = None
    min_links: int = 0
    strip_urls: bool = False
    min_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("min_words", "min_links", "min_bytes"):
            value = whole_number(name, getattr(self, name), at_least=0)
            object.__setattr__(self, name, value)
        repetition = share("max_repetition", self.max_repetition)
        object.__setattr__(self, "max_repetition", repetition)
        object.__setattr__(self, "strip_urls", flag("strip_urls", self.strip_urls))
        if self.language is not None and not self.languages:
            raise ArgumentError(
                Said("language"),
                f" is {brief(self.language)}; expected a language such as 'en', or several "
                "separated by commas",
            )

    @property
    def languages(self) -> list[str]:
        """The accepted languages; empty if the given value is invalid."""
        given = self.language.split(",") if isinstance(self.language, str) else []
        codes = [code.strip() for code in given]
        return codes if codes and all(map(_LANGUAGE.fullmatch, codes)) else []

    @property
    def any(self) -> bool:
        """Whether there is any condition."""
        return self != _NO_FILTERS

    def for_old(self) -> Filters:
        """Return the filters for an old corpus, of which no document is skipped."""
        return Filters(strip_urls=self.strip_urls)

    def refusal(
        self, text: str, words: int, language: Any, links: int, size: int, repetition: float
    ) -> tuple[str, str] | None:
        """Return why a document is skipped, as a kind and a reason; None if it is accepted."""
        if size < self.min_bytes:
            return "too small", f"has {size:,} bytes; the minimum is {self.min_bytes:,}"
        if words < self.min_words:
            return "too short", f"has {words:,} words; the minimum is {self.min_words:,}"
        if repetition > self.max_repetition:
            most = f"the maximum is {self.max_repetition:g}"
            return "repetitive", f"repeats {repetition:.2f} of its runs of words; {most}"
        if links < self.min_links:
            return "few links", f"has {links:,} links; the minimum is {self.min_links:,}"
        if self.language is not None:
            found = language or detect_language(text)
            if found not in self.languages:
                return "other language", f"is in {found or 'an unknown language'}"
        return None


_NO_FILTERS = Filters()


def without_urls(text: str) -> str:
    """Return a text without URLs, but with the punctuation that follows them."""
    return _URL.sub(lambda found: found[0][len(found[0].rstrip(_TRAILING)) :], text)


def repeated_shares(texts: Any) -> list[float]:
    """Return the share of each text's runs of five words that repeat an earlier one."""
    runs = Words(ngram=_REPEATED)
    every, different = runs.counts(texts), runs.counts(texts, distinct=True)
    shares: list[float] = (1 - different / np.maximum(every, 1)).tolist()
    return [one if count else 0.0 for one, count in zip(shares, every.tolist(), strict=True)]


def filtered(corpus: Corpus, columns: Columns, filters: Filters | None) -> Corpus:
    """Return a corpus of the accepted documents; the same corpus if there is no filter."""
    if filters is None or not filters.any:
        return corpus
    return FilteredCorpus(corpus, columns, filters)


class FilteredCorpus(DerivedCorpus):
    """The rows of another corpus that the filters accept; output keeps the URLs of texts."""

    def __init__(self, inner: Corpus, columns: Columns, filters: Filters) -> None:
        super().__init__(inner)
        self._columns = columns
        self.filters = filters
        self._rows: NDArray[np.int64] | None = None
        self.inner_count = 0  # number of rows of the other corpus, once it was read
        self.root, self.max_document = inner.root, inner.max_document
        self.page_text, self.marked_text = inner.page_text, inner.marked_text
        names = getattr(getattr(inner, "reading", None), "names", {})
        self._language = names.get("language") if filters.language is not None else None
        self._links = names.get("links") if filters.min_links else None
        self._bytes = names.get("size") if filters.min_bytes else None
        looked_at = (self._language, self._links, self._bytes)
        self._looked_at = [columns.text, *filter(None, looked_at)]
        known = {one.name: getattr(filters, one.name) for one in fields(filters)}
        self.described = ["filters", known, inner.described]

    def columns(self) -> list[str]:
        return self.inner.columns()

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        wanted = list(dict.fromkeys([*columns, *self._looked_at]))
        for batch in self._kept(self.inner.read(wanted, problems), problems):
            yield chosen_columns(batch, columns)

    def rows(self, problems: Problems) -> Iterator[Rows]:
        if self._bytes is not None:  # which rows do not have
            return self.read(self.columns(), problems)
        return self._kept(self.inner.rows(problems), problems)

    def inner_rows(self, problems: Problems) -> NDArray[np.int64]:
        """Return which rows of the other corpus the filters accept."""
        if self._rows is None:
            for _ in self.read([], problems):
                pass
        return np.empty(0, np.int64) if self._rows is None else self._rows

    def select(self, positions: NDArray[np.int64]) -> Any:
        return self.inner.select(self.inner_rows(Problems(True))[positions])

    def rows_at(self, positions: NDArray[np.int64], skip_bad: bool) -> list[dict[str, Any]]:
        return self.inner.rows_at(self.inner_rows(Problems(skip_bad))[positions], skip_bad)

    def _kept(self, batches: Iterator[Rows], problems: Problems) -> Iterator[Rows]:
        found: list[NDArray[np.int64]] = []
        row = 0
        for batch in batches:
            places = np.array(list(self._wanted(batch, row, problems)), np.int64)
            found.append(places + row)
            row += len(batch)
            self.done = self.inner.done
            kept = batch if len(places) == len(batch) else batch.take(arrow_positions(places))
            yield self._stripped(kept) if self.filters.strip_urls else kept
        self._rows = np.concatenate(found) if found else np.empty(0, np.int64)
        self.inner_count = row

    def _wanted(self, batch: Rows, row: int, problems: Problems) -> Iterator[int]:
        names = batch.schema.names
        column = batch.column(names.index(self._columns.text))
        strings = text_strings(column, self._columns.text, self.inner).fill_null("")
        texts = list(map(without_marks, strings.to_pylist()))
        if self._columns.text == self.marked_text:
            strings = pa.array(texts, pa.large_string())
        counted = self.filters.min_words or self.filters.max_repetition < 1
        if self.filters.strip_urls and counted:
            strings = pa.array(list(map(without_urls, texts)), pa.large_string())
        words = Words().counts(strings).tolist() if self.filters.min_words else [0] * len(texts)
        repetitions = [0.0] * len(texts)
        if self.filters.max_repetition < 1:
            repetitions = repeated_shares(strings)
        languages, links, sizes = (
            batch.column(name).to_pylist() if name in names else [None] * len(batch)
            for name in (self._language, self._links, self._bytes)
        )
        for place, text in enumerate(texts):
            count = 0
            if self.filters.min_links:
                several = links[place]
                count = len(_URL.findall(text)) if several is None else len(several)
            size = sizes[place]
            if self.filters.min_bytes and size is None:
                size = len(text.encode("utf-8", "replace"))
            about = words[place], languages[place], count, size or 0, repetitions[place]
            refusal = self.filters.refusal(text, *about)
            if refusal is None:
                yield place
            else:
                problems.leave_out(refusal[0], f"{self.name}, row {row + place}", refusal[1])

    def _stripped(self, batch: Rows) -> Rows:
        place = batch.schema.names.index(self._columns.text)
        texts = text_strings(batch.column(place), self._columns.text, self.inner).to_pylist()
        stripped = [text if text is None else without_urls(text) for text in texts]
        return batch.set_column(place, self._columns.text, pa.array(stripped, pa.large_string()))


def unfiltered(
    corpus: Corpus, keep: NDArray[np.bool_] | None, added: Added | None, problems: Problems
) -> tuple[Corpus, NDArray[np.bool_] | None, Added | None]:
    """Return the corpus behind a filtered one, and what to keep of and add to its rows."""
    if not isinstance(corpus, FilteredCorpus):
        return corpus, keep, added
    rows = corpus.inner_rows(problems)
    if keep is not None and len(keep) != len(rows):
        raise corpus.changed(len(rows), len(keep))
    mask = np.zeros(corpus.inner_count, bool)
    mask[rows if keep is None else rows[keep]] = True
    return corpus.inner, mask, None if added is None else _spread(added, rows)


def _spread(added: Added, rows: NDArray[np.int64]) -> Added:
    """Return columns for all rows of the corpus behind the filters: null for skipped rows."""

    def spread(begin: int, end: int) -> dict[str, Any]:
        first, last = (int(place) for place in np.searchsorted(rows, [begin, end]))
        places = np.full(end - begin, -1, np.int64)
        places[rows[first:last] - begin] = np.arange(last - first)
        chosen = pa.array(places, pa.int64(), mask=places < 0)
        return {name: values.take(chosen) for name, values in added(first, last).items()}

    return spread
