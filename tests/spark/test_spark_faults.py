"""A worker that is killed in the middle of a job changes nothing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from tools.loopback_spark import LoopbackSpark

from lookalike.spark import deciding
from lookalike.spark.deciding import Decider
from support.cases.spark_corpora import assert_as_local, frame_of_texts, mixed_corpus


@pytest.mark.parametrize("folder", [True, False])
def test_a_worker_is_killed(
    cluster: LoopbackSpark,
    session: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: bool,
) -> None:
    texts: list[str | None] = [*mixed_corpus(300)]
    frame = frame_of_texts(session, texts, 4)
    verify, killed = Decider.decide, threading.Event()

    def kill() -> None:
        cluster.kill_worker(-1)
        killed.set()

    def verify_and_kill(self: Decider, *proposed: Any) -> Any:
        threading.Timer(0.3, kill).start()  # while it computes
        return verify(self, *proposed)

    monkeypatch.setattr(Decider, "decide", verify_and_kill)
    monkeypatch.setattr(deciding, "DOCUMENTS_A_TASK", 30)  # so that it takes a while
    try:
        work: dict[str, Any] = {"work": tmp_path.as_uri()} if folder else {}
        assert_as_local(frame, texts, **work)
        assert killed.is_set()
        assert list(tmp_path.iterdir()) == []  # nothing is left there
    finally:
        cluster.add_worker()
