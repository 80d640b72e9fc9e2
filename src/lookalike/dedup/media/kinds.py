"""Which kinds of files there are, and which of them a folder is full of."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from lookalike.dedup.media.find import head_of, walk
from lookalike.dedup.media.medium import Medium

__all__ = ["DOCUMENTS", "KINDS", "kind_of", "medium_of"]

DOCUMENTS = "documents"
"""What everything is that is no medium: `lookalike.dedup.job` reads it."""

_MEDIA = {
    "images": ("lookalike.dedup.media.images", "ImageMedium"),
    "recordings": ("lookalike.dedup.media.recordings", "RecordingMedium"),
}
"""Where each kind is, to be imported when it is asked for."""

KINDS = (DOCUMENTS, *_MEDIA)

_LOOKED_AT = 1000
"""Files of a folder that are enough to tell what it is full of."""


def medium_of(kind: str) -> type[Medium[Any]]:
    """Return the class of a kind of `KINDS` that is none of documents."""
    module, name = _MEDIA[kind]
    return cast("type[Medium[Any]]", getattr(import_module(module), name))


def kind_of(paths: Sequence[Path]) -> str:
    """Return the kind that more than half of all files are of, told by what they begin with, not by
    their names; else documents.

    Of more than a thousand files, a thousand from all over decide. What cannot be read does not
    count.
    """
    files = [file for path in paths for file, wrong in walk(path) if not wrong]
    step = max(1, -(-len(files) // _LOOKED_AT))
    heads = []
    for file in files[::step]:
        try:
            heads.append(head_of(file)[0])
        except OSError:
            continue
    for kind in _MEDIA:
        recognises = medium_of(kind).recognises
        if 2 * sum(map(recognises, heads)) > len(heads):
            return kind
    return DOCUMENTS
