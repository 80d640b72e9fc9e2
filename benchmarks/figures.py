"""Write what was measured into the documentation: `python -m benchmarks.figures`.

Each run of `python -m benchmarks` leaves files in `benchmarks/results`. What a page has between
`<!-- figures: CASE -->` and `<!-- end of figures -->` is written from these files: the table of the
case and its gates, with the date, the machine and the command. With `<!-- figures: CASE rates -->`,
it is how many items a second each program does; with `gates` in place of `rates`, only the gates.
With `all` in place of a case, it is all that was measured.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS
from lookalike.storage.files import whole_file

__all__ = ["Figures", "NotMeasuredError", "pages", "rewrite"]

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/*.md", "benchmarks/README.md")
REGION = re.compile(
    r"(?P<begin><!-- figures: (?P<case>[a-z0-9-]+)(?P<part> rates| gates)? -->\n)"
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
        files = [{"of": path.stem, **json.loads(path.read_text("utf-8"))} for path in paths]
        return cls([suite for suite in files if "cases" in suite])

    def text(self, case: str, part: str | None = None) -> str:
        """Return what a page shows of a case, or of all, as Markdown."""
        if case == "all":
            return "\n\n".join(self._everything())
        for suite in self.suites:
            for one in suite["cases"]:
                if one["name"] == case:
                    return f"{_PARTS[part](one)}\n\n{_source(suite['machine'], one)}"
        raise NotMeasuredError(f"{case} is not among the results")

    def _everything(self) -> Iterator[str]:
        names = {
            gate["title"]: case["name"]
            for suite in self.suites
            for case in suite["cases"]
            for gate in case["verdicts"]
        }
        judged = [
            gate for suite in self.suites for gate in suite["gates"] if gate["passed"] is not None
        ]
        missed = [
            (names.get(gate["title"], ""), gate["title"], gate["target"], gate["measured"])
            for gate in judged
            if not gate["passed"]
        ]
        yield f"{len(judged) - len(missed)} of {len(judged)} targets were reached. Those missed:"
        yield markdown_table(("case", "gate", "target", "measured"), missed)
        told = None
        for suite in self.suites:
            machine = suite["machine"]
            yield f"## {suite['of'].replace('_', ' ').capitalize()}"
            yield f"{_measured(machine)}: {_computer(machine)}."
            if machine["versions"] != told:
                yield markdown_table(("program", "version"), list(machine["versions"].items()))
            told = machine["versions"]
            if not any(case["table"] for case in suite["cases"]):
                yield _gates(suite["gates"])
                continue
            others = [gate for gate in suite["gates"] if gate["title"] not in names]
            if others:
                yield _gates(others)
            for case in suite["cases"]:
                yield f"### {case['name']}"
                yield _table(case) if case["table"] else _own_gates(case)


def _source(machine: Mapping[str, Any], case: Mapping[str, Any]) -> str:
    names = " ".join(one["name"] for one in case["measurements"])
    shown = [
        f"{package.removesuffix('-cpu')} {version}"
        for package, version in machine["versions"].items()
        if package == "lookalike" or package.removesuffix("-cpu") in names
    ]
    return (
        f"{_measured(machine)} ({', '.join(shown)}): {_computer(machine)}; "
        f"`python -m benchmarks --only {case['name']}`."
    )


def _measured(machine: Mapping[str, Any]) -> str:
    return f"Measured on {machine['measured']}"


def _computer(machine: Mapping[str, Any]) -> str:
    return (
        f"{machine['cores']} cores, {machine['processor']}, kernel `{machine['kernel']}`, "
        f"load before {machine['load_average']}"
    )


def _table(case: Mapping[str, Any]) -> str:
    if not case["table"]:
        raise NotMeasuredError(f"{case['name']} has no table of its own")
    parts = [f"```\n{case['table']}\n```"]
    if case["verdicts"]:
        parts.append(_own_gates(case))
    return "\n\n".join(parts)


def _own_gates(case: Mapping[str, Any]) -> str:
    return _gates(case["verdicts"])


def _gates(gates: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (gate["title"], gate["target"], gate["measured"], _WORDS[gate["passed"]]) for gate in gates
    ]
    return markdown_table(("gate", "target", "measured", ""), rows)


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


_PARTS: Mapping[str | None, Callable[[Mapping[str, Any]], str]] = {
    None: _table,
    "rates": _rates,
    "gates": _own_gates,
}


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
            shown = figures.text(found["case"], found["part"] and found["part"].strip())
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
