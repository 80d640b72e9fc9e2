"""Modules that are called as other packages are, and work with this one's core.

    from lookalike.compat.datasketch import MinHash, MinHashLSH     # instead of: from datasketch
    from lookalike.compat.simhash import Simhash, SimhashIndex      # instead of: from simhash
    import lookalike.compat.faiss as faiss                          # instead of: import faiss

`install_as("datasketch")` puts one in the other's place for a whole program, so that code which
cannot be changed, and objects that were pickled by the other, find it under the name they know.
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
"""What can be stood in for, with the modules that are part of it."""


def install_as(name: str, *, replace: bool = False) -> None:
    """Let `import name` mean the module of that name here, from now on and in this process.

    If the other package was imported before, its classes may be in use: refused, unless `replace`.
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
