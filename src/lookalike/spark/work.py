"""What lasts between the steps of a job on Spark: tables that are used more than once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from lookalike.jobs.context import JobProgress
from lookalike.progress import listener


class HeldFrames:
    """A result whose frames are held until `close`; `_rows` has the work."""

    _rows: Any

    def close(self) -> None:
        """Remove the tables; the frames cannot be used any more."""
        self._rows.work.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SparkWork:
    """Makes frames last, sends values to workers, and knows how long steps took.

    With a `folder` that all workers can reach, frames are written there, and survive the loss of
    workers. Without one, two workers hold each part of a frame, in memory or on disk. Either way
    later plans do not contain how a frame was made, and so do not grow with every step.
    """

    def __init__(self, spark: Any, folder: str | None) -> None:
        self.spark = spark
        self._folder = None if folder is None else f"{folder.rstrip('/')}/lookalike-{uuid.uuid4()}"
        self._tables = 0
        self._held: list[tuple[Any, Any]] = []
        self._sent: list[Any] = []
        self._progress = JobProgress(listener(None))
        self.seconds = self._progress.seconds

    @property
    def cores(self) -> int:
        """How many tasks run at a time."""
        return max(1, int(self.spark.sparkContext.defaultParallelism))

    def keep(self, frame: Any) -> Any:
        """Return a frame that is computed once."""
        if self._folder is not None:
            self._tables += 1
            path = f"{self._folder}/{self._tables}"
            # Most of it is hashes, which cannot be compressed and do not repeat.
            plain = frame.write.option("parquet.enable.dictionary", "false")
            plain.parquet(path, compression="uncompressed")
            return self.spark.read.schema(frame.schema).parquet(path)
        from pyspark import StorageLevel

        # Computed by whatever uses it first.
        kept = frame.localCheckpoint(False, StorageLevel.MEMORY_AND_DISK_2)
        self._held.append((kept, frame))  # whose metrics are counted when it is computed
        return kept

    def send(self, value: Any) -> Any:
        """Return a value that every worker has."""
        sent = self.spark.sparkContext.broadcast(value)
        self._sent.append(sent)
        return sent

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Count the time as that of a step, which Spark's pages name, too."""
        context = self.spark.sparkContext
        context.setJobDescription(f"lookalike: {step}")
        try:
            with self._progress.timed(step):
                yield
        finally:
            context.setJobDescription(None)

    def close(self) -> None:
        """Remove all of it; frames that `keep` returned cannot be used afterwards."""
        for frame, _ in self._held:
            frame._jdf.queryExecution().analyzed().rdd().unpersist(False)
        for value in self._sent:
            value.unpersist()
        self._held, self._sent = [], []
        if self._folder is not None:
            context = self.spark.sparkContext
            path = context._jvm.org.apache.hadoop.fs.Path(self._folder)
            path.getFileSystem(context._jsc.hadoopConfiguration()).delete(path, True)
