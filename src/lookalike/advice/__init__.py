"""Choose an index and its settings: predict, then measure on your signatures.

`plan` compares all kinds of index before anything is built. `tune` measures and picks the fastest
that is good enough. `evaluate` measures a grid of settings, `growth` the time as a collection
grows, and `evaluate_signers` precision and recall of signatures beside exact similarity.
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
from lookalike.advice.plots import plot_growth, plot_signers, plot_touched, plot_trade_off
from lookalike.advice.scale import ScalePlan, plan_scale
from lookalike.advice.signers import SignerMeasurement, evaluate_signers, suggested_signers
from lookalike.advice.tuner import tune
from lookalike.indexes.tuning import Option, Tuning

__all__ = [
    "Measurement",
    "Option",
    "Prediction",
    "ScalePlan",
    "SignerMeasurement",
    "Tuning",
    "cumulative_distance_ratio",
    "evaluate",
    "evaluate_signers",
    "growth",
    "near_duplicate_recall",
    "nearest_hit_rate",
    "plan",
    "plan_scale",
    "plot_growth",
    "plot_signers",
    "plot_touched",
    "plot_trade_off",
    "recall_at_k",
    "recall_by_distance",
    "suggested_signers",
    "top_in_top",
    "tune",
]
