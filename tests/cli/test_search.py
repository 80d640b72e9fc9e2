from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.signatures import estimated_similarity
from support.cases import cli_corpus as corpus
from support.running.refusals import refused

TEXTS = corpus.many(300)
IDS = [f"doc {number}" for number in range(300)]
SIGNER = la.SimHash(256, la.Words())
SIGNATURES = SIGNER.sign(TEXTS)


@pytest.fixture(params=["signatures", "scan", "slices"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A file of each sort that can be searched by text."""
    file = str(tmp_path / "signatures.lookalike")
    la.save_signatures(file, SIGNATURES, SIGNER, IDS)
    if request.param == "signatures":
        return file
    out = str(tmp_path / "index.lookalike")
    assert main(["index", file, "-o", out, "--type", request.param, "--quiet"]) == 0
    return out


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def expected(queries: list[str], ids: list[Any], **question: int) -> list[dict[str, Any]]:
    """What the exhaustive index says."""
    scan = la.ScanIndex(SIGNATURES)
    rows = SIGNER.sign(queries)
    found: Any = scan.search(rows, **question) if "k" in question else scan.within(rows, **question)
    return [
        {
            "query": ids[number],
            "exact": True,
            "results": [
                {
                    "id": IDS[id],
                    "distance": distance,
                    "estimate": round(float(estimated_similarity(SIGNER, distance, 256)), 4),
                }
                for id, distance in zip(near.tolist(), distances.tolist(), strict=True)
            ],
        }
        for number, (near, distances) in enumerate(found)
    ]


def test_texts(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    queries = [TEXTS[2], "1 2 3 4 5 6 7 8"]
    assert main(["search", index, *queries, "-k", "3", "--exact", "--json"]) == 0
    assert lines(capsys) == expected(queries, queries, k=3)
    assert main(["search", index, *queries, "--radius", "60", "--json", "--threads", "2"]) == 0
    assert lines(capsys) == expected(queries, queries, radius=60)


def test_a_corpus(index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = corpus.write(tmp_path / "named.jsonl", TEXTS[:50], IDS)
    assert main(["search", index, "--file", named, "--radius", "50", "--json"]) == 0
    assert lines(capsys) == expected(TEXTS[:50], IDS, radius=50)
    plain = tmp_path / "plain.txt"
    plain.write_text("\n".join(TEXTS[:50]))
    assert main(["search", index, "--file", str(plain), "-k", "2", "--exact", "--json"]) == 0
    assert lines(capsys) == expected(TEXTS[:50], list(range(50)), k=2)


def test_signatures(
    index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookalike.cli.finding.queries.AT_A_TIME", 7)
    np.save(tmp_path / "q.npy", SIGNATURES[:20])
    la.save_signatures(tmp_path / "q.lookalike", SIGNATURES[:20], SIGNER, IDS[:20])
    for name, labels in (("q.npy", list(range(20))), ("q.lookalike", IDS)):
        queries = str(tmp_path / name)
        command = ["search", index, "--signatures", queries, "-k", "4", "--exact", "--json"]
        assert main(command) == 0
        assert lines(capsys) == expected(TEXTS[:20], labels, k=4)


def test_slices_say_what_is_proven(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 256, (3000, 32), np.uint8)
    slices = la.SliceIndex(rows, slice_bits=12)
    slices.save(tmp_path / "i.lookalike")
    queries = np.concatenate([rows[:3], rng.integers(0, 256, (3, 32), np.uint8)])
    np.save(tmp_path / "q.npy", queries)
    arguments = ["search", str(tmp_path / "i.lookalike"), "--signatures", str(tmp_path / "q.npy")]
    assert main([*arguments, "-k", "1", "--expand", "0", "--json"]) == 0
    found = slices.search(queries, 1, expand=0, explain=True)
    assert found.explanation is not None
    printed = lines(capsys)
    assert [line["exact"] for line in printed] == found.explanation.exact.tolist()
    assert [line["exact"] for line in printed][:3] == [True] * 3
    assert not all(line["exact"] for line in printed)
    ids = [[result["id"] for result in line["results"]] for line in printed]
    assert ids == [near.tolist() for near, _ in found]
    assert all("estimate" not in result for line in printed for result in line["results"])


def test_settings_of_slices_reach_shards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 256, (3000, 32), np.uint8)
    parts = [la.SliceIndex(half, slice_bits=12) for half in np.array_split(rows, 2)]
    la.ShardedIndex(parts).save(tmp_path / "i.lookalike")
    queries = rng.integers(0, 256, (3, 32), np.uint8)
    np.save(tmp_path / "q.npy", queries)
    arguments = ["search", str(tmp_path / "i.lookalike"), "--signatures", str(tmp_path / "q.npy")]
    assert main([*arguments, "--json", "--expand", "0"]) == 0
    assert [line["exact"] for line in lines(capsys)] == [False] * 3
    assert main([*arguments, "--json", "--expand", "0", "--exact"]) == 0
    found = lines(capsys)
    assert [line["exact"] for line in found] == [True] * 3
    nearest = la.ScanIndex(rows).search(queries, 10)
    ids = [[result["id"] for result in line["results"]] for line in found]
    assert ids == nearest.ids.tolist()


def test_a_table(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    long = TEXTS[0]
    assert main(["search", index, long, "  ?! ", "-k", "2", "--exact"]) == 0
    printed = capsys.readouterr()
    rows = printed.out.splitlines()
    assert rows[0].split() == ["query", "id", "distance", "estimate", "exact"]
    first = expected([long], [long], k=2)[0]["results"]
    for row, result in zip(rows[1:3], first, strict=True):
        shown = f"{result['id']}  {result['distance']:>10}  {result['estimate']:>8.2f}  yes"
        assert row.split() == [*long[:37].split()[:-1], *row[:40].split()[-1:], *shown.split()]
    assert len({row.index("doc") for row in rows[1:3]}) == 1
    assert rows[3].split() == ["?!", "-", "-", "-", "yes"]
    assert len(rows) == 4
    assert printed.err == (
        "lookalike: warning: '  ?! ' has no words; there is nothing to search for\n"
    )


def test_a_reader_that_leaves_early(tmp_path: Path) -> None:
    file = str(tmp_path / "s.lookalike")
    texts = corpus.many(3000)
    la.save_signatures(file, SIGNER.sign(texts), SIGNER)
    arguments = ["search", file, "--signatures", file, "-k", "30", "--json"]
    command = [sys.executable, "-m", "lookalike.cli", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["query"] == 0
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(300) == 0


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, rows = str(tmp_path / "s.lookalike"), str(tmp_path / "rows.npy")
    la.save_signatures(file, SIGNATURES, SIGNER, IDS)
    np.save(rows, SIGNATURES)
    np.save(tmp_path / "wide.npy", np.zeros((2, 64), np.uint8))
    other = str(tmp_path / "other.lookalike")
    la.save_signatures(other, la.SimHash(256, seed=1).sign(TEXTS), la.SimHash(256, seed=1))
    vectors = la.ScanIndex(np.zeros((2, 8), np.uint8))
    vectors.signer = la.Projection(64, 3)
    vectors.save(tmp_path / "vectors.lookalike")
    cases: list[tuple[list[str], str]] = [
        ([file], "expected texts, or a file"),
        ([file, "text", "--signatures", rows], "expected texts"),
        ([str(tmp_path / "none"), "text"], "none cannot be read"),
        ([rows, "text"], "has no signer for texts"),
        ([str(tmp_path / "vectors.lookalike"), "text"], "takes no texts"),
        ([file, "text", "-k", "0"], "-k is 0; expected"),
        ([file, "text", "--radius", "-1"], "--radius is -1; expected"),
        ([file, "text", "--expand", "1"], "--expand needs -k and an index of slices"),
        ([file, "--signatures", str(tmp_path / "wide.npy")], "queries have 512 bits"),
        ([file, "--signatures", other], "sign the queries again with --like"),
        ([file, "--file", str(tmp_path / "none.jsonl")], "no such file"),
        ([file, "lone \udcff byte"], "cannot be encoded as UTF-8"),
    ]
    for arguments, message in cases:
        assert message in refused(["search", *arguments], capsys), arguments
    with pytest.raises(SystemExit) as stop:
        main(["search", file, "text", "-k", "3", "--radius", "4"])
    assert stop.value.code == 2
