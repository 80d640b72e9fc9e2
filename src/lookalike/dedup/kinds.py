"""The kinds of items, and which options each supports.

Errors, `lookalike dedup --help` and the table in docs/deduplicating.md come from `OPTIONS`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from inspect import signature
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from lookalike.checks import is_address
from lookalike.corpora.formats import format_of
from lookalike.corpora.opening import expand_paths
from lookalike.corpora.tables import is_vectors
from lookalike.dedup.settings import ALIASES, FILE_RULES, RULES, DedupSettings, given_settings
from lookalike.errors import ArgumentError, FileError, Said
from lookalike.media import MEDIA, Medium, medium_of_files
from lookalike.shown import brief
from lookalike.storage.files import is_folder
from lookalike.suggestions import did_you_mean

if TYPE_CHECKING:
    from lookalike.dedup.result import TextResult

TEXT, VECTORS = "text", "vectors"
SPARK = "spark"
"""The engine; it compares text."""
KINDS = (TEXT, VECTORS, "images", "recordings", "videos")
"""What is compared. Media of other packages come on top."""
_FORMER = {"documents": TEXT}
"""Earlier names of kinds."""


@dataclass(frozen=True)
class Option:
    """Which kinds of items, and whether the engine Spark, support an option."""

    kinds: str
    """Names with spaces between them; "media" are all media."""
    instead: Mapping[str, str | Said] = field(default_factory=dict)
    """What to do instead, by kind, media (all of them) and spark."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Values that fewer kinds support, up to a colon, with the names of these."""


_NO_TEXTS = "texts are not compared"
_TEXT_ONLY = Option("text spark", {"vectors": _NO_TEXTS})
_MEMORY = "Spark's own settings say how much memory its workers have"

_BY_COSINE = Said("use threshold=T, a cosine", "use --threshold T, a cosine")
_INSTEAD: dict[str, dict[str, str | Said]] = {
    "radius": {
        "vectors": _BY_COSINE,
        "recordings": Said("use threshold=T", "use --threshold T"),
        "videos": Said("use threshold=T", "use --threshold T"),
    },
    "method": {
        "images": Said('use hash="dct", "gradient" or "pdq"', "use --hash NAME"),
        "vectors": _NO_TEXTS,
    },
    "features": {"vectors": _NO_TEXTS},
    "ngram": {"vectors": _NO_TEXTS},
}
"""What to do instead of a setting of `DedupSettings`."""
_VALUES = {
    "keep": dict.fromkeys(("longest", "shortest"), "text spark")
    | {rule: "media" for rule in (*FILE_RULES, "path") if rule not in RULES},
}
"""Values of a setting that fewer kinds support."""

OPTIONS: dict[str, Option] = {
    "id": Option("text vectors spark"),
    "text": _TEXT_ONLY,
    "vectors": Option("vectors"),
    "format": Option("text vectors spark"),
    "encoding": Option(
        "text vectors", {"spark": "Spark reads UTF-8; convert the files first, or run locally"}
    ),
    "skip_bad": Option("text spark", {"vectors": "a null is kept; correct any other bad value"}),
    "max_document": Option("text", {"vectors": _NO_TEXTS, "spark": _MEMORY}),
    "html": _TEXT_ONLY,
    "page_limits": _TEXT_ONLY,
    "min_words": _TEXT_ONLY,
    "max_repetition": _TEXT_ONLY,
    "language": _TEXT_ONLY,
    "min_links": _TEXT_ONLY,
    "min_bytes": _TEXT_ONLY,
    "strip_urls": _TEXT_ONLY,
    "against": Option("text vectors media spark"),
    **{
        one.name: Option(
            one.metadata["kinds"], _INSTEAD.get(one.name, {}), _VALUES.get(one.name, {})
        )
        for one in fields(DedupSettings)
    },
    "recall": Option("vectors"),
    "hash": Option("images"),
    "rotated": Option("images videos"),
    "signer": Option("recordings"),
    "output": Option("text vectors media spark"),
    "in_place": Option("text vectors", {"spark": "the output is a new folder"}),
    "annotate": Option("text vectors media spark"),
    "pairs": Option("text vectors media spark"),
    "max_pairs": Option("text spark", {"vectors": "at most 100,000,000 pairs are found"}),
    "collapse": Option(
        "text",
        {
            "vectors": "equal vectors are paired with their first only",
            "spark": "leave out --exact to pair equal texts with their first only",
        },
    ),
    "dropped": Option("media"),
    "apply": Option("media"),
    "journal": Option("media"),
    "report": Option(
        "text vectors media", {"spark": "run locally on the kept documents or on a sample"}
    ),
    "save_signatures": Option(
        "text",
        {
            "vectors": "la.VectorIndex keeps vectors and signatures in a file",
            "spark": "`lookalike sign` saves signatures",
        },
    ),
    "work": Option("text vectors media spark"),
    "cache": Option("media"),
    "memory_limit": Option("text vectors media", {"spark": _MEMORY}),
    "threads": Option(
        "text vectors media", {"spark": "Spark's own settings say how many cores its workers have"}
    ),
    "device": Option(
        "text",
        {"vectors": "a GPU looks for pairs of texts", "spark": "a GPU is for the local engine"},
    ),
    "engine": Option(
        "text spark", dict.fromkeys(("vectors", "media"), "they are compared by the local engine")
    ),
}
"""Every option of `la.dedup` and `lookalike dedup` that not all kinds may support."""


def supports(kind: str, option: str) -> bool:
    """Return whether a kind of items, or the engine "spark", supports an option."""
    if option not in OPTIONS:
        return True
    if _is_among(kind, OPTIONS[option].kinds):
        return True
    known = kind in (*KINDS, SPARK)
    return not known and option in signature(MEDIA[kind]).parameters


def _is_among(kind: str, named: str) -> bool:
    """Return whether a kind is one of those that an `Option` names."""
    names = named.split()
    return kind in names or ("media" in names and kind not in (TEXT, VECTORS, SPARK))


def refuse(kind: str, given: Iterable[str], values: Mapping[str, Any]) -> None:
    """Refuse options, and values, that a kind of items or the engine "spark" does not support.

    `given` are the options that do not have their defaults.
    """
    for name in given:
        told, named = "", None
        if supports(kind, name):
            value = values.get(name)
            only = OPTIONS[name].values if name in OPTIONS else {}
            named = only.get(value.partition(":")[0]) if isinstance(value, str) else None
            if named is None or _is_among(kind, named):
                continue
            told = f" is {value!r}, which"
        by_kind = OPTIONS[name].instead
        instead = by_kind.get(kind)
        if instead is None and kind not in (TEXT, VECTORS, SPARK):
            instead = by_kind.get("media")
        others = [
            other
            for other in KINDS
            if (supports(other, name) if named is None else _is_among(other, named))
        ]
        where = " with --engine spark" if kind == SPARK else f" for {kind}"
        raise ArgumentError(
            Said(name),
            f"{told} does nothing{where}",
            *((": ", instead) if instead else ("; leave it out",)),
            f" (it goes with {', '.join(others)})" if TEXT not in others else "",
        )


def kind_name(kind: object) -> str:
    """Return a kind by its name: "auto", one of `KINDS`, or a medium of another package."""
    name = _FORMER.get(kind, kind) if isinstance(kind, str) else ""
    if name in ("auto", TEXT, VECTORS) or name in MEDIA:
        return name
    known = list(dict.fromkeys(["auto", *KINDS, *MEDIA.names()]))
    raise ArgumentError(
        Said("kind"),
        f" is {brief(kind)}; expected one of {', '.join(known)}{did_you_mean(kind, known)}",
    )


def kind_of(source: Any, options: Mapping[str, Any]) -> str:
    """Return the kind of the items of a source, for `kind="auto"`; see `la.dedup`.

    Files whose names tell a text format are not opened, and no medium is imported for them.
    """
    if options.get("vectors") is not None:
        return VECTORS
    if any(options.get(name) is not None for name in ("format", "text", "html")):
        return TEXT
    given = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(given, list | tuple) or not given:
        return VECTORS if is_vectors(given) else TEXT
    texts = given is source and any(not isinstance(one, os.PathLike) for one in given)
    if texts or any(is_address(one) for one in given):
        return TEXT
    try:
        paths = expand_paths([Path(one) for one in given])
        if all(format_of(path) is not None and not is_folder(path) for path in paths):
            return TEXT
        return medium_of_files(paths) or TEXT
    except (FileError, ValueError):
        return TEXT  # reading the source as text says what is wrong with it


def given_options(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    """Return the names of the options that do not have their defaults."""
    return [
        name
        for name, value in options.items()
        if value is not None
        and (type(value) is not type(defaults[name]) or value != defaults[name])
    ]


def run(source: Any, kind: str | Medium[Any], options: dict[str, Any]) -> Any:
    """Run the job for the kind of items that `la.dedup` is given, and return its result."""
    from lookalike.dedup import dedup

    medium = kind if isinstance(kind, Medium) else None
    name = medium.name if medium is not None else kind_name(kind)
    if name == "auto":
        name = kind_of(source, options)
    defaults = {one.name: one.default for one in signature(dedup).parameters.values()}
    given = given_options(options, defaults)
    refuse(name, [ALIASES.get(one, one) for one in given], options)
    if name == TEXT:
        return _run_text(source, options)
    if name == VECTORS:
        from lookalike.dedup.vectors import run_vector_job

        return run_vector_job(source, **chosen(options, run_vector_job))
    from lookalike.dedup.media import run_media_job

    if medium is None:
        medium = medium_with(name, {one: options[one] for one in given})
    return run_media_job(source, medium, **chosen(options, run_media_job))


def medium_with(name: str, options: dict[str, Any]) -> Medium[Any]:
    """Return a medium with its settings, which are taken out of the options."""
    settings = chosen(options, MEDIA[name])
    for setting in settings:
        del options[setting]
    return MEDIA[name](**settings)


def chosen(options: Mapping[str, Any], function: Any) -> dict[str, Any]:
    """Return the options that a function takes."""
    return {name: options[name] for name in signature(function).parameters if name in options}


def _run_text(source: Any, options: dict[str, Any]) -> TextResult:
    from lookalike.corpora.columns import Filters
    from lookalike.dedup import dedup
    from lookalike.dedup.job import run_job

    return run_job(
        source,
        filters=Filters(**chosen(options, Filters)),
        settings=given_settings(options, dedup),
        **chosen(options, run_job),
    )


def support_lines() -> str:
    """Return which options each kind supports, for `lookalike dedup --help`."""
    lines = []
    for kind in (*KINDS, SPARK):
        names = [name for name in OPTIONS if supports(kind, name)]
        others = [name for name in OPTIONS if name not in names]
        which, listed = ("not", others) if len(others) < len(names) else ("only", names)
        typed = " ".join(f"--{name.replace('_', '-')}" for name in listed if name != "signer")
        begin = f"  {kind}: {which} "
        lines.append(fill(typed, 98, initial_indent=begin, subsequent_indent=" " * 4))
    return "\n".join(lines)


def support_table() -> str:
    """Return the table of options and kinds for the docs, in Markdown."""
    columns = [*KINDS, SPARK]
    lines = [f"| option | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    for name in OPTIONS:
        cells = ["yes" if supports(column, name) else "" for column in columns]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
        for value, kinds in OPTIONS[name].values.items():
            cells = ["yes" if _is_among(column, kinds) else "" for column in columns]
            lines.append(f'| `{name}="{value}"` | {" | ".join(cells)} |')
    return "\n".join(lines)
