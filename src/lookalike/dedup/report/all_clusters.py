"""The list of clusters at the end of the page: every one, with a box to look for an id in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lookalike.dedup.summary import similarity_text
from lookalike.report.markup import clipped, one_line, shown, table

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult

__all__ = ["SCRIPT", "all_clusters_section"]

MOST_BYTES = 2_000_000
"""Of the list; what does not fit is left out, the smallest clusters first, and that is said."""

MOST_IDS = 24
_ID = 80
_BEGINNING = 90
_BEGINNING_BYTES = 400

SCRIPT = """
"use strict";
(function () {
  var rows = Array.prototype.slice.call(document.querySelectorAll("#every tbody tr"));
  var box = document.getElementById("find"), told = document.getElementById("told");
  var back = document.getElementById("back"), on = document.getElementById("on");
  var size = 50, page = 0, found = rows;
  function counted(number) { return number.toLocaleString("en"); }
  function show() {
    rows.forEach(function (row) { row.hidden = true; });
    found.slice(page * size, (page + 1) * size).forEach(function (row) { row.hidden = false; });
    var last = Math.min(found.length, (page + 1) * size);
    told.textContent = found.length
      ? counted(page * size + 1) + " to " + counted(last) + " of " + counted(found.length)
      : "none has this";
    back.disabled = page === 0;
    on.disabled = last === found.length;
  }
  function turn(by) { page += by; show(); }
  box.addEventListener("input", function () {
    var wanted = box.value.toLowerCase();
    found = rows.filter(function (row) {
      return row.textContent.toLowerCase().indexOf(wanted) >= 0;
    });
    page = 0;
    show();
  });
  back.addEventListener("click", function () { turn(-1); });
  on.addEventListener("click", function () { turn(1); });
  document.getElementById("finder").hidden = false;
  show();
})();
"""
"""Hides rows, and nothing else: without it, all of them are there."""

_FINDER = (
    '<div class="finder" id="finder" hidden><input type="search" id="find" '
    'aria-label="find a cluster" placeholder="an id, or words of a text"> '
    '<span class="soft" id="told"></span> '
    '<button type="button" id="back">back</button> <button type="button" id="on">next</button>'
    "</div>"
)


def all_clusters_section(result: DedupResult) -> str:
    """Return the list, the largest cluster first; nothing if there is none."""
    rows: list[list[str]] = []
    room = MOST_BYTES
    for row in _rows(result):
        room -= sum(map(len, row))
        if room < 0 and rows:
            break
        rows.append(row)
    if not rows:
        return ""
    count = result.counts.clusters
    which = "All of them" if len(rows) == count else f"The largest {len(rows):,} of {count:,}"
    rest = (
        ""
        if len(rows) == count
        else " The others are left out, to keep this page small; annotated output has all."
    )
    intro = (
        f'<p class="soft">{which}, with the first {MOST_IDS} ids of each and the beginning of the '
        f"document that stays.{rest}</p>"
    )
    heads = ["documents", "lowest", "stays", "dropped", "text"]
    listed = table(heads, rows, {0, 1}, "every", id="every")
    return f'{intro}\n{_FINDER}\n<div class="card">{listed}</div>\n<script>{SCRIPT}</script>'


def _rows(result: DedupResult) -> Iterator[list[str]]:
    """Yield a row of cells for each cluster, made when asked for."""
    order = np.argsort(result.clusters, kind="stable")
    begins = np.flatnonzero(np.diff(result.clusters[order], prepend=-1))
    sizes = np.diff(begins, append=len(order))
    texts, old = result.documents.texts, result.documents.old
    for place in np.argsort(-sizes, kind="stable").tolist():
        if sizes[place] < 2:
            return
        rows = order[begins[place] : begins[place] + sizes[place]]
        stay, gone = rows[result.keep[rows]], rows[~result.keep[rows]]
        similarity = result.similarity[gone]
        known = similarity[~np.isnan(similarity)]
        first = int(stay[0] if len(stay) else rows[0])
        begin = one_line(texts.beginning(first + old, _BEGINNING_BYTES))
        yield [
            f"{int(sizes[place]):,}",
            _lowest(float(known.min()) if len(known) else math.nan),
            _ids(result, stay.tolist()) or '<span class="soft">an old one</span>',
            _ids(result, gone.tolist()),
            f'<span class="begin" dir="auto">{shown(clipped(begin, _BEGINNING))}</span>',
        ]


def _lowest(value: float) -> str:
    return "-" if math.isnan(value) else similarity_text(value)


def _ids(result: DedupResult, rows: list[int]) -> str:
    names = (clipped(one_line(str(result.id(row))), _ID) for row in rows[:MOST_IDS])
    listed = " ".join(f'<bdi class="id">{shown(name)}</bdi>' for name in names)
    more = len(rows) - MOST_IDS
    return listed if more <= 0 else f'{listed} <span class="soft">and {more:,} more</span>'
