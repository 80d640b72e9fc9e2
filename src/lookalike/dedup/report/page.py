"""The report of documents, and what it has in common with those of other kinds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike.dedup.report import figures, groups
from lookalike.dedup.report.groups import TEMPLATE
from lookalike.dedup.report.remade import call_text
from lookalike.dedup.summary import count_lines, share_text, size_text, timings
from lookalike.features.choice import unit_text
from lookalike.report.frame import (
    Section,
    figure,
    listed_card,
    made_line,
    page,
    settings_cards,
    write_page,
)
from lookalike.report.markup import Markup, pieces
from lookalike.shown import counted

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult, TextResult

MOST_WARNINGS = 50
_COLORS = {
    "kept": "kept",
    "exact duplicates": "exact",
    "near-duplicates": "near",
    "estimated": "estimated",
}
"""Classes of the counts in the bar of shares."""
_MOST_FILES = 1000
"""Maximum number of left out files that the page names."""
LIKELY = 0.9
"""Below this chance of a pair at the threshold, the page says that many are missed."""


def write_report(result: TextResult, path: Path, command: Sequence[str] | None = None) -> None:
    """Write the report of documents, of bounded size: the same page for the same result."""
    counts = result.counts
    are = "is" if counts.kept == 1 else "are"
    found = (
        f"Of {counted(counts.documents, 'document')}, {counts.kept:,} {are} kept "
        f"({share_text(counts.kept, counts.documents)}). "
        f"That saves {size_text(counts.bytes_saved or 0)} of {size_text(counts.bytes)} of text."
        f"{_guarantee(result)}"
    )
    cards = [summary_tiles(result), figures.bands_card(result)]
    pictures = [_sizes(result), _similarities(result), _s_curve(result), _timing(result)]
    sections = [
        ("summary", "Summary", Markup("\n").join(cards)),
        ("found", "What was found", pieces(TEMPLATE).two(pictures)),
        ("settings", "Settings", _settings(result, command)),
        ("left-out", "Left out", _left_out(result)),
        ("groups", "Largest groups", groups.group_section(result)),
        ("old", "Already in the old corpus", groups.old_section(result)),
        *groups.pair_sections(result),
        ("all", "All groups", groups.all_groups_section(result)),
    ]
    about = [lead(result, found), warnings_card(result, unverified=not result.settings.verify)]
    write_duplicates(result, path, result.source.name, about, sections, scripts=[groups.SCRIPT])


def write_duplicates(
    result: DedupResult,
    path: Path,
    name: str,
    about: Sequence[str],
    sections: Sequence[Section],
    **options: Any,
) -> None:
    """Write a page about the duplicates in a source with this name."""
    above = [pieces(TEMPLATE).heading(name), made_line(result.made), *about]
    write_page(page(f"Duplicates in {name}", "lookalike dedup", above, sections, **options), path)


def lead(result: DedupResult, found: str, noun: str = "document") -> str:
    """Return the first sentence of a report; `found` says it if there are duplicates."""
    counts, items = result.counts, result.wording().items
    if not counts.documents:
        found = f"There are no {items} in it."
    elif counts.kept == counts.documents:
        found = f"All {counts.documents:,} {items} are kept: no duplicates were found."
        if counts.documents == 1:
            found = f"The only {noun} is kept."
    return pieces(TEMPLATE).lead(found)


def warnings_card(result: DedupResult, *, unverified: bool = False) -> str:
    """Return the warnings, and whether similarities are estimates; nothing if there are none."""
    texts, most = result.warnings, MOST_WARNINGS
    return pieces(TEMPLATE).warnings(
        texts[:most], len(texts) - most, unverified, result.counts.estimated_pairs
    )


def _guarantee(result: TextResult) -> str:
    """Return what holds for all dropped documents."""
    counts, settings = result.counts, result.settings
    if settings.keep == "none":
        return (
            " Every document with a near-duplicate was dropped, and so was that near-duplicate: no "
            "document of a group is kept."
        )
    if settings.grouping == "components":
        return (
            " One document is kept of all that pairs connect. A document at the end of a chain may "
            "not be similar to the kept one."
        )
    if counts.lowest_similarity is None:
        return ""
    every, first = "Every", ""
    if counts.estimated_duplicates:
        every = "Every other"
        were = "was" if counts.estimated_duplicates == 1 else "were"
        first = f" {counts.estimated_duplicates:,} {were} dropped by signatures alone."
    other = "a kept or old one" if result.documents.old else "a kept one"
    return (
        f"{first} {every} dropped document was compared with {other}, and is at least "
        f"{settings.threshold:g} similar to it."
    )


def _left_out(result: TextResult) -> str:
    examples = result.documents.files_left_out[:_MOST_FILES] or result.documents.examples
    counts = result.counts
    more = counts.left_out + counts.bad_rows + counts.binary_files - len(examples)
    rest = f"And {more:,} more; --json names all files." if more > 0 else ""
    return listed_card([(example, "") for example in examples], rest)


def summary_tiles(result: DedupResult) -> str:
    """Return the counts, with a bar of their shares above."""
    counts = result.counts
    tiles = [
        (name, value, note, _COLORS.get(name, "")) for name, value, note in count_lines(result)
    ]
    bars = [
        (counts.kept, "kept"),
        (counts.near_duplicates, "near"),
        (counts.estimated_duplicates, "estimated"),
        (counts.exact_duplicates, "exact"),
    ]
    shares = [(kind, count, 100 * count / counts.documents) for count, kind in bars if count > 0]
    return pieces(TEMPLATE).summary(shares, tiles)


def _sizes(result: TextResult) -> str:
    sizes, title = groups.group_sizes(result), "Group sizes"
    if not len(sizes):
        return figure(title, "", "There are no groups.")
    caption = f"{counted(len(sizes), 'group')} with {counted(int(sizes.sum()), 'document')}."
    return figure(title, figures.group_chart(sizes), caption)


def _similarities(result: TextResult) -> str:
    """Return the histogram, without pairs of equal texts: they would hide all others."""
    counts, settings = result.counts, result.settings
    different, rejected = result.different_pairs.similarity, result.rejected.similarity
    equal = result.equal_pairs
    all_rejected = counts.compared_pairs - len(different)
    title = "Similarities" if settings.verify else "Similarities (estimated)"
    without = f" Without {counted(equal, 'pair')} of equal texts." if equal else ""
    if not len(different) and not len(rejected):
        return figure(title, "", f"No pairs of different texts were compared.{without}")
    bins = figures.similarity_bins(different, rejected, settings.threshold)
    accepted = counted(len(different), "accepted pair")
    which = ""
    if len(rejected):
        which = counted(len(rejected), "rejected pair")
        if len(rejected) < all_rejected:
            most = "" if result.documents.old else "the "  # pairs with old documents are not shown
            which = f"{most}{len(rejected):,} most similar of {all_rejected:,} rejected pairs"
    chart = figures.similarity_chart(bins, _measure(result))
    content = pieces(TEMPLATE).similarities(accepted, which, chart)
    return figure(title, content, f"Pairs of different texts.{without}")


def _s_curve(result: TextResult) -> str:
    settings, title = result.settings, "Probability of finding a pair"
    if result.complete:
        return figure(title, "", "Every pair at or above the threshold was found (exact).")
    chance, words = figures.proposal_chance(settings, len(result.signed.positions))
    certain = float(chance(np.array([settings.threshold]))[0])
    # A chance that is not quite certain is never shown as 100%.
    at_threshold = "more than 99.99%" if 0.9999 < certain < 1 else f"{100 * certain:.4g}%"
    half = figures.similarity_of_chance(chance, 0.5)
    then = "compared exactly" if settings.verify else "accepted by the distance of their signatures"
    caption = (
        f"{words[0].upper()}{words[1:]}: at {settings.threshold:g} with a probability of "
        f"{at_threshold}, at {half:.2f} with 50%. Proposed pairs are then {then}."
    )
    more = "more permutations" if settings.by_bands else "a larger radius"
    chart = figures.chance_chart(chance, settings.threshold, _measure(result))
    advice = more if certain < LIKELY else ""
    return figure(title, chart, pieces(TEMPLATE).chance(caption, advice))


def _measure(result: TextResult) -> str:
    settings = result.settings
    name = "Jaccard similarity" if settings.measure == "jaccard" else settings.measure
    return f"{name} of {unit_text(settings.feature_kind())}"


def _timing(result: TextResult) -> str:
    parts, whole = pieces(TEMPLATE), sum(result.seconds.values())
    rows = []
    for step, seconds, rate, note in timings(result):
        bar = note
        if not note and step != "all":
            bar = parts.share(100 * seconds / whole if whole > 0 else 0)
        cells = [step, f"{seconds:.2f}", rate]
        rows.append([*(parts.bold(cell) if step == "all" else cell for cell in cells), bar])
    found = (
        f"{counted(result.counts.proposed_pairs, 'pair')} of different texts proposed, "
        f"{result.counts.compared_pairs:,} compared, {len(result.different_pairs):,} accepted. "
        f"Beside these: {counted(result.equal_pairs, 'pair')} of equal texts."
    )
    if result.complete:
        found = (
            f"All {counted(result.counts.verified_pairs, 'pair')} of documents at or above the "
            f"threshold: {len(result.different_pairs):,} of different texts, their copies counted "
            f"once, and {counted(result.equal_pairs, 'pair')} of equal texts among them."
        )
    return parts.steps(rows, found)


def _settings(result: TextResult, command: Sequence[str] | None) -> str:
    settings, columns = result.settings, result.columns
    unused = settings.idle | ({"bits", "radius"} if settings.by_bands else {"permutations"})
    shown = [
        (name, _value(value), False)
        for name, value in settings.to_dict().items()
        if name not in unused and value is not None
    ]
    if result.features_reason is not None:
        shown.append(("features chosen because", result.features_reason, False))
    shown.append(("text column", f"{columns.text}", True))
    ids = "row numbers, from 0" if columns.id is None else columns.id
    shown.append(("ids", ids, columns.id is not None))
    if result.documents.old:
        shown.append(("old documents", f"{result.documents.old:,}", False))
    return settings_cards(shown, command, partial(call_text, result))


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
