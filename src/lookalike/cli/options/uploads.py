"""Output files whose names are addresses: written here, uploaded when they are complete."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lookalike.corpora.remote import Upload, is_address, without_secret
from lookalike.errors import LookalikeError

_OUTPUTS = ("output", "pairs", "report", "save_signatures", "dropped")


def output_name(text: str) -> Path | str:
    """Return the path of a file, or an address as it was typed: a path would lose a slash."""
    return text if is_address(text) else Path(text)


@contextmanager
def uploads_of(options: argparse.Namespace) -> Iterator[None]:
    """Replace addresses in options by local paths; `publish` uploads what was written there.

    The addresses are checked at once. Errors name them, not the local paths. Spark writes to
    addresses by itself.
    """
    options.uploads = {}
    options.command_line = [without_secret(word) for word in options.command_line]
    if options.engine[0] == "spark":
        yield
        return
    used: list[object] = [*options.input, options.against]
    with ExitStack() as left:
        for option in _OUTPUTS:
            address = getattr(options, option)
            if isinstance(address, str):
                upload = left.enter_context(Upload(address, used))
                used.append(address)
                options.uploads[upload.path] = upload
                setattr(options, option, upload.path)
        try:
            yield
        except LookalikeError as error:
            for path, upload in options.uploads.items():
                error.args = tuple(
                    part.replace(str(path), upload.shown) if isinstance(part, str) else part
                    for part in error.args
                )
            raise


def publish(options: argparse.Namespace, path: Path) -> str:
    """Upload a file that was written, if it is for an address; return the name to show."""
    upload = options.uploads.get(path)
    if upload is None:
        return str(path)
    upload.publish()
    return str(upload.shown)
