"""Where documents come from and where they go: files, folders, and tables in memory."""

from lookalike.corpora.base import Corpus, Problems
from lookalike.corpora.formats import FORMATS, Format, format_of
from lookalike.corpora.opening import open_corpus
from lookalike.corpora.writing import (
    check_table_target,
    check_target,
    write_corpus,
    write_source,
    write_table,
)

__all__ = [
    "FORMATS",
    "Corpus",
    "Format",
    "Problems",
    "check_table_target",
    "check_target",
    "format_of",
    "open_corpus",
    "write_corpus",
    "write_source",
    "write_table",
]
