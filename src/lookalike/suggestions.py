""" "Did you mean ...?": the known word that is most similar to an unknown one."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from itertools import islice

_LIKE_ENOUGH = 0.6
_LONGEST = 100
_MOST = 2000  # names to compare: a folder may have millions


def nearest_word(given: object, known: Iterable[str]) -> str | None:
    """Return the known word that is most similar to the given one; None if none is similar."""
    if not isinstance(given, str) or len(given) > _LONGEST:
        return None
    folded: dict[str, str] = {}
    for name in islice(known, _MOST):
        folded.setdefault(name.lower(), name)
    found = difflib.get_close_matches(given.lower(), folded, n=1, cutoff=_LIKE_ENOUGH)
    return folded[found[0]] if found else None


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" with the most similar known word; "" if none is similar."""
    found = nearest_word(given, known)
    return "" if found is None else f"; did you mean {found!r}?"


def did_you_mean_file(path: str | os.PathLike[str]) -> str:
    """Return the same for a missing file, by the names in its folder."""
    folder, name = os.path.split(os.fspath(path))
    try:
        with os.scandir(folder or ".") as entries:
            found = nearest_word(name, (entry.name for entry in islice(entries, _MOST)))
    except (OSError, ValueError):
        return ""
    return "" if found is None else f"; did you mean {os.path.join(folder, found)!r}?"  # noqa: PTH118
