"""Passages that documents have in common: what was quoted, copied or pasted, and where."""
