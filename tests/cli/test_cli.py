from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

import lookalike as la
from lookalike.cli import COMMANDS, main
from lookalike.cli.commands.serve import fill_example


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert re.search(rf"^  {command}\b", text, re.MULTILINE)


def test_a_command_imports_none_of_the_others() -> None:
    code = (
        "import sys; from lookalike.cli import COMMANDS, main; main(['kernels'])\n"
        "print(*(name for name in COMMANDS if f'lookalike.cli.commands.{name}' in sys.modules))"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "kernels"


def test_an_unknown_command_is_told_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["dedupe"])
    assert stop.value.code == 2
    assert "'dedupe'" in (error := capsys.readouterr().err)
    for command in COMMANDS:
        assert command in error


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"lookalike {la.__version__}\n"


def test_kernels_marks_the_one_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels"]) == 0
    lines = capsys.readouterr().out.splitlines()
    active = [kernel.name for kernel in la.signatures.kernels() if kernel.active]
    assert [line.split()[0] for line in lines if line.endswith("in use")] == active
    assert len(lines) == len(la.signatures.kernels())


def test_demo_shows_the_copies_in_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = "\n".join(f"def function_{number}(value): return value" for number in range(50))
    for name, text in {
        "a.py": source,
        "vendored/a.py": source + "\n# a copy",
        "c.py": "print('something else')",
        "LICENSE": "Permission is granted to whom it may concern",
        "image.png": "not looked at",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    report, database = tmp_path / "report.html", tmp_path / "the demo.db"
    made = ["--report", str(report), "--collection", str(database)]
    assert main(["demo", str(tmp_path), *made]) == 0
    text = capsys.readouterr().out
    assert "4 source files" in text
    assert "near-duplicates               1" in text
    assert "2 files, of which is kept:" in text and "vendored/a.py  (" in text
    assert "vendored/a.py" in report.read_text()
    with la.open_collection(database, create=False) as docs:
        assert len(docs) == 4 and docs.get(str(tmp_path / "a.py")) is not None
    assert main(["demo", str(tmp_path), *made]) == 0  # once more
    assert capsys.readouterr().out.count("A collection of 4 files") == 1


def test_the_commands_that_the_demo_names_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All three are run as they are printed, in a shell."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    for name, end in (("one", ""), ("two", " and an end")):
        (folder / f"it's {name}.txt").write_text(" ".join(f"word{n}" for n in range(99)) + end)
    made = ["--report", str(tmp_path / "r.html"), "--collection", str(tmp_path / "it's.db")]
    assert main(["demo", str(folder), *made]) == 0
    printed = capsys.readouterr().out
    commands = [line.strip() for line in printed.splitlines() if line.startswith("  lookalike ")]
    assert [command.split()[1] for command in commands] == ["compare", "collection", "serve"]
    commands = [
        one.replace("lookalike", f"{sys.executable} -m lookalike.cli", 1) for one in commands
    ]
    compare, search = (
        subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        for command in commands[:2]
    )
    assert compare.returncode == search.returncode == 0, (compare.stderr, search.stderr)
    assert "{+and an end+}" in compare.stdout
    assert "it's two.txt" in search.stdout
    serve = subprocess.Popen(
        ["bash", "-c", f"exec {commands[2]}"],
        env={**os.environ, "LOOKALIKE_SERVE_PORT": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert serve.stdout is not None
        address = serve.stdout.readline().rsplit(" at ", 1)[1].strip().rstrip("/")
        with urlopen(f"{address}/v1/collections") as answer:
            assert [one["name"] for one in json.load(answer)["collections"]] == ["documents"]
    finally:
        serve.terminate()
        serve.communicate(timeout=30)


def test_the_example_of_the_service_is_made_as_users_make_theirs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, name = tmp_path / "python-docs.jsonl", "python-docs"
    count = fill_example(tmp_path / "example.db", file)
    own = [str(tmp_path / "own.db"), "--name", name]
    assert main(["collection", "create", *own]) == 0
    assert main(["collection", "import", own[0], str(file), "--name", name]) == 0
    assert f"added {count}, replaced 0, left out 0" in capsys.readouterr().out
    with (
        la.open_collection(tmp_path / "example.db", name, create=False) as one,
        la.open_collection(tmp_path / "own.db", name, create=False) as two,
    ):
        assert one.signer == two.signer and count > 1_000
        assert one.stats()["words"] == two.stats()["words"] == "porter"
        assert one.search("open a file").by == "words"
        for some, others in zip(one.pages(), two.pages(), strict=True):
            assert [(each.id, each.text, each.metadata) for each in some] == [
                (each.id, each.text, each.metadata) for each in others
            ]


def test_an_error_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("lookalike: no source files")
    assert main(["demo", str(tmp_path / "new")]) == 1
    assert "new is not a folder; give a folder" in capsys.readouterr().err


def test_no_command_is_wrong_usage() -> None:
    result = subprocess.run([sys.executable, "-m", "lookalike.cli"], capture_output=True, text=True)
    assert result.returncode == 2 and not result.stdout
    assert all(f"\n  {name}" in result.stderr for name in COMMANDS)  # and shows what there is


def test_shells_complete_commands_and_options(tmp_path: Path) -> None:
    """bash itself is asked what may follow."""
    script = tmp_path / "lookalike.bash"
    command = [sys.executable, "-m", "lookalike.cli", "completion", "bash"]
    script.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    asking = (
        "source {0}; complete -p lookalike >/dev/null\n"
        "COMP_WORDS=(lookalike {1}); COMP_CWORD={2}; COMPREPLY=(); _shtab_lookalike lookalike\n"
        'echo "${{COMPREPLY[@]}}"'
    )

    def completed(words: str, place: int) -> list[str]:
        lines = ["bash", "-c", asking.format(script, words, place)]
        return subprocess.run(lines, capture_output=True, text=True, check=True).stdout.split()

    assert completed("de", 1) == ["dedup", "decontaminate", "demo"]
    assert completed("dedup --thres", 2) == ["--threshold"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_the_script_of_every_shell(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(command in script for command in COMMANDS)
