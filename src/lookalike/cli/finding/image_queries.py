"""Images to look for, in an index of images."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import thread_count
from lookalike.cli.options.kinds import warn_problems
from lookalike.corpora.opening import expand_paths
from lookalike.errors import ArgumentError, Said
from lookalike.images import ImageHash, is_image
from lookalike.images.medium import ImageMedium
from lookalike.media import find_files, head_of

__all__ = ["are_images", "image_queries"]


def are_images(queries: list[str]) -> bool:
    """Return whether what was typed are names of image files, all of it."""
    try:
        return bool(queries) and all(is_image(head_of(Path(query))[0]) for query in queries)
    except (OSError, ValueError):
        return False


def image_queries(
    options: argparse.Namespace, signer: ImageHash, at_a_time: int
) -> Iterator[tuple[list[str], NDArray[np.uint8], frozenset[int]]]:
    """Yield the paths of images that are looked for, their signatures, and which of these say
    nothing; what cannot be read is named.
    """
    named = [options.file] if options.file is not None else options.queries
    found = find_files(expand_paths(named), ImageMedium)
    if not found.files:
        raise ArgumentError(
            Said("queries"),
            f": {named[0]} is no image, and the index has images; expected files of images, or "
            "--signatures FILE",
        )
    medium = ImageMedium(bits=signer.bits, hash=signer.kind)
    problems = list(found.problems)
    for begin in range(0, len(found.files), at_a_time):
        read = medium.read(
            found.files[begin : begin + at_a_time],
            threads=thread_count(options.threads),
            tell=lambda share: None,
        )
        empty = frozenset(np.flatnonzero(~read.content.clear).tolist())
        rows = np.ascontiguousarray(read.content.signatures[:, 0])
        yield list(map(str, read.files)), rows, empty
        problems += read.problems
    warn_problems(problems)
