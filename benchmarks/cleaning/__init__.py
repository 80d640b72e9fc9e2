"""Cleaning texts: repeated runs of words, and items of benchmarks in training text."""
