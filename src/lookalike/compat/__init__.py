"""Modules with the interfaces of other packages, implemented with lookalike.

    from lookalike.compat.datasketch import MinHash, MinHashLSH     # instead of: from datasketch
    from lookalike.compat.simhash import Simhash, SimhashIndex      # instead of: from simhash
    import lookalike.compat.faiss as faiss                          # instead of: import faiss

`install_as("datasketch")` installs one under the name of the other package in this process, for
code that cannot be changed, and for objects that the other package pickled.
"""

from __future__ import annotations

import importlib
import sys

from lookalike.checks import flag, one_of
from lookalike.errors import ArgumentError

__all__ = ["install_as"]

_MODULES = {
    "datasketch": "b_bit_minhash hashfunc lean_minhash lsh lshensemble lshensemble_partition "
    "lshforest minhash storage weighted_minhash",
    "faiss": "",
    "simhash": "",
}
"""The packages, and their modules."""


def install_as(name: str, *, replace: bool = False) -> None:
    """Make `import name` import the module of lookalike with that interface, in this process.

        lookalike.compat.install_as("datasketch")
        import datasketch  # lookalike.compat.datasketch

    Args:
        name: "datasketch", "faiss" or "simhash".
        replace: Whether to replace the other package if it was imported before.
    """
    one_of("name", name, _MODULES)
    ours = importlib.import_module(f"{__name__}.{name}")
    there = sys.modules.get(name)
    if there is not None and there is not ours and not flag("replace", replace):
        raise ArgumentError(
            f"{name!r} was imported before; call install_as first, or pass replace=True"
        )
    for known in [known for known in sys.modules if known.partition(".")[0] == name]:
        del sys.modules[known]
    sys.modules[name] = ours
    for part in _MODULES[name].split():
        sys.modules[f"{name}.{part}"] = importlib.import_module(f"{__name__}.{name}.{part}")
