"""Arrays in a file that can be trusted: one container format for everything that is saved."""

from lookalike.storage.container import (
    Container,
    ContainerWriter,
    new_container,
    open_container,
    write_container,
)

__all__ = ["Container", "ContainerWriter", "new_container", "open_container", "write_container"]
