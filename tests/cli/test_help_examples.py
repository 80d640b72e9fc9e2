"""The examples at the end of each help work: they are run on small files of the names they use."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from benchmarks.recordings.sounds import music
from PIL import Image

import lookalike as la
from lookalike.cli import full_parser, main
from lookalike.cli.commands import bench, demo
from support.cases.web_pages import crawl, page, response
from support.running.planned import COSTS
from support.services.running import process

BEFORE: dict[str, list[str]] = {
    "": [],
    "dedup": ["lookalike dedup yesterday.jsonl --save-signatures seen.lookalike"],
    "pairs": ["sign", "lookalike pairs corpus.lookalike --threshold 0.8 -o pairs.parquet"],
    "index": ["sign"],
    "search": ["index"],
    "match": [
        "lookalike sign new.jsonl -o new.lookalike",
        "lookalike sign more.jsonl -o queries.npy",
    ],
    "audio search": ["audio index"],
    "collection add": ["collection"],
    "collection get": ["animals"],
    "collection delete": ["animals"],
    "collection search": [
        "animals",
        "lookalike collection import docs.db animals.jsonl --vectors embedding",
    ],
    "collection stats": ["animals", "lookalike collection create docs.db --name pages"],
    "collection verify": ["animals"],
    "collection repair": ["animals"],
    "collection snapshot": ["animals"],
    "collection restore": ["collection snapshot", "rm docs.db"],
    "collection import": [
        "lookalike collection create docs.db",
        "lookalike collection create music.db --kind recordings",
    ],
    "collection export": ["animals"],
    "serve": ["animals", "lookalike sign new.jsonl -o part-1.lookalike"],
    "animals": [
        "lookalike collection create docs.db",
        'lookalike collection add docs.db fox "The quick brown fox jumps over the lazy dog"',
        """lookalike collection add docs.db owl "The owl sleeps" --metadata '{"lang": "en"}'""",
    ],
}
"""What is run before the examples of a help: lines, or the examples of another help."""

ELSEWHERE = re.compile(r"postgresql://|--device gpu")
"""In examples that need a database server or a GPU."""


def commands(
    parser: argparse.ArgumentParser, names: tuple[str, ...] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Yield each help and its examples, those of the details included."""
    examples, details = (getattr(parser, name) for name in ("examples", "details"))
    lines = [*examples.splitlines(), *re.findall(r"^  (?:.+ \| )?lookalike .*$", details, re.M)]
    yield " ".join(names), [line.strip() for line in lines]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, chosen in action.choices.items():
                yield from commands(chosen, (*names, name))


EXAMPLES = dict(commands(full_parser()))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the examples read."""
    made = tmp_path_factory.mktemp("inputs")
    with contextlib.chdir(made):
        write_texts()
        write_tables()
        write_media()
        for name in (".local/share/bash-completion/completions", ".config/fish/completions"):
            Path(name).mkdir(parents=True)
        Path(".zfunc").mkdir()
    return made


@pytest.fixture
def folder(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the inputs, which is the home folder too; no machine is measured for long."""
    home = shutil.copytree(inputs, tmp_path / "home")
    monkeypatch.chdir(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("lookalike.advice.machine.measure_costs", lambda: COSTS)
    monkeypatch.setattr(bench, "COUNT", 1000)
    monkeypatch.setattr(demo, "_installation", lambda: [home / "docs"])
    return home


def texts(count: int, seed: int) -> list[str]:
    """Return texts of which each third one is an edited copy of the one before."""
    random, made = np.random.default_rng(seed), list[str]()
    for number in range(count):
        words = [f"word{at}" for at in random.integers(0, 400, 60)]
        if number % 3 == 2:
            words = [*made[-1].split()[:-1], "edited"]
        made.append(" ".join(words))
    return made


def write_texts() -> None:
    for number, name in enumerate(("corpus", "today", "yesterday", "more", "new")):
        rows = [
            {"id": f"0704.{row:04}", "text": text} for row, text in enumerate(texts(90, number), 1)
        ]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("crawl.jsonl.gz").write_bytes(gzip.compress(Path("today.jsonl").read_bytes()))
    whole = " ".join(texts(3, 9))
    single = {"old": whole, "new": whole.replace("word1", "term1"), "part": whole[:300],
              "whole": whole, "quotation": whole[:300], "paragraph": whole[:300],
              "page": whole}  # fmt: skip
    for name, text in single.items():
        Path(f"{name}.txt").write_text(text)
    Path("README.md").write_text(whole)
    Path("evals").mkdir()
    questions = [{"question": " ".join(text.split()[:20])} for text in texts(5, 0)]
    Path("evals/trains.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    for number, name in enumerate(("rfcs", "docs", "letters", "projects")):
        Path(name).mkdir()
        for place, text in enumerate([whole, *texts(30, 20 + number)]):
            Path(f"{name}/{place}.txt").write_text(text)
    for name, text in (("rfc2068", "old"), ("rfc2616", "new")):
        Path(f"rfcs/{name}.txt").write_text(single[text])


def write_tables() -> None:
    random = np.random.default_rng(0)
    for name, count in (("rows", 600), ("new", 3)):
        vectors = random.normal(size=(count, 16)).astype(np.float32)
        table = {"id": [f"row {row}" for row in range(count)], "embedding": vectors.tolist()}
        pq.write_table(pa.table(table), f"{name}.parquet")
    Path("crawl").mkdir()
    for part in range(2):
        urls = [f"https://example.org/{part}/{row}" for row in range(20)]
        pq.write_table(
            pa.table({"url": urls, "content": texts(20, 30 + part)}), f"crawl/{part}.parquet"
        )
    linked = page("A page with links", links='<a href="next.html">the next one</a>')
    crawl(Path("crawl.warc.gz"), [response("http://a.example/", linked.encode())])
    for host in ("a.example", "b.example"):
        Path(f"mirrors/{host}").mkdir(parents=True)
        Path(f"mirrors/{host}/index.html").write_text(linked)
    signatures = la.SimHash(bits=64).sign(texts(1500, 40))
    np.save("signatures.npy", signatures)
    np.save("sample.npy", signatures[:1200])
    row = {"id": "ant", "text": "Ants carry leaves", "embedding": [0.5, 1.0]}
    Path("animals.jsonl").write_text(json.dumps(row) + "\n")
    np.save("fox.npy", np.array([1.0, 0.5]))


def write_media() -> None:
    Path("photos").mkdir()
    for number in range(4):
        pixels = np.random.default_rng(number % 3).integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels.repeat(8, 0).repeat(8, 1)).save(f"photos/{number}.png")
    rate = 8000
    for number, name in enumerate(("music", "podcasts")):
        Path(name).mkdir()
        soundfile.write(f"{name}/piece.wav", music(number, 12, rate), rate)
    snippet = music(0, 12, rate)[2 * rate : 10 * rate]
    for name in ("snippet.wav", "a.mp3", "b.ogg", "song.mp3"):
        soundfile.write(name, snippet, rate)


@pytest.mark.parametrize("help", EXAMPLES, ids=lambda help: help or "lookalike")
def test_examples_work(help: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for line in [*before(help), *EXAMPLES[help]]:
        if ELSEWHERE.search(line):
            continue
        if shutil.which("fpcalc") is None:  # later lines need the file that this one writes
            line = line.replace(" --hash chromaprint", "")
        status = run(line)
        assert status == 0, (line, capfd.readouterr().err)
        for target in re.findall(r"(?:-o|--output|--report|--dropped|>) ([\w./~-]+)", line):
            assert target == "-" or Path(target).expanduser().exists(), (line, target)


def before(help: str) -> Iterator[str]:
    for line in BEFORE.get(help, []):
        if line in EXAMPLES or line in BEFORE:
            yield from before(line)
            yield from EXAMPLES.get(line, [])
        else:
            yield line


def run(line: str) -> int:
    """Run a line as a shell does, and return its status; a service ends when it has answered."""
    if re.search(r"[|<>=]", line.partition(" lookalike ")[0]) or re.search(r" [|<>] ", line):
        function = f'lookalike() {{ {shlex.quote(sys.executable)} -m lookalike.cli "$@"; }}\n'
        return subprocess.run(["bash", "-o", "pipefail", "-c", function + line]).returncode
    words = [re.sub("^~", str(Path.home()), word) for word in shlex.split(line)]
    if words[0] == "rm":
        Path(words[1]).unlink()
        return 0
    if words[1] == "serve" and "--new-key" not in words:
        with process(*words[2:]) as served:
            place = "index" if words[2:3] == ["part-1.lookalike"] else "collections"
            assert served.service.good("GET", f"/v1/{place}")
        return 0
    return main(words[1:])


def test_examples_of_every_help_are_there() -> None:
    assert all(EXAMPLES.values())
    assert set(BEFORE) - {"animals"} <= set(EXAMPLES)
    left_out = [line for lines in EXAMPLES.values() for line in lines if ELSEWHERE.search(line)]
    assert len(left_out) <= 3
