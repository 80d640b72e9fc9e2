"""`la.dedup_media`: what people call."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, SupportsIndex

from lookalike.checks import one_of
from lookalike.dedup.media.job import paths_of, run_media_job
from lookalike.dedup.media.kinds import DOCUMENTS, KINDS, kind_of, medium_of
from lookalike.dedup.media.result import MediaResult
from lookalike.errors import ArgumentError, Said
from lookalike.suggestions import did_you_mean

__all__ = ["dedup_media"]


def dedup_media(
    source: Any,
    *,
    kind: str | None = None,
    threads: SupportsIndex | None = None,
    progress: Callable[[str, float], None] | None = None,
    **settings: Any,
) -> MediaResult:
    """Find the images of a folder that show the same, or recordings that sound the same, and
    choose who of them stays.

    `source` is a folder, a file, a pattern, or a list of these. `kind` is "images" or "recordings";
    None: what more than half of all files are, told by what they begin with. Settings of images:
    `bits=256` or 64, `radius` (in how many of these bits copies differ at most; 56 of 256),
    `hash="dct"` or "gradient", and `rotated=True` for copies that were turned by quarters or
    mirrored, too. Settings of recordings: `threshold=0.8`, the share of the longer one that has to
    be the same, and `signer=la.AudioHash()`. Both take `memory_limit`, the bytes of memory for this
    process and the isolated processes that decode files: as many files are decoded at once as fit,
    and a file that does not fit alone is left out. By default, decoders of images take at most
    1 GiB together, or 176 MiB for each processor core if that is more.

    Of similar images, the one of most pixels is kept, then the one of most bytes, then the first by
    path. Of similar recordings, a lossless one is kept before a lossy one, then the longer one, the
    one of the widest bandwidth, and the oldest; docs/recordings.md has the whole order.
    Every file that is dropped is equal to one that stays, or alike to it; of those that
    stay, no two are. What cannot be read is left out and named in `MediaResult.problems`; nothing
    is deleted. The same files give the same result, for any number of threads. `progress` is called
    with the name of a step and the share of it that is done. Needs the extra `images` or `audio`.
    """
    paths = paths_of(source)
    if kind is None:
        kind = kind_of(paths)
        if kind == DOCUMENTS:
            raise ArgumentError(
                f"{paths[0]} has mostly files that are none of {', '.join(KINDS[1:])}; texts are "
                "for la.dedup, or say kind"
            )
    medium = medium_of(one_of("kind", kind, KINDS[1:]))
    known = list(signature(medium).parameters)
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise ArgumentError(
            Said(unknown[0]),
            f" is no setting of {kind}; expected one of {', '.join(known)}"
            f"{did_you_mean(unknown[0], known)}",
        )
    return run_media_job(paths, medium(**settings), threads=threads, progress=progress)
