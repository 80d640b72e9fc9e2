"""How good and how quick: indexes measured against the exhaustive scan, and chosen by that.

Ask it about your own signatures: `evaluate` measures a grid of settings, `growth` how time grows
with the collection, and `tune` picks the cheapest slices that are good enough.
"""

from lookalike.evaluation.grid import Evaluation, evaluate
from lookalike.evaluation.growth import growth
from lookalike.evaluation.measurement import Measurement
from lookalike.evaluation.measures import (
    cumulative_distance_ratio,
    near_duplicate_recall,
    nearest_hit_rate,
    recall_at_k,
    recall_by_distance,
    top_in_top,
)
from lookalike.evaluation.plots import plot_growth, plot_touched, plot_trade_off
from lookalike.evaluation.tune import Tuning, tune

__all__ = [
    "Evaluation",
    "Measurement",
    "Tuning",
    "cumulative_distance_ratio",
    "evaluate",
    "growth",
    "near_duplicate_recall",
    "nearest_hit_rate",
    "plot_growth",
    "plot_touched",
    "plot_trade_off",
    "recall_at_k",
    "recall_by_distance",
    "top_in_top",
    "tune",
]
