"""What the page has beside what all pages look like."""

__all__ = ["STYLE"]

STYLE = """
svg .topic { opacity: .35; stroke: var(--accepted); stroke-width: 1; }
svg a:hover .topic, svg a:focus .topic { opacity: .75; }
svg a:focus { outline: none; }
svg a:focus-visible .topic { stroke: var(--text); stroke-width: 3; }
svg .on-map { fill: var(--text); font-size: 11px; font-weight: 600; pointer-events: none;
  paint-order: stroke; stroke: var(--card); stroke-width: 2.5px; stroke-linejoin: round; }
.sizes { list-style: none; margin: 0; padding: 0; }
.sizes li { display: grid; grid-template-columns: 2.6em minmax(0, 2fr) 4.5em minmax(0, 1fr);
  gap: 0 12px; align-items: center; padding: 2px 0; }
.sizes .rank, .sizes .count { text-align: right; font-variant-numeric: tabular-nums; }
.sizes .rank { color: var(--soft); }
.sizes .share, .words .share { display: block; height: 9px; border-radius: 3px;
  background: var(--accepted); min-width: 1px; }
.sizes a { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.topic-card { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 8px 26px;
  margin-top: 8px; }
.words { list-style: none; margin: 6px 0 0; padding: 0; }
.words li { display: grid; grid-template-columns: minmax(0, 11em) 4em 1fr; gap: 0 10px;
  align-items: center; padding: 1px 0; }
.words .weight { color: var(--soft); font-size: 13px; text-align: right;
  font-variant-numeric: tabular-nums; }
.words bdi { overflow-wrap: anywhere; font-weight: 600; }
.central { grid-column: 1 / -1; table-layout: fixed; margin-top: 4px; }
.central th:nth-child(1) { width: 84px; } .central th:nth-child(2) { width: 22%; }
.central td:nth-child(3), .central td:nth-child(2), .central th:nth-child(2),
.central th:nth-child(3) { padding-left: 8px; }
.central .begin { display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical;
  overflow: hidden; unicode-bidi: isolate; color: var(--soft); font-size: 13px; }
.card:target { border-color: var(--accepted); box-shadow: 0 0 0 2px var(--accepted); }
@media (max-width: 640px) {
  .topic-card { grid-template-columns: minmax(0, 1fr); }
  .sizes li { grid-template-columns: 1.9em minmax(0, 3fr) 3.6em minmax(0, 1fr); gap: 0 8px; }
  .words li { grid-template-columns: minmax(0, 9em) 3.6em 1fr; }
  .central th:nth-child(1) { width: 66px; } .central th:nth-child(2) { width: 30%; }
  svg .on-map { font-size: 14px; }
}
@media print { .topic-card { break-inside: avoid; } }
"""
