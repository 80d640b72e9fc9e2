"""Check that texts for people follow the style of the project: `make check`.

    python tools/check_style.py [PATH ...]

Checks the pages in Markdown, the help of every command, the messages of errors and warnings, the
docstrings of public functions and classes, and the texts of web pages and reports. Prints
`file:line: rule: text` for each finding and ends with status 1 if there is one. With paths, only
files at or below them are reported.

Sentences of pages and docstrings have at most 30 words, those of help and messages at most 25.
Code, tables and the addresses of links do not count. A value that is inserted into a message
counts as one word.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ("*.md", "docs/*.md", "benchmarks/README.md", "examples/README.md")
SOURCE = "src/lookalike"
LONGEST_IN_PAGES, LONGEST_ELSEWHERE = 30, 25
CODE = "`…`"
"""What inline code and inserted values become: it counts as one word."""

THINGS = (
    "(?:documents?|items?|rows?|pairs?|files?|images?|recordings?|copy|copies|ones?|which|that)"
)
GOES_ON = r"(?:in|into|on|to|with|through|beyond|up|down|over|back|from)\b"
NO_NOUN = "and|or|in|for|on|that|which|is|are|with|by|to|at"
COMPARISONS = "longer|more|less|fewer|better|worse|faster|slower|larger|smaller|different|greater"
RULES = {
    rf"(?<!\bthere )\b(?:is|are|was|were) no (?!{COMPARISONS})": "write 'is not a'",
    r"(?<!\bthere )\b(?:is|are|was|were) (?-i:none)\b": "say what is missing or invalid",
    r"\bunless (?:\w+ (?:is|are) )?told\b": "write '(default: ...)' or 'by default'",
    r"(?<!unless )\b(?:tells|told)\b": "write 'says', 'shows', 'returns' or 'distinguishes'",
    r"\bso many\b": "write 'the number of ...'",
    r"\b(?:nobody|somebody|whoever|everybody)\b": "name the person, program or thing",
    rf"\b{THINGS} who\b": "things are 'that' or 'which'",
    rf"\b(?:{THINGS}|who) (?:stays?|goes)\b(?! {GOES_ON})": (
        "write 'is kept', 'is dropped' or 'remains'"
    ),
    r"\b(?:is|are|be|was|were|those|what|how|look|looks) (?:all )?alike\b": (
        "write 'similar', 'near-duplicate' or 'match'"
    ),
    r"\blikeness(?:es)?\b": "write 'similarity' or 'match'",
    r"\bbeliev(?:e|es|ed|ing)\b": "write 'trust', 'assume' or 'skip verification'",
    r"\bsettl(?:e|es|ed|ing)\b": "write 'verify' or 'decide'",
    r"\b(?:lie|lies|lying)\b(?! (?:between|within|above|below|outside)\b)": "write 'is' or 'are'",
    r"\b(?:stand|stands|stood|standing) (?:for|in|on|beside)\b": (
        "write 'represents', 'replaces', 'is' or 'depends on'"
    ),
    rf"\bof (?:its|their|your|our) own(?=[^\w\s]| (?:{NO_NOUN})\b| ?$)": (
        "write 'own' before the noun, or 'separate'"
    ),
    r"\bof (?:ours|theirs)\b": "write 'our' or 'their' before the noun",
    r"\b(?:is|are|was|were|if|as|when|not|what|and) asked for\b": "write 'requested'",
    r"\bthe ones? that\b": "say the noun",
    r"\bsurvivors?\b": "write 'kept documents'",
    r"\bby the (?:hundred|thousand|million)s?\b": "give the number",
}
"""Phrases that are not used, and what to write instead."""

ISE_VERBS = """
    optimise organise recognise normalise summarise initialise serialise deserialise tokenise
    vectorise minimise maximise prioritise utilise customise synchronise parallelise generalise
    specialise characterise categorise emphasise randomise realise standardise visualise authorise
    capitalise finalise penalise materialise modernise equalise quantise memorise
""".split()
OUR_WORDS = "neighbour colour behaviour favour honour labour flavour harbour".split()
OTHER_WORDS = """
    analyse analysed analysing centre centres centred metre metres kilometre kilometres fibre fibres
    labelled labelling modelled modelling cancelled cancelling signalled signalling licence licences
    defence offence learnt burnt spelt whilst amongst catalogue catalogues dialogue dialogues
    programme programmes judgement artefact artefacts ageing fulfil skilful towards
""".split()
BRITISH = re.compile(
    rf"\b(?:(?:{'|'.join(verb[:-1] for verb in ISE_VERBS)})(?:e|ed|er|ers|es|ing|ation|ations)"
    rf"|(?:{'|'.join(OUR_WORDS)})\w*|(?:{'|'.join(OTHER_WORDS)})|grey\w*)\b",
    re.IGNORECASE,
)
MESSAGE_CALLS = re.compile(
    r"\w*(?:Error|Warning)|warn|say|damaged|wrong_usage|Refused|refuse_given|NotText|too_large"
)
"""Functions and classes whose arguments are messages."""
DESCRIPTIONS = ("description", "summary", "help")
"""Arguments that are texts for people, whatever function takes them."""


@dataclass(frozen=True)
class Text:
    """A piece of prose: where its parts are, and how long a sentence of it may be."""

    file: str
    parts: Sequence[tuple[int, str]]
    """The number of each line, and what is on it."""
    longest: int = LONGEST_ELSEWHERE


@dataclass(frozen=True, order=True)
class Finding:
    """A place that does not follow the style."""

    file: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.text}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the findings and return 1, or return 0."""
    parser = argparse.ArgumentParser(description="check the style of texts for people")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="report these only")
    paths = [path.resolve() for path in parser.parse_args(arguments).paths]
    found = [
        finding
        for finding in sorted({one for text in all_texts() for one in findings(text)})
        if not paths or any((ROOT / finding.file).is_relative_to(path) for path in paths)
    ]
    print("\n".join(map(str, found)) if found else "style: no findings")
    return 1 if found else 0


def all_texts() -> Iterator[Text]:
    """Return everything that is checked."""
    for page in sorted({page for pattern in PAGES for page in ROOT.glob(pattern)}):
        yield from page_texts(str(page.relative_to(ROOT)), page.read_text())
    for module in sorted((ROOT / SOURCE).rglob("*.py")):
        yield from module_texts(str(module.relative_to(ROOT)), module.read_text())
    for pattern in ("*.html", "*.js"):
        for page in sorted((ROOT / SOURCE).rglob(pattern)):
            yield from web_texts(str(page.relative_to(ROOT)), page.read_text())
    yield from help_texts()


def findings(text: Text) -> Iterator[Finding]:
    """Return what does not follow the style."""
    joined, starts = "", []
    for _, part in text.parts:
        starts.append(len(joined))
        joined += part + " "

    def at(position: int) -> int:
        return text.parts[bisect_right(starts, position) - 1][0]

    def around(match: re.Match[str]) -> str:
        return " ".join(joined[max(0, match.start() - 30) : match.end() + 30].split())

    for pattern, advice in RULES.items():
        for match in re.finditer(pattern, joined, re.IGNORECASE):
            yield Finding(text.file, at(match.start()), advice, f"... {around(match)} ...")
    for match in BRITISH.finditer(joined):
        yield Finding(text.file, at(match.start()), "use American spelling", match[0])
    for match in re.finditer(r".+?(?:[.!?](?=[\s\"')*]|$)|$)", joined):
        words = [word for word in match[0].split() if re.search(r"[\w…]", word)]
        if len(words) > text.longest:
            rule = f"a sentence of {len(words)} words, at most {text.longest}"
            yield Finding(text.file, at(match.start() + 1), rule, " ".join(words))


def page_texts(file: str, source: str) -> Iterator[Text]:
    """Return the paragraphs, list items and headings of a page in Markdown."""
    hidden = re.compile(r"^ *```.*?^ *```$|<!--.*?-->|<svg.*?</svg>", re.DOTALL | re.MULTILINE)
    source = hidden.sub(lambda block: "\n" * block[0].count("\n"), source)
    source = re.sub(r"(`+)(?:(?!\1).)+?\1", lambda c: CODE + "\n" * c[0].count("\n"), source)
    source = re.sub(r"!?\[([^\[\]]*)\]\([^)]*\)", r"\1", source)
    source = re.sub(r"<[^>\n]+>|https?://\S+", " ", source)
    parts: list[tuple[int, str]] = []
    for number, line in enumerate([*source.splitlines(), ""], 1):
        alone = line.lstrip().startswith(("#", "|")) or not line.strip()
        if parts and (alone or re.match(r"\s*(?:[-*+]|\d+\.) ", line)):
            yield Text(file, parts, LONGEST_IN_PAGES)
            parts = []
        if line.lstrip().startswith("#"):
            yield Text(file, [(number, line.lstrip("# "))], LONGEST_IN_PAGES)
        elif not alone:
            parts.append((number, re.sub(r"^\s*(?:[-*+>]|\d+\.) ", "", line).replace("**", "")))


def module_texts(file: str, source: str) -> Iterator[Text]:
    """Return the messages and the public docstrings of a module."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and MESSAGE_CALLS.fullmatch(_name(node.func)):
            yield from _said(file, node.args)
        elif isinstance(node, ast.keyword) and node.arg in DESCRIPTIONS:
            yield from _said(file, [node.value])
    yield from _docstrings(file, tree)


def _said(file: str, arguments: Sequence[ast.expr]) -> Iterator[Text]:
    parts = [part for argument in arguments for part in _message(argument)]
    if sum(len(part.split()) for _, part in parts) > 1:
        prose = [(line, re.sub(r"`[^`]+`", CODE, " ".join(part.split()))) for line, part in parts]
        yield Text(file, prose)


def _name(function: ast.expr) -> str:
    return str(getattr(function, "attr", getattr(function, "id", "")))


def _message(node: ast.expr) -> Iterator[tuple[int, str]]:
    """Return the constant parts of a message, with a word for each value in it."""
    if isinstance(node, ast.Constant):
        yield node.lineno, node.value if isinstance(node.value, str) else CODE
    elif isinstance(node, ast.JoinedStr):
        whole = "".join(
            str(part.value) if isinstance(part, ast.Constant) else CODE for part in node.values
        )
        yield node.lineno, whole
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _message(node.left)
        yield from _message(node.right)
    elif isinstance(node, ast.IfExp):
        yield from _message(node.body)
    elif isinstance(node, ast.Call) and node.args and _name(node.func) in ("Said", "Term"):
        yield from _message(node.args[0])
    else:
        yield node.lineno, CODE


def _docstrings(file: str, node: ast.Module | ast.ClassDef) -> Iterator[Text]:
    """Return the docstrings of public functions and classes, but for their examples."""
    for child in node.body:
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if child.name.startswith("_"):
            continue
        documented = child.body[0]
        if ast.get_docstring(child) and isinstance(documented, ast.Expr):
            lines = str(getattr(documented.value, "value", "")).splitlines()
            prose = "\n".join("" if re.match(r"\s+(>>>|\.\.\.)|\s{8,}", o) else o for o in lines)
            for text in page_texts(file, re.sub(r"^ +", "", prose, flags=re.MULTILINE)):
                first = documented.lineno - 1
                parts = [(first + line, part) for line, part in text.parts]
                yield Text(file, parts, LONGEST_IN_PAGES)
        if isinstance(child, ast.ClassDef):
            yield from _docstrings(file, child)


def web_texts(file: str, source: str) -> Iterator[Text]:
    """Return the texts of a template, or the strings of a script, that have several words."""
    if file.endswith(".js"):
        found = re.finditer(r'"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`', source)
    else:
        hidden = re.compile(
            r"\{%.*?%\}|\{#.*?#\}|<(?:script|style).*?</(?:script|style)>", re.DOTALL
        )
        source = hidden.sub(lambda part: "\n" * part[0].count("\n"), source)
        source = re.sub(r"\{\{.*?\}\}", CODE, source)
        found = re.finditer(r"[^<>]+(?=<)", source)
    for match in found:
        words = re.sub(r"\$\{[^}]*\}?", CODE, match[0].strip('"`')).split()
        if len(words) > 2:
            line = source.count("\n", 0, match.start() + len(match[0]) - len(match[0].lstrip())) + 1
            yield Text(file, [(line, " ".join(words))])


def help_texts() -> Iterator[Text]:
    """Return the help of every command and every option, from the parser itself."""
    from lookalike.cli import full_parser

    modules = {
        str(path.relative_to(ROOT)): path.read_text()
        for path in sorted((ROOT / SOURCE / "cli").rglob("*.py"))
    }
    for help in set(_helps(full_parser())):
        file, line = _origin(help, modules)
        for paragraph in re.split(r"\n\s*\n|\n(?=  )", help):
            text = re.sub(r"`[^`]+`|\{[^}]+\}", CODE, " ".join(paragraph.split()))
            if text and not text.startswith("lookalike "):
                yield Text(file, [(line, text)])


def _helps(parser: argparse.ArgumentParser) -> Iterator[str]:
    shown = (parser.description, parser.epilog, getattr(parser, "details", ""))
    yield from (text for text in shown if text)
    for action in parser._actions:
        if action.help and action.help != argparse.SUPPRESS:
            yield action.help
        if isinstance(action, argparse._SubParsersAction):
            yield from (one.help for one in action._choices_actions if one.help)
            for command in action.choices.values():
                yield from _helps(command)


def _origin(help: str, modules: dict[str, str]) -> tuple[str, int]:
    """Return the file and line that a help text begins in."""
    words = help.split()
    for count in (6, 4, 3):
        beginning = re.compile(r"\s+".join(map(re.escape, words[:count])))
        for file, source in modules.items():
            if match := beginning.search(source):
                return file, source.count("\n", 0, match.start()) + 1
    return f"{SOURCE}/cli", 1


if __name__ == "__main__":
    sys.exit(main())
