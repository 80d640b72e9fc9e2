"""The calls in Python that make a report again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from lookalike.corpora import Corpus
from lookalike.corpora.columns import Columns, FilteredCorpus
from lookalike.corpora.formats import FileCorpus, format_of
from lookalike.corpora.formats.files import FolderCorpus
from lookalike.corpora.formats.html import HtmlColumnCorpus
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError
from lookalike.features import Combined, FeatureFunction, FeatureKind
from lookalike.signatures import Signer

if TYPE_CHECKING:
    from lookalike.dedup.result import MediaResult, TextResult, VectorResult

_MOST_PATHS = 8


def call_text(result: TextResult) -> str:
    """Return the call that makes a report of documents.

    A value that cannot be written, such as a table in memory, has the name of its argument.
    """
    given = reading_arguments(result.source, result.columns)
    if result.documents.old:
        given.append("against=against")
    if result.skip_bad:
        given.append("skip_bad=True")
    for name, value in _told(result.settings, chosen=result.features_reason is not None).items():
        given.append(f"{name}={argument_text(name, value)}")
    return f"la.dedup({', '.join(given)}).report('report.html')"


def media_call_text(result: MediaResult) -> str:
    """Return the call that makes a report of files; several paths are called `source`."""
    given = ["source" if result.several else repr(result.name), f"kind={result.kind!r}"]
    for name, value in result.medium.settings().items():
        signer = getattr(result.medium, name, None)
        text = f"la.{signer!r}" if isinstance(signer, Signer) else repr(value)
        given.append(f"{name}={text}")
    if result.keep_rule != "best":
        given.append(f"keep={argument_text('keep', result.keep_rule)}")
    if result.old:
        given.append("against=against")
    return f"la.dedup({', '.join(given)}).report('report.html')"


def vector_call_text(result: VectorResult) -> str:
    """Return the call that makes a report of vectors."""
    given = {
        "vectors": result.column,
        "id": result.id_column,
        **_told(result.settings, chosen=True),
        "threshold": result.threshold,
        **({"exact": True} if result.recall == 1 else {"recall": result.recall}),
        **_format(result.source),
    }
    named = (f"{name}={value!r}" for name, value in given.items() if value is not None)
    against = ["against=against"] if result.old else []
    every = [_source(result.source), *against, *named]
    return f"la.dedup({', '.join(every)}).report('report.html')"


def reading_arguments(corpus: Corpus, columns: Columns) -> list[str]:
    """Return the arguments of a job that say what is read, and how."""
    read = dict[str, Any]()
    if isinstance(corpus, FilteredCorpus):
        asked = [(one, getattr(corpus.filters, one.name)) for one in fields(corpus.filters)]
        read |= {one.name: value for one, value in asked if value != one.default}
        corpus = corpus.inner
    of_pages = corpus.page_text is not None
    if isinstance(corpus, HtmlColumnCorpus):
        read["html"] = corpus.html_column
        corpus = corpus.inner
    source = _source(corpus)
    named = len(corpus.columns()) > 1 and not isinstance(corpus, FolderCorpus)
    if named and not of_pages:
        read["text"] = columns.text
    if named and columns.id is not None and columns.id in corpus.columns():
        read["id"] = columns.id
    read |= _format(corpus)
    return [source, *(f"{name}={value!r}" for name, value in read.items())]


def _format(corpus: Corpus) -> dict[str, str]:
    """Return the format of files whose names do not tell it."""
    is_file = isinstance(corpus, FileCorpus) and _source(corpus) != "source"
    if is_file and any(format_of(path) != corpus.format for path in corpus.files):
        return {"format": corpus.format}
    return {}


def argument_text(name: str, value: Any) -> str:
    """Return the value of an argument as Python writes it; a function has the argument's name."""
    if isinstance(value, FeatureFunction) or callable(value):
        return name
    if isinstance(value, Combined):
        kinds = [argument_text(name, kind) for kind in value.kinds]
        return f"la.Combined({', '.join(kinds)}, weights={value.weights!r})"
    return f"la.{value!r}" if isinstance(value, FeatureKind) else repr(value)


def _source(corpus: Corpus) -> str:
    if isinstance(corpus, FolderCorpus):
        return "source" if corpus.root is None else repr(str(corpus.root))
    if not isinstance(corpus, FileCorpus) or corpus.spool is not None:
        return "source"
    paths = [str(path) for path in corpus.paths]
    if len(paths) == 1:
        return repr(paths[0])
    if len(paths) > _MOST_PATHS:
        return "source"
    return f"[{', '.join(f'pathlib.Path({path!r})' for path in paths)}]"


def _told(settings: DedupSettings, *, chosen: bool) -> dict[str, Any]:
    """Return the settings that are needed to get the same settings again.

    `chosen`: the features need not be told, because the job chose them or has none.
    """
    told = {}
    for one in fields(settings):
        value = getattr(settings, one.name)
        if one.name not in settings.idle and value is not None and value != one.default:
            told[one.name] = value
    for name in list(told):
        others = {other: value for other, value in told.items() if other != name}
        with suppress(ArgumentError):
            again = DedupSettings(**others)
            if again.features_open:
                if not chosen:
                    continue
                again = again.with_features(settings.features)
            if again.to_dict() == settings.to_dict():
                told = others
    return told
