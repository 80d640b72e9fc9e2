"""The page is kept section by section, and its first lines are what sections come to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import papers.__main__ as program
import pytest
from papers.__main__ import DOCUMENTS, Document, write
from papers.page import Page, Section, Verdict, begins_with, section_name
from papers.shared import World

DOCS = Path(__file__).parents[2] / "docs"


def section(title: str, text: str, verdict: Verdict | None = None) -> Section:
    return Section(title, text, ("a", "b"), [("1", "2")], verdict=verdict)


def test_names_of_sections() -> None:
    assert section_name("psm", "Figure 9(a): throughput") == "psm-figure-9-a"
    assert section_name("issl", "500 million: one machine") == "issl-500-million"
    assert begins_with("psm-figure-9-a", "psm-figure-9")
    assert begins_with("draft", "draft")
    assert not begins_with("psm-figure-10", "psm-figure-1")


def test_a_run_of_some_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"one": "First said.", "two": "First said.", "more": "yes"}

    def first(world: World) -> Iterator[Section]:
        yield section("Table 1: one", said["one"], Verdict("Holds", "It does."))
        if said["more"]:
            yield section("Table 1 once more: again", said["one"])

    def second(world: World) -> Iterator[Section]:
        yield section("Table 2: two", said["two"], Verdict("Does not hold", "Two is three."))

    document = Document("a", "A (B, 2000)", [(["a-table-1"], first), (["a-table-2"], second)])
    monkeypatch.setattr(program, "DOCUMENTS", (document,))
    write(tmp_path, "tiny", None)
    page = tmp_path / "papers.md"
    whole = page.read_text()
    assert whole.startswith(
        "# The papers, repeated\n\n"
        "- **Holds.** [B, 2000: Table 1](#a-table-1). It does.\n"
        "- **Does not hold.** [B, 2000: Table 2](#a-table-2). Two is three.\n\n"
        "lookalike implements"
    )
    write(tmp_path, "tiny", None, "a-table-2")
    assert page.read_text() == whole
    said.update(two="Said again.", one="Not asked for.")
    write(tmp_path, "tiny", None, "a-table-2")
    assert page.read_text() == whole.replace("three.\n\nFirst said.", "three.\n\nSaid again.")
    said.update(one="Said again.", more="")
    write(tmp_path, "tiny", None, "nothing,a-table-1")
    text = page.read_text()
    assert re.findall(r"^### (.*)$", text, re.MULTILINE) == ["Table 1: one", "Table 2: two"]
    assert "First said." not in text
    assert text.index("## A (B, 2000)") < text.index('<a id="a-table-1">') < text.index("Table 2: ")


@pytest.mark.parametrize(
    ("parts", "claim"),
    [([True, True], "Holds"), ([True, False], "Holds in part"), ([False], "Does not hold")],
)
def test_verdicts(parts: list[bool], claim: str) -> None:
    assert Verdict.of(parts, "why") == Verdict(claim, "why")  # type: ignore[arg-type]


def test_the_page_of_the_repository(tmp_path: Path) -> None:
    """Its first lines are 16 at most, what they link to is there, and it is as it is written."""
    text = (DOCS / "papers.md").read_text()
    page = Page(DOCS / "papers.md")
    first = text.split("\n\n")[1].splitlines()
    assert 8 <= len(first) <= 16
    for line in first:
        assert re.match(r"- \*\*(Holds|Holds in part|Does not hold)\.\*\* \[.*\]\(#.*\)\. ", line)
    assert set(re.findall(r"\(#([a-z0-9-]+)\)", text)) <= set(page.sections)
    assert set(re.findall(r"\]\((papers/.*)\)", text)) == {
        f"papers/{picture.name}" for picture in (DOCS / "papers").iterdir()
    }
    for part in page.sections.values():
        assert re.search(r"^\*(Run|Kept from a run) on .* at the size `\w+`, ", part, re.MULTILINE)
    page.path = tmp_path / "papers.md"
    names = {one.title: [name for each, _ in one.experiments for name in each] for one in DOCUMENTS}
    page.write(program.INTRODUCTION, names)
    assert page.path.read_text() == text
