"""Weights below 0: what compares sets, or draws from them, cannot count them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lookalike import _native
from lookalike.errors import DocumentError

__all__ = ["none_below_zero", "refuse_below_zero"]


def none_below_zero(sources: Iterable[_native.Source]) -> Iterator[_native.Source]:
    """Yield batches of documents, the first of which is number 0, for who compares sets."""
    position = 0
    for source in sources:
        refuse_below_zero(source, position)
        yield source
        position += len(source)


def refuse_below_zero(source: _native.Source, first_position: int = 0) -> None:
    """Raise if a document has a feature that weighs less than 0, of which a set has no sort."""
    found = source.first_below_zero
    if found >= 0:
        raise DocumentError(
            f"document {first_position + found} has a feature that weighs less than 0, and is "
            "compared as a set, which has a feature or not; leave it out, or take la.SimHash, "
            "la.TopSig or la.cosine, for which it counts the other way"
        )
