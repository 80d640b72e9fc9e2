"""The one grammar of sizes and numbers on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike.checks import byte_count, item_count
from lookalike.cli import full_parser, main
from lookalike.errors import ArgumentError
from lookalike.service.settings import ServeSettings

POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


@given(
    st.integers(0, 10**6),
    st.integers(0, 999),
    st.sampled_from(list(POWERS)),
    st.booleans(),
    st.sampled_from(["", " "]),
)
def test_sizes_and_numbers_are_exact(
    whole: int, thousandths: int, unit: str, lower: bool, space: str
) -> None:
    """No digit is lost to rounding, whatever the unit."""
    text = f"{whole}.{thousandths:03d}{space}{unit.lower() if lower else unit}"
    thousands = whole * 1000 + thousandths
    assert byte_count(text) == byte_count(f"{text}B") == item_count(text)
    assert item_count(text) == thousands * 1000 ** POWERS[unit] // 1000
    assert byte_count(f"{text}iB") == thousands * 1024 ** POWERS[unit] // 1000


@pytest.mark.parametrize("text", ["", "GB", "-1", "1e3", "1.5.2", "1 000", "1X", "1KK", "nan", "½"])
def test_what_is_neither(text: str) -> None:
    with pytest.raises(
        ArgumentError, match="is not a size; expected one such as 500MB, 32MiB or 8GB"
    ):
        byte_count(text)
    with pytest.raises(ArgumentError, match="is not a count; expected one such as"):
        item_count(text)


@pytest.mark.parametrize("text", ["1B", "8GB", "2GiB"])
def test_numbers_of_things_have_no_bytes(text: str) -> None:
    assert byte_count(text) > 0
    with pytest.raises(ArgumentError, match="60M or 1.5G"):
        item_count(text)


@pytest.mark.parametrize(
    ("text", "size"), [("8MB", 8_000_000), ("8MiB", 8 << 20), ("8 m", 8 * 10**6)]
)
def test_every_command_reads_sizes_alike(text: str, size: int) -> None:
    command = full_parser().parse_args(
        ["dedup", "x.jsonl", "-o", "y.jsonl", "--max-document", text]
    )
    assert command.max_document == size
    variables = {"LOOKALIKE_SERVE_MAX_BODY": text}
    assert ServeSettings.read({}, variables).max_body == size


def test_a_wrong_size_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["dedup", "x.jsonl", "-o", "y.jsonl", "--max-document", "8 MBB"])
    assert "--max-document: '8 MBB' is not a size; expected one such as" in capsys.readouterr().err
