"""A real Spark for these tests: a master and two workers, processes of their own, on loopback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from tools.loopback_spark import HOW_TO_GET_JAVA, LoopbackSpark, java_found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark warns of each new pandas, and of sockets that Java has not closed yet."""
    for item in items:
        if "/spark/" in str(item.path):
            item.add_marker(pytest.mark.filterwarnings("ignore:PySpark does not yet fully support"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(
                pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
            )


_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK = {
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.executor.extraJavaOptions": _JAVA,
    "spark.sql.codegen.wholeStage": "false",
}
"""For small jobs, of which most of the time is spent on making them quick."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[LoopbackSpark]:
    """The master and its workers; skipped without Java, unless it was said to be needed."""
    if not java_found():
        if os.environ.get("LOOKALIKE_SPARK") == "needed":
            pytest.fail(HOW_TO_GET_JAVA)
        pytest.skip(HOW_TO_GET_JAVA)
    with LoopbackSpark(workers=2) as started:
        yield started


@pytest.fixture
def session(cluster: LoopbackSpark) -> Any:
    """A session on them."""
    return cluster.session(**QUICK)
