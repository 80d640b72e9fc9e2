"""Exhaustive search beside its peers."""
