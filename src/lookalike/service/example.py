"""An example to look at: what the standard library of Python says of itself.

Thousands of short texts that are on every machine, many of which say nearly the same.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from lookalike.collection import open_collection
from lookalike.signatures import TopSig

__all__ = ["NAME", "fill_example"]

NAME = "python-docs"
_LEAST_WORDS = 12
_MOST = 6_000
_FOLDERS = ("", "asyncio", "email", "http", "json", "logging", "unittest", "urllib", "concurrent",
            "collections", "importlib", "multiprocessing", "xml", "ctypes", "tkinter")  # fmt: skip
_BATCH = 2_000


def fill_example(path: Path) -> int:
    """Make the collection in a new database, and return how many documents it has."""
    texts = list(_texts())
    # What people type first is a few words: TopSig finds by these, rare ones above all.
    signer = TopSig(bits=1024).fit([text for _, text, _ in texts])
    with open_collection(path, NAME, signer=signer, durable=False) as docs:
        for begin in range(0, len(texts), _BATCH):
            some = texts[begin : begin + _BATCH]
            docs.upsert(
                [id for id, _, _ in some],
                [text for _, text, _ in some],
                metadata=[described for _, _, described in some],
            )
        docs.refresh()
        return docs.count()


def _texts() -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield id, text and metadata of what modules, classes and functions say of themselves."""
    root, count = Path(sysconfig.get_path("stdlib")), 0
    for folder in _FOLDERS:
        for path in sorted((root / folder).glob("*.py")):
            try:
                tree = ast.parse(path.read_text("utf-8"))
            except (OSError, SyntaxError, ValueError, RecursionError):
                continue
            module = ".".join(part for part in (folder, path.stem) if part)
            for name, node in _nodes(tree, module):
                text = ast.get_docstring(node)
                if text is None or len(text.split()) < _LEAST_WORDS:
                    continue
                kind = type(node).__name__.removesuffix("Def").lower()
                line = getattr(node, "lineno", 1)
                yield name, text, {"module": module, "kind": kind, "line": line}
                count += 1
                if count >= _MOST:
                    return


_Node = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _nodes(tree: ast.Module, module: str) -> Iterator[tuple[str, _Node]]:
    yield module, tree
    waiting: list[tuple[str, ast.AST]] = [(module, tree)]
    while waiting:
        prefix, parent = waiting.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{prefix}.{node.name}"
                yield name, node
                waiting.append((name, node))
