"""Every script in `examples/` runs, and prints what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
PRINTED = {
    "copied_passages.py": ["essay-3 and essay-11 share 79 words", "essay-11 has 20 of 20"],
    "dedup_corpus.py": ["500 documents, 400 kept", "doc-4 is 88% similar to doc-3: dropped"],
    "embeddings.py": ["vector 9000 has cosine 0.999", "10000 vectors, 9000 kept"],
    "photos.py": ["11 images, 8 kept", "2-small.jpg is a copy of a larger image"],
    "search_collection.py": ["nearest to the repost: ['storm']", "a deletion: []"],
}


def test_every_example_is_listed() -> None:
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    assert scripts == set(PRINTED)
    page = (EXAMPLES / "README.md").read_text()
    assert all(f"[{name}]({name})" in page for name in scripts)


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, EXAMPLES / name], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    for line in PRINTED[name]:
        assert line in result.stdout
    assert not list(tmp_path.iterdir()), "an example cleans up after itself"
