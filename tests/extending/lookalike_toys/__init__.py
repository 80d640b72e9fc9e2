"""A package that extends lookalike: one toy of each kind, one file each, found by entry points."""
