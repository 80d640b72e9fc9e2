"""The pages of cleaning; `cleaning.html` has the markup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lookalike.cleaning import contamination_result
from lookalike.cleaning.contamination_result import Contamination
from lookalike.cleaning.result import CleanResult, about
from lookalike.corpora import Corpus
from lookalike.corpora.columns import Columns
from lookalike.dedup.report.remade import argument_text, reading_arguments
from lookalike.report.frame import listed_card, made_line, page, settings_cards, write_page
from lookalike.report.markup import clipped, one_line, pieces, rendered
from lookalike.shown import counted

_TEMPLATE = "cleaning/report/cleaning.html"
MOST_SHOWN, MOST_UNITS = 200, 100
"""Ranges or pairs on a page, and units."""
_ID, _TEXT, _AROUND = 80, 800, 120


def write_report(result: CleanResult, path: Path, command: Sequence[str] | None = None) -> None:
    """Write what was removed: the longest ranges, or the most frequent units."""
    parts, counts = pieces(_TEMPLATE), result.counts
    lead = (
        f"{counted(counts.words, 'word')} of {counted(counts.changed, 'document')} removed, "
        f"because they occur again."
    )
    units = [
        (f"{one.copies:,}", f"{one.documents:,}", clipped(one_line(one.text), _TEXT))
        for one in result.units(MOST_UNITS)
    ]
    _write(
        result,
        path,
        command,
        "Cleaned:",
        lead,
        [
            ("summary", "Summary", parts.summary(about(result))),
            ("units", "Most frequent", parts.units(units)),
            ("ranges", "Removed text", _ranges(result)),
        ],
        "lookalike clean",
        partial(_call_text, "clean", [], result.settings.to_dict()),
    )


def _ranges(result: CleanResult) -> str:
    """Return the ranges with most words, each with some text around."""
    words = result.removals.words
    order = sorted(range(len(result)), key=lambda at: (-int(words[at]), at))[:MOST_SHOWN]
    cards = []
    for at in order:
        row: dict[str, Any] = result_row(result, at)
        text = result.original(int(result.removals.documents[at]))
        begin, end = int(row["begin"]), int(row["end"])
        cards.append(
            {
                **row,
                "id": clipped(one_line(str(row["id"])), _ID),
                "copy_of": clipped(one_line(str(row["copy_of"])), _ID),
                "before": text[max(0, begin - _AROUND) : begin],
                "text": clipped(text[begin:end], _TEXT),
                "after": text[end : end + _AROUND],
            }
        )
    return pieces(_TEMPLATE).ranges(cards, len(result) - len(order)) if cards else ""


def result_row(result: CleanResult, at: int) -> dict[str, Any]:
    """Return a row of the table."""
    columns = result._columns(at, at + 1).items()
    return {name: getattr(column, "values", column)[0] for name, column in columns}


def write_contamination(
    result: Contamination, path: Path, command: Sequence[str] | None = None
) -> None:
    """Write which documents contain which items, side by side."""
    parts = pieces(_TEMPLATE)
    lead = (
        f"{counted(len(result.contaminated), 'document')} of {result.document_count:,} contain "
        f"{counted(len(result.contaminated_items), 'item')} of benchmarks."
    )
    cards = [
        {
            **vars(found),
            "id": clipped(one_line(one.id), _ID),
            "item": clipped(one_line(found.item), _ID),
            "passage": clipped(found.passage, _TEXT),
            "text": clipped(result.item_text(found.number), _TEXT),
        }
        for one, found in result._hits[:MOST_SHOWN]
    ]
    rows = [
        (
            clipped(one.benchmark, _ID),
            f"{one.items:,}",
            f"{one.contaminated:,}",
            f"{one.documents:,}",
        )
        for one in result.by_benchmark()
    ]
    frequent = [
        (name, f"{count:,}") for name, count in contamination_result.most_frequent(result, 20)
    ]
    _write(
        result,
        path,
        command,
        "Benchmarks in",
        lead,
        [
            ("summary", "Summary", parts.summary(contamination_result.about(result))),
            ("benchmarks", "Benchmarks", parts.benchmarks(rows)),
            ("items", "Items in most documents", listed_card(frequent)),
            ("hits", "Side by side", parts.hits(cards, len(result) - len(cards)) if cards else ""),
        ],
        "lookalike decontaminate",
        partial(_call_text, "decontaminate", ["benchmarks"], result.settings.to_dict()),
    )


def _write(
    result: CleanResult | Contamination,
    path: Path,
    command: Sequence[str] | None,
    heading: str,
    lead: str,
    sections: list[tuple[str, str, str]],
    brand: str,
    call: Callable[[Corpus, Columns], str],
) -> None:
    parts, name = pieces(_TEMPLATE), result.source.name
    left_out, examples = result.read_counts()
    rest = f"And {left_out - len(examples):,} more." if left_out > len(examples) else ""
    settings = [
        (key, clipped(f"{value}", 200), False)
        for key, value in result.settings.to_dict().items()
        if value is not None
    ]
    settings.append(("text column", result.columns.text, True))
    sections += [
        ("left-out", "Left out", listed_card([(one, "") for one in examples], rest)),
        (
            "settings",
            "Settings",
            settings_cards(settings, command, partial(call, result.source, result.columns)),
        ),
    ]
    above = [parts.heading(heading, name), made_line(result.made), parts.lead(lead)]
    style = rendered("cleaning/report/style.css")
    write_page(page(f"{heading} {name}", brand, above, sections, style=style), path)


def _call_text(
    function: str, more: list[str], settings: dict[str, Any], source: Corpus, columns: Columns
) -> str:
    """Return the call in Python that makes the page."""
    given = reading_arguments(source, columns)
    given[1:1] = more
    given += [
        f"{name}={argument_text(name, value)}"
        for name, value in settings.items()
        if value is not None
    ]
    return f"la.{function}({', '.join(given)}).report('report.html')"
