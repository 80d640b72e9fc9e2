"""The ways that a job on Spark takes, by how large what it does is."""

from __future__ import annotations

import pytest

from lookalike.spark import deciding, propose, rounds, verify

__all__ = ["take_way"]

WAYS = {
    "one task": {},
    "bands": {"propose.ENTRIES_A_TASK": 5_000},
    "components": {"propose.ENTRIES_A_TASK": 5_000, "deciding.DOCUMENTS_A_TASK": 320},
    "settled": {"propose.ENTRIES_A_TASK": 5_000, "deciding.DOCUMENTS_A_TASK": 30},
    "rounds": {
        "propose.ENTRIES_A_TASK": 5_000,
        "deciding.DOCUMENTS_A_TASK": 30,
        "deciding.SIGNATURES_A_TASK": 100,
    },
    "many pairs": {
        "propose.ENTRIES_A_TASK": 5_000,
        "deciding.DOCUMENTS_A_TASK": 30,
        "deciding.PAIRS_A_TASK": 0,
        "rounds.PAIRS_A_TASK": 0,
    },
    "crowd": {
        "deciding.CROWD_PAIRS": 0,
        "deciding.CROWD_PARTNERS": 0,
        "verify.PAIRS_A_TASK": 5_000,
    },
    "crowd in rounds": {
        "propose.ENTRIES_A_TASK": 5_000,
        "deciding.CROWD_PAIRS": 0,
        "deciding.CROWD_PARTNERS": 0,
        "deciding.PAIRS_A_TASK": 100,
    },
}
"""How much of a job one task does: all but signing; not the bands; only what pairs connect;
what is large after all have compared it; not even that, but in rounds; and then only
the pairs that decide. Of crowds, all but comparing; or not even settling.
"""


def take_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits, so that a small corpus takes the way of a large one."""
    modules = {"propose": propose, "deciding": deciding, "rounds": rounds, "verify": verify}
    for limit, value in WAYS[name].items():
        module, _, constant = limit.partition(".")
        monkeypatch.setattr(modules[module], constant, value)
