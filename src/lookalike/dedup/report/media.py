"""Reports of kinds without texts: similar images and recordings side by side, groups of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike.dedup.pairs import Ints
from lookalike.dedup.report.groups import TEMPLATE
from lookalike.dedup.report.page import lead, summary_tiles, warnings_card, write_duplicates
from lookalike.dedup.report.remade import media_call_text, vector_call_text
from lookalike.dedup.summary import share_text, similarity_text, size_text
from lookalike.report.frame import listed_card, settings_cards
from lookalike.report.markup import Markup, clipped, one_line, pieces, rendered
from lookalike.shown import counted

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult, MediaResult, VectorResult

MOST_SHOWN = 12_000_000
"""Characters of all previews; groups after that are only listed."""
_MOST_OF_ONE = 400_000
_MEMBERS = 12
"""Files of a group that are shown."""
_LISTED = 2000
"""Groups, and files that were left out, that are listed at most."""
_NAME = 160


def write_report(result: MediaResult, path: Path, command: Sequence[str] | None = None) -> None:
    """Write the report of files, of bounded size: the largest groups are shown, others listed."""
    counts, medium = result.counts, result.medium
    are = "is" if counts.kept == 1 else "are"
    found = (
        f"Of {counted(counts.documents, medium.noun, result.kind)}, {counts.kept:,} {are} kept: "
        f"{counted(counts.documents - counts.kept, medium.noun)} could be deleted, which saves "
        f"{size_text(counts.bytes_saved or 0)} of {size_text(counts.bytes)}. Nothing was deleted."
    )
    cards, rest = _shown_groups(result)
    rows = ([f"{len(group):,}", *_names(result, group)] for group in rest[:_LISTED])
    settings = ((name, value, False) for name, value in result.described().items())
    call = partial(media_call_text, result)
    sections = [
        ("summary", "Summary", summary_tiles(result)),
        ("groups", "Groups", cards),
        ("others", "More groups", _listed([result.kind, "kept", "dropped"], rows, len(rest))),
        ("old", f"Old {result.kind}", _in_old(result, partial(_relation, result))),
        ("left-out", "Left out", _left_out(result)),
        ("settings", "Settings", settings_cards(settings, command, call)),
    ]
    write_duplicates(
        result,
        path,
        result.name,
        [lead(result, found, medium.noun)],
        sections,
        style=rendered("dedup/report/media.css"),
        policy=medium.policy,
    )


def write_vector_report(result: VectorResult, path: Path, command: Sequence[str] | None) -> None:
    """Write the report of rows with vectors, of bounded size: a list of the largest groups."""
    counts, groups = result.counts, result.groups()
    share = share_text(counts.kept, counts.documents)
    are = "is" if counts.kept == 1 else "are"
    found = f"Of {counted(counts.documents, 'row')}, {counts.kept:,} {are} kept ({share})."

    def cells(group: Ints) -> list[str]:
        lowest = similarity_text(float(np.nanmin(result.similarity[group])))
        return [f"{len(group):,}", lowest, *_names(result, group)]

    heads, rows = ["rows", "lowest", "kept", "dropped"], map(cells, groups[:_LISTED])
    told = result.described() | {"grouping": result.settings.grouping, "keep": result.settings.keep}
    settings = ((name, value, name == "vectors") for name, value in told.items())
    call = partial(vector_call_text, result)
    sections = [
        ("summary", "Summary", summary_tiles(result)),
        ("groups", "Groups", _listed(heads, rows, len(groups), [0, 1])),
        ("old", "Old rows", _in_old(result, lambda row: similarity_text(result.similarity[row]))),
        ("settings", "Settings", settings_cards(settings, command, call)),
    ]
    about = [lead(result, found, "row"), warnings_card(result)]
    write_duplicates(result, path, result.source.name, about, sections)


def _shown_groups(result: MediaResult) -> tuple[str, list[Ints]]:
    """Return the largest groups, as many as there is room for, and the others."""
    groups, cards, room = result.groups(), list[str](), MOST_SHOWN
    for group in groups:
        if room <= 0:
            break
        cards.append(_group(result, group.tolist(), min(room, _MOST_OF_ONE)))
        room -= len(cards[-1])
    if not cards:
        return "", []
    which = "All of them" if len(cards) == len(groups) else f"{len(cards):,} of {len(groups):,}"
    intro = pieces(TEMPLATE).soft(
        f"{which}, the largest first. The kept file comes first, then the others, the most similar "
        "first."
    )
    return Markup("\n").join([intro, *cards]), groups[len(cards) :]


def _group(result: MediaResult, rows: list[int], most: int) -> str:
    more = len(rows) - _MEMBERS
    note = f"{_MEMBERS} are shown, {more:,} more are similar" if more > 0 else ""
    members = [_file(result, row, most) for row in rows[:_MEMBERS]]
    return pieces(TEMPLATE).files(len(rows), result.kind, note, members)


def _file(result: MediaResult, row: int, most: int) -> dict[str, Any]:
    look = result.medium.preview(result.files[row], most, memory=result.memory_limit)
    kept = bool(result.keep[row])
    return {
        "look": Markup(look) if look else "",
        "kept": kept,
        "relation": "" if kept else _relation(result, row),
        "name": _name(result, row),
        "facts": f"{result.descriptions[row]}, {size_text(int(result.sizes[row]))}",
    }


def _relation(result: MediaResult, row: int) -> str:
    """Return how similar a dropped file is to the kept or old one."""
    first, old, matched = result.first_equal, result.old, int(result.matched_old[row])
    other = matched if matched >= 0 else old + int(result.duplicate_of[row])
    if first[old + row] == first[other]:
        return "the same file"
    if 0 <= matched < len(result.old_signed):
        return f"similarity {result.similarity[row]:.2f}, by signatures"
    return result.medium.describe_pair(float(result.similarity[row]), int(result.distance[row]))


def _in_old(result: DedupResult, relation: Callable[[int], str]) -> str:
    """Return a table of the items that are in the old corpus, the least similar first."""
    rows = np.flatnonzero(result.matched_old >= 0)
    rows = rows[np.argsort(result.similarity[rows], kind="stable")]
    if not len(rows):
        return ""
    parts = pieces(TEMPLATE)
    listed = (
        [
            parts.id(_name(result, row)),
            parts.id(clipped(one_line(str(result.old_id(int(result.matched_old[row])))), _NAME)),
            relation(row),
        ]
        for row in rows[:_LISTED].tolist()
    )
    rest = f"And {len(rows) - _LISTED:,} more." if len(rows) > _LISTED else ""
    return parts.listed_groups(["dropped", "old", "similarity"], listed, [], rest)


def _name(result: DedupResult, row: int) -> str:
    return clipped(one_line(str(result.id(row))), _NAME)


def _names(result: DedupResult, group: Ints) -> list[str]:
    """Return the ids of the kept and of the dropped items of a group."""
    parts = pieces(TEMPLATE)
    cells: list[str] = []
    for rows in (group[result.keep[group]], group[~result.keep[group]]):
        some = [parts.id(_name(result, row)) for row in rows[:_MEMBERS].tolist()]
        more = [parts.soft_span("and more")] if len(rows) > _MEMBERS else []
        cells.append(Markup(" ").join([*some, *more]))
    return cells


def _listed(
    heads: Sequence[str], rows: Iterable[Sequence[str]], count: int, numbers: Sequence[int] = (0,)
) -> str:
    """Return a table of groups, of `count` in all; nothing if there is none."""
    if not count:
        return ""
    rest = f"And {counted(count - _LISTED, 'more group')}." if count > _LISTED else ""
    return pieces(TEMPLATE).listed_groups(heads, rows, numbers, rest)


def _left_out(result: MediaResult) -> str:
    items = [
        (clipped(str(problem.path), _NAME), problem.reason) for problem in result.problems[:_LISTED]
    ]
    more = len(result.problems) - _LISTED
    return listed_card(items, f"And {more:,} more." if more > 0 else "")
