"""What is not done on Spark is refused, in words, before anything starts."""

from __future__ import annotations

import pytest

import lookalike as la
from lookalike import spark as on_spark
from support.running.refusals import refused


def test_arguments_that_are_refused() -> None:
    with pytest.raises(TypeError, match="treshold"):
        on_spark.dedup("no frame", treshold=0.5)  # type: ignore[call-arg]
    with pytest.raises(la.errors.ArgumentError, match=r"threshold is 80"):
        on_spark.dedup("no frame", threshold=80)
    told = "frame is 'no frame' .* expected a DataFrame of PySpark"
    with pytest.raises(la.errors.ArgumentError, match=told):
        on_spark.dedup("no frame")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--threads", "3"], "--threads does nothing with --engine spark"),
        (["--against", "old.lookalike"], "--against is old.lookalike, which has only signatures"),
        (["--report", "page.html"], "--report does nothing with --engine spark"),
        (["--in-place"], "--in-place does nothing with --engine spark"),
        (["--memory-limit", "8GB"], "--memory-limit does nothing with --engine spark"),
        (["--save-signatures", "a.lookalike"], "--save-signatures does nothing with --engine"),
        (["more.jsonl"], "--engine spark reads one input"),
        (["--annotate"], "--annotate needs a folder to write to"),
        (["-o", "-"], "--output is -; with --engine spark expected a new folder"),
    ],
)
def test_options_that_are_refused(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refused(["dedup", "--engine", "spark", "in.jsonl", *arguments], capsys)
    assert message.startswith(told)


def test_engines_that_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for engine in ("hadoop", "local=2", "sparks=local"):
        message = refused(["dedup", "--engine", engine, "in.jsonl"], capsys)
        assert "expected local, spark, or spark=MASTER" in message
