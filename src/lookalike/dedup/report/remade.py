"""When a page was made, by what, and how to make it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from lookalike._native import __version__
from lookalike.corpora.filters import FilteredCorpus
from lookalike.corpora.formats.tables import TableCorpus
from lookalike.corpora.html_column import HtmlColumnCorpus
from lookalike.dedup.report.markup import clipped, shown

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult

__all__ = ["made_line", "remade_card"]

_LONGEST = 4000


def made_line(result: DedupResult) -> str:
    """Return the date and the version."""
    made = result.made
    when = f"{made.day} {made:%B %Y, %H:%M} UTC"
    return f'<p class="soft">Made on {when} by lookalike {shown(__version__)}.</p>'


def remade_card(result: DedupResult, command: Sequence[str] | None) -> str:
    """Return what to type for the same page: in a shell if a command made it, else in Python."""
    typed = _call(result) if command is None else shlex.join(command)
    return (
        '<div class="card"><h3>To make this page again</h3>\n'
        f'<p class="typed">{shown(clipped(typed, _LONGEST))}</p></div>'
    )


def _call(result: DedupResult) -> str:
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
