"""Write what was measured into the documentation: `python -m benchmarks.figures`.

Each run of `python -m benchmarks` leaves files in `benchmarks/results`. What a page has between
`<!-- figures: CASE -->` and `<!-- end of figures -->` is written from these files: the table of the
case and its gates, with the date, the machine and the command. With `<!-- figures: CASE rates -->`,
it is how many items a second each program does.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS
from lookalike.storage.files import whole_file

__all__ = ["Figures", "NotMeasuredError", "pages", "rewrite"]

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/*.md", "benchmarks/README.md")
REGION = re.compile(
    r"(?P<begin><!-- figures: (?P<case>[a-z0-9-]+)(?P<rates> rates)? -->\n)"
    r".*?(?P<end><!-- end of figures -->)",
    re.DOTALL,
)
_WORDS = {True: "pass", False: "**MISS**", None: "not judged"}


class NotMeasuredError(Exception):
    """The results do not have what a page shows."""


@dataclass(frozen=True)
class Figures:
    """The results of the suites that were run, as they are in their files."""

    suites: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, *folders: Path) -> Figures:
        """Read all results of these folders; of a case that several have, the last one counts."""
        paths = [path for folder in reversed(folders) for path in sorted(folder.glob("*.json"))]
        files = [json.loads(path.read_text("utf-8")) for path in paths]
        return cls([suite for suite in files if "cases" in suite])

    def text(self, case: str, *, rates: bool = False) -> str:
        """Return what a page shows of a case, as Markdown."""
        for suite in self.suites:
            for one in suite["cases"]:
                if one["name"] == case:
                    shown = _rates(one) if rates else _table(one)
                    return f"{shown}\n\n{_source(suite['machine'], one)}"
        raise NotMeasuredError(f"{case} is not among the results")


def _source(machine: Mapping[str, Any], case: Mapping[str, Any]) -> str:
    names = " ".join(one["name"] for one in case["measurements"])
    shown = [
        f"{package.removesuffix('-cpu')} {version}"
        for package, version in machine["versions"].items()
        if package == "lookalike" or package.removesuffix("-cpu") in names
    ]
    return (
        f"Measured on {machine['measured']} ({', '.join(shown)}): {machine['cores']} cores, "
        f"{machine['processor']}, kernel `{machine['kernel']}`, load before "
        f"{machine['load_average']}; `python -m benchmarks --only {case['name']}`."
    )


def _table(case: Mapping[str, Any]) -> str:
    if not case["table"]:
        raise NotMeasuredError(f"{case['name']} has no table of its own")
    parts = [f"```\n{case['table']}\n```"]
    gates = [
        (gate["title"], gate["target"], gate["measured"], _WORDS[gate["passed"]])
        for gate in case["verdicts"]
    ]
    if gates:
        parts.append(markdown_table(("gate", "target", "measured", ""), gates))
    return "\n\n".join(parts)


def _rates(case: Mapping[str, Any]) -> str:
    if "unit" not in case:
        raise NotMeasuredError(f"{case['name']} does not say what it counts")
    ours = case["measurements"][0]
    rows = [
        (one["name"], f"{_rounded(case['queries'] / one['best']):,}", f"{_ratio(one, ours):.1f}")
        for one in case["measurements"]
    ]
    return markdown_table(("", f"{case['unit']}s per second", "times as long"), rows)


def _rounded(number: float) -> int:
    """Return a number with three digits that count."""
    return int(float(f"{number:.3g}"))


def _ratio(one: Mapping[str, Any], ours: Mapping[str, Any]) -> float:
    common = min(len(one["turns"]), len(ours["turns"]))
    return float(min(one["turns"][:common]) / min(ours["turns"][:common]))


def markdown_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; bars in cells do not end a column."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )


def rewrite(text: str, figures: Figures, missing: list[str]) -> str:
    """Return a page with its figures written anew; those without results stay as they are."""

    def write(found: re.Match[str]) -> str:
        try:
            shown = figures.text(found["case"], rates=bool(found["rates"]))
        except NotMeasuredError as error:
            missing.append(str(error))
            return found[0]
        return f"{found['begin']}\n{shown}\n\n{found['end']}"

    return REGION.sub(write, text)


def pages(root: Path = ROOT) -> Iterator[Path]:
    """Yield the pages that show figures."""
    for pattern in PAGES:
        for path in sorted(root.glob(pattern)):
            if REGION.search(path.read_text(encoding="utf-8")):
                yield path


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the figures of all pages; those without results stay as they are."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.figures",
        description="Write what was measured into the documentation.",
    )
    parser.add_argument(
        "results",
        metavar="FOLDER",
        nargs="*",
        type=Path,
        default=[RESULTS],
        help="what `python -m benchmarks` wrote; the last folder counts (default: "
        "benchmarks/results)",
    )
    options = parser.parse_args(arguments)
    figures = Figures.read(*options.results)
    if not figures.suites:
        folders = ", ".join(map(str, options.results))
        print(f"{folders}: no results; run `python -m benchmarks`", file=sys.stderr)
        return 2
    missing: list[str] = []
    for path in pages():
        text = path.read_text(encoding="utf-8")
        written = rewrite(text, figures, missing)
        if written != text:
            with whole_file(path) as file:
                file.write_text(written, encoding="utf-8")
            print(f"written: {path.relative_to(ROOT)}")
    for line in missing:
        print(f"kept as it was: {line}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
