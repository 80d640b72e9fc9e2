"""The arguments of a command, declared by a text as help shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookalike.cli.parser import Parser, declare

ARGUMENTS = """
  SIGNATURES           signatures
  queries:[QUERY...]   texts,
                       or files
  -o --output FILE     where to write (required)
  -k K=10              how many
  | --radius R         bits
  | --threshold SHARE=0.5  least similarity
what is read:
  origin:--in CORPUS   the corpus
  --limit N=1000000    at most
  --device cpu|gpu=cpu  where
  diff:--no-diff       leave the diff out
  --json               a switch
"""


@pytest.fixture
def parser() -> Parser:
    parser = Parser(prog="command")
    declare(parser, ARGUMENTS)
    return parser


def test_values_have_types_and_defaults(parser: Parser) -> None:
    found = parser.parse_args(["s.npy", "-o", "out"])
    assert vars(found) == {
        "signatures": Path("s.npy"), "queries": [], "output": Path("out"), "k": 10, "radius": None,
        "threshold": 0.5, "origin": None, "limit": 1_000_000, "device": "cpu", "diff": True,
        "json": False,
    }  # fmt: skip
    typed = "s.npy a b -o out --radius 3 --in corpus --device gpu --no-diff --json"
    found = parser.parse_args(typed.split())
    assert (found.queries, found.radius, found.origin) == (["a", "b"], 3, "corpus")
    assert (found.device, found.diff, found.json) == ("gpu", False, True)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("s.npy", "required: -o/--output"),
        ("s.npy -o out --radius 3 --threshold 0.9", "not allowed with"),
        ("s.npy -o out -k ten", "-k is 'ten'; expected a whole number"),
        ("s.npy -o out --device tpu", "expected one of cpu, gpu"),
    ],
)
def test_what_does_not_fit_is_refused(
    parser: Parser, typed: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser.parse_args(typed.split())
    assert message in capsys.readouterr().err


def test_help_shows_groups_and_defaults(parser: Parser) -> None:
    shown = " ".join(parser.format_help().split())
    assert "QUERY texts, or files" in shown
    assert "(required)" not in shown
    assert "how many (default: 10)" in shown and "at most (default: 1,000,000)" in shown
    assert "usage: command SIGNATURES [QUERY...] -o FILE [options]" in shown
    assert "what is read: --in CORPUS the corpus" in shown
    assert parser.group("what is read") is parser.group("what is read")
