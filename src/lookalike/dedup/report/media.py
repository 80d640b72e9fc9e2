"""The report of images or recordings: similar files side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike.dedup.report.clusters import TEMPLATE
from lookalike.dedup.report.page import lead, summary_tiles
from lookalike.dedup.report.remade import media_call_text
from lookalike.dedup.summary import size_text
from lookalike.report.frame import (
    listed_card,
    made_line,
    page,
    remade_card,
    settings_card,
    typed_command,
    write_page,
)
from lookalike.report.markup import Markup, clipped, one_line, pieces, rendered
from lookalike.shown import counted

if TYPE_CHECKING:
    from lookalike.dedup.result import MediaResult

__all__ = ["write_report"]

MOST_SHOWN = 12_000_000
"""Characters of all that is shown of files; clusters after that are only listed."""
_MOST_OF_ONE = 400_000
_MEMBERS = 12
"""Files of a cluster that are shown."""
_LISTED = 2000
"""Clusters, and files that were left out, that are listed at most."""
_NAME = 160


def write_report(result: MediaResult, path: Path, command: Sequence[str] | None = None) -> None:
    """Write the page; an interrupted run leaves what was there before.

    Its size is bounded, however many files there are: the largest clusters are shown, the others
    listed.
    """
    name, groups, parts = result.name, result.groups(), pieces(TEMPLATE)
    cards, rest = _shown_clusters(result, groups)
    sections = [
        ("summary", "Summary", summary_tiles(result)),
        ("clusters", "Clusters", cards),
        ("others", "More clusters", _listed_clusters(result, rest)),
        ("left-out", "Left out", _left_out(result)),
        ("settings", "Settings", _settings(result, command)),
    ]
    about = [
        parts.heading(name),
        made_line(result.made),
        _lead(result),
    ]
    text = page(
        f"Duplicates in {name}",
        "lookalike dedup",
        about,
        sections,
        style=rendered("dedup/report/media.css"),
        policy=result.medium.policy,
    )
    write_page(text, path)


def _lead(result: MediaResult) -> str:
    counts = result.counts
    return lead(
        result,
        f"Of {counts.documents:,} {result.kind}, {counts.kept:,} would do: "
        f"{counted(counts.documents - counts.kept, result.medium.noun)} could go, which saves "
        f"{size_text(counts.bytes_saved or 0)} of {size_text(counts.bytes)}. Nothing was deleted.",
        result.medium.noun,
    )


def _shown_clusters(result: MediaResult, groups: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Return the largest clusters, as many as there is room for, and the others."""
    cards: list[str] = []
    room = MOST_SHOWN
    for group in groups:
        if room <= 0:
            break
        card = _cluster(result, group.tolist(), min(room, _MOST_OF_ONE))
        room -= len(card)
        cards.append(card)
    if not cards:
        return "", ()
    which = "All of them" if len(cards) == len(groups) else f"{len(cards):,} of {len(groups):,}"
    intro = pieces(TEMPLATE).soft(
        f"{which}, the largest first. Of each, the one that stays, and the others from the most "
        "similar to it to the least."
    )
    return Markup("\n").join([intro, *cards]), groups[len(cards) :]


def _cluster(result: MediaResult, rows: list[int], most: int) -> str:
    more = len(rows) - _MEMBERS
    note = f"{_MEMBERS} are shown, {more:,} more are alike" if more > 0 else ""
    members = [_file(result, row, most) for row in rows[:_MEMBERS]]
    made: str = pieces(TEMPLATE).files(len(rows), result.kind, note, members)
    return made


def _file(result: MediaResult, row: int, most: int) -> dict[str, Any]:
    look = result.medium.preview(result.files[row], most, memory=result.memory_limit)
    stays = bool(result.keep[row])
    return {
        "look": Markup(look) if look else "",
        "stays": stays,
        "likeness": "" if stays else _likeness(result, row),
        "name": _name(result, row),
        "facts": f"{result.descriptions[row]}, {size_text(int(result.sizes[row]))}",
    }


def _likeness(result: MediaResult, row: int) -> str:
    first = result.first_equal
    if first[row] == first[result.duplicate_of[row]]:
        return "the same file"
    return result.medium.likeness(float(result.similarity[row]), int(result.distance[row]))


def _name(result: MediaResult, row: int) -> str:
    return clipped(one_line(result.names[row]), _NAME)


def _listed_clusters(result: MediaResult, groups: Sequence[Any]) -> str:
    """Return a table of clusters that there was no room to show."""
    if not len(groups):
        return ""
    parts = pieces(TEMPLATE)

    def names(rows: list[int]) -> str:
        some = [parts.id(_name(result, row)) for row in rows[:_MEMBERS]]
        return Markup(" ").join(
            [*some, parts.soft_span("and more")] if len(rows) > _MEMBERS else some
        )

    rows = [
        [f"{len(group):,}", names([int(group[0])]), names(group[1:].tolist())]
        for group in groups[:_LISTED]
    ]
    more = len(groups) - len(rows)
    rest = f"And {counted(more, 'more cluster')}." if more else ""
    made: str = parts.listed_files(result.kind, rows, rest)
    return made


def _left_out(result: MediaResult) -> str:
    items = [
        (clipped(str(problem.path), _NAME), problem.reason) for problem in result.problems[:_LISTED]
    ]
    more = len(result.problems) - _LISTED
    return listed_card(items, f"And {more:,} more." if more > 0 else "")


def _settings(result: MediaResult, command: Sequence[str] | None) -> str:
    card = settings_card((name, value, False) for name, value in result.described().items())
    typed = media_call_text(result) if command is None else typed_command(command)
    return Markup("\n").join([card, remade_card(typed)])
