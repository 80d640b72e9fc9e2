"""Databases of collections that have changed by themselves: every answer is right, or refused."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import lookalike as la
from crash.damage import random_change
from crash.questions import Truth
from crash.trials import PARTIAL, REFUSED, RIGHT, Trial, try_all, verdict, worst

DAMAGES = int(os.environ.get("LOOKALIKE_DAMAGES", "40"))
"""Of databases in all; `make crash` asks for 2,000."""


def test_random_damage_to_databases(folder: Path) -> None:
    try_all(folder / "trials", damaged_databases, (), DAMAGES).settle("databases")


def damaged_databases(folder: Path) -> Trial:
    """Return a trial: damage to the file of a collection, and all questions to what is left.

    In every second one the native index is there, saved when all was well.
    """
    truth = Truth()
    cache = folder / "saved"
    truth.write(folder / "whole.db", cache=cache)
    whole = (folder / "whole.db").read_bytes()
    with la.open_collection(folder / "whole.db", cache=cache) as docs:
        assert truth.ask_all(docs, random.Random(0), folder / "out.jsonl") == RIGHT
        assert docs.verify().ok and docs.stats()["cache"]

    def trial(number: int) -> str:
        rng = random.Random(number)
        change = random_change(len(whole), rng)
        path = folder / "damaged.db"
        (folder / "damaged.db-journal").unlink(missing_ok=True)
        path.write_bytes(change.made(whole))
        shutil.rmtree(folder / "cache", ignore_errors=True)
        if number % 2:
            shutil.copytree(cache, folder / "cache")
        came = ask_damaged(truth, path, folder / "cache", rng)
        return came if came in (RIGHT, REFUSED, PARTIAL) else f"{change.what}: {came}"

    return trial


def ask_damaged(truth: Truth, path: Path, cache: Path, rng: random.Random) -> str:
    """Open the file and ask everything; where `verify` finds nothing, all must be right."""
    try:
        docs = la.open_collection(path, cache=cache)
    except la.LookalikeError:
        return REFUSED
    except Exception as error:
        return f"opening raised {type(error).__name__}: {error}"
    with docs:
        sound = verdict("verify", lambda: docs.verify().ok, True)
        if sound == "verify: False and not True":
            sound = REFUSED  # it says what is wrong
        answers = truth.ask_all(docs, rng, path.with_suffix(".jsonl"))
    if sound == RIGHT and answers != RIGHT:
        return f"verify found nothing, but: {answers}"
    return worst([answers, sound])
