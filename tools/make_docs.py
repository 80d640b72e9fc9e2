"""Build the documentation site in `build/site`: `make docs`.

The pages of the site are those of `docs/`, those of the root folder, and a reference that is
generated from the code. They are collected in one folder, with links rewritten for their place on
the site; Zensical then builds the site in strict mode. A link to source code becomes plain text,
because the site holds no source code.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from lookalike import errors
from lookalike.cli import full_parser
from lookalike.cli.parser import Parser

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "build" / "pages"
FROM_ROOT = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "examples/README.md": "examples.md",
}
"""Where pages outside of `docs/` are on the site."""

API = {
    "Jobs": (
        "Functions that process a whole corpus, or measure one.",
        "dedup undo clean decontaminate group_pairs incoming_links overlaps passages sign_passages "
        "compare_texts "
        "cluster_documents cluster match_batch plan tune evaluate advice.growth pages.PageLimits",
    ),
    "Collections": (
        "Documents in SQLite or PostgreSQL that are added, removed and searched at any time.",
        "open_collection connect list_collections drop_collection restore_collection Collection "
        "client.RemoteCollection",
    ),
    "Signers": (
        "A signer turns items into signatures: rows of a `uint8[n, bits // 8]` array.",
        "SimHash MinHash BBitMinHash WeightedMinHash TopSig Projection ImageHash AudioHash "
        "CoverHash VideoHash PassageHash Signer load_signer signatures.signer_from_dict "
        "save_signatures load_signatures load_hex "
        "signatures.save_hex signatures.signatures_from_hex "
        "signatures.signatures_to_hex "
        "hamming estimated_radius estimated_similarity signatures.quantize_weights "
        "signatures.restore_weights",
    ),
    "Features": (
        "Features are the parts of a document that are compared. Exact similarity counts them.",
        "Words Chars ShortText Links Combined FeatureFunction features.Features Vocabulary Weights "
        "jaccard weighted_jaccard cosine containment weighted_containment "
        "features.similarity_pairs",
    ),
    "Indexes": (
        "An index finds neighbors of a signature. [Choose an index](../planning.md) says which.",
        "ScanIndex SliceIndex BlockIndex FlipIndex PrefixIndex ClusterIndex BandIndex VectorIndex "
        "PartIndex RecordingIndex CoverIndex GpuIndex ShardedIndex SignatureFile Index "
        "load_index open_index indexes.merge_neighbors",
    ),
    "Results": (
        "What functions and methods return. All types are in `lookalike.results`.",
        " ".join(f"results.{name}" for name in import_module("lookalike.results").__all__),
    ),
    "Errors": (
        "What lookalike raises. All errors are in `lookalike.errors`, and are a `LookalikeError`.",
        " ".join(f"errors.{name}" for name in errors.__all__),
    ),
    "Helpers": (
        "Thumbnails, the kernels of this machine, and measures of recall.",
        "images.thumbnail signatures.kernels signatures.Kernel advice.recall_at_k "
        "advice.recall_by_distance advice.near_duplicate_recall advice.nearest_hit_rate "
        "advice.top_in_top advice.cumulative_distance_ratio advice.plot_growth "
        "advice.plot_touched advice.plot_trade_off",
    ),
}
"""The pages of the reference of the Python API: what a page is about, and its names."""


def main() -> int:
    """Collect the pages and build the site."""
    collect(PAGES)
    command = [
        sys.executable,
        "-m",
        "zensical",
        "build",
        "--strict",
        "-f",
        str(ROOT / "mkdocs.yml"),
    ]
    return subprocess.run(command, cwd=ROOT).returncode


def collect(folder: Path) -> None:
    """Write all pages of the site to `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("README.md"))
    texts = {f"docs/{page.relative_to(folder)}": page.read_text() for page in folder.rglob("*.md")}
    texts |= {source: (ROOT / source).read_text() for source in FROM_ROOT}
    texts["examples/README.md"] += "".join(map(_example, sorted((ROOT / "examples").glob("*.py"))))
    for source, text in texts.items():
        _write(folder / _place(source), _relinked(text, source))
    _write(folder / "reference" / "commands.md", _commands())
    for group in API:
        _write(folder / "reference" / f"{group.lower()}.md", _api_page(group))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _place(source: str) -> str:
    """Return where a page is on the site."""
    return FROM_ROOT.get(source) or source.removeprefix("docs/")


def _relinked(text: str, source: str) -> str:
    """Return a page with its links rewritten for its place on the site."""
    here, there = PurePosixPath(source).parent, PurePosixPath(_place(source)).parent

    def rewritten(link: re.Match[str]) -> str:
        label, address, anchor = link.groups()
        path = normpath(f"{here}/{address}")
        if path == "docs/README.md":
            path = "README.md"
        if path.startswith("examples/") and path.endswith(".py"):
            path, anchor = "examples/README.md", f"#{PurePosixPath(path).name.replace('.', '')}"
        if path not in FROM_ROOT and not path.startswith("docs/"):
            return label
        return f"[{label}]({relpath(_place(path), there)}{anchor or ''})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    link = r"\[([^\[\]]*)\]\((?!http|#)([^)#\s]+)(#[^)\s]+)?\)"
    parts[::2] = [re.sub(link, rewritten, part) for part in parts[::2]]
    return "".join(parts)


def _example(path: Path) -> str:
    return f"\n## {path.name}\n\n```python\n{path.read_text()}```\n"


def _commands() -> str:
    """Return a page with the help of every command, and of every action of a command."""
    pages = ["# Command line\n"]
    Parser.print_all = True
    parser = full_parser()
    pages += [f"\n```text\n{parser.format_help()}```\n"]
    for name, command in _subcommands(parser):
        pages.append(f"\n## lookalike {name}\n\n```text\n{command.format_help()}```\n")
        pages += [
            f"\n### lookalike {name} {action}\n\n```text\n{one.format_help()}```\n"
            for action, one in _subcommands(command)
        ]
    return "".join(pages)


def _subcommands(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    found = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return [pair for one in found for pair in one.choices.items()]


def _api_page(group: str) -> str:
    """Return a page with the names of a group."""
    purpose, names = API[group]
    blocks = "".join(f"\n::: lookalike.{name}\n" for name in names.split())
    return f"# {group}\n\n{purpose}\n{blocks}"


if __name__ == "__main__":
    sys.exit(main())
