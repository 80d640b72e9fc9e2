"""Passages that long documents share, and pieces of items of many parts."""
