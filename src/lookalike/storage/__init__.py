"""Arrays in files that can be trusted: containers for what is saved, runs for what is appended."""

from lookalike.storage.atomic import check_replaceable, exists, same_file, whole_file, whole_folder
from lookalike.storage.container import (
    Container,
    ContainerWriter,
    new_container,
    open_container,
    write_container,
)
from lookalike.storage.signature_file import SignatureFile
from lookalike.storage.strings import Strings

__all__ = [
    "Container",
    "ContainerWriter",
    "SignatureFile",
    "Strings",
    "check_replaceable",
    "exists",
    "new_container",
    "open_container",
    "same_file",
    "whole_file",
    "whole_folder",
    "write_container",
]
