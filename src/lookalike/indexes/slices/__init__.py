"""Inverted signature slice lists: the index, its parts, and how it is built."""
