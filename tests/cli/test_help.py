"""What the commands say of their defaults is what they use."""

from __future__ import annotations

import argparse
import inspect
import math
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import lookalike as la
from lookalike.cli import COMMANDS, ORDER, full_parser, main, overview_parser
from lookalike.cli.commands import bench, collection
from lookalike.cli.commands.audio import DEFAULT_COVERS, DEFAULT_INDEX
from lookalike.cli.commands.evaluate import EXPAND, QUERIES
from lookalike.collection.opening import for_purpose
from lookalike.compare.texts import compare_texts
from lookalike.corpora import Corpus, open_corpus
from lookalike.corpora.formats.html import PageFolderCorpus
from lookalike.dedup.settings import ALIASES, DedupSettings
from lookalike.dedup.vectors import RECALL, THRESHOLD
from lookalike.features import MEASURES, RARITY_MEASURES
from lookalike.indexes.slices.search import search_settings
from lookalike.jobs.context import longest_document
from lookalike.recordings.audio_hash import LEAST_SCORE
from lookalike.recordings.cover_index import LEAST_SCORE as LEAST_COVER
from lookalike.service.settings import ServeSettings
from lookalike.topics.settings import TopicSettings
from support.cases import cli_corpus as corpus

DOCS = Path(__file__).parents[2] / "docs"
SIGNERS: dict[str, Callable[[int], Any]] = {
    "simhash": la.SimHash,
    "topsig": la.TopSig,
    "bbitminhash": la.BBitMinHash,
}

IN_WORDS = {
    "named by date and time",
    "detected", "detected, or row numbers", "all cores", "by the size", "all of them", "all of it",
    "all but previews",
    "derived from the threshold", "not limited", "from the file extension", "beside the database",
    "that in the snapshot", "that of the file", "the only one there is", "error",
    "stop with an error", "what SliceIndex chooses", "the same as --expand", "1, all pairs",
    "3, or a scan where faster", "a sample of SIGNATURES", "1000, or 10 K if that is more",
    "4 K, at least 64", "every 12th, or as many as near-duplicates need",
    "every 12th, or as many as near-duplicates need; for vectors every 8th, at least 32",
    "flips if QUERIES have weights, otherwise blocks",
    "square root of half the number of documents, at most 50, then split or merged by topic",
    "detected, or the first heading",
    "the name of INPUT with .lookalike",
    "words; dedup of short documents: short",
    "signature, if it exists",
    "vector, if the file was exported", "what the signatures estimate, jaccard or cosine",
    "that of the signatures", "derived from the size", "no limit", "rebuild an existing one",
    "all others", "the last argument is the text",
    "sql, or native for passages and recordings",
}  # fmt: skip
"""Defaults that are not values; what they mean has tests of its own."""


def ngrams() -> str:
    named = (f"{name} {DedupSettings(features=name).ngram}" for name in ("chars", "short"))
    return "; ".join([by_method("ngram"), *named])


def thresholds() -> str:
    short = DedupSettings(features="short").threshold
    return f"{DedupSettings().threshold}; features short {short}; vectors {THRESHOLD}"


def by_method(name: str) -> str:
    values = ((method, getattr(DedupSettings(method=method), name)) for method in methods())
    return ", ".join(f"{method} {value}" for method, value in values if value)


def methods() -> list[str]:
    (method,) = (one for one in fields(DedupSettings) if one.name == "method")
    return list(method.metadata["option"]["choices"])


def opened() -> Corpus:
    return open_corpus(["a text"])


def of_pages() -> str:
    return f"; web pages {PageFolderCorpus.max_document >> 20}MiB"


def topics(**given: Any) -> TopicSettings:
    """Return the settings of documents that are to be put into clusters."""
    return la.cluster_documents(["a text"], **given).settings


def default_of(function: Callable[..., Any], name: str) -> str:
    return str(inspect.signature(function).parameters[name].default)


def contamination(name: str) -> str:
    usual, near = (la.decontaminate(["a"], ["b"], rule=rule).settings for rule in ("share", "near"))
    return f"{getattr(usual, name)}; near {getattr(near, name)}"


def serve_default(name: str) -> str:
    value = getattr(ServeSettings.read({}, {}), name)
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if isinstance(value, int) and value >= size and value % size == 0:
            return f"{value // size}{unit}"
    return f"{value:g}" if isinstance(value, float) else str(value)


COVERED = "{}, or {} with --cover"


USED: dict[tuple[str, str], Callable[[], str]] = {
    ("dedup", "--ngram"): ngrams,
    ("dedup", "--threshold"): thresholds,
    ("dedup", "--keep"): lambda: f"{la.results.DedupSettings().keep}; files best",
    ("dedup", "--bits"): lambda: by_method("bits"),
    ("sign", "--ngram"): ngrams,
    ("sign", "--bits"): lambda: by_method("bits"),
    ("sign", "--weights"): lambda: DedupSettings(method="simhash").signer().weights.kind,  # type: ignore[attr-defined]
    ("cluster", "--ngram"): lambda: (
        f"{topics().used_ngram}; chars {topics(features='chars').used_ngram}"
    ),
    ("compare", "--ngram"): lambda: str(compare_texts("a b", "a c").shingles.ngram),
    ("collection create", "--seed"): lambda: str(la.SimHash().seed),
    ("collection create", "--words"): lambda: str(for_purpose("search", None, None, None)[1]),
    ("collection create", "--passage-words"): lambda: str(la.PassageHash().words),
    ("collection create", "--passage-step"): lambda: str(la.PassageHash().step),
    ("audio index", "-o"): lambda: COVERED.format(DEFAULT_INDEX, DEFAULT_COVERS),
    ("audio index", "--hash"): lambda: la.AudioHash().kind,
    ("audio search", "--index"): lambda: COVERED.format(DEFAULT_INDEX, DEFAULT_COVERS),
    ("audio search", "--min-score"): lambda: ", ".join(
        f"{kind} {score}" for kind, score in {**LEAST_SCORE, "--cover": LEAST_COVER}.items()
    ),
    ("dedup", "--recall"): lambda: str(RECALL),
    ("clean", "--passage-words"): lambda: (
        f"{la.clean(['a']).settings.words}; units {la.clean(['a'], unit='line').settings.words}"
    ),
    ("clean", "--gap"): lambda: str(la.clean(["a"]).settings.gap),
    ("clean", "--max-documents"): lambda: str(la.clean(["a"], unit="line").settings.max_documents),
    ("clean", "--boundary"): lambda: str(la.clean(["a"]).settings.boundary),
    ("clean", "--max-document"): lambda: (
        f"{opened().max_document >> 20}MiB, or a 40th of --memory-limit"
    ),
    ("decontaminate", "--max-document"): lambda: f"{opened().max_document >> 20}MiB",
    ("decontaminate", "--ngram-words"): lambda: contamination("ngram"),
    ("decontaminate", "--shortest"): lambda: contamination("shortest"),
    ("decontaminate", "--min-share"): lambda: contamination("min_share"),
    ("decontaminate", "--gap"): lambda: str(la.decontaminate(["a"], ["b"]).settings.gap),
    ("decontaminate", "--margin"): lambda: str(la.decontaminate(["a"], ["b"]).settings.margin),
    **{
        (command, "--hash"): lambda: default_of(la.ImageHash, "kind")
        for command in ("dedup", "sign")
    },
    ("match", "--recall"): lambda: default_of(la.match_batch, "recall"),
    ("index", "--radius"): lambda: default_of(la.BlockIndex, "radius"),
    ("index", "--orders"): lambda: default_of(la.PrefixIndex, "orders"),
    **{
        (command, "--max-document"): lambda: f"{opened().max_document >> 20}MiB{of_pages()}"
        for command in (
            *("cluster", "compare", "sign", "search", "collection import", "passages", "overlaps"),
        )
    },
    **{
        (command, "--page-limits"): lambda: ",".join(
            f"{name}={value}" for name, value in vars(la.pages.PageLimits()).items()
        )
        for command in (
            *("dedup", "cluster", "compare", "sign", "search", "collection import", "passages"),
            "overlaps",
        )
    },
    ("dedup", "--max-document"): lambda: (
        f"{opened().max_document >> 20}MiB, or a 40th of --memory-limit{of_pages()}"
        if longest_document(None, 40_000) == 1_000
        else ""
    ),
    ("bench", "--count"): lambda: f"{bench.COUNT}; gpu {bench.GPU_COUNT}",
    ("bench", "--bits"): lambda: str(bench.BITS),
    ("bench", "--gpu-number"): lambda: default_of(la.GpuIndex, "device"),
    ("collection create", "--method"): lambda: "simhash",
    ("dedup", "--max-pairs"): lambda: default_of(la.results.TextResult.write_pairs, "limit"),
    ("evaluate", "--expand"): lambda: ",".join(map(str, EXPAND)),
    ("evaluate", "--sample"): lambda: str(QUERIES),
    ("search", "--cull"): lambda: (
        search_settings(64, 16, 1, None, None, None, exact=False, explain=False).cull.name
    ),
    **{
        ("serve", f"--{one.name.replace('_', '-')}"): partial(serve_default, one.name)
        for one in fields(ServeSettings)
    },
}
"""What a command uses where an option is None, that is, where the parser does not know it."""


def test_the_overview_imports_no_command_and_says_the_same() -> None:
    assert overview_parser().format_help() == full_parser().format_help()
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "lookalike.cli", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == full_parser().format_help()
    assert "lookalike.cli.parser" in shown.stderr
    assert "lookalike.cli.commands." not in shown.stderr


def options(
    parser: argparse.ArgumentParser, names: tuple[str, ...] = ()
) -> Iterator[tuple[str, argparse.Action]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, chosen in action.choices.items():
                yield from options(chosen, (*names, name))
        else:
            yield " ".join(names), action


def test_defaults_in_help_are_those_that_are_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    used: dict[tuple[str, str], Callable[[], str]] = {
        **USED,
        ("collection create", "--bits"): lambda: made_collections(tmp_path, "bits"),
        ("collection create", "--ngram"): lambda: made_collections(tmp_path, "ngram"),
    }
    named = 0
    for command, action in options(full_parser()):
        found = re.search(r"\(default:? ([^)]*)\)", action.help or "")
        assert ("default" in (action.help or "")) == bool(found), (command, action.option_strings)
        if found is None or found[1] in IN_WORDS:
            assert found is None or action.default in (None, False), (
                command,
                action.option_strings,
            )
            continue
        named += 1
        said = re.sub(r"(?<=\d),(?=\d{3}\b)", "", found[1]).partition(":")[0]
        if action.default is None:
            truth = used[command, action.option_strings[0]]()
        elif isinstance(action.default, tuple):  # the engine and its master
            truth = action.default[0]
        elif isinstance(action.default, float):
            said, truth = str(float(said)), str(action.default)
        else:
            truth = str(action.default)
        assert said == truth, (command, action.option_strings)
    assert named > 30


def made_collections(folder: Path, what: str) -> str:
    """Return what collections of each method have that are made without options."""
    said = []
    for method in (*SIGNERS, *(["passages", "signatures"] if what == "bits" else [])):
        database = str(folder / f"{method}-{what}.db")
        option = "--method" if method in SIGNERS else "--kind"
        assert main(["collection", "create", database, option, method]) == 0
        with la.open_collection(database) as docs:
            if what == "bits":
                said.append(f"{method} {docs.bits}")
            elif docs.signer is not None:
                said.append(f"{method} {docs.signer.to_dict()['features']['ngram']}")
    return ", ".join(said)


def test_every_setting_is_an_option_with_its_default() -> None:
    settings = {one.name: one.default for one in fields(DedupSettings)}
    of = {"dedup": dict[str, argparse.Action](), "sign": dict[str, argparse.Action]()}
    for command, action in options(full_parser()):
        if command in of:
            of[command][action.dest] = action
    for name, default in settings.items():
        assert of["dedup"][name].default == default
        assert of["sign"].get(name, of["dedup"][name]).default == default
        aliases = [alias for alias, meant in ALIASES.items() if meant == name]
        for alias in aliases:
            assert f"--{alias}" in of["dedup"][name].option_strings


def shown_help(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        main([command, "--help-all"])
    return capsys.readouterr().out


@pytest.mark.parametrize("method", ["minhash", "simhash", "topsig"])
def test_what_is_said_of_methods_is_so(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The details of `sign --help` and `pairs --help`, and the table of the documentation."""
    file = tmp_path / "signatures.lookalike"
    source = corpus.write(tmp_path / "corpus.jsonl")
    words = ["--features", "words"]  # which longer documents are signed by
    assert main(["sign", source, "--method", method, *words, "-o", str(file), "--quiet"]) == 0
    signer: Any = la.load_signatures(file).signer
    ngram = signer.features.ngram
    (line,) = re.findall(rf"^  {method}  .*$", shown_help("sign", capsys), re.MULTILINE)
    assert f"word {ngram}-grams" in line
    assert method == "minhash" or f"in {signer.bits} bits" in line
    share = 0.1 if method == "minhash" else math.acos(0.8) / math.pi
    radius = int(share * signer.bits)
    assert f"{radius} of {method}'s {signer.bits}" in shown_help("pairs", capsys)
    row = rf"^\|.*{'MinHash of' if method == 'minhash' else f'`--method {method}[^1]*`:'} (.*) \|$"
    (said,) = re.findall(row, (DOCS / "commands.md").read_text(), re.MULTILINE)
    assert said == f"word {ngram}-grams, {signer.bits} bits"


def commands(
    parser: argparse.ArgumentParser, names: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, chosen in action.choices.items():
                yield (*names, name), chosen
                yield from commands(chosen, (*names, name))


def test_help_is_short_and_ends_with_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for names, parser in commands(full_parser()):
        told = f"lookalike {' '.join(names)}"
        lines = parser.format_help().splitlines()
        assert len(lines) <= 60 and max(map(len, lines)) <= 90, told
        examples = lines[lines.index("examples:") + 1 : -2]
        assert 1 <= len(examples) <= 4 and all("lookalike " in line for line in examples), told
        last = (
            "--help` shows the options of each."
            if names in (("audio",), ("collection",))
            else (f"`{told} --help-all` shows all options and details.")
        )
        assert lines[-1].endswith(last)


def test_help_lists_commands_in_the_order_of_their_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert COMMANDS[: len(ORDER)] == tuple(ORDER)
    for words, order in (([], COMMANDS), (["collection"], collection.ORDER)):
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        listed = re.findall(r"^  ([a-z]+)  ", capsys.readouterr().out, re.MULTILINE)
        assert listed == list(order)
        (action,) = (
            one
            for one in full_parser().parser_of(words)._actions
            if isinstance(one, argparse._SubParsersAction)
        )
        assert set(action.choices) == set(order)


def test_help_all_has_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    for names, parser in commands(full_parser()):
        with pytest.raises(SystemExit) as stop:
            main([*names, "--help-all"])
        shown = capsys.readouterr().out
        assert stop.value.code == 0 and "exit status:" in shown
        for action in parser._actions:
            assert not action.option_strings or action.option_strings[0] in shown, names


def test_an_option_means_the_same_in_every_command() -> None:
    """The same name has the same kind of value everywhere, but for the lists of `evaluate`."""
    found: dict[str, dict[str, set[str]]] = {}
    for command, action in options(full_parser()):
        for name in action.option_strings:
            value = "" if action.nargs == 0 else str(action.metavar)
            if command != "evaluate":
                found.setdefault(name, {}).setdefault(value, set()).add(command)
    several = {name: set(values) for name, values in found.items() if len(values) > 1}
    assert several == DIFFERENT


DIFFERENT: dict[str, set[str]] = {
    "-o": {"FILE", "TARGET"},
    "--output": {"FILE", "TARGET"},
    "--report": {"FILE", "TARGET"},
    "--kind": {"KIND", "NAME"},
    "--hash": {"NAME", "bands|chromaprint"},
    "--engine": {"NAME", "spark|shards|gpu"},
    "--method": {"NAME", "minhash|simhash|topsig"},
    "--keep": {"RULE", "first|last|none"},
    "--type": {"TYPE", "NAME"},
    "--file": {"FILE", "CORPUS"},
    "--pairs": {"FILE", "TARGET"},
    "--for": {"search|duplicates", "duplicates|versions"},
    "--measure": {"|".join(MEASURES), "|".join((*MEASURES, *RARITY_MEASURES))},
}
"""Options whose values differ between commands, as far as what they name differs."""


@pytest.mark.parametrize("names", [one for one, _ in commands(full_parser())], ids=" ".join)
def test_examples_parse(names: tuple[str, ...]) -> None:
    """Each example in help is a call that the command takes."""
    parser = full_parser()
    shown = parser.parser_of(names).examples
    for line in shown.splitlines():
        words = shlex.split(line.partition("lookalike ")[2])
        words = words[: next((at for at, word in enumerate(words) if word in "<>|"), None)]
        options, unknown = parser.parse_known_args(words)
        assert parser.parser_of(words).take(options, unknown), line
