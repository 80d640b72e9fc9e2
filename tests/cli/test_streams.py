"""Standard input and output: what goes in by a pipe comes out of it, and nothing else does."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.cli.terminal import standard_output
from support.cases.cli_corpus import many
from support.cases.web_pages import page, response

TEXTS = many(30)
ROWS = [{"id": f"d{at}", "text": text} for at, text in enumerate(TEXTS)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
TSV = ("id\ttext\n" + "".join(f"{row['id']}\t{row['text']}\n" for row in ROWS)).encode()
Piped = Callable[..., tuple[int, bytes, str]]
COMMAND = [sys.executable, "-m", "lookalike.cli"]


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


def kept_rows() -> list[dict[str, str]]:
    return [row for row, stays in zip(ROWS, la.dedup(TEXTS).keep.tolist(), strict=True) if stays]


def parquet_bytes() -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(pa.Table.from_pylist(ROWS), sink)
    return sink.getvalue()


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)


def run(
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    data: bytes,
    *arguments: str,
) -> tuple[int, bytes, str]:
    """Run a command in this process; return status, standard output and standard error."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    status = main(list(arguments))
    sys.stdout.flush()
    out, err = capfdbinary.readouterr()
    assert not list(Path("temporary").iterdir())  # nothing of the input is left
    return status, out, err.decode()


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Piped:
    return lambda data, *arguments: run(monkeypatch, capfdbinary, data, *arguments)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
def test_rows_and_nothing_else_go_to_standard_output(
    piped: Piped, pack: Callable[[bytes], bytes]
) -> None:
    Path("c.jsonl").write_bytes(LINES)
    assert main(["dedup", "c.jsonl", "-o", "unique.jsonl", "--quiet"]) == 0
    status, out, err = piped(pack(LINES), "dedup", "-", "-o", "-")
    assert status == 0 and out == Path("unique.jsonl").read_bytes()
    assert "kept documents: -" in err
    assert piped(LINES, "dedup", "-", "-o", "-", "--quiet") == (0, out, "")
    status, again, summary = piped(LINES, "dedup", "-", "-o", "-", "--json")
    assert again == out and json.loads(summary)["counts"]["kept"] == len(out.splitlines())


def test_other_formats_stay_what_they_are(piped: Piped) -> None:
    kept = kept_rows()
    _, out, _ = piped(TSV, "dedup", "-", "-o", "-", "--format", "tsv")
    assert [line.split("\t")[0] for line in out.decode().splitlines()[1:]] == [
        row["id"] for row in kept
    ]
    text = "".join(f"{line}\n" for line in TEXTS).encode()
    _, out, _ = piped(text, "dedup", "-", "-o", "-", "--format", "text")
    assert out.decode().splitlines() == [row["text"] for row in kept]
    _, out, _ = piped(json.dumps(ROWS).encode(), "dedup", "-", "-o", "-", "--format", "json")
    assert json.loads(out) == kept
    status, out, _ = piped(parquet_bytes(), "dedup", "-", "-o", "p.parquet")
    assert status == 0 and pa.parquet.read_table("p.parquet").to_pylist() == kept
    status, out, err = piped(parquet_bytes(), "dedup", "-", "-o", "-")
    assert status == 1 and not out and "'parquet' cannot be written to a stream" in err


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
def test_a_crawl_is_known_by_its_first_bytes(piped: Piped, pack: Callable[[bytes], bytes]) -> None:
    records = [response(f"http://a/{at}", page(text).encode()) for at, text in enumerate(TEXTS[:3])]
    status, out, err = piped(b"".join(map(pack, records)), "dedup", "-", "-o", "-")
    assert status == 0, err
    assert json.loads(out.splitlines()[0])["url"] == "http://a/0"


def test_annotated_rows(piped: Piped) -> None:
    _, out, _ = piped(LINES, "dedup", "-", "-o", "-", "--annotate")
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == len(ROWS) and {"group_id", "duplicate_of", "similarity"} <= set(rows[0])
    text = "\n".join(TEXTS).encode()
    status, out, err = piped(text, "dedup", "-", "-o", "-", "--annotate", "--format", "text")
    assert status == 1 and not out and "with columns added" in err


def test_standard_input_among_files_is_where_it_is_named(piped: Piped) -> None:
    Path("a.jsonl").write_text('{"id": "first", "text": "one two three four five six"}\n')
    Path("b.jsonl").write_text('{"id": "last", "text": "one two three four five six"}\n')
    data = b'{"id": "mid", "text": "seven eight nine ten eleven twelve"}\n'
    _, out, _ = piped(data, "dedup", "a.jsonl", "-", "b.jsonl", "-o", "-", "--keep", "last")
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["mid", "last"]
    status, _, err = piped(data, "dedup", "-", "-", "-o", "-")
    assert status == 1 and "given twice" in err
    status, _, err = piped(data, "dedup", "-", "--against", "-", "-o", "-")
    assert status == 1 and "given twice" in err


def test_old_documents_may_come_by_it(piped: Piped) -> None:
    Path("new.jsonl").write_bytes(
        LINES + b'{"id": "x", "text": "of its own, and of nobody else"}\n'
    )
    _, out, _ = piped(LINES, "dedup", "new.jsonl", "--against", "-", "-o", "-")
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["x"]


def test_the_same_input_goes_on_in_a_work_folder(piped: Piped) -> None:
    arguments = ("dedup", "-", "-o", "-", "--work", "new/work", "--json")
    _, first, _ = piped(LINES, *arguments)
    _, _, err = piped(LINES, *arguments, "--threshold", "0.9")
    assert set(json.loads(err)["reused"]) == {"read", "sign"}
    other = LINES.replace(b"d0", b"e0")  # of the same length
    _, third, err = piped(other, *arguments)
    assert json.loads(err)["reused"] == [] and third == first.replace(b'"d0"', b'"e0"')
    assert not [path for path in Path("new/work").iterdir() if path.is_dir()]


def test_what_makes_no_sense_is_refused(piped: Piped) -> None:
    for arguments, message in [
        (("--in-place",), "replaces one file"),
        (("-o", "-", "--in-place"), "use one of them"),
        (("-o", "-", "--format", "files"), "is not a folder of files"),
        (("-o", "-", "--report", "-"), "--report is -; expected a file"),
        (("-o", "-", "--pairs", "-"), "--pairs is -; expected a file"),
        (("-o", "x.xlsx"), ".xlsx is not an output format"),
    ]:
        status, out, err = piped(LINES, "dedup", "-", *arguments)
        wrong_usage = message.startswith("--")
        assert status == 1 + wrong_usage and not out and message in err, arguments
    assert not Path("-").exists()


def test_a_report_and_pairs_go_to_files_beside_it(piped: Piped) -> None:
    status, out, _ = piped(LINES, "dedup", "-", "-o", "-", "--report", "r.html", "--pairs", "p.csv")
    assert status == 0 and len(out.splitlines()) == len(kept_rows())
    assert Path("r.html").read_text().startswith("<!DOCTYPE html>")
    assert len(Path("p.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(LINES, mtime=0)[:-200], "cannot be read"),
        (zstd(LINES)[:-20], "cannot be read"),
        (bytes(range(256)) * 50, "is not a known format"),
        (b"PAR1" + LINES, "is not valid Parquet"),
        (b"\x1f\x8b", "cannot be read"),
        (b'{"id": "a", "text": "' + b"x" * 3_000_000, "has more than 1,000,000 bytes"),
        (b"[1, 2]\n", "expected an object"),
    ],
)
def test_hostile_input_is_an_error_and_no_rows(piped: Piped, data: bytes, message: str) -> None:
    status, out, err = piped(data, "dedup", "-", "-o", "-", "--max-document", "1MB")
    assert status == 1 and out == b""
    assert message in err and "standard" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("data", "options", "place"),
    [
        (LINES + b"{bad", [], "standard input, line 31: is not JSON"),
        (b"id,text\n1,a\n2,b,c\n", ["--format", "csv"], "standard input, line 3: "),
        (b"[{", [], "standard input: is not JSON"),
        (b"PAR1 and no more", [], "standard input is not valid Parquet"),
        (b"a\xff\n", ["--format", "text", "--encoding", "utf-8"], "standard input, line 1: "),
        (gzip.compress(LINES)[:-30], [], "standard input: cannot be read after line"),
    ],
)
def test_errors_name_standard_input_and_not_its_copy(
    piped: Piped, data: bytes, options: list[str], place: str
) -> None:
    status, out, err = piped(data, "dedup", "-", "-o", "-", *options)
    assert status == 1 and not out
    assert place in err and "lookalike-input-" not in err
    if "line" in place and "after" not in place:
        status, _, err = piped(data, "dedup", "-", "-o", "kept.jsonl", "--skip-bad", *options)
        assert status == 0 and place in err and "lookalike-input-" not in err


def test_a_page_has_the_path_of_standard_input(piped: Piped) -> None:
    status, out, _ = piped(page(TEXTS[0]).encode(), "dedup", "-", "-o", "-", "--quiet")
    assert status == 0 and json.loads(out)["path"] == "standard input"


@pytest.mark.parametrize("data", [b"", b"\n\n", gzip.compress(b"", mtime=0)])
def test_nothing_in_nothing_out(piped: Piped, data: bytes) -> None:
    assert piped(data, "dedup", "-", "-o", "-", "--quiet") == (0, b"", "")


def test_bad_rows_are_left_out_by_name(piped: Piped) -> None:
    status, out, err = piped(
        LINES + b"not JSON\n", "dedup", "-", "-o", "-", "--skip-bad", "--quiet"
    )
    assert status == 0 and len(out.splitlines()) == len(kept_rows())
    assert "standard input, line 31: is not JSON" in err


def test_other_commands_read_it_too(piped: Piped) -> None:
    status, out, _ = piped(LINES, "sign", "-", "-o", "s.lookalike")
    assert status == 0 and b"30 signatures" in out
    status, out, _ = piped(LINES, "collection", "create", "docs.db")
    status, out, _ = piped(LINES, "collection", "import", "docs.db", "-", "--quiet")
    assert status == 0 and b"added 30" in out
    status, out, _ = piped(b"", "collection", "export", "docs.db", "-", "--quiet")
    assert status == 0
    assert sorted(json.loads(line)["id"] for line in out.splitlines()) == sorted(
        row["id"] for row in ROWS
    )


def test_a_terminal_is_not_harmed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    sink = io.BytesIO()
    terminal = Terminal(sink)
    data = "a\x1b[2J ü \u202e\n".encode()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal)
        with standard_output() as shown:
            for at in range(len(data)):  # characters come in pieces
                shown.write(memoryview(data)[at : at + 1])
    assert sink.getvalue().decode() == "a\\x1b[2J ü \\u202e\n"


def test_results_go_to_any_stream(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_bytes(LINES)
    result = la.dedup(tmp_path / "c.jsonl")
    sink = io.BytesIO()
    assert result.write(sink) == len(sink.getvalue().splitlines()) == len(kept_rows())
    with pytest.raises(la.errors.ArgumentError, match="a stream of text"):
        result.write(io.StringIO())  # type: ignore[arg-type]
    with pytest.raises(la.errors.ArgumentError, match="'table' cannot be written to a stream"):
        la.dedup(TEXTS).write(io.BytesIO())


def test_a_reader_that_has_seen_enough_ends_it_quietly() -> None:
    many_lines = b"".join(
        json.dumps({"id": at, "text": f"{at} {at * 7} {at * 11} {at * 13}"}).encode() + b"\n"
        for at in range(20_000)
    )
    Path("c.jsonl").write_bytes(many_lines)
    command = f"{' '.join(COMMAND)} dedup - -o - --quiet < c.jsonl | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, timeout=300, check=False
    )
    assert done.stdout == many_lines.splitlines(keepends=True)[0]
    assert done.stderr == b"" and done.returncode == 0
    assert not list(Path("temporary").iterdir())


def test_a_full_disk_is_told() -> None:
    Path("c.jsonl").write_bytes(LINES)
    with open("/dev/full", "wb") as full, open("c.jsonl", "rb") as source:
        done = subprocess.run(
            [*COMMAND, "dedup", "-", "-o", "-", "--quiet"],
            stdin=source, stdout=full, stderr=subprocess.PIPE, timeout=300, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == b"lookalike: standard output cannot be written: No space left on device\n"


def test_being_told_to_end_while_input_comes_leaves_nothing() -> None:
    process = subprocess.Popen(
        [*COMMAND, "dedup", "-", "-o", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(LINES)
    process.stdin.flush()
    deadline = time.monotonic() + 300
    while not list(Path("temporary").glob("*/standard-input.jsonl")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 143 and out == b"" and b"terminated" in err
    assert not list(Path("temporary").iterdir())
