"""How the page looks: on a light or a dark screen, and on paper."""

__all__ = ["STYLE"]

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --text: #1b2330; --soft: #5b6678; --line: #dfe3ea;
  --accepted: #2f6fde; --rejected: #e08a2c; --area: #2f6fde22; --kept: #2a9d6f;
  --exact: #8a94a6; --old: #9b6bd3;
  --del: #ffdcd8; --del-text: #7d1610; --ins: #cdf2da; --ins-text: #0b4f2c;
  --warn: #fff3d6; --warn-line: #d99a15; --warn-text: #5c4100; --code: #eef1f6;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #11151c; --card: #1a202a; --text: #e3e8f0; --soft: #98a3b5; --line: #2d3644;
    --accepted: #6ea3ff; --rejected: #f0a54a; --area: #6ea3ff2b; --kept: #4cc38a;
    --exact: #7d8799; --old: #b794f0;
    --del: #5a2022; --del-text: #ffd9d5; --ins: #174a31; --ins-text: #c9f5dc;
    --warn: #3a2d0c; --warn-line: #e0a932; --warn-text: #ffe6ac; --code: #232b37;
  }
}
* { box-sizing: border-box; }
html { background: var(--page); -webkit-text-size-adjust: 100%; }
body {
  max-width: 1180px; margin: 0 auto; padding: 28px 24px 60px; color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif;
}
h1 { font-size: 27px; line-height: 1.25; margin: 2px 0 6px; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 40px 0 6px; }
h3 { font-size: 15px; margin: 0 0 4px; }
p { margin: 0 0 10px; max-width: 80ch; }
.brand { color: var(--soft); font-size: 13px; letter-spacing: .04em; margin: 0; }
.lead { font-size: 17px; }
.soft, .note, figcaption { color: var(--soft); font-size: 13.5px; }
nav { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 14px 0 0; font-size: 14px; }
a { color: var(--accepted); text-decoration: none; }
a:hover { text-decoration: underline; }
.warning {
  background: var(--warn); color: var(--warn-text); border: 2px solid var(--warn-line);
  border-radius: 10px; padding: 12px 16px; margin: 18px 0 0; overflow-wrap: anywhere;
}
.warning p { max-width: none; margin: 0; }
.warning p + p { margin-top: 6px; }
.card {
  background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 16px 18px; margin: 14px 0 0; overflow: hidden;
}
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(148px, 1fr)); gap: 12px;
  margin: 18px 0 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px 14px; }
.tile b { display: block; font-size: 23px; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tile span { display: block; color: var(--soft); font-size: 13px; line-height: 1.35; }
.tile .name { color: var(--text); font-weight: 600; }
.tile i { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 6px; }
.shares { display: flex; height: 14px; border-radius: 7px; overflow: hidden; margin: 14px 0 0;
  background: var(--line); }
.shares span { display: block; min-width: 2px; }
.of-kept { background: var(--kept); } .of-exact { background: var(--exact); }
.of-near { background: var(--accepted); } .of-estimated { background: var(--rejected); }
.of-accepted { background: var(--accepted); } .of-rejected { background: var(--rejected); }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr));
  gap: 14px; margin: 14px 0 0; align-items: stretch; }
.two .card { margin: 0; }
figure { margin: 0; }
figcaption { margin-top: 6px; }
.key { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin: 0 5px 0 0; }
.key + span { margin-right: 14px; }
svg { display: block; width: 100%; height: auto; margin-top: 6px; }
svg text { fill: var(--soft); font-size: 12px; text-anchor: middle; }
svg .end { text-anchor: end; } svg .begin { text-anchor: start; }
svg .value, svg .at { fill: var(--text); }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .base { stroke: var(--soft); stroke-width: 1; }
svg .threshold { stroke: var(--text); stroke-width: 1.3; stroke-dasharray: 4 3; }
svg .accepted { fill: var(--accepted); } svg .rejected { fill: var(--rejected); }
svg .area { fill: var(--area); }
svg .curve { fill: none; stroke: var(--accepted); stroke-width: 2.5; stroke-linejoin: round; }
svg .dot { fill: var(--text); stroke: var(--card); stroke-width: 1.5; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 13px; }
th, td { padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
th:last-child, td:last-child { padding-right: 0; }
tbody tr:last-child td { border-bottom: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.timing td:last-child { width: 34%; vertical-align: middle; }
.timing th, .timing td:first-child { overflow-wrap: normal; white-space: nowrap; }
.bands { margin: 8px 0 0; }
.bands div { display: grid; grid-template-columns: 8.5em 5em 1fr; gap: 0 12px; align-items: center;
  padding: 2px 0; }
.bands dt { color: var(--soft); font-size: 14px; }
.bands dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
.typed { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere; max-width: none; margin: 4px 0 0; }
.finder { display: flex; flex-wrap: wrap; gap: 8px 10px; align-items: center; margin: 12px 0 0; }
.finder[hidden] { display: none; }
.finder input, .finder button { font: inherit; font-size: 14px; color: var(--text);
  background: var(--card); border: 1px solid var(--line); border-radius: 7px; padding: 5px 10px; }
.finder input { flex: 1 1 220px; min-width: 0; }
.finder button:disabled { color: var(--soft); opacity: .6; }
.every { table-layout: fixed; }
.every th:nth-child(1) { width: 92px; } .every th:nth-child(2) { width: 74px; }
.every th:nth-child(3) { width: 20%; } .every th:nth-child(5) { width: 30%; }
.every .id { display: inline-block; max-width: 100%; }
.every .begin { color: var(--soft); font-size: 13px; unicode-bidi: isolate; }
.every td:nth-child(3), .every th:nth-child(3) { padding-left: 8px; }
.timing .share, .bands .share { display: block; height: 9px; border-radius: 3px;
  background: var(--accepted); min-width: 1px; }
.settings { display: grid; grid-template-columns: repeat(auto-fill, minmax(160px, 1fr));
  gap: 10px 18px; }
.settings dt { color: var(--soft); font-size: 13px; }
.settings dd { margin: 0; overflow-wrap: anywhere; }
.members { table-layout: fixed; margin-top: 8px; }
.members th:nth-child(1) { width: 88px; } .members th:nth-child(2) { width: 25%; }
.members th:nth-child(3) { width: 84px; }
.members th:nth-child(2), .members td:nth-child(2) { padding-left: 6px; }
.members th:nth-child(4), .members td:nth-child(4) { padding-left: 8px; }
.members td:nth-child(4) { color: var(--soft); font-size: 13px; line-height: 1.45; }
.members .begin { display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical;
  overflow: hidden; unicode-bidi: isolate; max-height: 2.9em; }
.id { font: 13px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere; }
.badge { display: inline-block; border-radius: 9px; padding: 0 8px; font-size: 12px;
  line-height: 18px; font-weight: 600; background: var(--code); color: var(--text);
  max-width: 100%; overflow-wrap: anywhere; }
.number .badge { padding: 0 6px; }
.badge.stays { background: var(--kept); color: var(--card); }
.badge.low { background: var(--rejected); color: #1b2330; }
.head { display: flex; flex-wrap: wrap; gap: 4px 14px; align-items: baseline; }
.head h3 { margin: 0; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 0 18px; margin-top: 10px;
  border-top: 1px solid var(--line); }
.sides.one { grid-template-columns: 1fr; }
.name-of { padding: 8px 0 6px; min-width: 0; }
.sides.names { border-top: 0; margin-top: 4px; }
.sides.names + .sides, .sides.names + .note + .sides { margin-top: 0; }
.side { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13.5px; line-height: 1.55;
  padding: 10px 0; min-width: 0; overflow: hidden; unicode-bidi: isolate; }
.sides .gap { grid-column: 1 / -1; text-align: center; color: var(--soft); font-size: 12.5px;
  background: var(--code); border-radius: 6px; padding: 1px 8px; margin: 2px 0; }
del, ins { text-decoration: none; border-radius: 3px; padding: 1px; margin: 0 -1px;
  box-decoration-break: clone; -webkit-box-decoration-break: clone; }
del { background: var(--del); color: var(--del-text); }
ins { background: var(--ins); color: var(--ins-text); }
.hidden { font-style: italic; opacity: .8; }
footer { margin-top: 44px; color: var(--soft); font-size: 13px; }
@media (max-width: 640px) {
  body { padding: 18px 14px 40px; }
  .sides { gap: 0 10px; }
  .members th:nth-child(3), .members td:nth-child(3) { display: none; }
  .members th:nth-child(2) { width: 34%; } .members th:nth-child(1) { width: 74px; }
  .members .begin { -webkit-line-clamp: 5; max-height: 7.3em; }
  .timing th, .timing td { padding-right: 8px; font-size: 13px; }
  .timing td:last-child { width: 22%; }
  svg text { font-size: 14px; }
  .bands div { grid-template-columns: 8em 4em 1fr; }
  .settings { grid-template-columns: repeat(auto-fill, minmax(130px, 1fr)); }
}
@media screen and (max-width: 640px) {
  .every, .every tbody { display: block; }
  .every thead { display: none; }
  .every tr:not([hidden]) { display: grid; grid-template-columns: auto 1fr; gap: 2px 14px;
    padding: 8px 0; border-bottom: 1px solid var(--line); }
  .every tbody tr:last-child { border-bottom: 0; }
  .every td { border: 0; padding: 0; }
  .every td.number { text-align: left; }
  .every td:nth-child(1) { font-weight: 600; }
  .every td:nth-child(n + 3) { grid-column: 1 / -1; padding: 0; }
  .every td:nth-child(1)::after { content: " documents"; }
  .every td:nth-child(2)::before { content: "lowest "; }
  .every td:nth-child(3)::before { content: "stays "; }
  .every td:nth-child(4)::before { content: "dropped "; }
  .every td::before { color: var(--soft); font-size: 13px; }
}
@media print {
  :root {
    --page: #fff; --card: #fff; --text: #000; --soft: #444; --line: #bbb; --code: #eee;
    --accepted: #2f6fde; --rejected: #e08a2c; --area: #2f6fde22; --kept: #2a9d6f; --exact: #8a94a6;
    --del: #ffdcd8; --del-text: #5c0f0a; --ins: #cdf2da; --ins-text: #063a20;
    --warn: #fff3d6; --warn-text: #000; --warn-line: #b47a00;
  }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  nav, .finder { display: none; }
  .every tr[hidden] { display: table-row; }
  h2 { break-after: avoid; }
  figure, .tile, tr, .head, .warning { break-inside: avoid; }
  del { text-decoration: line-through; } ins { text-decoration: underline; }
}
"""
