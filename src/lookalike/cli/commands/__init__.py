"""The commands of `lookalike`: every module here is one, called as the module is."""
