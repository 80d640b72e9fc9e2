"""Runs the tests of another package against the module that stands in for it.

    python tools/run_peer_tests.py datasketch path/to/its/repository
    python tools/run_peer_tests.py simhash path/to/1e0ng/simhash        # or seomoz/simhash-py
    python tools/run_peer_tests.py faiss path/to/faiss
    python tools/run_peer_tests.py datasketch         # if its tests are installed with it

Nothing is fetched: who wants to run them has the peer's tests. They are run by pytest in a process
of their own, in which `lookalike.compat.stand_in` has put our module in the place of theirs. What
passed and failed is listed for each file, beside what is known to fail and why. The exit status is
0 if nothing failed that is not known to fail.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Peer:
    """What there is to know about another package's tests."""

    folders: tuple[str, ...]
    """Where they may be in its repository."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Files, and why they are not run."""
    known: dict[str, str] = field(default_factory=dict)
    """Ends of the names of tests that fail, and why."""
    only: tuple[str, ...] = ()
    """The files that are of the part which is stood in for; none: all are."""
    prepare: str = ""
    """Python that gives the stand-in what only the tests need."""


_REDIS = "its storage is memory; redis is refused with an error that says what to do"
_FLOATS = "product quantizers are of vectors of floats"
_NOT_BINARY = "a graph, clusters, shards or replicas: not stood in for"
_NO_SUCH = "not part of the stand-in; importing it says so"

PEERS = {
    "datasketch": Peer(
        folders=("test", "tests"),
        left_out={
            "aio": _NO_SUCH,
            "test_hnsw.py": _NO_SUCH,
            "test_hyperloglog.py": _NO_SUCH,
            "test_lshbloom.py": _NO_SUCH,
            "test_integration.py": "needs servers: redis or cassandra",
        },
        known={"redis": _REDIS, "redis_deletion_session": _REDIS},
    ),
    "faiss": Peer(
        folders=("tests",),
        known={
            "test_encode_to_binary": _FLOATS,
            "test_shuffle": "bitvec_shuffle takes pointers of SWIG",
            "test_replicas": _NOT_BINARY,
            "test_shards": _NOT_BINARY,
            **dict.fromkeys(
                (
                    *("test_ivf_flat_exhaustive", "test_ivf_flat2", "test_ivf_range"),
                    *("test_ivf_flat_empty", "test_ivf_reconstruction", "test_ivf_nprobe"),
                    *("test_ivf_reconstruct_n_uses_code_size_stride", "test_search_per_invlist"),
                    *("test_hnsw_exact_distances", "test_hnsw", "test_ivf_flat", "test_ivf_hnsw"),
                    *("test_factory_IVF", "test_factory_HNSW", "test_factory_IVF_HNSW"),
                    "test_binary_from_float",
                ),
                _NOT_BINARY,
            ),
        },
        only=(
            *("test_index_binary.py", "test_binary_hashindex.py", "test_binary_factory.py"),
            "test_binary_io.py",
        ),
        prepare="""
import faiss
for number, name in enumerate("NONE AVX2 AVX512 AVX512_SPR ARM_NEON ARM_SVE RISCV_RVV".split()):
    setattr(faiss, f"SIMDLevel_{name}", number)
class SIMDConfig:
    is_simd_level_available = staticmethod(lambda level: level == 0)
    set_level = staticmethod(lambda level: None)
    get_level = get_dispatched_level = staticmethod(lambda: 0)
faiss.SIMDConfig = SIMDConfig
faiss.popcount64 = int.bit_count
""",
    ),
    "simhash": Peer(folders=("tests", "test"), only=("test_simhash.py", "test.py")),
}

_CHILD = """
import sys
import lookalike.compat
lookalike.compat.stand_in(sys.argv[1])
exec(sys.argv[2])
import pytest
sys.exit(pytest.main(sys.argv[3:]))
"""


def main() -> int:
    """Run one peer's tests, and say how they went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("peer", choices=sorted(PEERS))
    parser.add_argument("path", nargs="?", type=Path, help="its repository, or a folder of tests")
    arguments = parser.parse_args()
    peer = PEERS[arguments.peer]
    root, tests = _find(arguments.peer, peer, arguments.path)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        ignored = [f"--ignore={tests / name}" for name in peer.left_out]
        # Not with the peer's options: they name plugins that need not be here.
        options = ["-c", os.devnull, f"--rootdir={root}", "-p", "no:cacheprovider"]
        files = [tests / name for name in peer.only if (tests / name).exists()] or [tests]
        options += [f"--junitxml={report}", "-q", *ignored, *map(str, files)]
        command = [sys.executable, "-c", _CHILD, arguments.peer, peer.prepare, *options]
        run = subprocess.run(
            command,
            cwd=root,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        if not report.exists():
            print(run.stdout, run.stderr, sep="\n", file=sys.stderr)
            return 2
        outcomes = _outcomes(report)
    return _tell(peer, outcomes)


def _find(name: str, peer: Peer, path: Path | None) -> tuple[Path, Path]:
    """Return the folder to run in, and that of the tests."""
    if path is None:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            sys.exit(f"{name} is not installed; give the path of its repository")
        path = Path(next(iter(spec.submodule_search_locations)))
    root = path.resolve()
    for folder in peer.folders:
        if (root / folder).is_dir():
            return root, root / folder
    if root.name in peer.folders or list(root.glob("test_*.py")):
        return root.parent, root
    sys.exit(
        f"{root} has none of the folders {', '.join(peer.folders)}; give the path of the tests"
    )


def _outcomes(report: Path) -> dict[str, list[tuple[str, str, str]]]:
    """Return test, outcome and message, by file."""
    outcomes: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        parts = (case.get("classname") or case.get("name") or "").split(".")
        file = next((part for part in parts if part.startswith("test_")), parts[-1])
        problems = [child for child in case if child.tag in ("failure", "error", "skipped")]
        outcome = problems[0].tag if problems else "passed"
        message = (problems[0].get("message") or "") if problems else ""
        outcomes[file].append((case.get("name") or "", outcome, message.partition("\n")[0]))
    return outcomes


def _tell(peer: Peer, outcomes: dict[str, list[tuple[str, str, str]]]) -> int:
    """Print a line for each file and each failure; return how many are not known to fail."""
    unknown = 0
    total: Counter[str] = Counter()
    for file, tests in sorted(outcomes.items()):
        counts = Counter(outcome for _, outcome, _ in tests)
        total.update(counts)
        shown = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        print(f"{file}: {counts['passed']} of {len(tests)} ({shown})")
        for name, outcome, message in tests:
            if outcome in ("failure", "error"):
                why = next((why for end, why in peer.known.items() if name.endswith(end)), None)
                unknown += why is None
                print(f"    {name}: {why or 'NOT KNOWN TO FAIL: ' + message[:200]}")
            elif outcome == "skipped":
                print(f"    {name}: skipped, {message[:120]}")
    for name, why in peer.left_out.items():
        print(f"{name}: left out; {why}")
    print(f"{total['passed']} of {sum(total.values())} passed, {unknown} failed that should not")
    return min(1, unknown)


if __name__ == "__main__":
    sys.exit(main())
