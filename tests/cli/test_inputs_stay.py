"""Nothing that is read is written over in silence, and nothing is left out in silence."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.corpora.formats import json_lines
from lookalike.errors import ArgumentError, DocumentError

LINE = '{"id": 1, "text": "a document of several words"}\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text(LINE * 3)
    Path("old.jsonl").write_text(LINE)
    Path("link.jsonl").symlink_to("a.jsonl")
    Path("hard.jsonl").hardlink_to("a.jsonl")
    Path("folder").mkdir()
    Path("folder", "one.md").write_text("one document")
    Path("folder", "way").symlink_to("..")
    return tmp_path


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


NAMES = (
    "a.jsonl",
    "./a.jsonl",
    "link.jsonl",
    "hard.jsonl",
    "folder/../a.jsonl",
    "folder/way/a.jsonl",
)


GIVEN = (
    ["a.jsonl"],
    ["*.jsonl"],
    ["old.jsonl", "a.jsonl"],
    ["old.jsonl", "--against", "a.jsonl"],
    ["old.jsonl", "--against", "[a]*.jsonl"],
)


@pytest.mark.parametrize("option", ["-o", "--pairs", "--report", "--save-signatures"])
@pytest.mark.parametrize("name", NAMES)
def test_no_output_takes_the_place_of_an_input(
    option: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents()
    for given in GIVEN:
        assert main(["dedup", *given, option, name]) == 1
        told = capsys.readouterr().err
        assert re.search("(also an input|is read).*(choose|give) another name", told)
        assert ("--in-place" in told) == (option == "-o" and "--against" not in given)
    assert contents() == before


@pytest.mark.parametrize("option", ["--pairs", "--report", "--save-signatures"])
def test_nor_that_of_a_file_of_a_folder(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents()
    for given in (["folder"], ["a.jsonl", "--against", "folder"], ["*older"]):
        assert main(["dedup", *given, option, "folder/one.md"]) == 1
        assert re.search("also an input|is read|is in the input folder", capsys.readouterr().err)
    assert contents() == before


def test_other_commands_leave_their_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sign", "a.jsonl", "-o", "s.lookalike", "--quiet"]) == 0
    Path("s.csv").symlink_to("s.lookalike")
    Path("t.npy").hardlink_to("a.jsonl")
    before = contents()
    for arguments in (
        ["sign", "a.jsonl", "--like", "s.lookalike", "-o", "s.lookalike"],
        ["sign", "a.jsonl", "-o", "t.npy"],
        ["index", "s.lookalike", "-o", "s.csv"],
        ["pairs", "s.lookalike", "--radius", "3", "-o", "s.csv"],
        ["demo", "folder", "--report", "folder/one.md"],
    ):
        assert main(arguments) == 1
        assert "which is also an input; choose another name" in capsys.readouterr().err
    assert contents() == before


def test_new_signatures_may_take_the_place_of_the_old() -> None:
    again = ["--save-signatures", "s.lookalike", "--quiet"]
    assert main(["dedup", "old.jsonl", *again]) == 0
    assert main(["dedup", "a.jsonl", "--against", "s.lookalike", *again]) == 0
    assert len(la.load_signatures("s.lookalike").signatures) == 1


@pytest.mark.parametrize(
    "given",
    [["a.jsonl"], ["a.jsonl", "-o", "a.jsonl"], ["a.jsonl", "-o", "link.jsonl"], ["link.jsonl"]],
    ids=" ".join,
)
def test_in_place(given: list[str]) -> None:
    Path("a.jsonl").chmod(0o640)
    assert main(["dedup", *given, "--in-place", "--quiet"]) == 0
    assert Path("a.jsonl").read_text() == LINE
    assert Path("link.jsonl").is_symlink()  # a link stays one
    assert Path("hard.jsonl").read_text() == LINE * 3  # another name of what there was
    assert stat.S_IMODE(Path("a.jsonl").stat().st_mode) == 0o640  # who may read it


def test_in_place_by_a_hard_link_takes_that_name_alone() -> None:
    assert main(["dedup", "a.jsonl", "-o", "hard.jsonl", "--in-place", "--quiet"]) == 0
    assert Path("hard.jsonl").read_text() == LINE
    assert Path("a.jsonl").read_text() == LINE * 3


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.json", "a.parquet", "a.txt", "a.jsonl.gz"])
def test_in_place_in_every_format(name: str) -> None:
    text = [f"a document of several words {at}" for at in (1, 1, 2)]
    if name.endswith(".txt"):
        Path(name).write_text("".join(f"{one}\n" for one in text))
    else:
        la.dedup(
            [{"id": at, "text": one} for at, one in enumerate(text)], verify=False
        ).write_annotated(name)
    again = la.dedup(name)
    assert main(["dedup", name, "--in-place", "--quiet"]) == 0
    assert [la.dedup(name).text(row) for row in range(2)] == [text[0], text[2]]
    with pytest.raises(DocumentError, match="has changed since it was read"):
        again.write("b.jsonl")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["old.jsonl", "a.jsonl"], "replaces one file"),
        (["folder"], "replaces one file"),
        (["folder/one.md"], "replaces one file"),
        (["a.jsonl", "-o", "b.jsonl"], "but -o is b.jsonl"),
        (["hard.txt", "--format", "jsonl"], "read as 'jsonl' and would be written as 'text'"),
        (["a.jsonl", "--against", "link.jsonl"], "-o is a.jsonl, which is also an input"),
    ],
)
def test_in_place_is_refused(
    given: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("hard.txt").hardlink_to("a.jsonl")
    before = contents()
    assert main(["dedup", *given, "--in-place"]) == 1
    assert told in capsys.readouterr().err
    assert contents() == before


def test_in_python(here: Path) -> None:
    result = la.dedup("a.jsonl")
    with pytest.raises(ArgumentError, match="in_place=True"):
        result.write(here / "link.jsonl")
    assert result.write("a.jsonl", in_place=True) == 1
    assert Path("a.jsonl").read_text() == LINE


@pytest.mark.parametrize("in_place", [False, True])
def test_an_input_that_changes_while_it_is_copied(
    in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The beginning of the old lines and the end of the new ones would be nobody's documents."""
    lines = [json.dumps({"id": at, "text": f"document number {at}"}) + "\n" for at in range(9)]
    Path("b.jsonl").write_text("".join(lines))
    result = la.dedup("b.jsonl")
    new = "".join(lines).replace("document", "DOCUMENT")
    lines_of = json_lines.JsonLinesCorpus.lines

    def changing(corpus: json_lines.JsonLinesCorpus, problems: object) -> object:
        yield from lines_of(corpus, problems)  # type: ignore[arg-type]
        os.utime("b.jsonl")  # a file system that counts seconds is not what this is about
        Path("b.jsonl").write_text(new)

    monkeypatch.setattr(json_lines.JsonLinesCorpus, "lines", changing)
    Path("c.jsonl").write_text("as it was")
    with pytest.raises(DocumentError, match="has changed since it was read"):
        result.write("b.jsonl" if in_place else "c.jsonl", in_place=in_place)
    assert Path("b.jsonl").read_text() == new and Path("c.jsonl").read_text() == "as it was"
    assert list(Path().glob(".*.tmp")) == []


@pytest.mark.parametrize("name", ["b.csv", "b.json", "b.parquet", "b.txt", "b.jsonl", "texts"])
def test_an_input_that_changes_while_it_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "texts":
        Path(name).mkdir()
        Path(name, "one.md").write_text("one")
    elif name.endswith(".txt"):
        Path(name).write_text("one\n")
    else:
        la.dedup([{"text": "one"}]).write(name)
    changed = Path(name, "one.md") if name == "texts" else Path(name)
    corpus = la.corpora.open_corpus(name)
    read = type(corpus).read

    def changing(self: object, *given: object) -> object:
        yield from read(self, *given)  # type: ignore[arg-type]
        os.utime(changed, ns=(0, changed.stat().st_mtime_ns + 1))

    monkeypatch.setattr(type(corpus), "read", changing)
    with pytest.raises(DocumentError, match="has changed since it was read"):
        la.dedup(name)
    assert main(["sign", name, "-o", "b.lookalike"]) == 1
    assert not Path("b.lookalike").exists()


# What a user without rights meets. The tests may run as root, whom nothing is closed to: a process
# of its own gives its rights up.

AS_SOMEBODY = """
import os, sys
import lookalike as la
from lookalike.cli import main
from lookalike.cli.commands import dedup, sign
la.dedup("folder").summary()  # imports what root alone may read
main(["dedup", "folder", "--quiet"])
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
sys.exit(main(sys.argv[1:]))
"""


def run_as_somebody(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", AS_SOMEBODY, *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture
def closed() -> Iterator[Path]:
    # Not in pytest's folders: any other run of pytest closes the one above all to other users.
    with TemporaryDirectory(prefix="lookalike-test-") as folder:
        Path(folder).chmod(0o755)
        top = Path(folder, "top")
        for name in ("open", "shut", "names"):
            (top / name).mkdir(parents=True)
            (top / name / "one.txt").write_text(f"a document in {name}")
        (top / "shut").chmod(0)
        (top / "names").chmod(0o744 if os.geteuid() == 0 else 0o444)
        yield top
        for folder_again in (top, *top.iterdir()):
            folder_again.chmod(0o755)


def test_a_folder_that_cannot_be_read_is_named(closed: Path) -> None:
    done = run_as_somebody("dedup", str(closed))
    assert done.returncode == 1
    assert f"{closed}/names/one.txt: cannot be read" in done.stderr and "--skip-bad" in done.stderr
    done = run_as_somebody("dedup", str(closed), "--skip-bad", "--json")
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)["counts"]
    assert counts["documents"] == 1 and counts["bad_rows"] == 2
    assert f"left out: {closed}/shut: cannot be read" in done.stderr
    assert f"left out: {closed}/names/one.txt: cannot be read" in done.stderr
    for pattern in (f"{closed}/**/*.txt", f"{closed}/*/*.txt"):
        done = run_as_somebody("dedup", pattern, "--format", "files", "--skip-bad")
        assert done.returncode == 1 and "shut" in done.stderr
    closed.chmod(0)
    done = run_as_somebody("dedup", str(closed), "--skip-bad")
    assert done.returncode == 1 and f"{closed}: cannot be read" in done.stderr


def test_rows_that_are_left_out_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.jsonl").write_text(LINE + "{\n" * 12)
    assert main(["sign", "a.jsonl", "-o", "s.lookalike", "--quiet"]) == 0
    for command in (
        ["dedup", "bad.jsonl", "--quiet"],
        ["sign", "bad.jsonl", "-o", "t.npy", "--quiet"],
        ["search", "s.lookalike", "--file", "bad.jsonl"],
    ):
        assert main([*command, "--skip-bad"]) == 0
        told = capsys.readouterr().err
        assert "left out: bad.jsonl, line 2: is not JSON" in told and "left out: 2 more" in told


def test_links_in_a_circle_come_to_an_end() -> None:
    """Each folder leads to each other one: as a tree, they have more paths than can be counted."""
    folders = [Path("circle", str(at)) for at in range(12)]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "x.jsonl").write_text(LINE)
        for other in folders:
            (folder / f"to-{other.name}").symlink_to(f"../{other.name}")
    Path("circle", ".hidden").mkdir()
    Path("circle", ".hidden", "x.jsonl").write_text(LINE)
    Path("circle", "elsewhere").symlink_to("../beyond")
    Path("beyond").mkdir()
    Path("beyond", "x.jsonl").write_text(LINE)
    expected = [*(f"circle/{at}/x.jsonl" for at in range(12)), "circle/elsewhere/x.jsonl"]
    for pattern in ("circle/**/*.jsonl", "circle/**/x.jsonl", "**/circle/**/x.jsonl"):
        found = la.corpora.open_corpus(pattern).files
        assert sorted(map(str, found)) == sorted(expected)
    assert list(map(str, la.corpora.open_corpus("circle/**/*").files[:1])) == ["circle/0/x.jsonl"]
    assert la.dedup("circle/**/*.jsonl").counts.documents == 13


def test_files_that_cannot_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever look at the input or its folder fails, the error is ours and nothing is written."""
    real, looks = os.stat, 0

    def failing(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        nonlocal looks
        if str(path) in (str(source), str(tmp_path)):
            looks += 1
            if looks == chosen:
                raise OSError(errno.EIO, "Input/output error", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", failing)
    source, target = tmp_path / "corpus.jsonl", tmp_path / "out.jsonl"
    source.write_text(LINE * 3)
    status, chosen = 1, 0
    while status:
        chosen, looks = chosen + 1, 0
        status = main(["dedup", str(source), "-o", str(target), "--quiet"])
        if status:
            assert capsys.readouterr().err.startswith(f"lookalike: {tmp_path}")
            assert not target.exists()
        elif looks >= chosen:  # one that did no harm
            target.unlink()
            status = 1
    assert chosen > 5
