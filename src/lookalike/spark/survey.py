"""Steps 2 and 4, collapse and propose, of a small corpus: its signatures come to one task.

It yields what the shuffles of `collapse` and `bands` would, and what `resolve` takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.decide import rank_by
from lookalike.dedup.pairs import Ints
from lookalike.dedup.propose import LARGEST_GROUP, band_warnings, promising, row_distances
from lookalike.dedup.settings import DedupSettings
from lookalike.indexes.bands import BandedPairs, choose_bands
from lookalike.signatures.arrays import distinct
from lookalike.signatures.minhash import VALUE_BYTES
from lookalike.spark import collapse
from lookalike.spark.bands import NEEDED, pack_pairs
from lookalike.spark.collapse import Collapsed
from lookalike.spark.packed import PACKED, Batches, fixed_binary, map_arrow, rows_of, sql
from lookalike.spark.positions import packed_positions, told_rows
from lookalike.spark.propose import Proposed
from lookalike.spark.resolve import COPIED, EQUAL, GATHERED, PAIRS, SIGNATURE
from lookalike.spark.signing import Chunks, SignedTable
from lookalike.spark.work import SparkWork

_EQUALS, _PROPOSED, _WARNINGS = 100, 200, 300
"""Where the kinds of rows of `collapse` and `bands` begin, and that of warnings."""


class Survey:
    """What is known of a small corpus."""

    def __init__(self, work: SparkWork, gathered: Any, documents: int) -> None:
        facts = (collapse.FACT, collapse.COPY_SET, collapse.FIRST_SET)
        kinds = [*(_EQUALS + kind for kind in facts), _PROPOSED + NEEDED, _WARNINGS]
        told = told_rows(gathered.where(f"kind in ({', '.join(map(str, kinds))})"), documents)
        met = gathered.where(f"kind >= {_EQUALS} and kind < {_PROPOSED}")
        met = met.select((sql.col("kind") - _EQUALS).alias("kind"), "data")
        of_equals = {kind - _EQUALS: parts for kind, parts in told.items() if kind < _PROPOSED}
        self.collapsed = Collapsed.of(work, met, of_equals, documents)
        pairs = gathered.where(f"kind = {PAIRS}").select("position", "value").toDF("left", "right")
        warnings = [one for part in told.get(_WARNINGS, []) for one in json.loads(part)]
        needed = {NEEDED: told.get(_PROPOSED + NEEDED, [])}
        packed = map_arrow(pairs, pack_pairs, PACKED)
        self.proposed = Proposed.of(packed, needed, documents, warnings)
        self.gathered = gathered.where(f"kind < {_EQUALS}")
        """All that `resolve` needs but for the texts."""


def survey(work: SparkWork, settings: DedupSettings, signed: SignedTable) -> Survey:
    """Return what one task makes of a table of signatures."""
    table = signed.table.coalesce(1)
    found = map_arrow(table, survey_table, GATHERED, settings, signed.chunks)
    return Survey(work, work.keep(found), signed.documents)


def survey_table(settings: DedupSettings, chunks: Chunks, batches: Batches) -> Iterator[Any]:
    """Find equal texts and propose pairs with promising signatures."""
    known = list(chunks.of(batches))
    if not known:
        return
    found = partial(rows_of, GATHERED, place=0)
    entries, copies = collapse.merged_entries(known)
    for batch in collapse.told_equals(entries, copies, np.empty(0, collapse.COPIES)):
        yield found(kind=batch.column("kind").to_numpy() + _EQUALS, data=batch.column("data"))
    parts = []
    for chunk in known:
        which = chunk.enough & ~np.isin(chunk.positions, copies["position"])
        signed = chunk.array("signatures", np.uint8)
        parts.append((chunk.positions[which], chunk.values[which], signed[which]))
    position, value, signatures = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(position)
    position, value, signatures = position[order], value[order], signatures[order]
    several = entries[entries["second"] >= 0]
    old = chunks.numbering.value.old
    left, right, warnings = _pairs(settings, position, value, several, signatures, old)
    needed = distinct(np.concatenate([left, right]))
    at = np.searchsorted(position, needed)
    yield found(kind=PAIRS, position=left, value=right)
    signed = fixed_binary(signatures[at])
    yield found(kind=SIGNATURE, position=needed, value=value[at], data=signed)
    mine = several[np.isin(several["first"], needed)]
    firsts = mine["first"]
    yield found(kind=EQUAL, position=firsts, value=firsts, data=fixed_binary(mine))
    yield found(kind=COPIED, position=copies["first"], value=copies["position"])
    told = np.int64(len(left)).tobytes() + packed_positions(needed)
    yield found(kind=_PROPOSED + NEEDED, data=[told])
    yield found(kind=_WARNINGS, data=[json.dumps(warnings).encode()])


def _pairs(
    settings: DedupSettings,
    position: Ints,
    value: Ints,
    several: NDArray[Any],
    signatures: NDArray[np.uint8],
    old: int,
) -> tuple[Ints, Ints, list[str]]:
    """Return distinct pairs of positions, except two of the first `old`, and warnings."""
    best, best_value = position.copy(), value.copy()
    at = np.searchsorted(position, several["first"])
    best[at], best_value[at] = several["best"], several["best_value"]
    rank = rank_by(best_value, best)
    layout = choose_bands(settings.permutations, settings.threshold)
    pairs = BandedPairs(
        signatures,
        VALUE_BYTES,
        layout,
        np.empty((layout.bands, len(position)), np.uint32),
        most=LARGEST_GROUP,
        first_new=int(np.searchsorted(position, old)),
        rank=rank,
        threads=1,
    )
    pairs.fill_keys(lambda share: None)
    keys = [np.empty(0, np.int64)]
    for band in range(layout.bands):
        for left, right in pairs.of_band(band):
            near = promising(row_distances(settings, signatures, left, right, 1), settings)
            keys.append(left[near] * len(position) + right[near])
    left, right = np.divmod(distinct(np.concatenate(keys)), max(1, len(position)))
    warnings = band_warnings(settings, layout, pairs.large_groups, pairs.rows_in_large_groups)
    return position[left], position[right], warnings
