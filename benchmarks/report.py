"""Results for people, as aligned tables, and for programs, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.harness import Result, Verdict

__all__ = ["RESULTS", "case_table", "gate_table", "machine_lines", "summary_table", "write_json"]

RESULTS = Path(__file__).parent / "results"


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with the first column to the left and the others to the right."""
    lines = [heading, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def machine_lines(machine: dict[str, Any]) -> str:
    """Return the description of the machine as lines of name and value."""

    def plain(value: Any) -> str:
        if isinstance(value, dict):
            return ", ".join(f"{key}: {each}" for key, each in value.items())
        return str(value)

    rows = [(name.replace("_", " "), plain(value)) for name, value in machine.items()]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)


def case_table(result: Result) -> str:
    """Return the times of one case, ours first; a scaled time is marked."""
    ours = result.measurements[0]
    unit, units = ("µs", 1e6) if ours.best < 1e-4 else ("ms", 1e3)
    rows = [
        (
            f"  {each.name}" + (f" (time of 1/{each.scale:g})" if each.scale != 1 else ""),
            f"{units * each.best:.3f}",
            f"{units * each.median:.3f}",
            str(each.runs),
            f"{each.times_as_long_as(ours):.2f}",
        )
        for each in result.measurements
    ]
    heading = ("  contender", f"best {unit}", f"median {unit}", "runs", "x ours")
    return f"{result.name}: {result.title}\n{table(heading, rows)}"


def summary_table(results: Sequence[Result]) -> str:
    """Return one line per case: our best time, and how many times longer each rival took."""
    ours = [result.measurements[0] for result in results]
    rivals = [
        {each.name: each for each in result.measurements[1:] if each.is_rival} for result in results
    ]
    names = list(dict.fromkeys(chain.from_iterable(rivals)))
    rows = [
        (
            result.name,
            f"{1e3 * our.best:.3f}",
            *(f"{its[name].times_as_long_as(our):.2f}" if name in its else "-" for name in names),
        )
        for result, our, its in zip(results, ours, rivals, strict=True)
    ]
    return table(("best time of rival / ours", "ours ms", *names), rows)


def gate_table(verdicts: Sequence[Verdict]) -> str:
    """Return what each gate demands, what was measured, and whether that is enough."""
    words = {True: "PASS", False: "MISS", None: "not judged"}
    rows = [(each.title, each.target, each.measured, words[each.passed]) for each in verdicts]
    return table(("gate", "target", "measured", "verdict"), rows)


def write_json(
    path: Path,
    machine: dict[str, Any],
    results: Sequence[Result],
    verdicts: Sequence[Verdict],
    tables: Mapping[str, str] | None = None,
) -> None:
    """Write all that was measured, in seconds, and the table of each case.

    Makes the folder if it does not exist.
    """
    cases = [{**asdict(result), "table": (tables or {}).get(result.name)} for result in results]
    content = {
        "machine": machine,
        "gates": [asdict(verdict) for verdict in verdicts],
        "cases": cases,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
