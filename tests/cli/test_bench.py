"""`lookalike bench` without a card: every kind of index is measured, and finds what there is."""

from __future__ import annotations

import json

import pytest

from lookalike.cli import main
from lookalike.indexes.kinds import KINDS


def test_every_kind_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--count", "2000", "--bits", "128", "--threads", "1", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["kind"] for line in lines] == [kind.name for kind in KINDS if kind.is_built]
    for line in lines:
        assert (line["signatures"], line["bits"]) == (2000, 128)
        assert line["found"] > 0.9
        assert min(line["build_seconds"], line["milliseconds"], line["memory_bytes"]) > 0


def test_one_kind_is_printed_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--count", "500", "--type", "scan"]) == 0
    head, _, columns, row = capsys.readouterr().out.splitlines()
    assert head == "500 signatures of 256 bits"
    assert columns.split()[:3] == ["kind", "build", "MB"]
    assert (row.split()[0], row.split()[-1]) == ("scan", "1.000")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--type", "scn"], "--type is 'scn'; expected one of slices"),
        (["--type", "parts"], "--type is parts, which cannot be built by name"),
        (["--bits", "12"], "--bits is 12; expected a multiple of 8"),
        (["--gpu-number", "1"], "--gpu-number needs --device gpu"),
        (["--device", "gpu", "--bits", "64"], "--bits does nothing with --device gpu"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == 2
    assert told in capsys.readouterr().err
