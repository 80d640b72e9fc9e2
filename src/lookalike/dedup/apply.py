"""Move dropped files away, or replace them by links; `lookalike.storage.changes` does it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lookalike.corpora.writing import check_outside_folder
from lookalike.dedup.write import inside
from lookalike.errors import ArgumentError, Said
from lookalike.storage import changes
from lookalike.storage.changes import Changes, Duplicate, LeftAlone

if TYPE_CHECKING:
    from lookalike.dedup.result import MediaResult


def apply_to_files(
    result: MediaResult,
    action: str,
    folder: Path | None,
    journal: Path | None,
    *,
    dry_run: bool,
) -> Changes:
    """Apply an action to the dropped files; see `MediaResult.apply`."""
    if result.keep_rule == "none":
        raise ArgumentError(
            Said("apply", "--apply"),
            " needs a kept file for each dropped one, and with ",
            Said("keep='none'", "--keep none"),
            " no similar file is kept; leave one of them out",
        )
    if folder is not None:
        check_outside_folder(result.root, folder)
        _check_other_folder(result, folder)
    planned, left = changes.plan(_duplicates(result), action, folder)
    left += _known_by_signatures(result)
    if dry_run or not planned:
        return Changes(action, planned, left)
    name = Path(f"dedup-{datetime.now():%Y%m%d-%H%M%S}.journal") if journal is None else journal
    done, more = changes.apply(planned, name)
    return Changes(action, done, [*left, *more], name)


def _check_other_folder(result: MediaResult, folder: Path) -> None:
    """Refuse a folder that has compared files: they would be in the way of the moved ones."""
    whole = folder.absolute().resolve()
    for parent in {file.parent for file in [*result.files, *result.old_files]}:
        if parent.resolve().is_relative_to(whole):
            raise ArgumentError(
                Said("folder", "--apply"),
                f" names {folder}, which has files that were compared; expected another folder",
            )


def _known_by_signatures(result: MediaResult) -> list[LeftAlone]:
    """Return the dropped files whose old copy is known only by its signature."""
    signed = (result.matched_old >= 0) & (result.matched_old < len(result.old_signed))
    return [
        LeftAlone(result.files[row], "the old copy is known only by its signature")
        for row in np.flatnonzero(signed).tolist()
    ]


def _duplicates(result: MediaResult) -> list[Duplicate]:
    found = []
    signed = len(result.old_signed)
    for row in np.flatnonzero(~result.keep).tolist():
        other, matched = int(result.duplicate_of[row]), int(result.matched_old[row])
        files, states = result.files, result.states
        if 0 <= matched < signed:
            continue
        if matched >= 0:
            other, files, states = matched - signed, result.old_files, result.old_states
        path = result.files[row]
        found.append(
            Duplicate(path, result.states[row], files[other], states[other], inside(result, path))
        )
    return found
