"""`make demo-spark`: a corpus on a Spark of several processes, and without: the same answers."""

from __future__ import annotations

import gzip
import json
import random
import sys
import tempfile
import time
from pathlib import Path

import lookalike as la
from lookalike import spark as on_spark

sys.path.insert(0, str(Path(__file__).parent.parent))
from tools.loopback_spark import HOW_TO_GET_JAVA, LoopbackSpark, java_found

DOCUMENTS, FILES = 20_000, 8


def main() -> int:
    """Show it; return 1 if the answers differ, 2 if there is no Java."""
    if not java_found():
        print(HOW_TO_GET_JAVA, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="lookalike-demo-") as name:
        folder = Path(name)
        _write_corpus(folder / "corpus")
        print(f"{DOCUMENTS:,} documents in {FILES} files; first on this machine alone", flush=True)
        start = time.perf_counter()
        local = la.dedup(str(folder / "corpus"), text="text", id="id")
        print(f"  kept {local.counts.kept:,} in {time.perf_counter() - start:.1f} s", flush=True)
        return _on_spark(folder, local)


def _on_spark(folder: Path, local: la.results.TextResult) -> int:
    start = time.perf_counter()
    with LoopbackSpark(workers=2) as cluster:
        session = cluster.session()
        print(
            f"and on {cluster.url}, with two workers, after {time.perf_counter() - start:.1f} s "
            "to start them",
            flush=True,
        )
        frame = session.read.schema("id string, text string").json(str(folder / "corpus"))
        with on_spark.dedup(frame, work=(folder / "work").as_uri()) as found:
            kept = sorted(row.id for row in found.kept.select("id").collect())
            pairs = sorted((row.left, row.right) for row in found.pairs.collect())
        print(f"  kept {found.counts.kept:,}", flush=True)
        for step, seconds in found.seconds.items():
            print(f"  {step:<10} {seconds:>8.1f} s")
    same = kept == sorted(str(local.id(row)) for row in local.kept_rows.tolist())
    expected = zip(local.pairs.left.tolist(), local.pairs.right.tolist(), strict=True)
    same &= pairs == sorted((str(local.id(one)), str(local.id(two))) for one, two in expected)
    print("the same documents stay, for the same pairs" if same else "*** the answers differ ***")
    return 0 if same else 1


def _write_corpus(folder: Path) -> None:
    """Write texts of which a third are copies, or alike."""
    folder.mkdir()
    chance = random.Random(0)
    words = [f"word{number}" for number in range(5000)]
    texts: list[str] = []
    for _ in range(DOCUMENTS):
        kind = chance.random()
        if texts and kind < 0.15:
            texts.append(chance.choice(texts))
        elif texts and kind < 0.35:
            changed = chance.choice(texts).split()
            for _ in range(chance.randint(1, 4)):
                changed[chance.randrange(len(changed))] = chance.choice(words)
            texts.append(" ".join(changed))
        else:
            texts.append(" ".join(chance.choices(words, k=chance.randint(60, 200))))
    for file in range(FILES):
        with gzip.open(folder / f"part{file}.jsonl.gz", "wt") as stream:
            for number in range(file * DOCUMENTS // FILES, (file + 1) * DOCUMENTS // FILES):
                stream.write(json.dumps({"id": f"d{number}", "text": texts[number]}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
