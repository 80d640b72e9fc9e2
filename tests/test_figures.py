"""Figures in pages are those of the benchmark's own results."""

import json
from pathlib import Path

import pytest
from benchmarks.figures import REGION, Figures, main, pages, rewrite
from benchmarks.harness import Measurement, Verdict
from benchmarks.quality import QualityResult, quality_table
from benchmarks.report import write_json

PAGE = """# Speed

<!-- figures: jobs-small -->
<!-- end of figures -->

<!-- figures: jobs-small rates -->
older
<!-- end of figures -->

<!-- figures: jobs-small gates -->
<!-- end of figures -->

<!-- figures: jobs-lost -->
as it was
<!-- end of figures -->
"""
MACHINE = {
    "measured": "2026-01-02",
    "processor": "made-up processor",
    "cores": 2,
    "kernel": "scalar",
    "load_average": 0.25,
    "versions": {"lookalike": "7.0", "theirs-cpu": "1.2", "unused": "3"},
}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a folder with the results of one case: ours takes 2 s for 1,000, the other 8.1 s."""
    measurements = [
        Measurement("ours", 2.0, 2.5, 2, [2.0, 3.0], 1.0, True),
        Measurement("theirs | others", 8.0, 8.1, 2, [8.1, 8.0], 1.0, True),
    ]
    quality = {"ours": {"kept": 7.0}, "theirs | others": {"kept": 8.0}}
    verdicts = [Verdict("1. theirs / ours", ">= 5 x", "4.0 x", False)]
    nothing = dict.fromkeys(quality)
    result = QualityResult(
        "jobs-small", "a job", measurements, verdicts, 1000, nothing, nothing, quality, unit="row"
    )
    folder = tmp_path / "results"
    tables = {"jobs-small": quality_table(result)}
    write_json(folder / "jobs.json", MACHINE, [result], verdicts, tables)
    return folder


def test_pages_show_the_results_and_keep_what_was_not_measured(results: Path) -> None:
    missing: list[str] = []
    figures = Figures.read(results)
    written = rewrite(PAGE, figures, missing)
    table = json.loads((results / "jobs.json").read_text())["cases"][0]["table"]
    assert f"```\n{table}\n```" in written
    assert written.count("| 1. theirs / ours | >= 5 x | 4.0 x | **MISS** |") == 2
    assert "| ours | 500 | 1.0 |" in written
    assert "| theirs \\| others | 125 | 4.0 |" in written
    assert (
        written.count(
            "Measured on 2026-01-02 (lookalike 7.0, theirs 1.2): 2 cores, made-up processor"
        )
        == 3
    )
    assert "older" not in written
    assert "as it was" in written
    assert missing == ["jobs-lost is not among the results"]
    assert rewrite(written, figures, []) == written


def test_a_page_of_all_results_begins_with_what_was_missed(results: Path) -> None:
    found = json.loads((results / "jobs.json").read_text())
    found["cases"].append({**found["cases"][0], "name": "jobs-together", "table": None})
    gate = found["gates"][0]
    found["cases"][1]["verdicts"] = [
        {**gate, "title": "2. rows", "passed": True},
        {**gate, "title": "3. time", "passed": None},
    ]
    found["gates"] += [*found["cases"][1]["verdicts"], {**gate, "title": "4. of no case"}]
    (results / "later_jobs.json").write_text(json.dumps(found))
    shown = Figures.read(results).text("all")
    assert shown.startswith("1 of 4 targets were reached. Those missed:")
    assert shown.count("|  | 4. of no case | >= 5 x | 4.0 x |") == 1
    assert shown.count("| 4. of no case | >= 5 x | 4.0 x | **MISS** |") == 1
    assert shown.count("| jobs-small | 1. theirs / ours | >= 5 x | 4.0 x |") == 2
    assert shown.count("| 1. theirs / ours | >= 5 x | 4.0 x | **MISS** |") == 2
    assert shown.count("| 2. rows | >= 5 x | 4.0 x | pass |") == 1
    assert shown.count("| 3. time | >= 5 x | 4.0 x | not judged |") == 1
    assert [line for line in shown.splitlines() if line.startswith("#")] == [
        *("## Jobs", "### jobs-small"),
        *("## Later jobs", "### jobs-small", "### jobs-together"),
    ]
    assert shown.count("| theirs-cpu | 1.2 |") == 1, (
        "versions are told once, as long as they are the same"
    )
    assert shown.count("2 cores, made-up processor, kernel `scalar`, load before 0.25") == 2


def test_the_last_folder_counts(results: Path, tmp_path: Path) -> None:
    later = tmp_path / "later"
    later.mkdir()
    found = json.loads((results / "jobs.json").read_text())
    found["machine"]["measured"] = "2026-02-03"
    (later / "jobs.json").write_text(json.dumps(found))
    assert "2026-02-03" in Figures.read(results, later).text("jobs-small")
    assert "2026-01-02" in Figures.read(later, results).text("jobs-small")


def test_results_of_other_programs_are_not_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.json").write_text('{"rows": 1}')
    assert main([str(tmp_path)]) == 2
    assert "run `python -m benchmarks`" in capsys.readouterr().err


def test_regions_of_pages_are_whole() -> None:
    """A begin without an end, or a name that is not one, would never be written."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        assert len(REGION.findall(text)) == text.count("<!-- figures:"), path
        assert text.count("<!-- figures:") == text.count("<!-- end of figures -->"), path
