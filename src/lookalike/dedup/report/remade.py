"""How to make a page again in Python."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from lookalike.corpora.filters import FilteredCorpus
from lookalike.corpora.formats.tables import TableCorpus
from lookalike.corpora.html_column import HtmlColumnCorpus

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult

__all__ = ["call_text"]


def call_text(result: DedupResult) -> str:
    """Return the call that gives this result."""
    corpus, read = result.source, dict[str, Any]()
    if isinstance(corpus, FilteredCorpus):
        asked = {one.name: getattr(corpus.filters, one.name) for one in fields(corpus.filters)}
        read |= {name: value for name, value in asked.items() if value}
        corpus = corpus.inner
    if isinstance(corpus, HtmlColumnCorpus):
        read["html"] = corpus.html_column
        corpus = corpus.inner
    source = "source" if isinstance(corpus, TableCorpus) else repr(corpus.name)
    settings = {
        one.name: getattr(result.settings, one.name)
        for one in fields(result.settings)
        if getattr(result.settings, one.name) != one.default
    }
    given = [source, *(f"{name}={value!r}" for name, value in settings.items() if value != 0)]
    given += [f"{name}={value!r}" for name, value in read.items()]
    if len(result.source.columns()) > 1 and result.source.page_text is None:
        given.append(f"text={result.columns.text!r}")
    return f"la.dedup({', '.join(given)}).report('report.html')"
