"""The report of images or recordings: similar files side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike.dedup.report.page import lead, left_out_card, settings_card, summary_tiles
from lookalike.dedup.report.remade import media_call_text
from lookalike.dedup.summary import size_text
from lookalike.report.frame import made_line, page, remade_card, typed_command, write_page
from lookalike.report.markup import clipped, one_line, shown, table
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

_STYLE = """
.files { display: grid; grid-template-columns: repeat(auto-fill, minmax(190px, 1fr)); gap: 14px;
  margin-top: 12px; }
.file { min-width: 0; border: 1px solid var(--line); border-radius: 8px; padding: 10px;
  display: flex; flex-direction: column; gap: 6px; }
.file.stays { border: 2px solid var(--kept); padding: 9px; }
.look { display: flex; align-items: center; justify-content: center; height: 180px;
  background: var(--code); border-radius: 5px; overflow: hidden; color: var(--soft); }
.look img { max-width: 100%; max-height: 100%; width: auto; height: auto; }
.look audio { width: 100%; }
.file p { margin: 0; font-size: 13px; overflow-wrap: anywhere; }
@media (max-width: 640px) {
  .files { grid-template-columns: 1fr 1fr; gap: 10px; }
  .look { height: 130px; }
}
@media print { .file { break-inside: avoid; } }
"""


def write_report(result: MediaResult, path: Path, command: Sequence[str] | None = None) -> None:
    """Write the page; an interrupted run leaves what was there before.

    Its size is bounded, however many files there are: the largest clusters are shown, the others
    listed.
    """
    name, groups = shown(result.name), result.groups()
    cards, rest = _shown_clusters(result, groups)
    sections = [
        ("summary", "Summary", summary_tiles(result)),
        ("clusters", "Clusters", cards),
        ("others", "More clusters", _listed_clusters(result, rest)),
        ("left-out", "Left out", _left_out(result)),
        ("settings", "Settings", _settings(result, command)),
    ]
    about = [
        f"<h1>Duplicates in <bdi>{name}</bdi></h1>",
        made_line(result.made),
        _lead(result),
    ]
    text = page(
        f"Duplicates in {name}",
        "lookalike dedup",
        about,
        sections,
        style=_STYLE,
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
    intro = (
        f'<p class="soft">{which}, the largest first. Of each, the one that stays, and the others '
        "from the most similar to it to the least.</p>"
    )
    return "\n".join([intro, *cards]), groups[len(cards) :]


def _cluster(result: MediaResult, rows: list[int], most: int) -> str:
    members = "\n".join(_file(result, row, most) for row in rows[:_MEMBERS])
    more = len(rows) - _MEMBERS
    note = f"{_MEMBERS} are shown, {more:,} more are alike" if more > 0 else ""
    return (
        f'<div class="card"><div class="head"><h3>{len(rows):,} {result.kind}</h3>'
        f'<span class="soft">{note}</span></div>\n<div class="files">\n{members}\n</div></div>'
    )


def _file(result: MediaResult, row: int, most: int) -> str:
    look = result.medium.preview(result.files[row], most, memory=result.memory_limit)
    look = look or "<span>cannot be shown</span>"
    stays = bool(result.keep[row])
    badge = '<span class="badge stays">stays</span>'
    if not stays:
        badge = f'<span class="badge">{shown(_likeness(result, row))}</span>'
    facts = f"{result.descriptions[row]}, {size_text(int(result.sizes[row]))}"
    return (
        f'<div class="file{" stays" if stays else ""}"><div class="look">{look}</div>'
        f"<p>{badge}</p><p>{_name(result, row)}</p>"
        f'<p class="soft">{shown(facts)}</p></div>'
    )


def _likeness(result: MediaResult, row: int) -> str:
    first = result.first_equal
    if first[row] == first[result.duplicate_of[row]]:
        return "the same file"
    return result.medium.likeness(float(result.similarity[row]), int(result.distance[row]))


def _name(result: MediaResult, row: int) -> str:
    return f'<bdi class="id">{shown(clipped(one_line(result.names[row]), _NAME))}</bdi>'


def _listed_clusters(result: MediaResult, groups: Sequence[Any]) -> str:
    """Return a table of clusters that there was no room to show."""
    if not len(groups):
        return ""
    rows = [
        [
            f"{len(group):,}",
            _name(result, int(group[0])),
            " ".join(_some(_name(result, row) for row in group[1:].tolist())),
        ]
        for group in groups[:_LISTED]
    ]
    more = len(groups) - len(rows)
    rest = f'<p class="soft">And {counted(more, "more cluster")}.</p>' if more else ""
    heads = [result.kind, "stays", "could go"]
    return f'<div class="card">{table(heads, rows, {0})}{rest}</div>'


def _some(names: Iterator[str]) -> Iterator[str]:
    for place, name in enumerate(names):
        if place == _MEMBERS:
            yield '<span class="soft">and more</span>'
            return
        yield name


def _left_out(result: MediaResult) -> str:
    items = [
        f"<bdi>{shown(clipped(str(problem.path), _NAME))}</bdi>: {shown(problem.reason)}"
        for problem in result.problems[:_LISTED]
    ]
    more = len(result.problems) - _LISTED
    return left_out_card(items, f"And {more:,} more." if more > 0 else "")


def _settings(result: MediaResult, command: Sequence[str] | None) -> str:
    card = settings_card((name, shown(value)) for name, value in result.described().items())
    typed = media_call_text(result) if command is None else typed_command(command)
    return f"{card}\n{remade_card(typed)}"
