"""Messages in parts: what is Python's is said otherwise to who typed a command."""

from __future__ import annotations

import copy
import pickle

import pytest

import lookalike as la
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError, BatchError, ItemError, Said


def test_parts_are_said_in_either_way() -> None:
    error = ArgumentError(Said("max_document"), " is 3; ", Said("use fit()", "add --fit"), "\x1b")
    assert str(error) == "max_document is 3; use fit()\\x1b"
    assert error.as_typed({"max_document": "--max-document"}) == (
        "--max-document is 3; add --fit\\x1b"
    )
    assert error.as_typed({}) == "max_document is 3; add --fit\\x1b"
    assert str(ArgumentError("plain")) == ArgumentError("plain").as_typed({}) == "plain"
    assert len(str(ArgumentError("a" * 5000, Said("b" * 5000)))) == 2000


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_errors_can_be_copied(copied: object) -> None:
    items = [ItemError(0, "fox", "is there", Said("use upsert()", "add --replace"))] * 5
    for error in (
        ArgumentError(Said("k"), " is 0"),
        BatchError(items, 7),
        la.errors.FileError("gone"),
    ):
        again = copied(error)  # type: ignore[operator]
        assert type(again) is type(error) and str(again) == str(error)
        assert again.as_typed({"k": "-k"}) == error.as_typed({"k": "-k"})
    assert BatchError(items, 7).errors == copied(BatchError(items, 7)).errors  # type: ignore[operator]


def test_a_batch_says_what_to_do_in_either_way() -> None:
    items = [ItemError(0, "fox", "is there", Said("use upsert()", "add --replace"))]
    error = BatchError(items, 2)
    assert "item 0 ('fox'): is there; use upsert(). Correct them, or pass on_error='skip'" in str(
        error
    )
    assert error.as_typed({}).endswith("item 0 ('fox'): is there; add --replace. Correct them")


def test_settings_that_do_nothing_are_refused() -> None:
    for idle, message in [
        ({"bits": 64}, "bits goes with method='simhash' or method='topsig' and does nothing"),
        ({"radius": 3}, "radius goes with method='simhash'"),
        ({"method": "simhash", "permutations": 64}, "permutations goes with method='minhash'"),
        ({"max_group": 5}, "max_group goes with grouping='components'"),
    ]:
        with pytest.raises(la.errors.ArgumentError, match=message):
            la.dedup(["a text"], **idle)  # type: ignore[arg-type]
    DedupSettings(method="topsig", bits=64, radius=3)
    DedupSettings(grouping="components", max_group=5)
    for settings in (DedupSettings(), DedupSettings(method="simhash", threshold=0.5)):
        assert DedupSettings(**settings.to_dict()) == settings
