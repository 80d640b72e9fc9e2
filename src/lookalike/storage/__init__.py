"""Arrays in a file that can be trusted: one container format for everything that is saved."""

from lookalike.storage.atomic import whole_file, whole_folder
from lookalike.storage.container import Container, open_container, write_container
from lookalike.storage.strings import Strings

__all__ = [
    "Container",
    "Strings",
    "open_container",
    "whole_file",
    "whole_folder",
    "write_container",
]
