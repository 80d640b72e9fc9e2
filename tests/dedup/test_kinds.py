"""One function, one command and one table of options for all kinds of items."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import lookalike as la
from lookalike import spark as on_spark
from lookalike.cli import full_parser
from lookalike.cli.commands import dedup as command
from lookalike.corpora.columns import Filters
from lookalike.dedup.job import run_job
from lookalike.dedup.kinds import KINDS, OPTIONS, SPARK, support_lines, support_table, supports
from lookalike.dedup.media import run_media_job
from lookalike.dedup.settings import ALIASES, DedupSettings
from lookalike.dedup.vectors import run_vector_job
from lookalike.media import MEDIA
from support.running.refusals import refused

PARAMETERS = inspect.signature(la.dedup).parameters
PYTHON_ONLY = {"progress", "signer"}
COMMAND_ONLY = {
    *("help", "output", "in_place", "annotate", "pairs", "max_pairs", "collapse", "report"),
    *("dropped", "apply", "journal", "json", "quiet", "engine", "dry_run", "help_all", "for"),
}
"""What Python does by methods of the result, or not at all."""


def options_of_the_command() -> set[str]:
    parser = full_parser().parser_of(["dedup"])
    names = {word for action in parser._actions for word in action.option_strings}
    typed = {name.lstrip("-").removeprefix("no-").replace("-", "_") for name in names}
    return typed - {"o", "h"}


def test_parameters_are_options() -> None:
    parameters = set(PARAMETERS) - {"source"}
    assert parameters - PYTHON_ONLY == options_of_the_command() - COMMAND_ONLY
    assert not PYTHON_ONLY & options_of_the_command()
    assert not COMMAND_ONLY & parameters


@pytest.mark.parametrize("function", [la.dedup, on_spark.dedup])
def test_parameters_are_typed_and_have_the_defaults_of_the_settings(function: Any) -> None:
    parameters = inspect.signature(function).parameters
    first, *others = parameters.values()
    assert first.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {one.kind for one in others} == {inspect.Parameter.KEYWORD_ONLY}
    assert all(one.annotation is not inspect.Parameter.empty for one in parameters.values())
    for one in fields(DedupSettings):
        if function is not la.dedup and not supports(SPARK, one.name):
            assert one.name not in parameters
            continue
        expected = None if one.name == "threshold" else one.default  # it depends on the kind
        assert parameters[one.name].default == expected
    described = re.findall(r"^    (\w+): ", inspect.getdoc(function) or "", re.MULTILINE)
    assert described[: len(set(parameters) - set(ALIASES))] == [
        name for name in parameters if name not in ALIASES
    ]


def test_spark_has_the_parameters_of_the_local_job() -> None:
    parameters = inspect.signature(on_spark.dedup).parameters
    shared = set(parameters) - {"frame", "order"}
    frames = {"format", "skip_bad"}  # of files; a DataFrame has been read
    supported = {name for name in PARAMETERS if supports(SPARK, ALIASES.get(name, name))}
    assert shared == supported - frames - {"source", "kind", "progress"}
    own_types = {"work", "threshold"}  # an address, for all workers; no words for images
    for name in shared - own_types:
        assert parameters[name].default == PARAMETERS[name].default
        assert parameters[name].annotation == PARAMETERS[name].annotation


def test_a_setting_is_given_once() -> None:
    for function in (la.dedup, on_spark.dedup):
        with pytest.raises(la.errors.ArgumentError, match="num_perm and permutations are the same"):
            function([], permutations=64, num_perm=64)


def parameters_of(*functions: Any) -> set[str]:
    return {name for function in functions for name in inspect.signature(function).parameters}


def test_a_supported_option_is_used() -> None:
    """Each kind's job takes exactly the parameters that the table says it supports."""
    settings = {one.name for one in fields(DedupSettings)}
    used = {
        "text": parameters_of(run_job, Filters) - {"filters", "settings", "source"} | settings,
        "vectors": parameters_of(run_vector_job) - {"source"},
    }
    for name in KINDS[2:]:
        used[name] = parameters_of(run_media_job, MEDIA[name]) - {"source", "medium"}
    for kind in KINDS:
        named = {name for name in PARAMETERS if name in OPTIONS and supports(kind, name)}
        assert used[kind] - {"progress"} == named


def test_every_option_is_in_the_table() -> None:
    anywhere = {"source", "kind", "progress", "help", "help_all", "dry_run", "json", "quiet"}
    assert set(OPTIONS) == (set(PARAMETERS) | COMMAND_ONLY) - {*anywhere, *ALIASES}


def test_the_docs_have_the_table() -> None:
    page = Path("docs/deduplicating.md").read_text()
    begin, end = "<!-- options by kind -->\n", "\n<!-- end of options by kind -->"
    assert page.partition(begin)[2].partition(end)[0] == support_table()
    assert support_lines() in command.DETAILS


VALUES: dict[str, Any] = {
    **dict.fromkeys(("skip_bad", "strip_urls", "exact", "rotated"), True),
    **dict.fromkeys(("min_words", "min_links", "permutations", "seed", "min_features"), 7),
    **dict.fromkeys(("max_group", "num_perm", "ngram_size", "bit_diff"), 7),
    "verify": False,
    "hash": "gradient",
    "device": "gpu",
    "page_limits": la.pages.PageLimits(),
    "signer": la.AudioHash(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_kind_does_not_support_is_refused(kind: str, tmp_path: Path) -> None:
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "a.png")
    for name in PARAMETERS:
        if not supports(kind, ALIASES.get(name, name)):
            with pytest.raises(
                la.errors.ArgumentError, match=rf"^\w+ does nothing for {kind}[:;] "
            ):
                la.dedup(tmp_path, kind=kind, **{name: VALUES.get(name, "x")})


def test_spark_refuses_what_it_does_not_support(capsys: pytest.CaptureFixture[str]) -> None:
    typed = {"in_place": [], "collapse": [], "device": ["gpu"], "memory_limit": ["8GB"]}
    for name in OPTIONS:
        if supports("text", name) and not supports(SPARK, name):
            option = f"--{name.replace('_', '-')}"
            words = ["dedup", "a.jsonl", "--engine", "spark", option, *typed.get(name, ["3"])]
            assert refused(words, capsys).startswith(f"{option} does nothing with --engine spark: ")


def test_text_is_read_without_importing_media(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "some words"}\n')
    code = (
        "import sys; from lookalike.cli import main; import lookalike as la\n"
        "assert main(['dedup', 'a.jsonl', '-o', 'b.jsonl', '--quiet']) == 0\n"
        "assert la.dedup('a.jsonl').kind == 'text'\n"
        "media = ('lookalike.images', 'lookalike.recordings', 'PIL', 'soundfile')\n"
        "print([name for name in sys.modules if name.startswith(media)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"


def test_all_kinds_have_one_result(tmp_path: Path) -> None:
    """What every result has: arrays, groups, counts, a summary, outputs."""
    for name in ("a", "b"):
        Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(tmp_path / f"{name}.png")
    results = [
        la.dedup(["one text of some words"] * 2),
        la.dedup([{"v": [1.0, 2.0]}] * 2, vectors="v"),
        la.dedup(tmp_path, kind="images"),
    ]
    assert [type(one) for one in results] == [
        la.results.TextResult,
        la.results.VectorResult,
        la.results.MediaResult,
    ]
    for one in results:
        assert isinstance(one, la.results.DedupResult)
        assert one.keep.tolist() == [True, False] and one.duplicate_of.tolist() == [-1, 0]
        assert [group.tolist() for group in one.groups()] == [[0, 1]]
        assert one.similarity[1] == 1 and (one.counts.documents, one.counts.kept) == (2, 1)
        assert one.to_dict()["kind"] == one.kind and "exact duplicates" in one.summary()
        assert one.write_pairs(tmp_path / "pairs.csv") == 1
        assert repr(one).startswith(f"{type(one).__name__}(kind='{one.kind}', documents=2, kept=1")
        one.report(tmp_path / "report.html")
        assert "exact duplicates" in (tmp_path / "report.html").read_text()
    with pytest.raises(AttributeError, match="old_text"):
        results[2].old_text(0)
