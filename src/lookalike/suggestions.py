"""What was meant by a word that nobody knows: the known one that is most like it."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from itertools import islice

_LIKE_ENOUGH = 0.6
_LONGEST = 100
_MOST = 2000
"""Names that are looked at: a folder may have millions, and none is worth a wait."""


def nearest_word(given: object, known: Iterable[str]) -> str | None:
    """Return the known word that is most like the given one, if one is like it at all."""
    if not isinstance(given, str) or len(given) > _LONGEST:
        return None
    folded: dict[str, str] = {}
    for name in islice(known, _MOST):
        folded.setdefault(name.lower(), name)
    found = difflib.get_close_matches(given.lower(), folded, n=1, cutoff=_LIKE_ENOUGH)
    return folded[found[0]] if found else None


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return the end of a sentence that asks whether a known word was meant; "" if none is like."""
    found = nearest_word(given, known)
    return "" if found is None else f"; did you mean {found!r}?"


def did_you_mean_file(path: str | os.PathLike[str]) -> str:
    """Return the same for a file that is not there, by the names in its folder."""
    folder, name = os.path.split(os.fspath(path))
    try:
        with os.scandir(folder or ".") as entries:
            found = nearest_word(name, (entry.name for entry in islice(entries, _MOST)))
    except (OSError, ValueError):
        return ""
    return "" if found is None else f"; did you mean {os.path.join(folder, found)!r}?"  # noqa: PTH118
