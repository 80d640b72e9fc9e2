"""`lookalike serve`: an HTTP service and a page on live collections, or a saved index."""

from __future__ import annotations

import argparse
import ast
import json
import signal
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lookalike.checks import optional_module
from lookalike.cli import leave_to_thread
from lookalike.cli.parser import ADVANCED, Parser, refuse_given
from lookalike.cli.terminal import flush_output, forget, say
from lookalike.errors import ArgumentError, Said
from lookalike.service.keys import make_key
from lookalike.service.settings import ServeSettings, setting_options
from lookalike.shown import escape_terminal
from lookalike.storage.files import temporary_folder
from lookalike.suggestions import did_you_mean_file

TASK = "collections"
PURPOSE = "serve collections over HTTP, with a web page, or a saved index"
DESCRIPTION = """\
Serve the collections of a database, or of all databases of a folder, over
HTTP, with a web page. They hold texts, images, recordings, videos or
signatures. Or serve a saved index, read-only and without a page: la.connect
searches it. Without a database, serve an example."""
ARGUMENTS = """
  [DATABASE]           SQLite file, folder of them (NAME.db is the collection NAME),
                       postgresql://user@host/name, or the file of an index
server:
keys:
  --new-key            create a key, add its hash to the file --keys, and print the key
  --key-name NAME      name of the new key in logs
  --read-only          the new key cannot write
  --collections NAMES  collections of the new key, or names of indexes, separated by commas
                       (default: all of them)
"""
EXAMPLES = """\
  lookalike serve
  lookalike serve docs.db --port 9000
  lookalike serve part-1.lookalike
  lookalike serve --new-key --key-name page --read-only --keys keys.json
"""
DETAILS = """\
Every option can also be set by the environment variable in brackets; the option wins. Addresses
other than 127.0.0.1 need keys: lookalike serve docs.db --host 0.0.0.0 --keys keys.json
"""

_EXAMPLE = "python-docs"
_USUAL = ("host", "port", "keys", "workers")
_LEAST_WORDS = 12
_MOST_EXAMPLES = 6_000
_FOLDERS = ("", "asyncio", "email", "http", "json", "logging", "unittest", "urllib", "concurrent",
            "collections", "importlib", "multiprocessing", "xml", "ctypes", "tkinter")  # fmt: skip


def add(parser: Parser) -> None:
    """Declare the settings of the service."""
    parser.expected = "serve takes one database, a folder of databases, or an index"
    for name, told in setting_options().items():
        group = parser.group("server" if name in _USUAL else ADVANCED)
        group.add_argument(
            f"--{name.replace('_', '-')}", dest=name, metavar=told["metavar"], help=told["help"]
        )


def run(options: argparse.Namespace) -> None:
    """Serve until terminated, or create a key."""
    if options.new_key:
        _new_key(options)
        return
    of_keys = ("key_name", "collections", "read_only")
    refuse_given(options, of_keys, "needs --new-key")
    settings = ServeSettings.read({name: getattr(options, name) for name in setting_options()})
    for package in ("fastapi", "uvicorn", "httptools", "uvloop", "msgpack", "prometheus_client"):
        optional_module(package, "lookalike serve", extra="serve")
    if options.database is not None:
        _serve(str(options.database), settings)
        return
    with temporary_folder("lookalike-example-") as folder:
        path = folder / "example.db"
        count = fill_example(path, folder / f"{_EXAMPLE}.jsonl")
        say(
            f"no DATABASE given: serving an example, {count:,} texts of Python's documentation; it "
            "is deleted when the service ends"
        )
        say("These commands make such a collection:")
        say(f"  lookalike collection create example.db --name {_EXAMPLE}")
        say(f"  lookalike collection import example.db {_EXAMPLE}.jsonl --name {_EXAMPLE}")
        _serve(str(path), settings)


def _serve(place: str, settings: ServeSettings) -> None:
    from lookalike.collection.stores.address import hide_passwords, parse_address
    from lookalike.service.running import serve

    file = None if "://" not in place and Path(place).is_dir() else parse_address(place).path
    new = file is not None and not file.exists()

    def ready(address: str) -> None:
        lines = [f"lookalike serves {escape_terminal(hide_passwords(place))} at {address}"]
        if new:
            created = "the file does not exist yet; it is created with the first collection"
            lines.append(f"{created}{escape_terminal(did_you_mean_file(place))}")
        try:
            say("\n".join([*lines, "Ctrl-C ends it"]))
            flush_output()
        except BrokenPipeError:
            forget(sys.stdout)  # its reader has seen enough; the service goes on

    with _own_signals():
        serve(place, settings, ready)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Leave signals to the server, which ends in good order; see `orderly_end`.

    It knows SIGTERM and SIGINT. SIGHUP is handled as SIGTERM, except under `nohup`.
    """
    heard = signal.set_wakeup_fd(-1)
    hangs_up = signal.getsignal(signal.SIGHUP) == leave_to_thread
    if hangs_up:
        signal.signal(signal.SIGHUP, lambda number, frame: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    except KeyboardInterrupt:
        pass  # the server raises again what has ended it
    finally:
        if hangs_up:
            signal.signal(signal.SIGHUP, leave_to_thread)
        signal.set_wakeup_fd(heard)


def _new_key(options: argparse.Namespace) -> None:
    settings_keys = ServeSettings.read({"keys": options.keys}).keys
    if not settings_keys:
        raise ArgumentError(Said("keys"), " is missing; name the file for the new key")
    name = options.key_name or "key"
    scope = [one for one in (options.collections or "*").split(",") if one]
    access = "read-only" if options.read_only else "read-write"
    say(make_key(Path(settings_keys), name, access, scope))


def fill_example(path: Path, file: Path) -> int:
    """Import docstrings of the standard library from a file; return how many there are.

    The settings and the steps are those of `collection create` and `collection import`.
    """
    from lookalike.collection import open_collection

    file.write_text("".join(json.dumps(row) + "\n" for row in _texts()))
    with open_collection(path, _EXAMPLE, purpose="search", durable=False) as docs:
        docs.import_file(file, replace=True)
        docs.refresh()
        return docs.count()


def _texts() -> Iterator[dict[str, object]]:
    """Yield rows: what modules, classes and functions say of themselves."""
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
                yield {"id": name, "text": text, "module": module, "kind": kind, "line": line}
                count += 1
                if count >= _MOST_EXAMPLES:
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
