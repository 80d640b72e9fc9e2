"""How many steps looking things up in sorted tables takes."""

from __future__ import annotations

from dataclasses import dataclass

from lookalike import _native

__all__ = ["TableSteps"]


@dataclass(frozen=True, slots=True)
class TableSteps:
    """Steps of a query, for signatures whose bits are fair and independent.

    Equations (9) and (19) of Sood and Loguinov, with a table of where buckets begin in place of
    their binary search. `la.plan` multiplies them by what steps cost on the machine at hand;
    an index that has to choose does it by `usual_cost`.
    """

    buckets: float
    """Buckets looked up."""
    rows: float
    """Signatures in them, each compared."""

    @classmethod
    def of(cls, buckets: float, count: int, header_bits: int) -> TableSteps:
        """Return the steps of so many buckets of tables of `count` signatures."""
        return cls(buckets, buckets * count / 2.0**header_bits)

    def usual_cost(self, width: int, scattered: bool = False) -> float:
        """Return the nanoseconds on a usual machine, for signatures of so many bytes.

        `scattered`: they are not in the table, but wherever they are in the collection.
        """
        costs = _native.USUAL_COSTS
        row = costs.compare(width) if scattered else costs.bucket(width)
        return self.buckets * costs.look_up() + self.rows * row
