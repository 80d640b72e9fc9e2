"""The style check of `make check` finds what it is there for, and leaves correct English alone."""

from __future__ import annotations

import pytest
from tools.check_style import (
    Text,
    findings,
    help_texts,
    main,
    module_texts,
    page_texts,
    web_texts,
)


def rules(text: str) -> list[str]:
    return [finding.rule for finding in findings(Text("x.md", [(1, text)]))]


@pytest.mark.parametrize(
    "text",
    [
        "the path is no file",
        "rows that are no UTF-8 are skipped",
        "the key is none: expected a text",
        "10,000 results unless told otherwise",
        "the error tells the position",
        "so many bits may differ",
        "a process that nobody misses",
        "whoever asked has disconnected",
        "which document stays",
        "keep the copy that goes",
        "documents that are alike",
        "the likeness of two texts",
        "the signatures are believed",
        "one task settles it",
        "the file lies in a folder",
        "an id that stands for it",
        "a process of its own.",
        "if asked for, it is written",
        "the one that is kept",
        "the survivors of a run",
        "documents who differ",
        "the nearest neighbour",
        "normalised vectors",
        "grey values",
        "the centres of groups",
        "a request was cancelled",
        "word " * 26,
    ],
)
def test_bad_style_is_found(text: str) -> None:
    assert len(rules(text)) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "There is no such file. The path is no longer used, and no faster.",
        "A distance that lies between 0 and 64 is allowed.",
        "One option goes with another, and the search goes on.",
        "A page of its own index is damaged.",
        "The recall is at least the recall that you asked for.",
        "Windows and Linux users alike can run it.",
        "Four analyses of a parallel promise, exercised by the kernel.",
        "One sentence. " * 26,
        "It is never 3.11.2, v1.2 or `a.b`. " * 4,
    ],
)
def test_correct_english_is_left_alone(text: str) -> None:
    assert rules(text) == []


def found_in(texts: object) -> list[tuple[int, str]]:
    return [(one.line, one.text) for text in texts for one in findings(text)]  # type: ignore[attr-defined]


def test_pages_without_code_tables_and_addresses() -> None:
    page = """# The nearest neighbour

Text with `neighbour` in code and a [link](neighbour.md),
on two lines, one of which says
neighbour.

```python
neighbour = 1
```

| neighbour | is a cell |
| --- | --- |

- one item of a list
- the colour
"""
    lines = [(1, "neighbour"), (5, "neighbour"), (15, "colour")]
    assert found_in(page_texts("x.md", page)) == lines


def test_messages_and_docstrings() -> None:
    module = '''"""Neighbours of a private kind."""
import warnings
def public(name):
    """Return the first neighbour."""
    if name:
        raise ValueError(f"{name} is no file, "
            "but a folder")
    warnings.warn("so many " + name)
    raise ArgumentError(Said("radius"), " is believed" if name else "")
def _private():
    """The colour is not for people."""
    return "nor is this colour"
'''
    found = sorted(found_in(module_texts("x.py", module)))
    assert [line for line, _ in found] == [4, 6, 8, 9]
    assert found[1][1] == "... `…` is no file, but a folder ..."


def test_texts_of_web_pages_and_scripts() -> None:
    page = "<p class='neighbour of it'>The {{ count }} nearest\n neighbour</p>{% if the colour %}"
    assert found_in(web_texts("x.html", page)) == [(1, "neighbour")]
    script = 'const colour = 1;\nshow("the colour of it", `${colour} of a grey map`, "colour");'
    assert found_in(web_texts("x.js", script)) == [(2, "colour"), (2, "grey")]


def test_help_is_collected_from_the_parser() -> None:
    texts = list(help_texts())
    assert len(texts) > 200
    assert {text.file.rpartition("/")[2] for text in texts} >= {"dedup.py", "serve.py"}


def test_paths_limit_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tests"]) == 0
    assert "no findings" in capsys.readouterr().out
