"""Arrays in files that can be trusted: checksummed, whole or not at all."""

from lookalike.storage.container import (
    Container,
    checksums,
    container_bytes,
    container_in,
    is_container,
    new_container,
    open_container,
    write_container,
)
from lookalike.storage.files import (
    check_replaceable,
    is_folder,
    is_there,
    remove_if_same,
    same_file,
    user_cache_folder,
    whole_file,
    whole_folder,
)
from lookalike.storage.strings import Strings

__all__ = [
    "Container",
    "Strings",
    "check_replaceable",
    "checksums",
    "container_bytes",
    "container_in",
    "is_container",
    "is_folder",
    "is_there",
    "new_container",
    "open_container",
    "remove_if_same",
    "same_file",
    "user_cache_folder",
    "whole_file",
    "whole_folder",
    "write_container",
]
