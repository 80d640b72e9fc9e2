"""Ids, texts, columns and file names that would like to command the terminal of whoever looks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from lookalike.cli import COMMANDS, main
from test_shown import is_harmless

# It sets the title, rings, turns the direction of writing, erases, goes to another line.
EVIL = "\x1b]0;owned\x07\x9b31m\u202e\u2066\u200f\u2028\x7f\r\nspoof\x1b[2J"
NAME = "\x1b[31m\u202e\x9bn\nx"
TEXTS = [f"the quick brown fox {EVIL} jumps over the lazy dog {number}" for number in range(3)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with chdir(tmp_path_factory.mktemp("hostile")):
        make_files()
        yield


def make_files() -> None:
    rows = [{"id": f"{EVIL}{at}", "text": text, EVIL: 1} for at, text in enumerate(TEXTS)]
    Path(f"{NAME}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path(f"{NAME}.bad.jsonl").write_text(f'{{"text": "{EVIL}"\n')
    Path("names.jsonl").write_text(json.dumps({EVIL: "a", f"{EVIL}2": "b"}) + "\n")
    Path("names.csv").write_text(f'"{EVIL}","{EVIL}"\n')
    for name, text in zip(("a", "b"), TEXTS, strict=False):
        Path(f"{NAME}{name}.txt").write_text(f"{text} {name}")
    Path(f"{NAME}.folder").mkdir()
    Path(f"{NAME}.folder", f"{NAME}.md").write_text(EVIL * 9)
    signed = f"{NAME}.lookalike"
    assert main(["sign", f"{NAME}.jsonl", "-o", signed, "--method", "simhash", "--quiet"]) == 0
    for action in (["create", "docs.db"], ["import", "docs.db", f"{NAME}.jsonl", "--quiet"]):
        assert main(["collection", *action]) == 0


CASES = {
    "dedup": ["dedup", f"{NAME}.jsonl", "-o", f"{NAME}.out.jsonl", "--report", f"{NAME}.html"],
    "dedup json": ["dedup", f"{NAME}.jsonl", "--pairs", f"{NAME}.csv", "--json"],
    "dedup folder": ["dedup", f"{NAME}.folder"],
    "dedup bad": ["dedup", f"{NAME}.bad.jsonl"],
    "dedup skipped": ["dedup", f"{NAME}.bad.jsonl", "--skip-bad"],
    "dedup no file": ["dedup", f"{NAME}.nothing"],
    "dedup no folder": ["dedup", f"{NAME}.jsonl", "-o", f"{NAME}/x.jsonl"],
    "dedup over input": ["dedup", f"{NAME}.jsonl", "-o", f"{NAME}.jsonl"],
    "dedup columns": ["dedup", "names.jsonl"],
    "undo no journal": ["undo", f"{NAME}.jsonl"],
    "undo no file": ["undo", f"{NAME}.nothing"],
    "dedup column": ["dedup", "names.jsonl", "--text", NAME],
    "dedup header": ["dedup", "names.csv"],
    "dedup keep": ["dedup", f"{NAME}.jsonl", "--keep", EVIL],
    "dedup format": ["dedup", f"{NAME}.jsonl", "-o", f"{NAME}.txt"],
    "cluster": ["cluster", f"{NAME}.jsonl", "-o", f"{NAME}.csv", "--report", f"{NAME}.html"],
    "cluster json": ["cluster", f"{NAME}.jsonl", "-k", "2", "--json"],
    "cluster folder": ["cluster", f"{NAME}.folder"],
    "cluster name": ["cluster", f"{NAME}.jsonl", "-o", NAME],
    "usage": ["dedup", f"{NAME}.jsonl", f"--{NAME}"],
    "choice": ["dedup", f"{NAME}.jsonl", "--format", NAME],
    "number": ["dedup", f"{NAME}.jsonl", "--memory-limit", NAME],
    "no command": [NAME],
    "demo": ["demo", f"{NAME}.folder", "--report", f"{NAME}.html"],
    "compare": ["compare", f"{NAME}a.txt", f"{NAME}b.txt"],
    "compare in color": ["compare", f"{NAME}a.txt", f"{NAME}b.txt", "--color", "always"],
    "compare json": ["compare", f"{NAME}a.txt", f"{NAME}b.txt", "--json"],
    "compare ids": ["compare", "--in", f"{NAME}.jsonl", f"{EVIL}0", f"{EVIL}1"],
    "compare no id": ["compare", "--in", f"{NAME}.jsonl", f"{EVIL}0", NAME],
    "compare no file": ["compare", f"{NAME}a.txt", NAME],
    "sign": ["sign", f"{NAME}.jsonl", "-o", f"{NAME}.2.lookalike"],
    "sign json": ["sign", f"{NAME}.jsonl", "-o", f"{NAME}.2.lookalike", "--json"],
    "sign like": ["sign", f"{NAME}.jsonl", "--like", NAME, "-o", f"{NAME}.2.lookalike"],
    "sign name": ["sign", f"{NAME}.jsonl", "-o", NAME],
    "index": ["index", f"{NAME}.lookalike", "-o", f"{NAME}.index"],
    "index json": ["index", f"{NAME}.lookalike", "-o", f"{NAME}.index", "--json"],
    "index of nothing": ["index", NAME, "-o", f"{NAME}.index"],
    "search": ["search", f"{NAME}.lookalike", TEXTS[0], EVIL],
    "search json": ["search", f"{NAME}.lookalike", TEXTS[0], "--json"],
    "search file": ["search", f"{NAME}.lookalike", "--file", f"{NAME}.jsonl"],
    "search nothing": ["search", f"{NAME}.lookalike", "\x1b\x9b"],
    "search no index": ["search", NAME, "x"],
    "match": ["match", f"{NAME}.runs", f"{NAME}.lookalike", "--duplicates", "--radius", "128"],
    "match json": ["match", f"{NAME}.runs", f"{NAME}.lookalike", "--json"],
    "match no file": ["match", f"{NAME}.runs", NAME],
    "match no runs": ["match", f"{NAME}.jsonl", f"{NAME}.lookalike"],
    "match over input": ["match", f"{NAME}.lookalike", f"{NAME}.lookalike"],
    "pairs": ["pairs", f"{NAME}.lookalike", "--radius", "128"],
    "pairs json": ["pairs", f"{NAME}.lookalike", "--radius", "128", "--json"],
    "pairs file": ["pairs", f"{NAME}.lookalike", "--radius", "128", "-o", f"{NAME}.csv"],
    "pairs name": ["pairs", f"{NAME}.lookalike", "--radius", "128", "-o", NAME],
    "passages": ["passages", f"{NAME}.jsonl", "--file", f"{NAME}a.txt", "--min-share", "0.1"],
    "passages in color": [
        *("passages", f"{NAME}.jsonl", "--file", f"{NAME}a.txt", "--color", "always", "--gap", "9")
    ],
    "passages json": ["passages", f"{NAME}.jsonl", "--file", f"{NAME}a.txt", "--json"],
    "passages no file": ["passages", f"{NAME}.jsonl", "--file", NAME],
    "overlaps": ["overlaps", f"{NAME}.jsonl", "--passage-words", "2", "--with-text"],
    "overlaps json": ["overlaps", f"{NAME}.jsonl", "--passage-words", "2", "--with-text", "--json"],
    "links": ["links", f"{NAME}.jsonl", "-o", f"{NAME}.out.csv"],
    "clean": ["clean", f"{NAME}.jsonl", "--passage-words", "2", "--dry-run"],
    "clean lines": ["clean", f"{NAME}.jsonl", "--unit", "line", "--json"],
    "decontaminate": ["decontaminate", f"{NAME}.jsonl", "--benchmarks", f"{NAME}.jsonl"],
    "overlaps file": ["overlaps", f"{NAME}.jsonl", "-o", f"{NAME}.out.csv"],
    "overlaps bad": ["overlaps", f"{NAME}.bad.jsonl", "--skip-bad"],
    "audio index": ["audio", "index", f"{NAME}.folder", "-o", f"{NAME}.parts"],
    "audio no folder": ["audio", "index", NAME],
    "audio search": ["audio", "search", f"{NAME}a.txt", "--index", NAME],
    "serve": ["serve", NAME, "--port", NAME],
    "serve no database": ["serve", f"{NAME}.jsonl", "--port", "0"],
    "evaluate": ["evaluate", NAME],
    "evaluate list": ["evaluate", NAME, "--expand", NAME],
    "plan": ["plan", "--count", NAME, "--bits", "64", "--radius", "3"],
    "kernels": ["kernels", NAME],
    "bench": ["bench", "--device", "gpu", "--count", NAME],
    "completion": ["completion", NAME],
    "create": ["collection", "create", f"{NAME}.db", "--name", "other"],
    "create named": ["collection", "create", "docs.db", "--name", NAME],
    "get": ["collection", "get", "docs.db", f"{EVIL}0", NAME],
    "get json": ["collection", "get", "docs.db", f"{EVIL}0", "--json"],
    "find": ["collection", "search", "docs.db", TEXTS[0]],
    "find json": ["collection", "search", "docs.db", TEXTS[0], "--json"],
    "find like": ["collection", "search", "docs.db", NAME, "--by-id"],
    "find where": ["collection", "search", "docs.db", "x", "--where", NAME],
    "add": ["collection", "add", "docs.db", f"{EVIL}0", EVIL],
    "import": ["collection", "import", "docs.db", f"{NAME}.jsonl", "--skip-bad"],
    "export": ["collection", "export", "docs.db", f"{NAME}.out.jsonl"],
    "snapshot": ["collection", "snapshot", "docs.db", f"{NAME}.backup"],
    "restore": ["collection", "restore", NAME, "docs.db"],
    "stats": ["collection", "stats", f"{NAME}.db"],
}


@pytest.mark.parametrize("case", CASES)
def test_no_control_character_is_printed(
    folder: None, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    try:
        main(CASES[case])
    except SystemExit as left:
        assert left.code == 2
    printed = capsys.readouterr()
    assert printed.out or printed.err
    for text in (printed.out, printed.err):
        if "color" in case:
            text, colors = re.subn(r"\x1b\[[0-9;]*m", "", text)
            assert colors or text is not printed.out
        assert [one for one in text if one not in "\n\t" and not is_harmless(one)] == []
        of_a_text = case.startswith(("compare", "get", "passages"))  # which has lines
        assert "\nspoof" not in text or of_a_text
    if case.endswith("json"):
        first = json.loads(printed.out.splitlines()[0])
        if "id" in first:
            assert first["id"].startswith(EVIL)  # for machines, as it is


def test_every_command_is_among_the_cases() -> None:
    assert {arguments[0] for arguments in CASES.values()} >= set(COMMANDS)
