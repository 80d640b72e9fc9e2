"""The page: what is alike, side by side."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike._native import __version__
from lookalike.dedup.media.summary import count_lines
from lookalike.dedup.summary import size_text
from lookalike.report.markup import clipped, one_line, rendered, shown, table
from lookalike.shown import counted
from lookalike.signatures import Signer
from lookalike.storage import whole_file

if TYPE_CHECKING:
    from lookalike.dedup.media.result import MediaResult

__all__ = ["write_report"]

MOST_SHOWN = 12_000_000
"""Characters of all that is shown of files; clusters after that are only listed."""
_MOST_OF_ONE = 400_000
_MEMBERS = 12
"""Files of a cluster that are shown."""
_LISTED = 2000
"""Clusters, and files that were left out, that are listed at most."""
_NAME = 160
_TYPED = 4000

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
    with whole_file(path) as temporary:
        temporary.write_text(_page(result, command), encoding="utf-8", newline="\n")


def _page(result: MediaResult, command: Sequence[str] | None) -> str:
    name, groups = shown(result.name), result.groups()
    cards, rest = _shown_clusters(result, groups)
    sections = [
        ("summary", "Summary", _summary(result)),
        ("clusters", "Clusters", cards),
        ("others", "More clusters", _listed_clusters(result, rest)),
        ("left-out", "Left out", _left_out(result)),
        ("settings", "Settings", _settings(result, command)),
    ]
    sections = [section for section in sections if section[2]]
    links = "\n".join(f'<a href="#{key}">{title}</a>' for key, title, _ in sections)
    body = "\n".join(
        f'<section id="{key}">\n<h2>{title}</h2>\n{content}\n</section>'
        for key, title, content in sections
    )
    policy = f"default-src 'none'; style-src 'unsafe-inline'; {result.medium.policy}"
    made = result.made
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Duplicates in {name}</title>
<style>{rendered("report/style.css")}{_STYLE}</style>
</head>
<body>
<header>
<p class="brand">lookalike dedup</p>
<h1>Duplicates in <bdi>{name}</bdi></h1>
<p class="soft">Made on {made.day} {made:%B %Y, %H:%M} UTC by lookalike {shown(__version__)}.</p>
{_lead(result)}
<nav>
{links}
</nav>
</header>
<main>
{body}
</main>
<footer>This page needs nothing but itself.</footer>
</body>
</html>
"""


def _lead(result: MediaResult) -> str:
    counts = result.counts
    if not counts.files:
        said = f"There are no {result.kind} in it."
    elif counts.kept == counts.files:
        said = f"All {counts.files:,} {result.kind} stay: no duplicates were found."
        if counts.files == 1:
            said = f"The only {result.medium.noun} stays."
    else:
        said = (
            f"Of {counts.files:,} {result.kind}, {counts.kept:,} would do: "
            f"{counted(counts.files - counts.kept, result.medium.noun)} could go, which saves "
            f"{size_text(counts.bytes_saved)} of {size_text(counts.bytes)}. Nothing was deleted."
        )
    return f'<p class="lead">{said}</p>'


def _summary(result: MediaResult) -> str:
    colours = {"kept": "kept", "exact duplicates": "exact", "near-duplicates": "near"}
    tiles = []
    for name, value, note in count_lines(result):
        key = f'<i class="of-{colours[name]}"></i>' if name in colours else ""
        tiles.append(
            f'<div class="tile"><span class="name">{key}{shown(name)}</span><b>{value}</b>'
            f"<span>{shown(note)}</span></div>"
        )
    counts = result.counts
    bars = (
        (counts.kept, "kept"),
        (counts.near_duplicates, "near"),
        (counts.exact_duplicates, "exact"),
    )
    shares = "".join(
        f'<span class="of-{kind}" style="width:{100 * count / counts.files:.3f}%" '
        f'title="{count:,}"></span>'
        for count, kind in bars
        if count
    )
    lines = [f'<div class="shares">{shares}</div>'] if shares else []
    return "\n".join([*lines, '<div class="tiles">', *tiles, "</div>"])


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
    look = result.medium.shown(result.files[row], most) or "<span>cannot be shown</span>"
    stays = bool(result.keep[row])
    badge = '<span class="badge stays">stays</span>'
    if not stays:
        badge = f'<span class="badge">{shown(_likeness(result, row))}</span>'
    facts = f"{result.described[row]}, {size_text(int(result.sizes[row]))}"
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
    problems = result.problems
    if not problems:
        return ""
    items = "\n".join(
        f"<li><bdi>{shown(clipped(str(problem.path), _NAME))}</bdi>: {shown(problem.reason)}</li>"
        for problem in problems[:_LISTED]
    )
    more = len(problems) - _LISTED
    rest = f"<p>And {more:,} more.</p>" if more > 0 else ""
    return f'<div class="card"><ul>\n{items}\n</ul>{rest}</div>'


def _call(result: MediaResult) -> str:
    """Return the call in Python that gives this page; several paths are called `source`."""
    source = "source" if result.several else repr(result.name)
    arguments = [source, f"kind={result.kind!r}"]
    for name, value in result.medium.settings().items():
        signer = getattr(result.medium, name, None)
        text = f"la.{signer!r}" if isinstance(signer, Signer) else repr(value)
        arguments.append(f"{name}={text}")
    return f"la.dedup_media({', '.join(arguments)}).report('report.html')"


def _settings(result: MediaResult, command: Sequence[str] | None) -> str:
    given = result.medium.settings()
    items = "\n".join(
        f"<div><dt>{shown(name)}</dt><dd>{shown(value)}</dd></div>" for name, value in given.items()
    )
    typed = _call(result) if command is None else shlex.join(command)
    return (
        f'<dl class="card settings">\n{items}\n</dl>\n'
        '<div class="card"><h3>To make this page again</h3>\n'
        f'<p class="typed">{shown(clipped(typed, _TYPED))}</p></div>'
    )
