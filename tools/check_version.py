"""Fails if the version number of the package stands anywhere but in pyproject.toml.

The changelog names it too, as a heading; that heading has to agree.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Print what disagrees and return 1, or return 0."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    problems = []
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    if heading is None or heading[1] != version:
        found = heading[1] if heading else "none"
        problems.append(f"CHANGELOG.md begins with version {found}, pyproject.toml has {version}")
    number = re.compile(rf"(?<![\d.]){re.escape(version)}(?![\d.]*\d)")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in listed.stdout.split():
        path = ROOT / name
        if name in ("pyproject.toml", "CHANGELOG.md") or not path.is_file():
            continue
        for line, text in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if number.search(text):
                problems.append(f"{name}:{line} repeats the version {version}")
    print("\n".join(problems) if problems else f"one version: {version}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
