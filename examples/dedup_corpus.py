"""Remove near-duplicates from a corpus and show why each document was dropped.

Run it with `python examples/dedup_corpus.py`. It writes to a temporary folder.
"""

import json
import random
import tempfile
from pathlib import Path

import lookalike as la

WORDS = "river bank spring market price storm harbor engine letter garden winter bridge".split()


def make_corpus(path: Path, documents: int = 500) -> None:
    """Write documents of 80 words; every fifth one is an edited copy of the one before it."""
    chance = random.Random(0)
    words: list[str] = []
    with path.open("w") as file:
        for number in range(documents):
            if number % 5 == 4:
                words[40] = "changed"
            else:
                words = [f"{chance.choice(WORDS)}{chance.randrange(300)}" for _ in range(80)]
            file.write(json.dumps({"id": f"doc-{number}", "text": " ".join(words)}) + "\n")


def main() -> None:
    """Make a corpus, remove its near-duplicates and print what happened."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus.jsonl")
        make_corpus(corpus)

        result = la.dedup(corpus, threshold=0.8)
        result.write(Path(folder, "unique.jsonl"))
        result.report(Path(folder, "report.html"))

        print(f"{result.counts.documents} documents, {result.counts.kept} kept")
        dropped = [row for row, kept in enumerate(result.keep) if not kept]
        for row in dropped[:3]:
            kept_id = result.id(int(result.duplicate_of[row]))
            print(f"{result.id(row)} is {result.similarity[row]:.0%} similar to {kept_id}: dropped")


if __name__ == "__main__":
    main()
