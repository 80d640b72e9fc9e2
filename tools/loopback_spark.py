"""A real Spark of several processes on this machine: a standalone master and its workers.

Everything listens on 127.0.0.1 alone. For tests, benchmarks and `make demo-spark`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["HOW_TO_GET_JAVA", "LoopbackSpark", "java_found"]

HOW_TO_GET_JAVA = (
    "Spark needs Java 17, and there is none here: as root, "
    "apt-get install openjdk-17-jre-headless; else install it and set JAVA_HOME"
)

_SECONDS_TO_START = 120
_HOST = "127.0.0.1"


def java_found() -> bool:
    """Return whether there is a Java that runs."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    return java is not None and Path(java).exists()


class LoopbackSpark:
    """A master, workers of one core each, and a session on them."""

    def __init__(self, workers: int = 2, *, memory: str = "1g", cores: int = 1) -> None:
        import pyspark

        self._home = Path(pyspark.__file__).parent
        self._folder = Path(tempfile.mkdtemp(prefix="lookalike-spark-"))
        self._memory, self._cores = memory, cores
        self._processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self._session: Any = None
        # For the workers' Python, and that of the driver: this one, wherever it is.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = _HOST
        try:
            kind = "org.apache.spark.deploy.master.Master"
            self._start("master", kind, "--port", "0")
            self.url = self._said("master", r"Starting Spark master at (spark://\S+)")
            for _ in range(workers):
                self.add_worker()
        except BaseException:
            self.close()
            raise

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start one more worker, and wait until the master knows it."""
        name = f"worker{len(self.workers)}"
        process = self._start(
            name, "org.apache.spark.deploy.worker.Worker", "--cores", str(self._cores),
            "--memory", self._memory, "--work-dir", str(self._folder / name), self.url,
        )  # fmt: skip
        self.workers.append(process)
        self._said(name, r"(Successfully registered with master)")
        return process

    def kill_worker(self, number: int) -> None:
        """Kill a worker; its executor ends with it."""
        self.workers[number].kill()
        self.workers[number].wait()

    def session(self, **settings: str) -> Any:
        """Return a session on this master; the same each time, until it is stopped."""
        from pyspark.sql import SparkSession

        if self._session is None:
            builder = SparkSession.builder.master(self.url).appName("lookalike")
            chosen = {
                "spark.driver.host": _HOST,
                "spark.driver.bindAddress": _HOST,
                "spark.driver.memory": self._memory,
                "spark.executor.memory": self._memory,
                "spark.executor.cores": str(self._cores),
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                "spark.log.level": "ERROR",
                "spark.sql.shuffle.partitions": str(2 * max(1, len(self.workers))),
                "spark.local.dir": str(self._folder / "local"),
                "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
                **settings,
            }
            for name, value in chosen.items():
                builder = builder.config(name, value)
            self._session = builder.getOrCreate()
        return self._session

    def stop_session(self) -> None:
        """End the session; the next one may have other settings."""
        if self._session is not None:
            self._session.stop()
            self._session = None

    def close(self) -> None:
        """End all of it, and remove what was written."""
        self.stop_session()
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._processes = []
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> LoopbackSpark:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self, name: str, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with open(self._folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                [
                    str(self._home / "bin" / "spark-class"), kind, "--host", _HOST,
                    "--webui-port", "0", *arguments,
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={
                    **os.environ,
                    "SPARK_HOME": str(self._home),
                    "SPARK_LOCAL_DIRS": str(self._folder / "local"),
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
                    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                },
            )  # fmt: skip
        self._processes.append(process)
        return process

    def _said(self, name: str, pattern: str) -> str:
        """Wait until a process says something in its log, and return it."""
        end = time.monotonic() + _SECONDS_TO_START
        while time.monotonic() < end:
            text = (self._folder / f"{name}.log").read_text(errors="replace")
            found = re.search(pattern, text)
            if found:
                return found[1]
            if self._processes[-1].poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"the {name} of Spark did not start; it said:\n{text[-2000:]}")
