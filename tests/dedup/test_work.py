"""Long work: killed and resumed, out of disk, within its memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from dedup.test_dedup import corpus
from lookalike.jobs.work_folder import WorkFolder

TEXTS = corpus(11, 400)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return path


KILLED = """
import os, signal, sys
import lookalike as la
import lookalike.corpora.formats.lines, lookalike.dedup.sign, lookalike.dedup.verify
sys.modules["lookalike.corpora.formats.lines"].BATCH_BYTES = 20_000
sys.modules["lookalike.dedup.sign"]._AT_A_TIME = 64
sys.modules["lookalike.dedup.verify"]._PAIRS_AT_A_TIME = 16
left = int(sys.argv[3])

def progress(step, share):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

la.dedup(sys.argv[1], work=sys.argv[2], progress=progress)
"""


def test_killed_at_every_step_and_resumed(source: Path, tmp_path: Path) -> None:
    expected = la.dedup(source)
    work = tmp_path / "work"
    steps: list[str] = []
    la.dedup(source, progress=lambda step, share: steps.append(step))
    killed = 0
    for calls in range(1, 200, 4):
        run = subprocess.run(
            [sys.executable, "-c", KILLED, str(source), str(work), str(calls)], capture_output=True
        )
        assert run.returncode in (0, -signal.SIGKILL), run.stderr.decode()
        if run.returncode == 0:
            break
        killed += 1
    assert killed >= 4
    result = la.dedup(source, work=work)
    assert np.array_equal(result.keep, expected.keep)
    assert np.array_equal(result.duplicate_of, expected.duplicate_of)
    assert np.array_equal(result.pairs.similarity, expected.pairs.similarity)


def test_signing_goes_on_where_it_stopped(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["lookalike.dedup.sign"], "_AT_A_TIME", 50)
    signed: list[int] = []
    original = la.BBitMinHash.sign

    def counting(self: Any, documents: Any, **options: Any) -> Any:
        signed.append(len(documents))
        return original(self, documents, **options)

    monkeypatch.setattr(la.BBitMinHash, "sign", counting)

    class Stop(Exception):
        pass

    def stop(step: str, share: float) -> None:
        if step == "sign" and share > 0.5:
            raise Stop

    with pytest.raises(Stop):
        la.dedup(source, work=tmp_path / "work", progress=stop, threads=1)  # none is signed early
    before = sum(count for count in signed if count > 1)
    with open(tmp_path / "work" / "signatures", "ab") as file:
        file.write(b"torn")  # as a kill in the middle of writing would leave it
    signed.clear()
    result = la.dedup(source, work=tmp_path / "work")
    after = sum(count for count in signed if count > 1)
    assert "sign" in result.reused  # a part of it
    different = len(set(TEXTS))
    assert before + after == different and 0 < after < different
    assert np.array_equal(result.keep, la.dedup(TEXTS).keep)


def test_another_threshold_needs_no_new_signatures(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    la.dedup(source, work=work)

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("signed again")

    expected = la.dedup(TEXTS, threshold=0.5)
    with monkeypatch.context() as patch:
        patch.setattr(la.BBitMinHash, "sign", refuse)
        again = la.dedup(source, work=work, threshold=0.5, keep="last", grouping="star")
        assert again.counts.documents == len(TEXTS)
        result = la.dedup(source, work=work, threshold=0.5)
    assert np.array_equal(result.keep, expected.keep)
    with monkeypatch.context() as patch, pytest.raises(AssertionError, match="signed again"):
        patch.setattr(la.BBitMinHash, "sign", refuse)
        la.dedup(source, work=work, ngram=3)


@pytest.mark.parametrize("name", ["signatures", "read.json", "notes.txt", "lock", ".hidden"])
def test_a_folder_with_files_of_others_is_refused(source: Path, tmp_path: Path, name: str) -> None:
    work = tmp_path / "mine"
    work.mkdir()
    (work / name).write_text('{"precious": 1}')
    with pytest.raises(la.errors.FileError, match="give a new or empty folder"):
        la.dedup(source, work=work)
    assert [one.name for one in work.iterdir()] == [name]
    assert (work / name).read_text() == '{"precious": 1}'


def test_files_that_others_put_into_a_work_folder_stay(source: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    la.dedup(source, work=work)
    (work / "notes.txt").write_text("precious")
    assert la.dedup(source, work=work).reused
    (work / "lock").unlink()  # a copy may lack it: stamps tell as well
    assert la.dedup(source, work=work).reused
    assert (work / "notes.txt").read_text() == "precious"


def test_signing_that_was_done_while_reading_has_no_rate(source: Path) -> None:
    """The seconds of the step are those of the rest, which say nothing about its speed."""
    together, alone = (la.dedup(source, threads=threads) for threads in (2, 1))
    lines = [
        next(line for line in one.summary().splitlines() if line.split()[:1] == ["sign"])
        for one in (together, alone)
    ]
    assert together.to_dict()["overlapped"] == ["sign"] and alone.overlapped == ()
    assert lines[0].split()[2:] == ["-", "partly", "done", "while", "reading"]
    assert float(lines[1].split()[2].replace(",", "")) > 0 and len(lines[1].split()) == 3
    for one in (together, alone):
        rate = one.summary().splitlines()[-1].split()
        assert rate[0] == "all" and float(rate[2].replace(",", "")) > 0


def test_steps_of_an_earlier_run_are_told_and_have_no_rate(source: Path, tmp_path: Path) -> None:
    def lines(result: la.results.TextResult) -> dict[str, str]:
        table = result.summary().partition("documents/s")[2]
        return {line.split()[0]: line for line in table.splitlines() if line}

    work = tmp_path / "work"
    first = la.dedup(source, work=work, threads=1)
    assert first.reused == ()
    assert "earlier run" not in first.summary()
    assert not any(line.split()[2] == "-" for line in lines(first).values())
    other = la.dedup(source, work=work, threshold=0.5)
    assert other.reused == ("read", "sign")
    again = la.dedup(source, work=work, threshold=0.5)
    assert again.reused == ("read", "sign", "propose", "verify")
    assert list(again.seconds) == list(first.seconds)
    assert again.to_dict()["reused"] == list(again.reused)
    for result in (other, again):
        for step, line in lines(result).items():
            assert line.endswith("from an earlier run") == (step in result.reused)
            assert (line.split()[2] == "-") == (step in result.reused or step == "all")
    again.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().count("from an earlier run") == 4


def test_a_changed_corpus_is_read_again(source: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    assert la.dedup(source, work=work).counts.documents == len(TEXTS)
    with open(source, "a") as file:
        file.write(json.dumps({"text": TEXTS[0]}) + "\n")
    result = la.dedup(source, work=work)
    assert result.counts.documents == len(TEXTS) + 1 and not result.keep[-1]


def test_a_corpus_that_changed_since_is_not_written(source: Path, tmp_path: Path) -> None:
    result = la.dedup(source)
    lines = source.read_text().splitlines(keepends=True)
    source.write_text("".join(reversed(lines)))
    for job in (result.write, result.write_annotated, lambda path: result.kept()):
        with pytest.raises(la.errors.DocumentError, match="has changed since it was read"):
            job(tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_what_is_in_memory_is_read_again(tmp_path: Path) -> None:
    work = tmp_path / "work"
    assert la.dedup(["a b c"] * 2, work=work).counts.kept == 1
    assert la.dedup(["a b c", "d e f"], work=work).counts.kept == 2


@pytest.mark.parametrize("name", ["texts.ends", "texts.bytes", "signatures", "enough", "read.json"])
@pytest.mark.parametrize("damage", ["cut", "grown", "garbage"])
def test_damaged_work_is_an_error_or_done_again(
    name: str, damage: str, source: Path, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    expected = la.dedup(source, work=work)
    path = work / name
    data = path.read_bytes()
    changed = {"cut": data[:-3], "grown": data + b"xyz", "garbage": bytes(len(data))}[damage]
    path.write_bytes(changed)
    try:
        result = la.dedup(source, work=work)
    except la.LookalikeError:
        return
    assert (result.keep == expected.keep).all()
    assert (result.pairs.distance == expected.pairs.distance).all()


def test_a_damaged_signature_is_made_again(source: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    la.dedup(source, work=work)
    good = (work / "signatures").read_bytes()
    (work / "signatures").write_bytes(b"\xff" * 64 + good[64:])
    la.dedup(source, work=work)
    assert (work / "signatures").read_bytes() == good


def test_a_result_outlives_the_next_job_in_its_folder(source: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    result = la.dedup(source, work=work)
    la.dedup(["something else"], work=work)
    assert [result.text(row) for row in range(len(TEXTS))] == TEXTS


def test_a_column_of_ids_may_become_the_one_that_decides(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": TEXTS[0], "n": n}) + "\n" for n in (1, 10, 9)))
    assert la.dedup(path, work=tmp_path / "work", id="n").id(1) == "10"
    result = la.dedup(path, work=tmp_path / "work", keep="max:n")
    assert result.keep.tolist() == [False, True, False]


def test_two_jobs_cannot_have_one_folder(source: Path, tmp_path: Path) -> None:
    holder = WorkFolder(tmp_path / "work")
    with pytest.raises(la.errors.FileError, match="is in use by another job"):
        la.dedup(source, work=tmp_path / "work")
    holder.close()
    la.dedup(source, work=tmp_path / "work")


def test_a_temporary_folder_is_removed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = la.dedup(source)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.jsonl"]
    assert result.text(5) == TEXTS[5]  # the texts are still there for the report
    with pytest.raises(la.errors.DocumentError):
        la.dedup([1])
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.jsonl"]


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
from lookalike.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("limit", [1_000, 20_000, 60_000, 100_000])
def test_a_full_disk_is_a_clear_error_and_nothing_is_lost(
    limit: int, source: Path, tmp_path: Path
) -> None:
    """A limit on the size of files stands for the disk: both fail in write()."""
    work, out = tmp_path / "work", tmp_path / "out.jsonl"
    arguments = ["dedup", str(source), "--work", str(work), "-o", str(out)]
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), *arguments], capture_output=True, text=True
    )
    assert run.returncode == 1
    assert run.stderr.startswith("lookalike: ") and "cannot be written" in run.stderr
    assert "Traceback" not in run.stderr
    assert not out.exists() and not list(tmp_path.glob(".*"))
    result = la.dedup(source, work=work)
    assert np.array_equal(result.keep, la.dedup(TEXTS).keep)


MEASURED = """
import sys
import lookalike as la
most = 0

def measure(step, share):
    global most
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    most = max(most, int(fields["RssAnon"].split()[0]))

la.dedup(sys.argv[1], memory_limit=2 * 10**9, progress=measure)
print(most * 1024)
"""


def peak_memory(count: int, tmp_path: Path) -> int:
    """Return the most memory that so many short documents take, mapped files left out."""
    path = tmp_path / f"{count}.txt"
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        for row in rng.integers(0, 50_000, (count, 12)).tolist():
            file.write(" ".join(map(str, row)) + "\n")
    command = [sys.executable, "-c", MEASURED, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to be measured")
def test_memory_grows_by_less_than_200_bytes_a_document(tmp_path: Path) -> None:
    small, large = peak_memory(200_000, tmp_path), peak_memory(600_000, tmp_path)
    assert large < 2 * 10**9
    assert (large - small) / 400_000 < 200


def test_a_limit_that_is_too_small_is_refused() -> None:
    with pytest.raises(la.errors.ArgumentError, match="memory_limit is"):
        la.dedup(["a"] * 4_000_000, memory_limit=650 << 20)


INTERRUPTED = """
import os, signal, sys
import lookalike.cli.commands.dedup
from contextlib import contextmanager
from lookalike.cli import main

@contextmanager
def bars(quiet, *more, **options):
    def tell(step, share):
        if step == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
    yield tell

lookalike.cli.commands.dedup.progress_bars = bars
sys.exit(main(["dedup", *sys.argv[2:]]))
"""


@pytest.mark.parametrize("step", ["read", "sign", "propose", "verify", "group", "write"])
def test_an_interrupted_command_leaves_nothing(step: str, source: Path, tmp_path: Path) -> None:
    temporary, target = tmp_path / "temporary", tmp_path / "target"
    temporary.mkdir()
    target.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, step, str(source), "-o", str(target / "o.jsonl")],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert (run.returncode, run.stderr) == (130, "lookalike: interrupted\n")
    assert not list(temporary.iterdir()) and not list(target.iterdir())


def test_jobs_in_several_threads_do_not_meet(source: Path) -> None:
    expected = la.dedup(source)
    methods = ["minhash", "minhash", "simhash", "minhash"]
    with ThreadPoolExecutor(4) as threads:
        jobs = [
            threads.submit(la.dedup, source, method=method, threads=1 + at % 2)
            for at, method in enumerate(methods)
        ]
        results = [job.result() for job in jobs]
    for result in (results[0], results[1], results[3]):
        assert np.array_equal(result.keep, expected.keep)
        assert np.array_equal(result.pairs.similarity, expected.pairs.similarity)
    assert np.array_equal(results[2].keep, la.dedup(source, method="simhash").keep)
