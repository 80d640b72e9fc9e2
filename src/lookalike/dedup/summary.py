"""A result in a few lines for the terminal, with the same words for every kind and engine."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lookalike.features.choice import unit_text
from lookalike.shown import counted, escape_terminal

if TYPE_CHECKING:
    from lookalike.corpora.columns import Columns
    from lookalike.dedup.result import DedupCounts
    from lookalike.dedup.settings import DedupSettings

Line = tuple[str, str, str]
"""A name, a value and a note."""

_LONGEST_COLUMN = 60

_WHY = {
    "too short": "left out: fewer words than --min-words",
    "repetitive": "left out: more repeated than --max-repetition",
    "few links": "left out: fewer links than --min-links",
    "too small": "left out: fewer bytes than --min-bytes",
    "other language": "left out: not in a language of --language",
    "unknown encoding": "left out: say which with --encoding",
}
"""Notes on documents that were left out, by reason."""


@dataclass(frozen=True, kw_only=True)
class Wording:
    """The words for one kind of items: names and notes of lines."""

    items: str = "documents"
    old: str = "a document"
    """An item of an old corpus."""
    about: str = ""
    """Beside the number of items."""
    equal: str = "the same text, byte for byte"
    near: str
    """When two items are near-duplicates."""
    estimated: str = ""
    """The same, where signatures alone decided."""
    whose: str = "of a dropped item and the kept one"
    """What the lowest similarity is between; empty where it is not told."""
    pairs: str = ""
    """Beside the number of pairs; empty where that is not a fact of the corpus."""
    unlikely: str = ""
    """Why some proposed pairs were not compared."""
    saved: str = ""
    """After "1 MB of 3 MB"."""
    no_features: str = "kept: too short to be compared"
    left_out: str = ""
    """Why items were left out; empty where `more` tells it by reason."""
    other_files: str = ""
    more: Sequence[Line] = ()
    """Further lines."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Summarized(ABC):
    """What the results of all kinds and engines have."""

    counts: DedupCounts
    seconds: dict[str, float]
    """Of each step."""
    warnings: list[str]
    reused: tuple[str, ...] = ()
    """Steps that an earlier run in the same `work` had done or begun."""
    overlapped: tuple[str, ...] = ()
    """Steps that were partly done while reading: `seconds` has only the rest."""

    @abstractmethod
    def wording(self) -> Wording:
        """Return the words for items of this kind in summaries and reports."""

    def summary(self) -> str:
        """Return counts and times, a line each."""
        text = [
            f"  {name:<18} {value:>12}  {note}".rstrip() for name, value, note in count_lines(self)
        ]
        items = self.wording().items
        text += ["", f"  {'step':<18} {'seconds':>12}  {f'{items}/s':>12}"]
        for step, seconds, rate, note in timings(self):
            text.append(f"  {step:<18} {seconds:>12.2f}  {rate:>12}  {note}".rstrip())
        text += [f"\nwarning: {warning}" for warning in self.warnings]
        return "\n".join(text)


def count_lines(result: Summarized) -> list[Line]:
    """Return all counts that matter for this result."""
    counts, words = result.counts, result.wording()
    share = f"{share_text(counts.kept, counts.documents)} of the {words.items}"
    largest = f"the largest has {counts.largest_group:,}"
    lines = [
        (words.items, f"{counts.documents:,}", words.about),
        ("exact duplicates", f"{counts.exact_duplicates:,}", words.equal),
        ("near-duplicates", f"{counts.near_duplicates:,}", words.near),
        *_about_dropped(counts, words),
        ("kept", f"{counts.kept:,}", share if counts.documents else ""),
        ("groups", f"{counts.groups:,}", largest if counts.groups else ""),
    ]
    if words.pairs:
        lines.append(("pairs", f"{counts.verified_pairs:,}", words.pairs))
    if counts.proposed_pairs > counts.compared_pairs:
        proposed = f"of {counts.proposed_pairs:,} proposed ones; {words.unlikely}"
        lines.append(("compared pairs", f"{counts.compared_pairs:,}", proposed))
    rare = [
        ("partly compared", counts.partly_compared, "with some of too many similar ones"),
        ("common features", counts.common_features, "left out: in more documents than --common"),
        ("only common", counts.only_common, f"{words.items} that have no other features"),
        ("in the old corpus", counts.in_old, f"dropped because of {words.old} there"),
        ("without features", counts.without_features, words.no_features),
        ("bad rows", counts.bad_rows, "left out"),
        ("binary files", counts.binary_files, "left out: not text"),
        ("left out", counts.left_out if words.left_out else 0, words.left_out),
        ("other files", counts.other_files, words.other_files),
    ]
    lines += [(name, f"{count:,}", note) for name, count, note in rare if count]
    lines += words.more
    if counts.estimated_pairs:
        accepted = "accepted by their signatures alone"
        lines.append(("estimated pairs", f"{counts.estimated_pairs:,}", accepted))
    if counts.bytes_saved is not None:
        saved = f"{size_text(counts.bytes_saved)} of {size_text(counts.bytes)}{words.saved}"
        lines.append(("saved", share_text(counts.bytes_saved, counts.bytes), saved))
    return lines


def _about_dropped(counts: DedupCounts, words: Wording) -> list[Line]:
    """Return lines about estimates, lowest similarities and items below the threshold."""
    lines = []
    if counts.estimated_duplicates:
        note = f"by signatures alone: {words.estimated}"
        lines.append(("estimated", f"{counts.estimated_duplicates:,}", note))
    for name, value, how in [
        ("lowest similarity", counts.lowest_similarity, "exact, "),
        ("lowest estimate", counts.lowest_estimate, "by signatures, "),
    ]:
        if value is not None and words.whose:
            lines.append((name, similarity_text(value), f"{how}{words.whose}"))
    if counts.below_threshold:
        note = "dropped, but not similar to the kept one: a chain connects them (components)"
        lines.append(("below threshold", f"{counts.below_threshold:,}", note))
    return lines


def text_wording(
    settings: DedupSettings, about: str = "", more: Sequence[Line] = (), *, saved: str = " of text"
) -> Wording:
    """Return the words for documents that these settings compare."""
    whose = "of a dropped document and the kept one"
    if settings.keep == "none":
        whose = "of a dropped document and a similar one, which is also dropped"
    complete = f"complete: every pair at or above {settings.threshold:g} was found"
    return Wording(
        about=about,
        near=_criterion(settings, "exact"),
        estimated=_criterion(settings, "estimated"),
        whose=whose,
        pairs=complete if settings.exact else "",
        unlikely="the others cannot reach the threshold"
        if settings.exact
        else "the signatures of the others differ too much",
        saved=saved,
        more=more,
    )


def _criterion(settings: DedupSettings, how: str) -> str:
    """Return in words why documents are dropped, by "exact" or "estimated" similarity."""
    chain = "connected by pairs of " if settings.grouping == "components" else ""
    units = unit_text(settings.feature_kind())
    return f"{chain}{how} {settings.measure} of {units} at least {settings.threshold:g}"


def columns_text(columns: Columns) -> str:
    """Return which columns the texts and ids came from."""
    text, ids = (escape_terminal(one, _LONGEST_COLUMN) for one in (columns.text, columns.id))
    return f"text from the column {text!r}" + ("" if columns.id is None else f", ids from {ids!r}")


def features_lines(
    settings: DedupSettings, reason: str | None, median: float = math.inf
) -> list[Line]:
    """Return which features were chosen and why; nothing if they are the usual ones.

    `median` is that of the lengths of documents. One wrong letter changes three of as many runs of
    characters as a document has letters, so it can make short documents too different.
    """
    if reason is None or settings.features == "words":
        return []
    lines = [("features", str(settings.features), reason)]
    if median > 0 and (median - 3) / (median + 3) < settings.threshold:
        lines.append(
            (
                "median length",
                f"{median:.0f}",
                f"bytes: one wrong letter leaves a similarity below {settings.threshold:g}; a "
                "lower threshold finds it, and more wrong pairs",
            )
        )
    return lines


def left_out_lines(reasons: Mapping[str, int]) -> list[Line]:
    """Return how many documents were left out, by reason."""
    return [
        (why, f"{count:,}", _WHY.get(why, "left out")) for why, count in reasons.items() if count
    ]


def similarity_text(value: float) -> str:
    """Return a similarity; a value below a round number is not shown as that number."""
    return "1" if value == 1 else f"{math.floor(value * 10_000 + 1e-9) / 10_000:.4f}"


def share_text(part: int, whole: int) -> str:
    """Return a part of a whole in percent."""
    return f"{part / whole:.1%}" if whole else "-"


def timings(result: Summarized) -> list[tuple[str, float, str, str]]:
    """Return each step and their sum: name, seconds, items per second, and a note.

    A step has no speed if a part of its work was done elsewhere.
    """
    rows = []
    for step, seconds in result.seconds.items():
        note = "partly done while reading" if step in result.overlapped else ""
        if step in result.reused:
            note = "from an earlier run"
        rows.append((step, seconds, _rate(result, 0.0 if note else seconds), note))
    whole = sum(result.seconds.values())
    return [*rows, ("all", whole, _rate(result, 0.0 if result.reused else whole), "")]


def _rate(result: Summarized, seconds: float) -> str:
    return f"{result.counts.documents / seconds:,.0f}" if seconds > 0 else "-"


def size_text(count: int) -> str:
    """Return a number of bytes in the unit that suits it."""
    if count < 1000:
        return counted(count, "byte")
    value = count / 1000
    for unit in ("KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
