"""`lookalike sign photos/`: the hashes of a folder of images."""

from __future__ import annotations

import argparse
import os
import time
from functools import partial

import numpy as np

from lookalike.checks import thread_count
from lookalike.cli.options import check_not_read
from lookalike.cli.options.kinds import tell_medium, typed_options, warn_problems
from lookalike.cli.terminal import progress_bars, say, say_json
from lookalike.corpora.opening import expand_paths
from lookalike.corpora.writing import check_outside_folder
from lookalike.dedup.kinds import refuse
from lookalike.errors import ArgumentError, Said
from lookalike.images.medium import ImageMedium
from lookalike.media import find_files
from lookalike.shown import escape_terminal
from lookalike.signatures import save_signatures
from lookalike.storage import check_replaceable, whole_file

_OF_TEXT = ("weights", "fit", "bit_weights", "like")
_BITS = 64


def sign_images(options: argparse.Namespace) -> None:
    """Hash the images, write signatures with their paths, and say what was signed."""
    refuse("images", typed_options(options))
    for name in _OF_TEXT:
        if getattr(options, name) not in (None, False):
            raise ArgumentError(Said(name), " does nothing for images; leave it out")
    paths = expand_paths(options.input)
    for path in paths:
        check_outside_folder(path if path.is_dir() else None, options.output)
    check_not_read("-o", options.output, [path for path in paths if not path.is_dir()])
    check_replaceable(options.output)
    medium = ImageMedium(bits=options.bits or _BITS, hash=options.hash or "dct")
    tell_medium(options, medium)
    start = time.perf_counter()
    with progress_bars(options.quiet or options.json) as progress:
        tell = partial(progress, "sign") if progress is not None else lambda share: None
        found = find_files(paths, ImageMedium)
        read = medium.read(found.files, threads=thread_count(options.threads), tell=tell)
    rows = np.ascontiguousarray(read.content.signatures[:, 0])
    clear = read.content.clear
    if options.output.suffix == ".npy":
        with whole_file(options.output) as temporary, open(temporary, "wb") as file:
            np.save(file, rows)
    else:
        chosen = np.flatnonzero(clear)
        ids = [os.fsencode(read.files[row]).decode("utf-8", "replace") for row in chosen.tolist()]
        rows = rows[chosen]
        save_signatures(options.output, rows, medium.signer, ids)
    seconds = time.perf_counter() - start
    problems = [*found.problems, *read.problems]
    if options.json:
        say_json(
            {
                "images": len(read.files),
                "signatures": len(rows),
                "bits": medium.signer.bits,
                "without_features": int((~clear).sum()),
                "left_out": len(problems),
                "other_files": len(found.others),
                "signer": medium.signer.to_dict(),
                "seconds": round(seconds, 3),
                "file": str(options.output),
            }
        )
    elif not options.quiet:
        left = "left out" if options.output.suffix != ".npy" else "their signatures mean nothing"
        say(
            f"{len(rows):,} signatures of {medium.signer.bits} bits: "
            f"{escape_terminal(options.output)}"
        )
        say(f"  {len(read.files):,} images in {seconds:.2f} s")
        for count, what in (
            (int((~clear).sum()), f"of one colour, or nearly: {left}"),
            (len(problems), "that could not be read: left out"),
            (len(found.others), "files that are no images: not looked at"),
        ):
            if count:
                say(f"  {count:,} {what}")
    warn_problems(problems)
