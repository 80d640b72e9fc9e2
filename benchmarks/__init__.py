"""Benchmarks of lookalike, each beside its peers in the same run. `make bench` runs them all."""

import os

# Signing is timed with one thread. Peers that cannot be told later read their number of threads
# from here, NumPy's matrix product when it is imported and those in Rust when they first need any.
# None of the peers in searching uses these.
for _variable in ("OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[_variable] = "1"
