"""Rows by the million, each of a few bytes: what is held is bounded by their number, too."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.corpora import Problems
from lookalike.corpora.formats import lines
from lookalike.corpora.formats.delimited import Records
from lookalike.corpora.formats.lines import Lines, line_batches

bytes_with_marks = st.lists(st.sampled_from([b"a", b"b,", b'"', b"\n", b"\r", b"\r\n"])).map(
    b"".join
)


@given(
    data=bytes_with_marks,
    kind=st.sampled_from([Lines(), Records(",")]),
    most=st.integers(1, 30),
    batch=st.integers(1, 40),
    piece=st.integers(1, 9),
    ends=st.integers(0, 3),
)
def test_where_a_batch_is_cut_does_not_matter(
    data: bytes, kind: Lines, most: int, batch: int, piece: int, ends: int, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    found = []
    for size, part, marks in ((1 << 20, 1 << 20, 1 << 20), (batch, piece, ends)):
        problems = Problems(skip_bad=True)
        rows = []
        with (
            patch.object(lines, "BATCH_BYTES", size),
            patch.object(lines, "_PIECE", part),
            patch.object(lines, "_MOST_ENDS", marks),
        ):
            for some in line_batches(path, most, problems, kind):
                rows += [(some.line(at), raw) for at, raw in enumerate(some.lines.to_pylist())]
        found.append((rows, problems.bad, problems.examples))
    assert found[0] == found[1]


def test_a_batch_of_line_ends_has_no_more_rows_than_a_piece_has_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * (1 << 20) + b"\n" * (5 << 20))
    sizes = [len(batch) for batch in line_batches(path, 1 << 30, Problems())]
    assert sum(sizes) == 5 << 20
    assert max(sizes) <= (1 << 20) + (1 << 17)


def lines_of(text: bytes, count: int) -> Callable[[Path], None]:
    """Return what writes so many lines, after one that names the column of a CSV."""

    def write(path: Path) -> None:
        path.write_bytes((b"text\n" if path.suffix == ".csv" else b"") + text * count)

    return write


def parquet(path: Path) -> None:
    pq.write_table(pa.table({"text": pa.array([""] * 5_000_000)}), path)


def long_text(path: Path) -> None:
    """Write three documents as long as the limit below allows, of as many features as possible."""
    letters = random.Random(0).choices("abcdefghijklmnopqrstuvwxyz", k=15_900_000)
    path.write_text("\n".join(["".join(letters), "".join(reversed(letters)), "short"]))


SOURCES: dict[str, tuple[Callable[[Path], None], list[str], int]] = {
    "newlines.txt": (lines_of(b"\n", 16 << 20), [], 2),
    "tiny.jsonl": (lines_of(b'{"text":""}\n', 1 << 20), [], 2),
    "tiny.csv": (lines_of(b'""\n', 5 << 20), [], 2),
    "tiny.parquet": (parquet, [], 2),
    "equal.jsonl": (lines_of(b'{"text":"one text like all"}\n', 70_000), ["--exact"], 0),
    "long.txt": (long_text, ["--method", "simhash", "--features", "chars", "--ngram", "8"], 0),
}
LIMIT = 640_000_000
MEASURED = """
import sys
from pathlib import Path
from lookalike.cli import main
status = main(["dedup", *sys.argv[1:], "--quiet"])
peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
print(status, int(peak) * 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to be measured")
@pytest.mark.parametrize("name", SOURCES)
def test_no_job_takes_more_memory_than_its_limit(name: str, tmp_path: Path) -> None:
    write, options, status = SOURCES[name]
    path = tmp_path / name
    write(path)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path), "--memory-limit", str(LIMIT), "--threads", "2",
         "-o", str(tmp_path / f"out{path.suffix}"), *options],
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    returned, peak = map(int, done.stdout.split())
    assert returned == status, done.stderr
    assert peak <= LIMIT
    if status:
        assert "--memory-limit is 640,000,000 bytes, but " in done.stderr
        assert "need about " in done.stderr and "raise it to that" in done.stderr


def test_the_memory_that_an_error_asks_for_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(b'{"text":"one text like all"}\n' * 400_000)
    with pytest.raises(la.errors.ArgumentError, match="need about ") as refused:
        la.dedup(path, memory_limit=LIMIT)
    asked = str(refused.value).partition("need about ")[2].partition(":")[0]
    needed = int(asked.replace(",", ""))
    assert la.dedup(path, memory_limit=round(needed * 1.02)).counts.documents == 400_000
