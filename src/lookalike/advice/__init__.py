"""Choose an index and its settings: predict, then measure on your signatures.

`plan` compares all kinds of index before anything is built. `tune` measures and picks the fastest
that is good enough. `evaluate` measures a grid of settings, and `growth` the time as a collection
grows.
"""

from lookalike.advice.evaluation import Measurement, evaluate, growth
from lookalike.advice.measures import (
    cumulative_distance_ratio,
    near_duplicate_recall,
    nearest_hit_rate,
    recall_at_k,
    recall_by_distance,
    top_in_top,
)
from lookalike.advice.planner import Prediction, plan
from lookalike.advice.plots import plot_growth, plot_touched, plot_trade_off
from lookalike.advice.tuner import tune
from lookalike.indexes.tuning import Option, Tuning

__all__ = [
    "Measurement",
    "Option",
    "Prediction",
    "Tuning",
    "cumulative_distance_ratio",
    "evaluate",
    "growth",
    "near_duplicate_recall",
    "nearest_hit_rate",
    "plan",
    "plot_growth",
    "plot_touched",
    "plot_trade_off",
    "recall_at_k",
    "recall_by_distance",
    "top_in_top",
    "tune",
]
