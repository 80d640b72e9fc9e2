"""Sorted tables: everything within a small radius, by permuted blocks or by flips."""
